package op

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// WindowRankSpec describes a Top-N of every window: of an append-only input with the columns of a window function, of
// every window and Partition the rows whose place in the order is From ≤ place ≤ To.
type WindowRankSpec struct {
	Input     *types.Schema
	WindowEnd int   // column
	Partition []int // window_start and window_end among them
	Order     []SortKey
	From, To  int64
	// LastOfEqual: of rows equal in the order the last to arrive is the first: the deduplication that keeps the last row.
	LastOfEqual bool
	Number      bool // adds the place as a BIGINT column
	// InstantEnd: window_end is the wall clock of Session's zone, because the windows are of a TIMESTAMP_LTZ rowtime.
	InstantEnd bool
	Session    expr.Session
	Output     *types.Schema
}

// NewWindowRank is Flink's window Top-N and window deduplication: the best rows of a window leave, in their order, when
// the watermark reaches the window's last millisecond. Rows of a window that has fired are dropped and counted. Rows
// must be exchanged by Partition. Only the best To rows of a window are kept, until it fires.
func NewWindowRank(spec WindowRankSpec) func() exec.Operator {
	return func() exec.Operator { return &windowRank{spec: spec} }
}

type windowRank struct {
	spec      WindowRankSpec
	clock     windowClock
	enc       *exec.KeyEncoder
	order     *sortKeyEncoder
	keys      checkpoint.Keys
	rows      *multimap // partition → sort key and number of arrival → row
	timers    *timerSet // when the windows of partitions fire
	late      *exec.Counter
	watermark exec.Watermark
	seq       uint64
	in        batch.Batch
	sel       []int32
	key, row  []byte
	worst     []byte
	out       *batch.Builder
}

// Open implements exec.Operator.
func (w *windowRank) Open(s exec.Subtask) (err error) {
	w.enc = exec.NewKeyEncoder(w.spec.Partition)
	w.order = newSortKeyEncoder(w.spec.Order, w.spec.Input)
	w.out = batch.NewBuilder(w.spec.Output)
	w.late = s.Counter("late-dropped")
	w.sel = make([]int32, 0, batch.Size) // not nil even when every row is late: a nil selection is all rows
	if w.spec.InstantEnd && w.spec.Session.Zone != nil && w.spec.Session.Zone != time.UTC {
		w.clock.zone = w.spec.Session.Zone
	}
	w.watermark = exec.NoWatermark
	for i, st := range s.Restored() {
		if len(st) != 8+seqSize {
			return fmt.Errorf("the state of a window Top-N in the checkpoint is damaged")
		}
		wm := exec.Watermark(binary.BigEndian.Uint64(st))
		if i == 0 || wm < w.watermark {
			w.watermark = wm
		}
		w.seq = max(w.seq, binary.BigEndian.Uint64(st[8:]))
	}
	if w.rows, err = openMultimap(s, "rows", "windowrank/1:"+rowFormat(w.spec.Input), 0); err != nil {
		return err
	}
	// Windows end at few times: a slice of timers for each fires them in the order of time.
	w.timers, err = openTimers(s, "timers", 1)
	return err
}

// Process implements exec.Operator.
func (w *windowRank) Process(_ int, b *batch.Batch, _ exec.Emitter) error {
	w.in, w.sel = *b, w.sel[:0]
	end := b.Cols[w.spec.WindowEnd]
	for i, n := 0, b.Len(); i < n; i++ {
		r := b.Row(i)
		if end.IsNull(r) {
			return nullTime(r, w.spec.Input.Columns[w.spec.WindowEnd].Name)
		}
		if exec.Watermark(w.clock.fireTime(millis(end, end.Idx(r)))) <= w.watermark {
			w.late.Add(1)
			continue
		}
		w.sel = append(w.sel, int32(r))
	}
	if w.in.Sel = w.sel; len(w.sel) == 0 {
		return nil
	}
	w.enc.Encode(&w.in, &w.keys)
	if err := w.rows.probe(&w.keys); err != nil {
		return err
	}
	for i, r := range w.sel {
		if err := w.offer(w.rows.at(i), i, int(r)); err != nil {
			return err
		}
	}
	if err := w.rows.done(); err != nil {
		return err
	}
	return w.timers.commit()
}

// offer keeps row i of the batch, physical row r, if it is one of the best.
func (w *windowRank) offer(b bucket, i, r int) error {
	w.seq++
	seq := w.seq
	if w.spec.LastOfEqual {
		seq = math.MaxUint64 - seq
	}
	w.key = binary.BigEndian.AppendUint64(w.order.appendTo(w.key[:0], &w.in, r), seq)
	n, err := b.len()
	if err != nil {
		return err
	}
	if n == 0 {
		end := w.in.Cols[w.spec.WindowEnd]
		w.timers.add(w.clock.fireTime(millis(end, end.Idx(r))), w.keys.Key(i), w.keys.Hashes[i])
	}
	if int64(n) >= w.spec.To {
		sub, _, _, err := b.last()
		if err != nil || bytes.Compare(w.key, sub) > 0 {
			return err
		}
		w.worst = append(w.worst[:0], sub...)
		if _, err := b.remove(w.worst); err != nil {
			return err
		}
	}
	w.row = appendRow(w.row[:0], &w.in, r)
	return b.put(w.key, w.row)
}

// OnWatermark implements exec.Operator.
func (w *windowRank) OnWatermark(wm exec.Watermark, out exec.Emitter) error {
	if wm <= w.watermark {
		return nil
	}
	w.watermark = wm
	err := w.timers.fire(int64(wm), func(keys *checkpoint.Keys) error {
		if err := w.rows.probe(keys); err != nil {
			return err
		}
		for i := range keys.Ends {
			b := w.rows.at(i)
			if err := w.emit(b, out); err != nil {
				return err
			}
			if err := b.clear(); err != nil {
				return err
			}
		}
		return w.rows.done()
	})
	if err != nil {
		return err
	}
	return flush(w.out, out)
}

// emit writes the rows of a partition that are in the range.
func (w *windowRank) emit(b bucket, out exec.Emitter) error {
	place := int64(0)
	n := w.spec.Input.Len()
	var failed error
	err := b.ascend(nil, func(_, row []byte) bool {
		if place++; place < w.spec.From {
			return true
		}
		if w.out.Full() {
			if failed = flush(w.out, out); failed != nil {
				return false
			}
		}
		if _, failed = exec.DecodeKey(row, w.out.Cols[:n]); failed != nil {
			return false
		}
		if w.spec.Number {
			w.out.Cols[n].AppendI64(place)
		}
		w.out.RowDone()
		return true
	})
	if err == nil {
		err = failed
	}
	return err
}

// OnBarrier implements exec.Operator: the watermark, so that a restore drops no row as late that was in time, and the
// number of the last row.
func (w *windowRank) OnBarrier(checkpoint.Barrier, exec.Emitter) ([]byte, error) {
	st := binary.BigEndian.AppendUint64(nil, uint64(w.watermark))
	return binary.BigEndian.AppendUint64(st, w.seq), nil
}

// Close implements exec.Operator.
func (w *windowRank) Close() error { return nil }
