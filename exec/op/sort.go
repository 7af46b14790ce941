package op

import (
	"encoding/binary"
	"fmt"

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
// left as +I rows in order: the final table of a query. It runs as one subtask. Rows lie in state, sorted in parts; with a
// limit and an append-only input only about as many as are asked for.
func NewSort(spec SortSpec) func() exec.Operator {
	return func() exec.Operator { return &sorter{spec: spec} }
}

type sorter struct {
	atEnd
	exec.Stateless
	spec    SortSpec
	updates bool // the input is not append-only
	order   *sortKeyEncoder
	rows    *runSorter // by sort key and number of arrival; of updates by row
	final   *runSorter // of updates: what is left, by sort key; in use at the end only
	seq     uint64
	work    *batch.Builder
	seqs    []uint64 // of the rows in work
	out     *batch.Builder
}

// Open implements exec.Operator.
func (s *sorter) Open(t exec.Subtask) (err error) {
	s.updates = s.spec.InputMode != types.AppendOnly
	s.order = newSortKeyEncoder(s.spec.Keys, s.spec.Input)
	s.work, s.out = batch.NewBuilder(s.spec.Input), batch.NewBuilder(s.spec.Input)
	format := rowFormat(s.spec.Input)
	if s.rows, err = openRunSorter(t, "rows", s.format()+format); err != nil {
		return err
	}
	s.rows.updates = s.updates
	sorted := s.rows
	if s.updates {
		if s.final, err = openRunSorter(t, "final", format); err != nil {
			return err
		}
		sorted = s.final
	}
	if s.spec.Limit >= 0 {
		sorted.limit = s.spec.Limit + s.spec.Offset
	}
	for _, st := range t.Restored() {
		if err := s.restore(st); err != nil {
			return diag.New(diag.Internal, diag.Pos{}, "%s", err)
		}
	}
	return nil
}

// format names what runs are sorted by.
func (s *sorter) format() string {
	if s.updates {
		return "changes;"
	}
	f := ""
	for _, k := range s.spec.Keys {
		f += fmt.Sprintf("%d,%t,%t;", k.Col, k.Desc, k.NullsFirst)
	}
	return f
}

// restore reads what OnBarrier wrote, or what it wrote when rows were no keyed state: per row a uvarint of twice its
// length, plus one when it is a retraction, and the row.
func (s *sorter) restore(st []byte) error {
	if len(st) > sortHead && st[0] == 0 {
		s.seq = binary.BigEndian.Uint64(st[1:])
		return s.rows.restore(st[sortHead:])
	}
	for len(st) > 0 {
		n, w := binary.Uvarint(st)
		if w <= 0 || uint64(len(st)-w) < n>>1 {
			return errSortState
		}
		kind := types.Insert
		if n&1 == 1 {
			kind = types.Delete
		}
		if err := emitRow(s.work, st[w:w+int(n>>1)], kind); err != nil {
			return errSortState
		}
		st = st[w+int(n>>1):]
		if s.work.Full() || len(st) == 0 {
			if err := s.Process(0, s.work.Finish(), nil); err != nil {
				return err
			}
			s.work.Reset()
		}
	}
	return nil
}

// sortHead is the size of what precedes the runs in the small state: a zero and the number of the last row.
const sortHead = 1 + 8

// OnBarrier implements exec.Operator.
func (s *sorter) OnBarrier(checkpoint.Barrier, exec.Emitter) ([]byte, error) {
	if err := s.rows.flush(); err != nil {
		return nil, err
	}
	return s.rows.save(binary.BigEndian.AppendUint64([]byte{0}, s.seq)), nil
}

// Process implements exec.Operator.
func (s *sorter) Process(_ int, b *batch.Batch, _ exec.Emitter) error {
	q := s.rows
	for i, n := 0, b.Len(); i < n; i++ {
		r := b.Row(i)
		s.seq++
		from, mid := len(q.buf), 0
		if s.updates {
			kind := inserted
			if b.Kind(r).IsRetract() {
				kind = retracted
			}
			q.buf = append(appendRow(q.buf, b, r), kind)
			q.buf = binary.BigEndian.AppendUint64(q.buf, s.seq)
			mid = len(q.buf)
		} else {
			q.buf = binary.BigEndian.AppendUint64(s.order.appendTo(q.buf, b, r), s.seq)
			mid = len(q.buf)
			q.buf = appendRow(q.buf, b, r)
		}
		if err := q.added(from, mid); err != nil {
			return err
		}
	}
	return nil
}

// OnWatermark implements exec.Operator: the end of event time is the end of the input.
func (s *sorter) OnWatermark(w exec.Watermark, out exec.Emitter) error {
	if w != exec.MaxWatermark {
		return nil
	}
	sorted := s.rows
	if s.updates {
		if err := s.settle(); err != nil {
			return err
		}
		sorted = s.final
	}
	skip, left := s.spec.Offset, s.spec.Limit
	err := sorted.each(func(_, row []byte) error {
		switch {
		case skip > 0:
			skip--
			return nil
		case left == 0:
			return errEnough
		}
		left--
		if err := emitRow(s.out, row, types.Insert); err != nil {
			return errSortState
		}
		if s.out.Full() {
			return flush(s.out, out)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return flush(s.out, out)
}

// settle moves the rows that updates have left to final.
func (s *sorter) settle() error {
	err := s.rows.survivors(func(row []byte, seq uint64) error {
		if err := emitRow(s.work, row, types.Insert); err != nil {
			return errSortState
		}
		s.seqs = append(s.seqs, seq)
		if s.work.Full() {
			return s.sortSettled()
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.sortSettled()
}

func (s *sorter) sortSettled() error {
	b, q := s.work.Finish(), s.final
	for r := range b.N {
		from := len(q.buf)
		q.buf = binary.BigEndian.AppendUint64(s.order.appendTo(q.buf, b, r), s.seqs[r])
		mid := len(q.buf)
		q.buf = appendRow(q.buf, b, r)
		if err := q.added(from, mid); err != nil {
			return err
		}
	}
	s.work.Reset()
	s.seqs = s.seqs[:0]
	return nil
}
