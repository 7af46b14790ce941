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

// TemporalJoinSpec describes a join of a stream (port 0) with the version of a table (port 1) that was valid at the
// stream row's time.
type TemporalJoinSpec struct {
	Left, Right         *types.Schema
	LeftKeys, RightKeys []int // in pairs; the right ones are the table's primary key
	LeftTime, RightTime int   // rowtime columns
	Outer               bool  // left rows without a version leave with NULLs
	Cond                expr.Expr
	TTL                 int64 // ms of the wall clock without activity after which a key is forgotten, 0 = never
	Session             expr.Session
	Output              *types.Schema // columns of the left, then of the right
}

// NewTemporalJoin is Flink's TemporalRowTimeJoinOperator. A left row waits until the watermark of both inputs has
// reached its time, then it leaves with its own kind and the newest version that is not later than it. A version that
// is a deletion is no version. Left rows behind the watermark are dropped and counted; of the versions behind it only
// the newest is kept. Rows must be exchanged by the keys.
func NewTemporalJoin(spec TemporalJoinSpec) func() exec.Operator {
	return func() exec.Operator { return &temporalJoin{spec: spec} }
}

type temporalJoin struct {
	spec      TemporalJoinSpec
	s         exec.Subtask
	late      *exec.Counter
	enc       [2]*exec.KeyEncoder
	left      *multimap // key → time, sequence → kind, row
	versions  *multimap // key → time → kind, row
	timers    *timerSet
	idle      *idleKeys // nil without TTL
	pairs     *leftPairs
	watermark exec.Watermark
	seq       uint64

	keys checkpoint.Keys
	val  []byte
	sub  []byte
	due  *runSorter // left rows of a key whose time has come: sequence → time, kind, row; empty between calls
}

// temporalPass is how many rows are handled between two probes.
const temporalPass = 2 * batch.Size

// temporalStep is the width of a slice of timers: left rows wait for as long as the watermark lags, versions can lie
// far ahead.
const temporalStep = 60_000

// Open implements exec.Operator.
func (j *temporalJoin) Open(s exec.Subtask) (err error) {
	sp := &j.spec
	j.s, j.late = s, s.Counter("late-dropped")
	j.enc = [2]*exec.KeyEncoder{exec.NewKeyEncoder(sp.LeftKeys), exec.NewKeyEncoder(sp.RightKeys)}
	j.watermark, j.seq = restoredTimes(s.Restored())
	if j.pairs, err = newLeftPairs(len(sp.Left.Columns), sp.Outer, sp.Output, sp.Cond, sp.Session); err != nil {
		return err
	}
	if j.left, err = openMultimap(s, "left", "temporal-left/1;"+rowFormat(sp.Left), 0); err != nil {
		return err
	}
	if j.versions, err = openMultimap(s, "versions", "temporal-right/1;"+rowFormat(sp.Right), 0); err != nil {
		return err
	}
	if j.timers, err = openTimers(s, "timers", temporalStep); err != nil {
		return err
	}
	if j.due, err = openRunSorter(s, "due", rowFormat(sp.Left)); err != nil {
		return err
	}
	if sp.TTL > 0 {
		j.idle, err = openIdleKeys(s, "idle", sp.TTL)
	}
	return err
}

// OnBarrier implements exec.Operator.
func (j *temporalJoin) OnBarrier(checkpoint.Barrier, exec.Emitter) ([]byte, error) {
	return appendTimes(nil, j.watermark, j.seq), nil
}

// Close implements exec.Operator.
func (j *temporalJoin) Close() error { return nil }

// Process implements exec.Operator. Left rows leave at watermarks only.
func (j *temporalJoin) Process(port int, b *batch.Batch, _ exec.Emitter) error {
	if b.Len() == 0 {
		return nil
	}
	j.enc[port].Encode(b, &j.keys)
	var err error
	if port == 0 {
		err = j.wait(b)
	} else {
		err = j.keepVersions(b)
	}
	if err == nil && j.idle != nil {
		err = j.idle.touch(&j.keys, j.s.Now())
	}
	if err == nil {
		err = j.timers.commit()
	}
	return err
}

// wait keeps left rows until their time.
func (j *temporalJoin) wait(b *batch.Batch) error {
	if err := j.left.probe(&j.keys); err != nil {
		return err
	}
	for i := range j.keys.Len() {
		r := b.Row(i)
		t, err := rowtimeOf(b, j.spec.Left, j.spec.LeftTime, r)
		if err != nil {
			return err
		}
		if exec.Watermark(t) <= j.watermark {
			j.late.Add(1)
			continue
		}
		bucket := j.left.at(i)
		oldest, _, ok, err := bucket.first()
		if err != nil {
			return err
		}
		if !ok || t < fromOrderedTime(oldest) {
			j.timers.add(t, j.keys.Key(i), j.keys.Hashes[i])
		}
		j.seq++
		j.sub = binary.BigEndian.AppendUint64(orderedTime(j.sub[:0], t), j.seq)
		if err := bucket.put(j.sub, j.row(b, r)); err != nil {
			return err
		}
	}
	return j.left.done()
}

// row is the state form of physical row r.
func (j *temporalJoin) row(b *batch.Batch, r int) []byte {
	j.val = append(j.val[:0], byte(b.Kind(r)))
	j.val = appendRow(j.val, b, r)
	return j.val
}

// keepVersions keeps right rows. Of one time the last to arrive counts.
func (j *temporalJoin) keepVersions(b *batch.Batch) error {
	if err := j.versions.probe(&j.keys); err != nil {
		return err
	}
	for i := range j.keys.Len() {
		r := b.Row(i)
		t, err := rowtimeOf(b, j.spec.Right, j.spec.RightTime, r)
		if err != nil {
			return err
		}
		bucket := j.versions.at(i)
		n, err := bucket.len()
		if err != nil {
			return err
		}
		if n > 0 { // a second version makes the first one superfluous some time
			j.timers.add(t, j.keys.Key(i), j.keys.Hashes[i])
		}
		j.sub = orderedTime(j.sub[:0], t)
		if err := bucket.put(j.sub, j.row(b, r)); err != nil {
			return err
		}
	}
	return j.versions.done()
}

// OnWatermark implements exec.Operator.
func (j *temporalJoin) OnWatermark(w exec.Watermark, out exec.Emitter) error {
	if w <= j.watermark {
		return nil
	}
	j.watermark = w
	err := j.timers.fire(int64(w), func(keys *checkpoint.Keys) error { return j.join(keys, out) })
	if err != nil {
		return fmt.Errorf("temporal join state: %w", err)
	}
	return j.pairs.flush(out)
}

// join lets the left rows of keys go whose time has come, and forgets versions that no later left row can ask for.
func (j *temporalJoin) join(keys *checkpoint.Keys, out exec.Emitter) error {
	if err := j.left.probe(keys); err != nil {
		return err
	}
	if err := j.versions.probe(keys); err != nil {
		return err
	}
	for i := range keys.Len() {
		if err := j.joinKey(keys, i, out); err != nil {
			return err
		}
		oldest, _, ok, err := j.left.at(i).first()
		if err != nil {
			return err
		}
		if ok {
			j.timers.add(fromOrderedTime(oldest), keys.Key(i), keys.Hashes[i])
		}
		next, ok, err := j.trim(j.versions.at(i))
		if err != nil {
			return err
		}
		if ok {
			j.timers.add(next, keys.Key(i), keys.Hashes[i])
		}
	}
	if err := j.left.done(); err != nil {
		return err
	}
	return j.versions.done()
}

// joinKey takes the left rows of key i whose time has come out of state and emits what they make, in the order of their
// arrival.
func (j *temporalJoin) joinKey(keys *checkpoint.Keys, i int, out exec.Emitter) error {
	for more := true; more; {
		var err error
		if more, err = j.collect(j.left.at(i)); err != nil {
			return err
		}
		if !more {
			break
		}
		if err := j.left.done(); err != nil {
			return err
		}
		if err := j.left.probe(keys); err != nil {
			return err
		}
	}
	rows := 0
	return j.due.each(func(_, val []byte) error {
		if rows++; rows%temporalPass == 0 {
			if err := j.versions.probe(keys); err != nil {
				return err
			}
		}
		return j.emit(fromOrderedTime(val), val[8:], j.versions.at(i), out)
	})
}

// collect moves rows whose time has come from b to j.due. more says that there are others.
func (j *temporalJoin) collect(b bucket) (more bool, err error) {
	q, n := j.due, 0
	var failed error
	err = b.ascend(nil, func(sub, val []byte) bool {
		if exec.Watermark(fromOrderedTime(sub)) > j.watermark {
			return false
		}
		if more = n == temporalPass; more {
			return false
		}
		n++
		from := len(q.buf)
		q.buf = append(q.buf, sub[8:]...)
		mid := len(q.buf)
		q.buf = append(append(q.buf, sub[:8]...), val...)
		j.sub = append(j.sub[:0], sub...)
		failed = q.added(from, mid)
		return failed == nil
	})
	if err == nil {
		err = failed
	}
	if err == nil && n > 0 {
		err = b.removeBelow(append(j.sub, 0))
	}
	return more, err
}

// emit makes the output of a left row, its kind before it: the newest version not later than it, if that is not a
// deletion.
func (j *temporalJoin) emit(time int64, row []byte, versions bucket, out exec.Emitter) error {
	kind := types.RowKind(row[0])
	j.sub = orderedTime(j.sub[:0], time+1)
	var version []byte
	err := versions.descend(j.sub, func(_, val []byte) bool {
		if !types.RowKind(val[0]).IsRetract() {
			version = val[1:]
		}
		return false
	})
	if err != nil {
		return err
	}
	j.pairs.begin()
	if version == nil && !j.spec.Outer {
		return nil
	}
	if _, err := exec.DecodeKey(row[1:], j.pairs.leftCols()); err != nil {
		return err
	}
	if version == nil {
		return j.pairs.end(true, kind, out)
	}
	if _, err := exec.DecodeKey(version, j.pairs.rightCols()); err != nil {
		return err
	}
	j.pairs.done(kind)
	return j.pairs.end(false, kind, out)
}

// trim removes the versions older than the newest one that is not later than the watermark. When more than one version
// is left, next is when the next can go.
func (j *temporalJoin) trim(versions bucket) (next int64, ok bool, err error) {
	j.sub = orderedTime(j.sub[:0], int64(exec.AddWatermark(j.watermark, 1)))
	from := j.sub
	if j.watermark == exec.MaxWatermark {
		from = nil
	}
	newest := false
	err = versions.descend(from, func(sub, _ []byte) bool {
		newest = true
		j.val = append(j.val[:0], sub...)
		return false
	})
	if err != nil || !newest {
		return 0, false, err
	}
	if err := versions.removeBelow(j.val); err != nil || from == nil {
		return 0, false, err
	}
	err = versions.ascend(from, func(sub, _ []byte) bool {
		next, ok = fromOrderedTime(sub), true
		return false
	})
	return next, ok, err
}

// NextTimer implements exec.ProcessingTimer.
func (j *temporalJoin) NextTimer() (int64, bool) {
	if j.idle == nil {
		return 0, false
	}
	return j.idle.timers.next()
}

// OnTimer implements exec.ProcessingTimer: it forgets keys without activity.
func (j *temporalJoin) OnTimer(now int64, _ exec.Emitter) error {
	return j.idle.expire(now, func(keys *checkpoint.Keys) error {
		for _, m := range []*multimap{j.left, j.versions} {
			if err := m.probe(keys); err != nil {
				return err
			}
			for i := range keys.Len() {
				if err := m.at(i).clear(); err != nil {
					return err
				}
			}
			if err := m.done(); err != nil {
				return err
			}
		}
		return nil
	})
}

// appendTimes is the small state of a join by time: its watermark and its newest sequence number.
func appendTimes(dst []byte, w exec.Watermark, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, uint64(w)), seq)
}

// restoredTimes reads appendTimes of the old subtasks: the watermark is the lowest, so that no row in flight becomes
// late by the restore; the sequence is the highest, so that no row is overwritten.
func restoredTimes(states [][]byte) (w exec.Watermark, seq uint64) {
	if len(states) == 0 {
		return exec.NoWatermark, 0
	}
	w = exec.MaxWatermark
	for _, s := range states {
		if len(s) != 16 { // of a subtask that never saw a barrier
			w = exec.NoWatermark
			continue
		}
		w = min(w, exec.Watermark(binary.BigEndian.Uint64(s)))
		seq = max(seq, binary.BigEndian.Uint64(s[8:]))
	}
	return w, seq
}
