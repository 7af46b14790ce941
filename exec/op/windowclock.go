package op

import (
	"time"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// windowClock cuts event time into tumbling windows. Windows of a TIMESTAMP_LTZ column are cut on the session zone's
// wall clock and fire at the instant their end is reached there (Flink's TimeWindowUtil).
type windowClock struct {
	size, offset int64 // ms
	timeType     types.Type
	zone         *time.Location // nil: event time is wall clock already
	from, to     int64          // instants (ms) between which shift holds
	shift        int64          // ms to add to an instant for wall clock
}

func newWindowClock(t types.Type, size, offset int64, s expr.Session) windowClock {
	c := windowClock{size: size, offset: offset, timeType: t}
	if t.Kind == types.TimestampLTZ && s.Zone != nil && s.Zone != time.UTC {
		c.zone = s.Zone
	}
	return c
}

// millis is the event time of index i of a timestamp column, rounded down to milliseconds.
func millis(v *batch.Vec, i int) int64 {
	if v.Type.Phys() == types.PhysI128 {
		// A rowtime column has precision 3 at most; wider ones are refused by the planner.
		return floorDiv(v.I128[i].Int64(), 1_000_000)
	}
	return floorDiv(v.I64[i], 1000)
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// end is the end, in wall-clock ms, of the window an event time (ms) falls into.
func (c *windowClock) end(ms int64) int64 {
	if c.zone != nil {
		ms += c.shiftAt(ms)
	}
	return floorDiv(ms-c.offset, c.size)*c.size + c.offset + c.size
}

func (c *windowClock) shiftAt(ms int64) int64 {
	if ms < c.from || ms >= c.to {
		t := time.UnixMilli(ms).In(c.zone)
		_, sec := t.Zone()
		from, to := t.ZoneBounds()
		c.shift, c.from, c.to = int64(sec)*1000, -1<<63, 1<<63-1
		if !from.IsZero() {
			c.from = from.UnixMilli()
		}
		if !to.IsZero() {
			c.to = to.UnixMilli()
		}
	}
	return c.shift
}

// fireTime is the watermark (event time, ms) at which the window ending at wall-clock end fires: its last millisecond.
// An end inside a skipped hour fires at the start of the gap's hour, one that occurs twice at the second occurrence.
func (c *windowClock) fireTime(end int64) int64 {
	return c.instant(end) - 1
}

func (c *windowClock) instant(wall int64) int64 {
	if c.zone == nil {
		return wall
	}
	// Candidates: the offsets in force a day before and a day after.
	before := wall - offsetMs(c.zone, wall-26*3600_000)
	after := wall - offsetMs(c.zone, wall+26*3600_000)
	okBefore := before+offsetMs(c.zone, before) == wall
	okAfter := after+offsetMs(c.zone, after) == wall
	switch {
	case okAfter:
		return max(after, pick(okBefore, before, after))
	case okBefore:
		return before
	}
	// In a gap: the hour that does not exist begins at the transition.
	t := time.UnixMilli(max(before, after)).In(c.zone)
	from, _ := t.ZoneBounds()
	return from.UnixMilli()
}

func pick(ok bool, a, b int64) int64 {
	if ok {
		return a
	}
	return b
}

func offsetMs(z *time.Location, ms int64) int64 {
	_, sec := time.UnixMilli(ms).In(z).Zone()
	return int64(sec) * 1000
}

// bounds is window_start, window_end (wall clock, TIMESTAMP(3)) and window_time (the last millisecond, in the rowtime's
// type) of the window ending at wall-clock end, as column values (microseconds).
func (c *windowClock) bounds(end int64) (windowStart, windowEnd, windowTime int64) {
	last := end - 1
	if c.timeType.Kind == types.TimestampLTZ {
		last = c.instant(end) - 1
	}
	return (end - c.size) * 1000, end * 1000, last * 1000
}
