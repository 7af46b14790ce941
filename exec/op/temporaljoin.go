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
	left      *waitLog
	versions  *multimap // key → time → kind, row
	codec     *rowCodec // of versions
	timers    *timerSet // when versions can go
	idle      *idleKeys // nil without TTL
	watermark exec.Watermark

	keys   checkpoint.Keys
	times  []int64
	places []int32
	rows   encodedRows
	val    []byte
	sub    []byte

	all      []int32 // 0, 1, 2...
	ended    bool    // event time of the table has ended
	cache    *versionCache
	misses   []int32 // rows of match that the cache has no version of
	missKeys checkpoint.Keys
	found    [][]byte // versions, borrowed
	match    temporalMatch
	filter   *expr.Filter
	tested   []int32
	right    []*batch.Vec
	valid    [][]uint64 // memory for bitmaps of right
	out      batch.Batch
	visit    waitVisitor
	emitter  exec.Emitter
}

// temporalMatch are physical rows of a batch and of each the version that belongs to it, a row of the cache or noVersion.
type temporalMatch struct{ rows, versions []int32 }

// temporalStep is the width of a slice of timers: versions can lie far ahead.
const temporalStep = 60_000

// Open implements exec.Operator.
func (j *temporalJoin) Open(s exec.Subtask) (err error) {
	sp := &j.spec
	j.s, j.late, j.visit = s, s.Counter("late-dropped"), j.joinWaiting
	j.enc = [2]*exec.KeyEncoder{exec.NewKeyEncoder(sp.LeftKeys), exec.NewKeyEncoder(sp.RightKeys)}
	j.watermark, _ = restoredTimes(s.Restored())
	j.codec, j.cache = newRowCodec(sp.Right), newVersionCache(sp.Right)
	for _, c := range sp.Right.Columns {
		j.right = append(j.right, batch.NewVec(c.Type, 0))
	}
	j.valid = make([][]uint64, len(j.right))
	if sp.Cond != nil {
		j.tested = make([]int32, 0, batch.Size) // not nil even when no row has a version: a nil selection is all rows
		if j.filter, err = expr.CompileFilter(sp.Cond, sp.Session); err != nil {
			return err
		}
	}
	if j.left, err = openWaitLog(s, "left", sp.Left, false); err != nil {
		return err
	}
	if j.versions, err = openMultimap(s, "versions", "temporal-right/2;"+slottedFormat(sp.Right), 0); err != nil {
		return err
	}
	if j.timers, err = openTimers(s, "timers", temporalStep); err != nil {
		return err
	}
	if sp.TTL > 0 {
		j.idle, err = openIdleKeys(s, "idle", sp.TTL)
	}
	return err
}

// OnBarrier implements exec.Operator.
func (j *temporalJoin) OnBarrier(checkpoint.Barrier, exec.Emitter) ([]byte, error) {
	return appendTimes(nil, j.watermark, 0), j.left.save()
}

// Close implements exec.Operator.
func (j *temporalJoin) Close() error { return nil }

// Process implements exec.Operator. Left rows leave at watermarks, but once the table has ended at once.
func (j *temporalJoin) Process(port int, b *batch.Batch, out exec.Emitter) error {
	if b.Len() == 0 {
		return nil
	}
	j.enc[port].Encode(b, &j.keys)
	var err error
	if port == 0 {
		j.emitter = out
		err = j.take(b)
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

// take keeps left rows until their time.
func (j *temporalJoin) take(b *batch.Batch) (err error) {
	if j.times, err = rowtimes(j.times, b, j.spec.Left, j.spec.LeftTime); err != nil {
		return err
	}
	j.places = j.places[:0]
	for i, t := range j.times {
		if exec.Watermark(t) <= j.watermark {
			j.late.Add(1)
			continue
		}
		j.places = append(j.places, int32(i))
	}
	if j.ended {
		return j.join(b, j.places, j.times)
	}
	return j.left.add(b, j.places, j.keys.Hashes, j.times, j.s.Now())
}

// keepVersions keeps right rows. Of one time the last to arrive counts.
func (j *temporalJoin) keepVersions(b *batch.Batch) (err error) {
	if j.times, err = rowtimes(j.times, b, j.spec.Right, j.spec.RightTime); err != nil {
		return err
	}
	if err := j.versions.probe(&j.keys); err != nil {
		return err
	}
	j.codec.encode(b, &j.rows)
	for i, t := range j.times {
		j.cache.forget(j.keys.Hashes[i], j.keys.Key(i))
		bucket := j.versions.at(i)
		n, err := bucket.len()
		if err != nil {
			return err
		}
		if n > 0 { // a second version makes the first one superfluous some time
			j.timers.add(t, j.keys.Key(i), j.keys.Hashes[i])
		}
		j.sub = orderedTime(j.sub[:0], t)
		j.val = append(append(j.val[:0], byte(b.Kind(b.Row(i)))), j.rows.row(i)...)
		if err := bucket.put(j.sub, j.val); err != nil {
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
	j.watermark, j.emitter = w, out
	err := j.left.leave(int64(w), j.visit)
	if err == nil {
		err = j.timers.fire(int64(w), j.forget)
	}
	if err != nil {
		return fmt.Errorf("temporal join state: %w", err)
	}
	return nil
}

// OnPortEnd implements exec.PortEnder: when the table has ended all its versions are there, and left rows need not wait for
// their own event time.
func (j *temporalJoin) OnPortEnd(port int, out exec.Emitter) error {
	if port == 0 {
		return nil
	}
	j.ended, j.emitter = true, out
	if err := j.left.leave(int64(exec.MaxWatermark), j.visit); err != nil {
		return fmt.Errorf("temporal join state: %w", err)
	}
	return nil
}

// forget drops versions of keys that no later left row can ask for.
func (j *temporalJoin) forget(keys *checkpoint.Keys) error {
	if err := j.versions.probe(keys); err != nil {
		return err
	}
	for i := range keys.Len() {
		next, ok, err := j.trim(j.versions.at(i))
		if err != nil {
			return err
		}
		if ok {
			j.timers.add(next, keys.Key(i), keys.Hashes[i])
		}
	}
	return j.versions.done()
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
		if err := j.versions.probe(keys); err != nil {
			return err
		}
		j.cache.reset()
		gone := map[string]bool{}
		var groups [checkpoint.KeyGroups]bool
		for i := range keys.Len() {
			if err := j.versions.at(i).clear(); err != nil {
				return err
			}
			gone[string(keys.Key(i))] = true
			groups[checkpoint.KeyGroup(keys.Hashes[i])] = true
		}
		if err := j.versions.done(); err != nil {
			return err
		}
		var of checkpoint.Keys
		return j.left.remove(&groups, now-j.spec.TTL, func(b *batch.Batch, rows []bool) error {
			j.enc[0].Encode(b, &of)
			for i := range rows {
				rows[i] = gone[string(of.Key(i))]
			}
			return nil
		})
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
