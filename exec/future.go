package exec

import (
	"time"

	"github.com/streamsql/streamsql/sql/batch"
)

// futureLayout shows a time as the rowtime column has it, in its own zone or none.
const futureLayout = "2006-01-02 15:04:05.000"

// futureGuard keeps rows whose time lies too far ahead of the clock from moving event time: one such row, of a producer
// whose clock is wrong, would make all others late. The rows themselves go on, and wait for event time to come to theirs.
//
// The shape rejected is dropping them: a bound that is too small would then lose rows, where it only delays now.
type futureGuard struct {
	spec *WatermarkSpec
	held *Counter
	keep []int32 // rows that count, where not all do
}

// limit is the latest time, in milliseconds as the rowtime column counts them, that counts at now.
func (g *futureGuard) limit(nowMs int64) int64 {
	if g.spec.Zone != nil { // a TIMESTAMP shows what the wall shows there
		_, offset := time.UnixMilli(nowMs).In(g.spec.Zone).Zone()
		nowMs += int64(offset) * 1000
	}
	return nowMs + g.spec.MaxAhead
}

// within is b without the rows that lie ahead of limit; ahead is the greatest time of those, and some tells whether there
// are any. The rows of b stay where they are.
func (g *futureGuard) within(b *batch.Batch, limit int64, part *batch.Batch) (in *batch.Batch, ahead int64, some bool) {
	v := b.Cols[g.spec.Column]
	r := latest(b, v)
	if r < 0 {
		return b, 0, false
	}
	if ahead = millis(v, r); ahead <= limit {
		return b, 0, false
	}
	g.keep = append(g.keep[:0], 0)[:0] // never nil: no selection would be all rows
	for i, n := 0, b.Len(); i < n; i++ {
		if r := b.Row(i); v.IsNull(r) || millis(v, r) <= limit {
			g.keep = append(g.keep, int32(r))
		}
	}
	g.held.Add(int64(b.Len() - len(g.keep)))
	*part = *b
	part.Sel = g.keep
	return part, ahead, true
}

// heldBack tells of the first row of a split that does not count.
func (s *sourceReader) heldBack(sp *split, ahead, limit int64) {
	if sp.ahead {
		return
	}
	sp.ahead = true
	s.t.at.job.o.Log.Warn("a row lies so far in the future that it does not move event time", "job", s.t.at.job.o.Name,
		"source", s.m.node.Name, "split", sp.name, "time", time.UnixMilli(ahead).UTC().Format(futureLayout),
		"latest that counts", time.UnixMilli(limit).UTC().Format(futureLayout))
}
