package nexmark

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

type source struct {
	spec    connectors.SourceSpec
	plan    *plan
	gen     *generator
	splits  int64
	columns []column // to produce
	keep    []bool   // by kind of event: whether they are rows
	marked  bool     // events that are not count for a watermark
}

func newSource(spec connectors.SourceSpec) (*source, error) {
	p, err := parse(spec.Table)
	if err != nil {
		return nil, err
	}
	s := &source{spec: spec, plan: p, gen: &generator{config: p.config, tables: newTables(p.seed)}, splits: max(1, int64(spec.Parallel))}
	if p.splits > 0 {
		s.splits = p.splits
	}
	for i, c := range spec.Columns {
		s.columns = append(s.columns, p.columns[c].part(spec.Path(i)))
	}
	s.keep = []bool{true, true, true}
	if only := kindOf(p.event); only != noKind {
		s.keep = []bool{only == aPerson, only == anAuction, only == aBid}
	} else if k := p.kinds(spec.Filter); k != nil {
		s.keep, s.marked = k, spec.Marked
	}
	return s, nil
}

// Splits implements connectors.Source.
func (s *source) Splits(context.Context) ([]checkpoint.Split, error) {
	out := make([]checkpoint.Split, s.splits)
	for i := range out {
		out[i] = checkpoint.Split(strconv.Itoa(i))
	}
	return out, nil
}

// Open implements connectors.Source.
func (s *source) Open(_ context.Context, ps []checkpoint.Position) (connectors.Reader, error) {
	r := &reader{s: s}
	for _, p := range ps {
		if err := r.open(p, false); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// DiscoveryInterval implements connectors.Source: splits never appear later.
func (s *source) DiscoveryInterval() int64 { return 0 }

// Committed implements connectors.Source.
func (s *source) Committed(context.Context, []checkpoint.Position) {}

// Close implements connectors.Source.
func (s *source) Close() error { return nil }

// splitState is a split being made.
type splitState struct {
	name          checkpoint.Split
	index, splits int64
	next, limit   int64 // events of the split made, and all of it
	start         time.Time
	from          int64 // next at start
	done          bool
}

const positionVersion = 1

// position is version, number of splits, events made.
func (st *splitState) position() []byte {
	b := binary.AppendUvarint([]byte{positionVersion}, uint64(st.splits))
	return binary.AppendUvarint(b, uint64(st.next))
}

// readPosition takes a position apart.
func readPosition(b []byte) (splits, next int64, err error) {
	bad := errors.New("not a position of connector 'nexmark'")
	if len(b) < 3 || b[0] != positionVersion {
		return 0, 0, bad
	}
	n, k := binary.Uvarint(b[1:])
	if k <= 0 || n == 0 || n > math.MaxInt32 {
		return 0, 0, bad
	}
	at, m := binary.Uvarint(b[1+k:])
	if m <= 0 || at > math.MaxInt64/2 || len(b) != 1+k+m {
		return 0, 0, bad
	}
	return int64(n), int64(at), nil
}

// DescribePosition is a split's position for people: "event 120 of the split".
func DescribePosition(next []byte) (string, error) {
	_, at, err := readPosition(next)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("event %d of the split", at), nil
}

// share is how many of n events are in the split.
func (st *splitState) share(n, total int64) int64 {
	groups := n / total
	share := groups / st.splits * total
	switch rest := groups % st.splits; {
	case st.index < rest:
		share += total
	case st.index == rest:
		share += n % total
	}
	return share
}

type reader struct {
	s      *source
	splits []*splitState
	turn   int
	made   made
	buf    []byte
	ends   []int
}

// open starts a split. One that a restored job did not know before gets no rows: the known ones hold them all. Its position,
// a number of splits that it is not one of, says so to later restores, which find it in their checkpoint.
func (r *reader) open(p checkpoint.Position, unknownIsEmpty bool) error {
	i, err := strconv.ParseInt(string(p.Split), 10, 32)
	st := &splitState{name: p.Split, index: i, splits: r.s.splits}
	if err == nil && p.Next != nil {
		st.splits, st.next, err = readPosition(p.Next)
	}
	if err != nil {
		return diag.New(diag.Internal, diag.Pos{}, "table %s: split %q: the position %x is not of connector 'nexmark'", r.s.spec.Table.Name, p.Split, p.Next)
	}
	if p.Next == nil && unknownIsEmpty {
		st.splits = max(1, i)
		st.done = i == 0 // every first start has it
	}
	st.limit = math.MaxInt64
	if n := r.s.plan.events; st.index >= st.splits {
		st.limit = 0
	} else if n > 0 {
		st.limit = st.share(n, r.s.gen.total)
	}
	st.start, st.from = time.Now(), st.next
	r.splits = append(r.splits, st)
	return nil
}

// Positions implements connectors.Positioner: the number of splits is decided when the reader is opened.
func (r *reader) Positions() []checkpoint.Position {
	var out []checkpoint.Position
	for _, st := range r.splits {
		if !st.done {
			out = append(out, checkpoint.Position{Split: st.name, Next: st.position()})
		}
	}
	return out
}

// Add implements connectors.Reader.
func (r *reader) Add(_ context.Context, p checkpoint.Position) error { return r.open(p, true) }

// Close implements connectors.Reader.
func (r *reader) Close() error { return nil }

// patience is how long Next waits for an event to be due.
const patience = 10 * time.Millisecond

// scanned bounds the events one Next goes through when most are not rows.
const scanned = 32 * batch.Size

// Next implements connectors.Reader: the due events of one split, at most a batch.
func (r *reader) Next(ctx context.Context, out *batch.Builder) (connectors.Progress, error) {
	now, open := time.Now(), false
	for range r.splits {
		r.turn = (r.turn + 1) % len(r.splits)
		st := r.splits[r.turn]
		if st.done {
			continue
		}
		open = true
		if to := min(st.limit, st.next+scanned, r.due(st, now)); to > st.next || st.next >= st.limit {
			return r.emit(st, to, out), nil
		}
	}
	if !open {
		return connectors.Progress{}, io.EOF
	}
	wait := time.NewTimer(patience)
	defer wait.Stop()
	select {
	case <-ctx.Done():
		return connectors.Progress{}, ctx.Err()
	case <-wait.C:
		return connectors.Progress{Lag: -1}, nil
	}
}

// due is how far a split may be: all splits together make the table's rate of events.
func (r *reader) due(st *splitState, now time.Time) int64 {
	if !r.s.plan.paced {
		return math.MaxInt64
	}
	return st.from + int64(now.Sub(st.start).Seconds()*float64(r.s.gen.rate)/float64(st.splits)) + 1
}

// emit makes events of a split up to its event to.
func (r *reader) emit(st *splitState, to int64, out *batch.Builder) connectors.Progress {
	g := r.s.gen
	r.made.reset()
	from, lastIsRow := st.next, true
	for st.next < to && r.made.rows < batch.Size {
		off := st.next % g.total
		var end int64
		end, lastIsRow = r.group(st.next/g.total*st.splits+st.index, off, min(g.total, off+to-st.next))
		st.next += end - off
	}
	if r.s.marked && !lastIsRow {
		// The last event has the latest time. The engine's filter drops it.
		off := (st.next - 1) % g.total
		r.made.add(g, (st.next-1)/g.total*st.splits+st.index, off, 1)
	}
	for i, c := range r.s.columns {
		r.fill(c, out.Cols[i])
	}
	out.RowsDone(r.made.rows)
	p := connectors.Progress{Split: st.name, Position: st.position(), Records: int(st.next - from), Lag: -1}
	if st.next >= st.limit {
		st.done, p.Done = true, true
	}
	return p
}

// group takes the events of a group from place off to before place end that are rows, until the batch is full, and gives the
// place where it stopped: behind a row, or at end.
func (r *reader) group(group, off, end int64) (at int64, lastIsRow bool) {
	g := r.s.gen
	first := int64(0)
	for k, n := range [...]int64{g.person, g.auction, g.bid} {
		from, to := max(off, first), min(end, first+n)
		if first += n; from >= to {
			continue
		}
		if lastIsRow = r.s.keep[k]; !lastIsRow {
			continue
		}
		n := min(to-from, int64(batch.Size-r.made.rows))
		r.made.add(g, group, from, n)
		if r.made.rows == batch.Size {
			return from + n, true
		}
	}
	return end, lastIsRow
}

// fillRows appends a column of ROWs: NULL for events of another kind. The batch's values are parts of one string.
func (r *reader) fillRows(c column, col *batch.ColBuilder) {
	r.buf, r.ends = r.buf[:0], r.ends[:0]
	for j := range r.made.runs {
		u := &r.made.runs[j]
		for k := range u.n {
			if u.first.kind == c.kind {
				e := u.at(k)
				e.ms = r.s.gen.millis(e.n)
				r.appendRow(c, &e)
			}
			r.ends = append(r.ends, len(r.buf))
		}
	}
	all, at := string(r.buf), 0
	for _, end := range r.ends {
		if end == at {
			col.AppendNull()
		} else {
			col.AppendStr(all[at:end])
		}
		at = end
	}
}

// appendRow appends the fields of event e that are in a ROW.
func (r *reader) appendRow(c column, e *event) {
	r.buf = types.AppendListLen(r.buf, len(c.row))
	for i, f := range c.row {
		t := c.typ.Fields[i].Type
		if t.Phys() == types.PhysStr {
			r.buf = types.AppendValue(r.buf, types.StrDatum(r.s.gen.text(f, e)), t)
		} else {
			r.buf = types.AppendValue(r.buf, types.IntDatum(r.s.gen.number(f, e)), t)
		}
	}
}
