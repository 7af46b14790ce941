package op

import (
	"encoding/binary"
	"fmt"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// IntervalJoinSpec describes a join of two insert-only inputs, port 0 and 1, by equal keys and by times that are near:
// right time + Lower ≤ left time ≤ right time + Upper.
type IntervalJoinSpec struct {
	Left, Right           *types.Schema
	LeftKeys, RightKeys   []int  // equal in number and in physical type, in pairs; both empty = no equal keys
	NullSafe              []bool // per pair: NULL matches NULL; nil = none
	LeftOuter, RightOuter bool   // rows of that side without a match leave with NULLs
	Lower, Upper          int64  // ms
	// Proctime takes the wall clock at arrival as the rows' time; otherwise LeftTime and RightTime are the rowtime columns.
	Proctime            bool
	LeftTime, RightTime int
	Cond                expr.Expr // what else must be TRUE, over the output; nil = nothing
	MinCleanup          int64     // ms by which state may outlive its use (table.exec.interval-join.min-cleanup-interval)
	Session             expr.Session
	Output              *types.Schema // columns of the left, then of the right
}

// NewIntervalJoin is Flink's TimeIntervalJoin. Matches leave at once, as +I; a row of an outer side leaves padded when
// the watermark says that no match can come. A row behind the watermark still joins what is there but is not kept. The
// output's event time lags the input's by the width of the interval. Rows must be exchanged by the keys.
func NewIntervalJoin(spec IntervalJoinSpec) func() exec.Operator {
	return func() exec.Operator { return &intervalJoin{spec: spec} }
}

type intervalJoin struct {
	spec      IntervalJoinSpec
	s         exec.Subtask
	sides     [2]intervalSide
	pairs     *pairs
	watermark exec.Watermark
	seq       uint64 // of the newest row kept; with the time it names a row within its key

	keys    checkpoint.Keys
	times   []int64 // of the batch's rows
	matched []bool  // per row of the batch
	// Per candidate pair: the row of the batch, and the time and sequence of its partner when it must be marked.
	candidates []intervalPair
	val        []byte
	sub        []byte
	from       []byte
}

// intervalSide is what is known and kept of one input.
type intervalSide struct {
	schema *types.Schema
	time   int
	keep   int64 // ms past its own time for which a row can find partners that are not late
	outer  bool
	plain  []int // key columns that NULL does not match
	enc    *exec.KeyEncoder
	rows   *multimap // key → time, sequence → matched, row
	timers *timerSet // when a key's oldest row has had its time
}

// intervalPair is the origin of a candidate.
type intervalPair struct {
	row  int32
	mark bool
	sub  [intervalSub]byte
}

const intervalSub = 16 // bytes of a sub-key: time, sequence

// Open implements exec.Operator.
func (j *intervalJoin) Open(s exec.Subtask) (err error) {
	sp := &j.spec
	j.s = s
	j.sides = [2]intervalSide{
		{schema: sp.Left, time: sp.LeftTime, keep: -sp.Lower, outer: sp.LeftOuter, plain: plainKeys(sp.LeftKeys, sp.NullSafe), enc: exec.NewKeyEncoder(sp.LeftKeys)},
		{schema: sp.Right, time: sp.RightTime, keep: sp.Upper, outer: sp.RightOuter, plain: plainKeys(sp.RightKeys, sp.NullSafe), enc: exec.NewKeyEncoder(sp.RightKeys)},
	}
	j.watermark, j.seq = restoredTimes(s.Restored())
	if j.pairs, err = newPairs(len(sp.Left.Columns), sp.Output, sp.Cond, sp.Session); err != nil {
		return err
	}
	for i, name := range []string{"left", "right"} {
		side := &j.sides[i]
		if side.rows, err = openMultimap(s, name, "interval/1;"+rowFormat(side.schema), 0); err != nil {
			return err
		}
		if side.timers, err = openTimers(s, name+"-timers", j.timerStep()); err != nil {
			return err
		}
	}
	return nil
}

// timerStep makes some hundred slices of the time that rows are kept, of a second at least.
func (j *intervalJoin) timerStep() int64 { return max(1000, (j.spec.Upper-j.spec.Lower)/256) }

// OnBarrier implements exec.Operator.
func (j *intervalJoin) OnBarrier(checkpoint.Barrier, exec.Emitter) ([]byte, error) {
	return appendTimes(nil, j.watermark, j.seq), nil
}

// Close implements exec.Operator.
func (j *intervalJoin) Close() error { return nil }

// never tells that no two times can match.
func (j *intervalJoin) never() bool { return j.spec.Lower > j.spec.Upper }

// now is the operator's time, up to which rows of both sides have arrived.
func (j *intervalJoin) now() exec.Watermark {
	if j.spec.Proctime {
		return exec.Watermark(j.s.Now())
	}
	return j.watermark
}

// Process implements exec.Operator.
func (j *intervalJoin) Process(port int, b *batch.Batch, out exec.Emitter) error {
	if b.Len() == 0 {
		return nil
	}
	own, other := &j.sides[port], &j.sides[1-port]
	now := j.now()
	if err := j.begin(own, b, now); err != nil {
		return err
	}
	if j.never() {
		if own.outer {
			for i, n := 0, b.Len(); i < n; i++ {
				if err := j.pairs.pad(port, b, b.Row(i), types.Insert, out); err != nil {
					return err
				}
			}
		}
		return j.pairs.flushPadded(out)
	}
	own.enc.Encode(b, &j.keys)
	if err := other.rows.probe(&j.keys); err != nil {
		return err
	}
	for i := range j.times {
		if r := b.Row(i); len(own.plain) == 0 || !anyNull(b, own.plain, r) {
			if err := j.match(port, b, i, r, out); err != nil {
				return fmt.Errorf("interval join state: %w", err)
			}
		}
	}
	if err := j.flushPairs(other, out); err != nil {
		return err
	}
	if err := other.rows.done(); err != nil {
		return err
	}
	if err := j.keep(port, b, now, out); err != nil {
		return fmt.Errorf("interval join state: %w", err)
	}
	return j.pairs.flushPadded(out)
}

// begin finds the times of the batch's rows.
func (j *intervalJoin) begin(own *intervalSide, b *batch.Batch, now exec.Watermark) (err error) {
	j.times, j.matched = resize(j.times, b.Len()), resize(j.matched, b.Len())
	clear(j.matched)
	for i := range j.times {
		if j.spec.Proctime {
			j.times[i] = int64(now)
		} else if j.times[i], err = rowtimeOf(b, own.schema, own.time, b.Row(i)); err != nil {
			return err
		}
	}
	return nil
}

// match makes candidates of row i, physical row r, with the rows kept of the other side.
func (j *intervalJoin) match(port int, b *batch.Batch, i, r int, out exec.Emitter) error {
	other := &j.sides[1-port]
	lo, hi := j.times[i]-j.spec.Upper, j.times[i]-j.spec.Lower
	if port == 1 {
		lo, hi = j.times[i]+j.spec.Lower, j.times[i]+j.spec.Upper
	}
	j.from = binary.BigEndian.AppendUint64(orderedTime(j.from[:0], lo), 0)
	for more := true; more; {
		more = false
		var failed error
		err := other.rows.at(i).ascend(j.from, func(sub, val []byte) bool {
			if fromOrderedTime(sub) > hi {
				return false
			}
			if more = j.pairs.rows.Full(); more { // marking changes the map: not from within the walk
				j.from = append(j.from[:0], sub...)
				return false
			}
			p := intervalPair{row: int32(i), mark: other.outer && val[0] == 0}
			copy(p.sub[:], sub)
			j.candidates = append(j.candidates, p)
			failed = j.pairs.candidate(port, b, r, val[1:], types.Insert, int32(len(j.candidates)-1))
			return failed == nil
		})
		if err != nil {
			return err
		}
		if failed != nil {
			return failed
		}
		if more {
			if err := j.flushPairs(other, out); err != nil {
				return err
			}
		}
	}
	return nil
}

// flushPairs emits the matches among the candidates and marks both rows of each.
func (j *intervalJoin) flushPairs(other *intervalSide, out exec.Emitter) error {
	err := j.pairs.flush(out, func(origin int32) error {
		p := &j.candidates[origin]
		j.matched[p.row] = true
		if !p.mark {
			return nil
		}
		b := other.rows.at(int(p.row))
		val, ok, err := b.get(p.sub[:])
		if err != nil || !ok || val[0] != 0 {
			return err
		}
		j.val = append(j.val[:0], val...)
		j.val[0] = 1
		return b.put(p.sub[:], j.val)
	})
	j.candidates = j.candidates[:0]
	return err
}

// keep puts the batch's rows into state, as far as they can still find partners, and pads the others.
func (j *intervalJoin) keep(port int, b *batch.Batch, now exec.Watermark, out exec.Emitter) error {
	own := &j.sides[port]
	if err := own.rows.probe(&j.keys); err != nil {
		return err
	}
	for i, t := range j.times {
		r := b.Row(i)
		if now >= exec.Watermark(t+own.keep) {
			if own.outer && !j.matched[i] {
				if err := j.pairs.pad(port, b, r, types.Insert, out); err != nil {
					return err
				}
			}
			continue
		}
		if !own.outer && len(own.plain) > 0 && anyNull(b, own.plain, r) {
			continue
		}
		if err := j.put(own, b, i, r); err != nil {
			return err
		}
	}
	if err := own.rows.done(); err != nil {
		return err
	}
	return own.timers.commit()
}

// put keeps row i, physical row r. The key gets a timer when the row is its oldest.
func (j *intervalJoin) put(own *intervalSide, b *batch.Batch, i, r int) error {
	bucket := own.rows.at(i)
	oldest, _, ok, err := bucket.first()
	if err != nil {
		return err
	}
	if !ok || j.times[i] < fromOrderedTime(oldest) {
		own.timers.add(j.expiry(own, j.times[i]), j.keys.Key(i), j.keys.Hashes[i])
	}
	j.seq++
	j.sub = binary.BigEndian.AppendUint64(orderedTime(j.sub[:0], j.times[i]), j.seq)
	j.val = append(j.val[:0], byte(boolWord(j.matched[i])))
	j.val = appendRow(j.val, b, r)
	return bucket.put(j.sub, j.val)
}

// expiry is when a key whose oldest row has time t wants to be looked at.
func (j *intervalJoin) expiry(own *intervalSide, t int64) int64 {
	return t + own.keep + 1 + max(0, j.spec.MinCleanup)
}

// OnWatermark implements exec.Operator.
func (j *intervalJoin) OnWatermark(w exec.Watermark, out exec.Emitter) error {
	if w <= j.watermark {
		return nil
	}
	j.watermark = w
	if j.spec.Proctime {
		return nil // the wall clock does not end with the input
	}
	return j.expire(w, out)
}

// OutputWatermark implements exec.WatermarkDelayer: a match holds the times of both rows, and a row of an outer side
// leaves when its time to be kept is over, one millisecond after its last possible partner.
func (j *intervalJoin) OutputWatermark(w exec.Watermark) exec.Watermark {
	if j.spec.Proctime {
		return w
	}
	lag := max(j.sides[0].keep, j.sides[1].keep, 0)
	for i := range j.sides {
		if j.sides[i].outer && j.sides[i].keep == lag {
			return exec.AddWatermark(w, -lag-1)
		}
	}
	return exec.AddWatermark(w, -lag)
}

// NextTimer implements exec.ProcessingTimer.
func (j *intervalJoin) NextTimer() (int64, bool) {
	if !j.spec.Proctime {
		return 0, false
	}
	l, okl := j.sides[0].timers.next()
	r, okr := j.sides[1].timers.next()
	return min(l, r), okl || okr
}

// OnTimer implements exec.ProcessingTimer.
func (j *intervalJoin) OnTimer(now int64, out exec.Emitter) error {
	return j.expire(exec.Watermark(now), out)
}

// expire removes the rows whose partners would all be late at now, and pads those of an outer side that found none.
func (j *intervalJoin) expire(now exec.Watermark, out exec.Emitter) error {
	for port := range j.sides {
		err := j.sides[port].timers.fire(int64(now), func(keys *checkpoint.Keys) error {
			return j.expireKeys(port, keys, now, out)
		})
		if err != nil {
			return fmt.Errorf("interval join state: %w", err)
		}
	}
	return j.pairs.flushPadded(out)
}

func (j *intervalJoin) expireKeys(port int, keys *checkpoint.Keys, now exec.Watermark, out exec.Emitter) error {
	side := &j.sides[port]
	if err := side.rows.probe(keys); err != nil {
		return err
	}
	limit := int64(exec.AddWatermark(now, -side.keep-1))
	for i := range keys.Len() {
		b := side.rows.at(i)
		if err := j.expireKey(port, b, limit, out); err != nil {
			return err
		}
		oldest, _, ok, err := b.first()
		if err != nil {
			return err
		}
		if ok {
			side.timers.add(j.expiry(side, fromOrderedTime(oldest)), keys.Key(i), keys.Hashes[i])
		}
	}
	return side.rows.done()
}

// expireKey removes the rows of a key with times up to limit.
func (j *intervalJoin) expireKey(port int, b bucket, limit int64, out exec.Emitter) error {
	side := &j.sides[port]
	for more := true; more; {
		more = false
		j.sub = j.sub[:0]
		var failed error
		err := b.ascend(nil, func(sub, val []byte) bool {
			if fromOrderedTime(sub) > limit {
				return false
			}
			if more = len(j.sub) >= firePass*intervalSub; more {
				return false
			}
			j.sub = append(j.sub, sub...)
			if side.outer && val[0] == 0 {
				failed = j.pairs.padStored(port, val[1:], types.Insert, out)
			}
			return failed == nil
		})
		if err != nil {
			return err
		}
		if failed != nil {
			return failed
		}
		for s := j.sub; len(s) > 0; s = s[intervalSub:] {
			if _, err := b.remove(s[:intervalSub]); err != nil {
				return err
			}
		}
	}
	return nil
}
