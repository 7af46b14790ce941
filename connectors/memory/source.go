package memory

import (
	"context"
	"encoding/binary"
	"math"
	"time"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// source reads a Feed.
type source struct {
	f    *Feed
	spec connectors.SourceSpec
	cols []int // per output column: index into Row.Values
}

func newSource(f *Feed, spec connectors.SourceSpec) *source {
	s := &source{f: f, spec: spec}
	physical := map[int]int{}
	for i, c := range spec.Table.Columns {
		if c.Kind == catalog.Physical {
			physical[i] = len(physical)
		}
	}
	for _, c := range spec.Columns {
		s.cols = append(s.cols, physical[c])
	}
	return s
}

// part is the field of a ROW that path leads to.
func part(d types.Datum, path []int) types.Datum {
	for _, i := range path {
		if d.IsNull {
			return types.NullDatum
		}
		d = d.List[i]
	}
	return d
}

// Splits implements connectors.Source.
func (s *source) Splits(context.Context) ([]checkpoint.Split, error) {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	var out []checkpoint.Split
	for i := range s.f.splits {
		out = append(out, s.f.splitName(i))
	}
	return out, nil
}

// Open implements connectors.Source.
func (s *source) Open(ctx context.Context, splits []checkpoint.Position) (connectors.Reader, error) {
	r := &reader{s: s}
	for _, p := range splits {
		if err := r.Add(ctx, p); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// DiscoveryInterval implements connectors.Source.
func (s *source) DiscoveryInterval() int64 {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	return s.f.discovery
}

// Committed implements connectors.Source: rows that a committed checkpoint covers are dropped. No older checkpoint is
// restored after that.
func (s *source) Committed(_ context.Context, positions []checkpoint.Position) {
	for _, p := range positions {
		i, err := s.f.splitIndex(p.Split)
		if err != nil || p.Next == nil {
			continue
		}
		n, _ := binary.Uvarint(p.Next)
		s.f.drop(i, int64(n))
	}
}

// Close implements connectors.Source.
func (s *source) Close() error { return nil }

// reader reads some splits of a feed in turn.
type reader struct {
	s      *source
	splits []readSplit
	next   int
}

type readSplit struct {
	name  checkpoint.Split
	index int
	at    int64
	told  bool // its start was returned as a position
	done  bool
}

// Add implements connectors.Reader.
func (r *reader) Add(_ context.Context, p checkpoint.Position) error {
	i, err := r.s.f.splitIndex(p.Split)
	if err != nil {
		return err
	}
	var at *int64
	if p.Next != nil {
		n, k := binary.Uvarint(p.Next)
		if k <= 0 || n > math.MaxInt64 {
			return diag.New(diag.Internal, diag.Pos{}, "position of split %q is damaged", p.Split)
		}
		v := int64(n)
		at = &v
	}
	start, err := r.s.f.open(i, at)
	if err != nil {
		return diag.New(diag.Lost, diag.Pos{}, "table %q cannot be read", r.s.spec.Table.Name).Wrap(err).
			WithHint("feed the table from the row that Feed.Start returns")
	}
	r.splits = append(r.splits, readSplit{name: p.Split, index: i, at: start})
	return nil
}

// poll is how long Next waits for rows.
const poll = 5 * time.Millisecond

// Next implements connectors.Reader.
func (r *reader) Next(ctx context.Context, out *batch.Builder) (connectors.Progress, error) {
	p, err, changed := r.step(out)
	if err != nil || p.Split != "" {
		return p, err
	}
	timer := time.NewTimer(poll)
	defer timer.Stop()
	select {
	case <-changed:
		p, err, _ = r.step(out)
		return p, err
	case <-timer.C:
		return connectors.Progress{}, nil
	case <-ctx.Done():
		return connectors.Progress{}, ctx.Err()
	}
}

// step reads what one split has. Without progress it returns the channel that is closed at the feed's next change.
func (r *reader) step(out *batch.Builder) (p connectors.Progress, err error, changed <-chan struct{}) {
	f := r.s.f
	f.mu.Lock()
	defer f.mu.Unlock()
	open := 0
	for range r.splits {
		rs := &r.splits[r.next%len(r.splits)]
		r.next++
		if rs.done {
			continue
		}
		open++
		s := f.splits[rs.index]
		if err := s.fail[rs.at]; err != nil {
			delete(s.fail, rs.at)
			f.signal()
			return connectors.Progress{Split: rs.name}, err, nil
		}
		end := s.base + int64(len(s.rows))
		stop := min(end, rs.at+batch.Size)
		if s.hold >= 0 && s.hold < stop {
			stop = max(s.hold, rs.at)
		}
		for at := range s.fail {
			if at > rs.at && at < stop {
				stop = at
			}
		}
		n := stop - rs.at
		for _, row := range s.rows[rs.at-s.base : stop-s.base] {
			for c, from := range r.s.cols {
				out.Cols[c].AppendDatum(part(row.Values[from], r.s.spec.Path(c)))
			}
			out.RowKindDone(row.Kind)
		}
		rs.at = stop
		s.read = max(s.read, stop)
		rs.done = s.closed && rs.at == end
		if n > 0 || rs.done || !rs.told {
			rs.told = true
			if f.limit > 0 && n > 0 {
				f.signal()
			}
			return connectors.Progress{Split: rs.name, Position: binary.AppendUvarint(nil, uint64(rs.at)), Done: rs.done,
				Records: int(n), Lag: end - rs.at}, nil, nil
		}
	}
	if open == 0 {
		return p, connectors.ErrEnd, nil
	}
	return p, nil, f.changed
}

// Close implements connectors.Reader.
func (r *reader) Close() error { return nil }
