package datagen

import (
	"context"
	"encoding/binary"
	"io"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
)

type source struct {
	spec   connectors.SourceSpec
	plan   *plan
	splits int64
	seed   uint64
}

func newSource(spec connectors.SourceSpec) (*source, error) {
	p, err := parse(spec.Table)
	if err != nil {
		return nil, err
	}
	s := &source{spec: spec, plan: p, splits: max(1, int64(spec.Parallel)), seed: rand.Uint64()}
	if p.v.Has("scan.parallelism") {
		s.splits = p.v.Int("scan.parallelism")
	}
	if p.v.Has("seed") {
		s.seed = mix(uint64(p.v.Int("seed")))
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

// splitState is a split being generated.
type splitState struct {
	name  checkpoint.Split
	rows  rowSource
	limit int64   // rows of this split
	rate  float64 // rows per second
	// due is when the next row may be made. It is not part of the position: a restart paces from then on.
	due  time.Time
	done bool
}

type reader struct {
	s      *source
	splits []*splitState
	turn   int
}

const positionVersion = 1

// position is version, seed, number of splits, next row.
func (st *splitState) position() []byte {
	b := binary.LittleEndian.AppendUint64([]byte{positionVersion}, st.rows.seed)
	b = binary.AppendUvarint(b, uint64(st.rows.splits))
	return binary.AppendUvarint(b, uint64(st.rows.from))
}

// open starts a split. One that a restored job did not know before gets no rows: the known ones hold them all. Its position,
// a number of splits that it is not one of, says so to later restores, which find it in their checkpoint.
func (r *reader) open(p checkpoint.Position, unknownIsEmpty bool) error {
	i, err := strconv.ParseInt(string(p.Split), 10, 64)
	if err != nil || i < 0 {
		return badPosition(r.s, p)
	}
	st := &splitState{name: p.Split, rows: rowSource{seed: r.s.seed, split: i, splits: r.s.splits, zone: time.UTC}}
	if z := r.s.spec.Session.Zone; z != nil {
		st.rows.zone = z
	}
	if p.Next != nil {
		if len(p.Next) < 9 || p.Next[0] != positionVersion {
			return badPosition(r.s, p)
		}
		st.rows.seed = binary.LittleEndian.Uint64(p.Next[1:])
		n, k := binary.Uvarint(p.Next[9:])
		if k <= 0 || n == 0 || n > math.MaxInt64 {
			return badPosition(r.s, p)
		}
		from, k2 := binary.Uvarint(p.Next[9+k:])
		if k2 <= 0 || from > math.MaxInt64 || len(p.Next) != 9+k+k2 {
			return badPosition(r.s, p)
		}
		st.rows.splits, st.rows.from = int64(n), int64(from)
	} else if unknownIsEmpty {
		st.rows.splits = max(1, i)
		st.done = i == 0 // every first start has it
	}
	if total := r.s.plan.limit(); i < st.rows.splits {
		st.limit = total / st.rows.splits
		if i < total%st.rows.splits {
			st.limit++
		}
	}
	st.rate = float64(r.s.plan.rate) / float64(st.rows.splits)
	st.due = time.Now()
	r.splits = append(r.splits, st)
	return nil
}

func badPosition(s *source, p checkpoint.Position) error {
	return diag.New(diag.Internal, diag.Pos{}, "table %s: split %q: the position %x is not of connector 'datagen'", s.spec.Table.Name, p.Split, p.Next)
}

// Positions implements connectors.Positioner: the seed is decided when the reader is opened.
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

// patience is how long Next waits for a row to be due.
const patience = 10 * time.Millisecond

// Next implements connectors.Reader: the due rows of one split, at most a batch.
func (r *reader) Next(ctx context.Context, out *batch.Builder) (connectors.Progress, error) {
	now := time.Now()
	var first *splitState
	for range r.splits {
		r.turn = (r.turn + 1) % len(r.splits)
		st := r.splits[r.turn]
		if st.done {
			continue
		}
		if st.rows.from >= st.limit {
			st.done = true
			return connectors.Progress{Split: st.name, Position: st.position(), Done: true}, nil
		}
		if n := st.ready(now); n > 0 {
			return r.emit(st, n, now, out), nil
		}
		if first == nil || st.due.Before(first.due) {
			first = st
		}
	}
	if first == nil {
		return connectors.Progress{}, io.EOF
	}
	wait := time.NewTimer(min(time.Until(first.due), patience))
	defer wait.Stop()
	select {
	case <-ctx.Done():
		return connectors.Progress{Split: first.name}, ctx.Err()
	case <-wait.C:
		return connectors.Progress{Split: first.name, Lag: -1}, nil
	}
}

// ready is the number of rows that are due. Time lost to backpressure is made up for a second at most.
func (st *splitState) ready(now time.Time) int {
	if behind := now.Sub(st.due); behind > time.Second {
		st.due = now.Add(-time.Second)
	} else if behind < 0 {
		return 0
	}
	n := int64(now.Sub(st.due).Seconds()*st.rate) + 1
	return int(min(n, batch.Size, st.limit-st.rows.from))
}

func (r *reader) emit(st *splitState, n int, now time.Time, out *batch.Builder) connectors.Progress {
	st.rows.now = now
	for i, c := range r.s.spec.Columns {
		st.rows.fill(r.s.plan.fields[c], out.Cols[i], n)
	}
	for range n {
		out.RowDone()
	}
	st.rows.from += int64(n)
	st.due = st.due.Add(time.Duration(float64(n) / st.rate * float64(time.Second)))
	p := connectors.Progress{Split: st.name, Position: st.position(), Records: n, Lag: -1}
	if st.rows.from >= st.limit {
		st.done, p.Done = true, true
	}
	return p
}
