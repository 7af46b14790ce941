package exec_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql/connectors/memory"
	"github.com/streamsql/streamsql/exec"
)

// A row that lies too far in the future is processed and does not move event time, so that the rows behind it are in time.
// Method: rows around a clock that stands still, with watermarks by row and by time; and the same rows without a bound.
func TestFutureRows(t *testing.T) {
	const now, skew, far = 1_000_000, 5_000, 9_000_000
	rows := []memory.Row{row(1, 1, now), row(1, 2, far), row(1, 3, now+skew), row(1, 4, now+skew+1), row(1, 5, now+10)}
	for _, c := range []struct {
		name    string
		onEvent bool
		skew    int64
		zone    *time.Location
		trace   string
		mark    exec.Watermark
		future  int64
	}{
		{"by row", true, skew, nil, "1 2 3 4 w=1005000 5 w=max", now + skew, 2},
		{"by time", false, skew, nil, "1 2 3 4 5 w=max", now + skew, 2},
		{"no bound", true, 0, nil, "1 2 w=9000000 3 4 5 w=max", far, 0},
		// Where the wall is an hour behind, all but the row of now lies ahead.
		{"a column without a zone", true, 3_600_000, time.FixedZone("", -3600), "1 2 3 4 5 w=1000000 w=max", now, 4},
		{"all of a batch", false, 1, time.FixedZone("", -3600), "1 2 3 4 5 w=max", exec.NoWatermark, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			bus := memory.NewBus()
			bus.Feed("in").Append(0, rows...)
			bus.Feed("in").Close()
			l := newTrace()
			w := rowtime(c.onEvent, 200, 0)
			w.MaxAhead, w.Zone = c.skew, c.zone
			var log strings.Builder
			j := start(t, probed(bus, l, w), exec.JobOptions{Now: func() time.Time { return time.UnixMilli(now) }, Log: slog.New(slog.NewTextHandler(&log, nil))})
			if err := j.wait(); err != nil {
				t.Fatal(err)
			}
			if got := l.String(); got != c.trace {
				t.Errorf("%s, want %s", got, c.trace)
			}
			st := j.Status()
			if st.Future != c.future || st.Splits[0].Watermark != c.mark {
				t.Errorf("%d rows too far ahead, want %d; watermark %d, want %d", st.Future, c.future, st.Splits[0].Watermark, c.mark)
			}
			if n := strings.Count(log.String(), "so far in the future"); n != int(min(c.future, 1)) {
				t.Errorf("the log tells %d times:\n%s", n, log.String())
			}
		})
	}
}
