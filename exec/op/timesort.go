package op

import (
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
	spec   TimeSortSpec
	rows   *timeQueue
	late   *exec.Counter
	now    func() int64
	last   int64 // time of the last row that has left
	times  []int64
	places []int32
	hashes []uint64
	out    exec.Emitter
	visit  waitVisitor
}

// Open implements exec.Operator.
func (t *timeSort) Open(s exec.Subtask) (err error) {
	t.late, t.now = s.Counter("late-dropped"), s.Now
	t.last = math.MinInt64
	for _, st := range s.Restored() {
		if len(st) != 8 {
			return fmt.Errorf("the state of ORDER BY in the checkpoint is damaged")
		}
		t.last = max(t.last, fromOrderedTime(st))
	}
	t.visit = t.emit
	t.rows, err = openTimeQueue(s, "rows", t.spec.Input, t.spec.Keys)
	return err
}

// Process implements exec.Operator.
func (t *timeSort) Process(_ int, b *batch.Batch, _ exec.Emitter) (err error) {
	if t.spec.Time >= 0 {
		t.times, err = rowtimes(t.times, b, t.spec.Input, t.spec.Time)
	} else {
		t.times = resize(t.times, b.Len())
		now := max(t.now(), t.last+1) // not late when the clock is set back
		for i := range t.times {
			t.times[i] = now
		}
	}
	if err != nil {
		return err
	}
	t.places = t.places[:0]
	for i, at := range t.times {
		if at <= t.last {
			t.late.Add(1)
			continue
		}
		t.places = append(t.places, int32(i))
	}
	for one := checkpoint.HashKey(nil); len(t.hashes) < len(t.times); { // all rows have the same key, none
		t.hashes = append(t.hashes, one)
	}
	return t.rows.log.add(b, t.places, t.hashes, t.times, t.now())
}

// OnWatermark implements exec.Operator.
func (t *timeSort) OnWatermark(w exec.Watermark, out exec.Emitter) error {
	return t.fire(int64(w), out)
}

// fire emits the rows with times up to now.
func (t *timeSort) fire(now int64, out exec.Emitter) error {
	t.out = out
	return t.rows.leave(now, t.visit)
}

// emit sends rows that leave on.
func (t *timeSort) emit(b *batch.Batch, times []int64) error {
	t.last = times[len(times)-1]
	return t.out.Emit(b)
}

// OnBarrier implements exec.Operator: the time of the last row that has left.
func (t *timeSort) OnBarrier(checkpoint.Barrier, exec.Emitter) ([]byte, error) {
	return orderedTime(nil, t.last), t.rows.log.save()
}

// Close implements exec.Operator.
func (t *timeSort) Close() error { return nil }

// wallSort is a timeSort by the wall clock.
type wallSort struct {
	*timeSort
}

// OnWatermark implements exec.Operator: at the end of the input nothing more comes in the last millisecond.
func (t *wallSort) OnWatermark(w exec.Watermark, out exec.Emitter) error {
	if w != exec.MaxWatermark {
		return nil
	}
	return t.fire(math.MaxInt64, out)
}

// NextTimer implements exec.ProcessingTimer: rows of a millisecond leave when it is over.
func (t *wallSort) NextTimer() (int64, bool) {
	at, ok := t.rows.log.next()
	if !ok {
		return 0, false
	}
	return at + 1, true
}

// OnTimer implements exec.ProcessingTimer.
func (t *wallSort) OnTimer(now int64, out exec.Emitter) error {
	return t.fire(now-1, out)
}
