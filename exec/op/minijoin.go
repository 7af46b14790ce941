package op

import (
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// miniJoin is an insertJoin with mini-batches, as Flink's MiniBatchStreamingJoinOperator is: rows wait, and many batches are joined
// and kept as one. A key that gets its rows by and by is then looked for once for more of them, its state grows in fewer steps, and
// its matches leave in longer stretches. What waits is no state: it is joined before a barrier.
type miniJoin struct {
	insertJoin
	subtask exec.Subtask
	held    [2]heldInput
	due     int64
}

const (
	// miniRows is how many rows wait at most, however many a mini-batch may have: what is made of them for the join should not
	// leave the processor's cache.
	miniRows  = 16 << 10
	miniBytes = 4 << 20 // of texts, the same
)

// Open implements exec.Operator.
func (j *miniJoin) Open(s exec.Subtask) error {
	j.subtask = s
	j.held[0].open(j.spec.Left.Schema)
	j.held[1].open(j.spec.Right.Schema)
	if err := j.insertJoin.Open(s); err != nil {
		return err
	}
	for i := range j.held {
		j.held[i].texts.seen = j.testsText()
	}
	return nil
}

// Process implements exec.Operator.
func (j *miniJoin) Process(port int, b *batch.Batch, out exec.Emitter) error {
	if b.Len() == 0 {
		return nil
	}
	if j.rows() == 0 {
		j.due = j.subtask.Now() + j.spec.Mini.Latency
	}
	j.held[port].add(b)
	if j.rows() >= min(j.spec.Mini.Size, miniRows) || j.held[0].texts.bytes+j.held[1].texts.bytes >= miniBytes {
		return j.settle(out)
	}
	return nil
}

// rows is how many rows wait.
func (j *miniJoin) rows() int { return j.held[0].rows.Len() + j.held[1].rows.Len() }

// settle joins what waits.
func (j *miniJoin) settle(out exec.Emitter) error {
	first := j.first()
	for _, port := range [2]int{first, 1 - first} {
		h := &j.held[port]
		if h.rows.Len() == 0 {
			continue
		}
		j.texts = &h.texts
		if err := j.insertJoin.Process(port, h.rows.Finish(), out); err != nil {
			return err
		}
		h.forget()
	}
	return nil
}

// first is the side whose rows are joined first; rows of two inputs have no order. Of an outer, semi or anti join, the other
// side's rows then come with fewer of the changes that are taken back at once; else the fewer rows are read back for the more.
func (j *miniJoin) first() int {
	switch k := j.spec.Kind; {
	case k == RightJoin:
		return 0
	case k != InnerJoin && k != FullJoin:
		return 1
	case j.held[1].rows.Len() < j.held[0].rows.Len():
		return 1
	}
	return 0
}

// OnWatermark implements exec.Operator. Results do not depend on event time, but none stays behind a watermark.
func (j *miniJoin) OnWatermark(_ exec.Watermark, out exec.Emitter) error { return j.settle(out) }

// OnBarrier implements exec.Operator; all state is in tables.
func (j *miniJoin) OnBarrier(_ checkpoint.Barrier, out exec.Emitter) ([]byte, error) {
	return nil, j.settle(out)
}

// NextTimer implements exec.ProcessingTimer.
func (j *miniJoin) NextTimer() (int64, bool) { return j.due, j.rows() > 0 }

// OnTimer implements exec.ProcessingTimer.
func (j *miniJoin) OnTimer(_ int64, out exec.Emitter) error { return j.settle(out) }

// heldInput are rows of an input that wait. Their texts are copied: those of a batch would keep all of the source's buffer
// alive.
type heldInput struct {
	rows  *batch.Builder
	cols  []*batch.ColBuilder // of texts
	texts heldTexts
	some  []int32
}

func (h *heldInput) open(s *types.Schema) {
	h.rows = batch.NewBuilder(s)
	for i, c := range s.Columns {
		if c.Type.Phys() == types.PhysStr {
			h.cols = append(h.cols, h.rows.Cols[i])
		}
	}
}

// add adds the rows of b.
func (h *heldInput) add(b *batch.Batch) {
	rows := b.Sel
	if rows == nil {
		h.some = resize(h.some, b.N)
		for i := range h.some {
			h.some[i] = int32(i)
		}
		rows = h.some
	}
	from := h.rows.Len()
	for i, c := range h.rows.Cols {
		c.Gather(b.Cols[i], rows)
	}
	h.rows.RowsDone(len(rows))
	if len(h.cols) > 0 {
		h.texts.take(h.cols, from)
	}
}

// forget drops the rows.
func (h *heldInput) forget() {
	for _, c := range h.cols {
		clear(c.Str)
	}
	h.rows.Reset()
	h.texts.forget()
}
