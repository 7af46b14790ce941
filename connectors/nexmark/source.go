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
	runs   []run // of the batch being made
	rows   int   // and its events
	buf    []byte
	ends   []int
}

// open starts a split. One that a restored job did not know before gets no rows: the known ones hold them all.
func (r *reader) open(p checkpoint.Position, unknownIsEmpty bool) error {
	i, err := strconv.ParseInt(string(p.Split), 10, 32)
	st := &splitState{name: p.Split, index: i, splits: r.s.splits}
	if err == nil && p.Next != nil {
		st.splits, st.next, err = readPosition(p.Next)
	}
	if err != nil {
		return diag.New(diag.Internal, diag.Pos{}, "table %s: split %q: the position %x is not of connector 'nexmark'", r.s.spec.Table.Name, p.Split, p.Next)
	}
	st.limit = math.MaxInt64
	if n := r.s.plan.events; n > 0 {
		st.limit = st.share(n, r.s.gen.total)
	}
	st.done = p.Next == nil && unknownIsEmpty
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
	g, only := r.s.gen, kindOf(r.s.plan.event)
	low, high := int64(0), g.total
	switch only {
	case aPerson:
		high = g.person
	case anAuction:
		low, high = g.person, g.person+g.auction
	case aBid:
		low = g.person + g.auction
	}
	r.runs, r.rows = r.runs[:0], 0
	from := st.next
	for st.next < to && r.rows < batch.Size {
		off := st.next % g.total
		group := st.next/g.total*st.splits + st.index
		// One group at a time: its events that are rows are neighbours.
		n := min(g.total-off, to-st.next)
		first, last := max(off, low), min(off+n, high)
		if last-first >= int64(batch.Size-r.rows) {
			last = first + int64(batch.Size-r.rows)
			n = last - off
		}
		if first < last {
			r.runs = g.runsOf(r.runs, group, first, last, r.rows)
			r.rows += int(last - first)
		}
		st.next += n
	}
	for i, c := range r.s.columns {
		r.fill(c, out.Cols[i])
	}
	out.RowsDone(r.rows)
	p := connectors.Progress{Split: st.name, Position: st.position(), Records: int(st.next - from), Lag: -1}
	if st.next >= st.limit {
		st.done, p.Done = true, true
	}
	return p
}

// fill appends a column's values of the batch's events. A field of a ROW is NULL for events of another kind.
func (r *reader) fill(c column, col *batch.ColBuilder) {
	if c.typ.Kind == types.Row {
		r.fillRows(c, col)
		return
	}
	if c.typ.Phys() == types.PhysStr {
		r.texts(c.field, c.kind, col)
	} else {
		r.numbers(c.field, c.kind, col)
	}
}

// fillRows appends a column of ROWs: NULL for events of another kind. The batch's values are parts of one string.
func (r *reader) fillRows(c column, col *batch.ColBuilder) {
	r.buf, r.ends = r.buf[:0], r.ends[:0]
	for j := range r.runs {
		u := &r.runs[j]
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
