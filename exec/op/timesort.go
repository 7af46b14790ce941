package op

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// TimeSortSpec describes ORDER BY of an endless append-only input, ascending by a time attribute first.
type TimeSortSpec struct {
	Input *types.Schema
	Time  int // rowtime column; -1: processing time
	Keys  []SortKey
}

// NewTimeSort is Flink's temporal sort. Rows wait for the watermark to reach their time and leave in the order of time,
// Keys and arrival; rows not later than the last that has left are dropped and counted. By processing time the rows
// of one millisecond are ordered by Keys and leave when it is over. It runs as one subtask.
func NewTimeSort(spec TimeSortSpec) func() exec.Operator {
	return func() exec.Operator {
		s := &timeSort{spec: spec}
		if spec.Time < 0 {
			return &wallSort{timeSort: s}
		}
		return s
	}
}

type timeSort struct {
	spec  TimeSortSpec
	order *sortKeyEncoder
	all   checkpoint.Keys // the only key, empty
	rows  *multimap       // nothing → time, sort key, number of arrival → row
	late  *exec.Counter
	now   func() int64
	last  int64 // time of the last row that has left
	seq   uint64
	key   []byte
	row   []byte
	gone  []byte // sub-key of the last row that has left
	left  int    // how many have
	out   *batch.Builder
}

// Open implements exec.Operator.
func (t *timeSort) Open(s exec.Subtask) (err error) {
	t.order = newSortKeyEncoder(t.spec.Keys, t.spec.Input)
	t.out = batch.NewBuilder(t.spec.Input)
	t.late, t.now = s.Counter("late-dropped"), s.Now
	t.last = math.MinInt64
	appendKey(&t.all, nil, checkpoint.HashKey(nil))
	for _, st := range s.Restored() {
		if len(st) != 8+seqSize {
			return fmt.Errorf("the state of ORDER BY in the checkpoint is damaged")
		}
		t.last = max(t.last, fromOrderedTime(st))
		t.seq = max(t.seq, binary.BigEndian.Uint64(st[8:]))
	}
	t.rows, err = openMultimap(s, "rows", "timesort/1:"+rowFormat(t.spec.Input), 0)
	return err
}

// Process implements exec.Operator.
func (t *timeSort) Process(_ int, b *batch.Batch, _ exec.Emitter) error {
	if err := t.rows.probe(&t.all); err != nil {
		return err
	}
	now := int64(0)
	if t.spec.Time < 0 {
		now = max(t.now(), t.last+1) // not late when the clock is set back
	}
	for i, n := 0, b.Len(); i < n; i++ {
		r, at := b.Row(i), now
		if t.spec.Time >= 0 {
			v := b.Cols[t.spec.Time]
			if v.IsNull(r) {
				return nullTime(r, t.spec.Input.Columns[t.spec.Time].Name)
			}
			if at = millis(v, v.Idx(r)); at <= t.last {
				t.late.Add(1)
				continue
			}
		}
		t.seq++
		t.key = t.order.appendTo(orderedTime(t.key[:0], at), b, r)
		t.key = binary.BigEndian.AppendUint64(t.key, t.seq)
		t.row = appendRow(t.row[:0], b, r)
		if err := t.rows.at(0).put(t.key, t.row); err != nil {
			return err
		}
	}
	return t.rows.done()
}

// OnWatermark implements exec.Operator.
func (t *timeSort) OnWatermark(w exec.Watermark, out exec.Emitter) error {
	return t.fire(int64(w), out)
}

// fire emits the rows with times up to now.
func (t *timeSort) fire(now int64, out exec.Emitter) error {
	for more := true; more; {
		if err := t.rows.probe(&t.all); err != nil {
			return err
		}
		more = false
		t.left = 0
		var failed error
		err := t.rows.at(0).ascend(nil, func(sub, row []byte) bool {
			at := fromOrderedTime(sub)
			if at > now {
				return false
			}
			if more = t.left == batch.Size; more {
				return false
			}
			t.last = at
			t.gone = append(t.gone[:0], sub...)
			t.left++
			failed = emitRow(t.out, row, types.Insert)
			return failed == nil
		})
		if err == nil {
			err = failed
		}
		if err == nil {
			err = t.forget()
		}
		if err == nil {
			err = flush(t.out, out)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// forget removes the rows that have left.
func (t *timeSort) forget() error {
	if t.left > 0 {
		if err := t.rows.at(0).removeBelow(append(t.gone, 0)); err != nil {
			return err
		}
	}
	return t.rows.done()
}

// OnBarrier implements exec.Operator: the time of the last row that has left and the number of the last that came.
func (t *timeSort) OnBarrier(checkpoint.Barrier, exec.Emitter) ([]byte, error) {
	return binary.BigEndian.AppendUint64(orderedTime(nil, t.last), t.seq), nil
}

// Close implements exec.Operator.
func (t *timeSort) Close() error { return nil }

// wallSort is a timeSort by the wall clock.
type wallSort struct {
	*timeSort
	next  int64 // when the oldest row may leave
	known bool
}

// Process implements exec.Operator.
func (t *wallSort) Process(port int, b *batch.Batch, out exec.Emitter) error {
	t.known = false
	return t.timeSort.Process(port, b, out)
}

// OnWatermark implements exec.Operator: at the end of the input nothing more comes in the last millisecond.
func (t *wallSort) OnWatermark(w exec.Watermark, out exec.Emitter) error {
	if w != exec.MaxWatermark {
		return nil
	}
	t.known = false
	return t.fire(math.MaxInt64, out)
}

// NextTimer implements exec.ProcessingTimer.
func (t *wallSort) NextTimer() (int64, bool) {
	if !t.known {
		at, err := t.first()
		if err != nil {
			return math.MinInt64, true // OnTimer meets the error again
		}
		t.next, t.known = at, true
	}
	return t.next, t.next < math.MaxInt64
}

// first is when the oldest row may leave.
func (t *wallSort) first() (int64, error) {
	if err := t.rows.probe(&t.all); err != nil {
		return 0, err
	}
	sub, _, ok, err := t.rows.at(0).first()
	if err != nil || !ok {
		return math.MaxInt64, err
	}
	return fromOrderedTime(sub) + 1, nil
}

// OnTimer implements exec.ProcessingTimer.
func (t *wallSort) OnTimer(now int64, out exec.Emitter) error {
	t.known = false
	return t.fire(now-1, out)
}
