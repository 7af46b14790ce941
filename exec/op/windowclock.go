package op

import (
	"math"
	"time"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// WindowKind is a window function.
type WindowKind uint8

// The window functions.
const (
	Tumble   WindowKind = iota // [s, s+Size)
	Hop                        // [s, s+Size) with a start every Slide
	Cumulate                   // [S, S+Slide), [S, S+2·Slide) … [S, S+Size)
	Session                    // rows closer than Size (the gap) to one another
	Attached                   // the row's window is in its columns Start and End
)

// Window is a window function over a time column.
type Window struct {
	Kind   WindowKind
	Time   int   // time column of the input; not read with Proctime
	Size   int64 // ms: TUMBLE, HOP the length, CUMULATE the longest, SESSION the gap
	Slide  int64 // ms: HOP between starts, CUMULATE the step
	Offset int64 // ms
	// Proctime cuts the wall clock at the moment a row is processed, instead of a rowtime column.
	Proctime bool
	// Attached: the columns of the window, and the type of the time attribute it was cut from.
	Start, End int
	TimeType   types.Type
}

// windowClock cuts time into windows. Windows of a TIMESTAMP_LTZ column are cut on the session zone's wall clock and
// fire at the instant their end is reached there (Flink's TimeWindowUtil). Windows are named by their end, in wall-clock
// ms. The unit rows are collected in is the slice: every window is made of whole slices.
type windowClock struct {
	Window
	slice    int64 // ms
	timeType types.Type
	zone     *time.Location // nil: event time is wall clock already
	from, to int64          // instants (ms) between which shift holds
	shift    int64          // ms to add to an instant for wall clock
}

func newWindowClock(w Window, in *types.Schema, s expr.Session) windowClock {
	c := windowClock{Window: w, slice: w.Size, timeType: types.TimestampOf(types.TimestampLTZ, 3)}
	switch {
	case w.Kind == Attached:
		c.timeType, c.Size = w.TimeType, 1
	case !w.Proctime:
		c.timeType = in.Columns[w.Time].Type
	}
	switch w.Kind {
	case Hop:
		c.slice = gcd(w.Size, w.Slide)
	case Cumulate:
		c.slice = w.Slide
	}
	if c.timeType.Kind == types.TimestampLTZ && s.Zone != nil && s.Zone != time.UTC {
		c.zone = s.Zone
	}
	return c
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// millis is the event time of index i of a timestamp column, rounded down to milliseconds.
func millis(v *batch.Vec, i int) int64 {
	if v.Type.Phys() == types.PhysI128 {
		// A rowtime column has precision 3 at most: this is a time of batch mode. Years 1 to 9999 need more than 64 bits.
		sec, nanos := types.SplitNanos(v.I128[i])
		return sec*1000 + nanos/1_000_000
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

// wall is an instant (ms) on the wall clock that windows are cut on.
func (c *windowClock) wall(ms int64) int64 {
	if c.zone != nil {
		ms += c.shiftAt(ms)
	}
	return ms
}

// sliceEnd is the end of the slice a wall-clock time falls into.
func (c *windowClock) sliceEnd(wall int64) int64 {
	return floorDiv(wall-c.Offset, c.slice)*c.slice + c.Offset + c.slice
}

// sliceEnds sets ends to the ends of the slices that the rows of b belong to, by their time or the window attached to them.
func (c *windowClock) sliceEnds(b *batch.Batch, in *types.Schema, ends []int64) error {
	col := c.Time
	if c.Kind == Attached {
		col = c.End
	}
	v := b.Cols[col]
	if v.Valid != nil {
		for i := range ends {
			if r := b.Row(i); v.IsNull(r) {
				return nullTime(r, in.Columns[col].Name)
			}
		}
	}
	if c.Kind == Attached || c.zone != nil || v.Type.Phys() == types.PhysI128 {
		for i := range ends {
			ends[i] = millis(v, v.Idx(b.Row(i)))
			if c.Kind != Attached {
				ends[i] = c.sliceEnd(c.wall(ends[i]))
			}
		}
		return nil
	}
	// Rows of a slice come together: from and to are its microseconds.
	from, to, end := int64(0), int64(0), int64(0)
	if v.Const || b.Sel != nil {
		for i := range ends {
			us := v.I64[v.Idx(b.Row(i))]
			if us < from || us >= to {
				end = c.sliceEnd(floorDiv(us, 1000))
				from, to = (end-c.slice)*1000, end*1000
			}
			ends[i] = end
		}
		return nil
	}
	for i, us := range v.I64[:len(ends)] {
		if us < from || us >= to {
			end = c.sliceEnd(floorDiv(us, 1000))
			from, to = (end-c.slice)*1000, end*1000
		}
		ends[i] = end
	}
	return nil
}

// first is the earliest end of a window that holds the slice ending at end, last the latest; next is the distance
// between them. There is none, first > last, in the gaps of a HOP whose slide is longer than its size.
func (c *windowClock) first(end int64) int64 {
	if c.Kind != Hop {
		return end
	}
	// The smallest multiple of the slide (counted from the end of a window) that is not before end.
	at := c.Offset + c.Size
	return at - floorDiv(at-end, c.Slide)*c.Slide
}

func (c *windowClock) last(end int64) int64 {
	switch c.Kind {
	case Hop:
		// The start must not be after the slice's.
		return floorDiv(end-c.slice-c.Offset, c.Slide)*c.Slide + c.Offset + c.Size
	case Cumulate:
		return c.start(end) + c.Size
	}
	return end
}

func (c *windowClock) next() int64 {
	if c.Kind == Hop || c.Kind == Cumulate {
		return c.Slide
	}
	return c.Size
}

// start is the start of the window ending at end.
func (c *windowClock) start(end int64) int64 {
	if c.Kind == Cumulate {
		return floorDiv(end-1-c.Offset, c.Size)*c.Size + c.Offset
	}
	return end - c.Size
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

// skip is the first of the ends from, from+step … that may fire after before: those it passes over do not.
func (c *windowClock) skip(from int64, before exec.Watermark, step int64) int64 {
	const widest = 27 * 3600_000         // no clock on the wall is further from UTC, or changes by as much
	reached := min(int64(before), 1<<62) // an end up to reached+1 has fired
	if c.zone != nil {
		reached = max(reached, math.MinInt64+widest) - widest
	}
	if reached < from {
		return from
	}
	return from + (reached-from)/step*step
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
// type) of the window from start to end, wall clock, as column values (microseconds).
func (c *windowClock) bounds(start, end int64) (windowStart, windowEnd, windowTime int64) {
	last := end - 1
	if c.timeType.Kind == types.TimestampLTZ {
		last = c.instant(end) - 1
	}
	return start * 1000, end * 1000, last * 1000
}
