package exec

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
)

// Each alarm is on for the status it is for, and for no other. Method: one status per alarm, and those just short of it.
func TestAlarms(t *testing.T) {
	began := time.Unix(1000, 0)
	rows := func(n, again int64) Status {
		return Status{Splits: []SplitStatus{{Records: n / 2}, {Records: n - n/2}}, ReadAgain: again, Restarts: 1}
	}
	sink := func(s SinkStatus) Status { return Status{Sinks: []SinkStatus{{}, s}} }
	aged := func(age, timeout time.Duration) Status {
		return sink(SinkStatus{Timeout: timeout, Open: []TransactionStatus{{ID: "x", Age: age}, {ID: "y", Age: age}}})
	}
	for _, c := range []struct {
		name string // "" = none
		s    Status
	}{
		{"", Status{State: Running}},
		{AlarmFailed, Status{State: Failed, Err: errors.New("x")}},
		{AlarmRestarting, Status{State: Restarting, Err: errors.New("x")}},
		{"", Status{State: Running, Restarts: 5, Err: errors.New("x")}},
		{AlarmCheckpoints, Status{Checkpoint: CheckpointStatus{FailedInARow: 1}}},
		{AlarmCheckpoints, Status{Checkpoint: CheckpointStatus{FailedInARow: 1, TolerableLeft: -1}}},
		{AlarmBudget, Status{Checkpoint: CheckpointStatus{Warning: "x"}}},
		{AlarmTransaction, aged(31*time.Second, time.Minute)},
		{"", aged(30*time.Second, time.Minute)},
		{"", aged(time.Hour, 0)},
		{AlarmNotCommitted, sink(SinkStatus{Pending: 1, OldestPending: pendingTooLong + 1})},
		{"", sink(SinkStatus{Pending: 1, OldestPending: pendingTooLong})},
		{AlarmDegraded, Status{Degraded: []checkpoint.Degradation{{At: began}}, GivenUp: []checkpoint.Degradation{{At: began}}}},
		{"", Status{Degraded: []checkpoint.Degradation{{At: began}}}},
		{AlarmRepeated, rows(100_000, 5001)},
		{"", rows(100_000, 5000)},
		{"", rows(2000, 999)},
		{AlarmFuture, Status{Future: 1}},
		{AlarmDisk, Status{Syncs: checkpoint.SyncFigures{Samples: syncLeast, P99: slowSync}}},
		{"", Status{Syncs: checkpoint.SyncFigures{Samples: syncLeast - 1, P99: time.Hour}}},
		{"", Status{Syncs: checkpoint.SyncFigures{Samples: syncLeast, P99: slowSync - 1}}},
	} {
		got := c.s.Alarms()
		if c.name == "" && len(got) > 0 || c.name != "" && (len(got) != 1 || got[0].Name != c.name || got[0].Text == "") {
			t.Errorf("want %q, got %+v", c.name, got)
		}
		if len(got) > 0 && !slices.Contains(AlarmNames(), got[0].Name) {
			t.Errorf("%s is not listed", got[0].Name)
		}
	}
}
