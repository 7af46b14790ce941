package op

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// SortKey is one ORDER BY column.
type SortKey struct {
	Col        int
	Desc       bool
	NullsFirst bool
}

// SortSpec describes ORDER BY and LIMIT of a bounded input. Without keys rows keep the order they arrived in.
type SortSpec struct {
	Input         *types.Schema
	InputMode     types.ChangelogMode
	Keys          []SortKey
	Limit, Offset int64 // Limit -1 = all
}

// NewSort keeps the rows of a bounded input until it ends, applies updates and deletions to them, and then emits what is
// left as +I rows in order: the final table of a query. It runs as one subtask and holds its rows in memory; with a
// limit and an append-only input only about as many rows as are asked for.
func NewSort(spec SortSpec) func() exec.Operator {
	return func() exec.Operator { return &sorter{spec: spec} }
}

type sorter struct {
	atEnd
	exec.Stateless
	spec SortSpec
	enc  *exec.KeyEncoder
	rows []string       // encoded, in arrival order
	gone map[string]int // retracted copies that are still in rows
	buf  []byte
	all  *batch.Batch // the rows decoded, by order
}

// Open implements exec.Operator.
func (s *sorter) Open(t exec.Subtask) error {
	all := make([]int, s.spec.Input.Len())
	for i := range all {
		all[i] = i
	}
	s.enc = exec.NewKeyEncoder(all)
	s.gone = map[string]int{}
	for _, st := range t.Restored() {
		if err := s.restore(st); err != nil {
			return err
		}
	}
	return nil
}

// restore reads state: per row a uvarint of twice its length, plus one when it is a retraction, and the row.
func (s *sorter) restore(st []byte) error {
	for len(st) > 0 {
		n, w := binary.Uvarint(st)
		if w <= 0 || uint64(len(st)-w) < n>>1 {
			return diag.New(diag.Internal, diag.Pos{}, "the state of ORDER BY in the checkpoint is damaged")
		}
		row := string(st[w : w+int(n>>1)])
		if n&1 == 1 {
			s.gone[row]++
		} else {
			s.rows = append(s.rows, row)
		}
		st = st[w+int(n>>1):]
	}
	return nil
}

// OnBarrier implements exec.Operator.
func (s *sorter) OnBarrier(checkpoint.Barrier, exec.Emitter) ([]byte, error) {
	var st []byte
	for _, r := range s.rows {
		st = append(binary.AppendUvarint(st, uint64(len(r))<<1), r...)
	}
	for r, n := range s.gone {
		for range n {
			st = append(binary.AppendUvarint(st, uint64(len(r))<<1|1), r...)
		}
	}
	return st, nil
}

// Process implements exec.Operator.
func (s *sorter) Process(_ int, b *batch.Batch, _ exec.Emitter) error {
	for i, n := 0, b.Len(); i < n; i++ {
		r := b.Row(i)
		s.buf = s.enc.AppendKey(s.buf[:0], b, r)
		if b.Kind(r).IsRetract() {
			s.gone[string(s.buf)]++
		} else {
			s.rows = append(s.rows, string(s.buf))
		}
	}
	if want := s.spec.Limit + s.spec.Offset; s.spec.Limit >= 0 && s.spec.InputMode == types.AppendOnly &&
		int64(len(s.rows)) > 2*want+batch.Size {
		order, err := s.order()
		if err != nil {
			return err
		}
		kept := make([]string, 0, want)
		for _, i := range order[:want] {
			kept = append(kept, s.rows[i])
		}
		s.rows = kept
	}
	return nil
}

// order decodes the rows and returns their places in output order. Equal keys keep the order of arrival.
func (s *sorter) order() ([]int, error) {
	bld := batch.NewBuilder(s.spec.Input)
	live := s.rows[:0]
	for _, r := range s.rows {
		if n := s.gone[r]; n > 0 {
			if s.gone[r]--; n == 1 {
				delete(s.gone, r)
			}
			continue
		}
		live = append(live, r)
		if _, err := exec.DecodeKey([]byte(r), bld.Cols); err != nil {
			return nil, err
		}
		bld.RowDone()
	}
	s.rows, s.all = live, bld.Finish()
	order := make([]int, len(live))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		for _, k := range s.spec.Keys {
			if c := k.compare(s.all.Cols[k.Col], a, b); c != 0 {
				return c
			}
		}
		return 0
	})
	return order, nil
}

// OnWatermark implements exec.Operator: the end of event time is the end of the input.
func (s *sorter) OnWatermark(w exec.Watermark, out exec.Emitter) error {
	if w != exec.MaxWatermark || len(s.rows) == 0 {
		return nil
	}
	order, err := s.order()
	if err != nil {
		return err
	}
	if s.spec.Offset > 0 {
		order = order[min(s.spec.Offset, int64(len(order))):]
	}
	if s.spec.Limit >= 0 {
		order = order[:min(s.spec.Limit, int64(len(order)))]
	}
	b := batch.NewBuilder(s.spec.Input)
	for i, r := range order {
		for c, v := range s.all.Cols {
			b.Cols[c].AppendFrom(v, r)
		}
		b.RowDone()
		if b.Full() || i == len(order)-1 {
			if err := out.Emit(b.Finish()); err != nil {
				return err
			}
			b.Reset()
		}
	}
	s.rows, s.all, s.gone = nil, nil, map[string]int{}
	return nil
}

// compare orders rows a and b of v by one key.
func (k SortKey) compare(v *batch.Vec, a, b int) int {
	an, bn := v.IsNull(a), v.IsNull(b)
	if an || bn {
		if an == bn {
			return 0
		}
		if an == k.NullsFirst {
			return -1
		}
		return 1
	}
	c := compareValues(v, v.Idx(a), v.Idx(b))
	if k.Desc {
		return -c
	}
	return c
}

func compareValues(v *batch.Vec, a, b int) int {
	switch v.Type.Phys() {
	case types.PhysF64:
		return cmp.Compare(v.F64[a], v.F64[b])
	case types.PhysBool:
		x, y := v.Bool[a], v.Bool[b]
		switch {
		case x == y:
			return 0
		case y:
			return -1
		}
		return 1
	case types.PhysStr:
		return strings.Compare(v.Str[a], v.Str[b])
	case types.PhysI128:
		return v.I128[a].Cmp(v.I128[b])
	}
	return cmp.Compare(v.I64[a], v.I64[b])
}
