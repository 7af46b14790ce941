package exec

import (
	"fmt"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
)

// Alarm is a state of a job that somebody should look at. docs/runbooks has a page for each name.
type Alarm struct {
	Name string // of the list below
	Text string // with the figures
}

// The alarms.
const (
	AlarmFailed       = "JobFailed"
	AlarmRestarting   = "JobRestarting"
	AlarmCheckpoints  = "CheckpointsFail"
	AlarmBudget       = "TransactionTimeoutAtRisk"
	AlarmTransaction  = "OldTransaction"
	AlarmNotCommitted = "OutputNotCommitted"
	AlarmDegraded     = "GuaranteeGivenUp"
	AlarmRepeated     = "RowsRepeat"
	AlarmFuture       = "RowsInTheFuture"
	AlarmDisk         = "SlowDisk"
)

// AlarmNames are all of them.
func AlarmNames() []string {
	return []string{AlarmFailed, AlarmRestarting, AlarmCheckpoints, AlarmBudget, AlarmTransaction, AlarmNotCommitted, AlarmDegraded, AlarmRepeated, AlarmFuture, AlarmDisk}
}

const (
	// pendingTooLong is how long output of a durable checkpoint may wait for its commit.
	pendingTooLong = 5 * time.Minute
	// Rows that are read again are an alarm from this share of all on: one restart is not, a job that restarts all the time
	// is. The share is of what sources read, so that filters do not change it. A few rows say nothing.
	repeatedShare = 0.05
	repeatedLeast = 1000
	// A disk whose slowest fsyncs of the last ones take this long has a fault, or somebody else keeps it busy: checkpoints need
	// several of them one after the other. A few fsyncs say nothing.
	slowSync  = time.Second
	syncLeast = 100
)

// Alarms are those of the job at this moment, in the order of AlarmNames.
func (s *Status) Alarms() (out []Alarm) {
	add := func(on bool, name, format string, args ...any) {
		if on {
			out = append(out, Alarm{name, fmt.Sprintf(format, args...)})
		}
	}
	add(s.State == Failed, AlarmFailed, "the job has failed: %v", s.Err)
	add(s.State == Restarting, AlarmRestarting, "restart %d: %v", s.Restarts, s.Err)
	c := &s.Checkpoint
	left := "any number is tolerated"
	if c.TolerableLeft >= 0 {
		left = fmt.Sprintf("%d more fail the job", c.TolerableLeft+1)
	}
	add(c.FailedInARow > 0, AlarmCheckpoints, "%d checkpoint(s) in a row have failed (%s); %s", c.FailedInARow, c.Cause, left)
	add(c.Warning != "", AlarmBudget, "%s", c.Warning)
	for i := range s.Sinks {
		k := &s.Sinks[i]
		for _, t := range k.Open {
			if k.Timeout > 0 && t.Age > k.Timeout/2 {
				add(true, AlarmTransaction, "%s: transaction %s is %s old, of %s", k.Node, t.ID, checkpoint.Short(t.Age), checkpoint.Short(k.Timeout))
				break // the oldest
			}
		}
	}
	for i := range s.Sinks {
		k := &s.Sinks[i]
		add(k.OldestPending > pendingTooLong, AlarmNotCommitted, "%s: %d output(s) of durable checkpoints are not committed, the first since %s", k.Node, k.Pending, checkpoint.Short(k.OldestPending))
	}
	for _, d := range s.GivenUp {
		add(true, AlarmDegraded, "%s", d)
	}
	read := int64(0)
	for i := range s.Splits {
		read += s.Splits[i].Records
	}
	add(s.ReadAgain >= repeatedLeast && float64(s.ReadAgain) > repeatedShare*float64(read), AlarmRepeated,
		"%d of %d rows were read again after %d restart(s)", s.ReadAgain, read, s.Restarts)
	add(s.Future > 0, AlarmFuture, "%d row(s) lay too far in the future to move event time", s.Future)
	add(s.Syncs.Samples >= syncLeast && s.Syncs.P99 >= slowSync, AlarmDisk, "fsync of the state directory's disk: p50 %s, p99 %s over the last %d",
		checkpoint.Short(s.Syncs.P50), checkpoint.Short(s.Syncs.P99), s.Syncs.Samples)
	return out
}

// sound logs alarms that were not on when it was called last. Only the watch of a running attempt calls it.
func (j *Job) sound() {
	s := j.Status()
	on := map[string]bool{}
	for _, a := range s.Alarms() {
		if !on[a.Name] && !j.sounding[a.Name] {
			j.o.Log.Warn("alarm", "job", j.o.Name, "name", a.Name, "what", a.Text)
		}
		on[a.Name] = true
	}
	j.sounding = on
}
