package op

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// MatchSpec describes MATCH_RECOGNIZE with one row per match. Conditions and results are expressions over Refs, which
// stand for what they read of the rows matched so far.
type MatchSpec struct {
	Input     *types.Schema
	Partition []int
	Time      int       // rowtime column of Input; -1: processing time
	Order     []SortKey // of rows of one time
	NullFirst bool      // a row without a time is before all others, instead of an error
	Pattern   []MatchVariable
	Skip      MatchSkip
	SkipTo    int   // variable of SkipToFirst and SkipToLast
	Within    int64 // ms from the first row of a match to its last, the latter excluded; 0 = any
	Refs      []MatchRef
	Results   []expr.Expr // the columns of Output over Refs
	Session   expr.Session
	Output    *types.Schema
}

// MatchVariable is a variable of the pattern with its quantifier, in the order in which rows are mapped.
type MatchVariable struct {
	Name      string
	Min, Max  int  // rows; Max -1: any number
	Reluctant bool // as few rows as possible
	Cond      expr.Expr
}

// Greedy is Flink's: a row that the variable takes is not taken by the next one.
func (v *MatchVariable) Greedy() bool {
	return !v.Reluctant && v.Min != v.Max && !(v.Min == 0 && v.Max == 1)
}

// MatchSkip says where matching goes on after a match.
type MatchSkip uint8

// The strategies.
const (
	SkipToNextRow MatchSkip = iota
	SkipPastLastRow
	SkipToFirst
	SkipToLast
)

// MatchRefKind is what a MatchRef reads.
type MatchRefKind uint8

// The kinds.
const (
	MatchValue MatchRefKind = iota // column Col of the Offset-th row from the last, or with First from the first
	MatchAgg                       // an aggregate over the rows
	MatchTime                      // the time of the match
)

// MatchRef is a column that conditions and results read: something of the rows mapped to a variable. The row being
// tested counts as mapped to the variable whose condition it is.
type MatchRef struct {
	Kind   MatchRefKind
	Var    int // -1: all rows
	First  bool
	Offset int64
	Col    int
	Agg    expr.Agg  // its argument is Arg
	Arg    expr.Expr // over the input; nil = rows are counted
	Type   types.Type
}

// NewMatch is Flink's MATCH_RECOGNIZE over insert-only input exchanged by Partition. By rowtime rows wait for the
// watermark and are matched in the order of time, Order and arrival; rows not after the watermark are dropped and
// counted. By processing time rows are matched as they come, with Order those of a millisecond when it is over.
//
// State is the rows that wait, and per partition the partial matches with the rows from the first of them on. Only
// Within bounds it.
func NewMatch(spec MatchSpec) func() exec.Operator {
	return func() exec.Operator {
		m := &match{spec: spec}
		if spec.Time < 0 {
			return &wallMatch{match: m}
		}
		return m
	}
}

type match struct {
	spec   MatchSpec
	enc    *exec.KeyEncoder
	keys   checkpoint.Keys
	rows   *timeQueue // rows that wait
	runs   *multimap  // partition → number → row that runs hold; headSub → the runs
	timers timers     // when runs time out
	due    checkpoint.Keys
	dueAt  []int64
	state  overState
	now    func() int64
	late   *exec.Counter
	m      *matcher
	times  []int64
	places []int32
	groups rowGroups // of the rows at hand, by partition
	parts  []*matchPart
	part   []int32 // of each row
	out    exec.Emitter
	visit  waitVisitor
}

// Open implements exec.Operator.
func (o *match) Open(s exec.Subtask) (err error) {
	o.enc = exec.NewKeyEncoder(o.spec.Partition)
	o.late, o.now = s.Counter("late-dropped"), s.Now
	o.visit = o.leave
	if o.m, err = newMatcher(s, &o.spec); err != nil {
		return err
	}
	if err := o.state.restore(s.Restored()); err != nil {
		return err
	}
	if o.rows, err = openTimeQueue(s, "waiting", o.spec.Input, o.spec.Order); err != nil {
		return err
	}
	format := "match/1:" + o.spec.format() + rowFormat(o.spec.Input)
	if o.runs, err = openMultimap(s, "runs", format, 0); err != nil {
		return err
	}
	return o.openTimers(s)
}

// openTimers sets the timers of the runs in state.
func (o *match) openTimers(s exec.Subtask) error {
	err := o.timers.open(s, "timers")
	if err != nil || o.spec.Within == 0 {
		return err
	}
	var runs matchRuns
	var failed error
	err = o.runs.scan(func(key, sub, val []byte) bool {
		if len(sub) != len(headSub) {
			return true
		}
		failed = o.m.load(&runs, val)
		for _, r := range runs.partial {
			if r.started() && failed == nil {
				failed = o.timers.addStored(r.since+o.spec.Within, key)
			}
		}
		return failed == nil
	})
	if err == nil {
		err = failed
	}
	return err
}

// format tells the runs of one pattern from those of another.
func (s *MatchSpec) format() string {
	var sb strings.Builder
	for _, v := range s.Pattern {
		fmt.Fprintf(&sb, "%d,%d,%t;", v.Min, v.Max, v.Reluctant)
	}
	return sb.String()
}

// Process implements exec.Operator.
func (o *match) Process(_ int, b *batch.Batch, _ exec.Emitter) (err error) {
	v := b.Cols[o.spec.Time]
	if v.Valid == nil || !o.spec.NullFirst {
		if o.times, err = rowtimes(o.times, b, o.spec.Input, o.spec.Time); err != nil {
			var row *expr.RowError
			if errors.As(err, &row) {
				err = nullMatchTime(row.Row, o.spec.Input.Columns[o.spec.Time].Name)
			}
			return err
		}
		return o.wait(b)
	}
	o.times = resize(o.times, b.Len())
	for i := range o.times {
		if r := b.Row(i); v.IsNull(r) {
			o.times[i] = beforeAll
		} else {
			o.times[i] = millis(v, v.Idx(r))
		}
	}
	return o.wait(b)
}

// beforeAll is the time of rows without one: WITHIN parts them from all others.
const beforeAll = math.MinInt64 / 4

// wait keeps the rows of b until time has passed theirs.
func (o *match) wait(b *batch.Batch) error {
	o.enc.Encode(b, &o.keys)
	o.places = o.places[:0]
	for i, at := range o.times {
		if exec.Watermark(at) <= o.state.watermark {
			o.late.Add(1)
			continue
		}
		o.places = append(o.places, int32(i))
	}
	return o.rows.log.add(b, o.places, o.keys.Hashes, o.times, o.now())
}

// OnWatermark implements exec.Operator.
func (o *match) OnWatermark(w exec.Watermark, out exec.Emitter) error {
	if w <= o.state.watermark {
		return nil
	}
	o.state.watermark = w
	return o.fire(int64(w), out)
}

// fire matches the rows up to time upTo.
func (o *match) fire(upTo int64, out exec.Emitter) error {
	o.out = out
	if err := o.rows.leave(upTo, o.visit); err != nil {
		return err
	}
	if err := o.expire(upTo, out); err != nil {
		return err
	}
	return o.m.flush(out)
}

// leave matches rows in their order. A partition is read and written once for all its rows.
func (o *match) leave(b *batch.Batch, times []int64) error {
	o.enc.Encode(b, &o.keys)
	if err := o.runs.probe(&o.keys); err != nil {
		return err
	}
	o.m.take(b)
	o.split(b.Len())
	for r, at := range times {
		g := o.part[r]
		p, first := o.parts[g], int(o.groups.rows[g].first)
		if o.m.matchPart = p; !p.open {
			if err := o.m.begin(o.runs.at(first), o.keys.Key(first), o.keys.Hashes[first]); err != nil {
				return err
			}
		}
		if err := o.m.advanceTime(at, o.out); err != nil {
			return err
		}
		started, err := o.m.step(r, at, o.out)
		if err != nil {
			return err
		}
		if started && o.spec.Within > 0 {
			o.timers.add(at+o.spec.Within, p.key, p.hash)
		}
	}
	for g := range o.groups.rows {
		o.m.matchPart = o.parts[g]
		if err := o.m.save(); err != nil {
			return err
		}
	}
	if err := o.runs.done(); err != nil {
		return err
	}
	return o.timers.commit()
}

// split finds the partitions of n rows.
func (o *match) split(n int) {
	o.places = resize(o.places, n)
	for i := range o.places {
		o.places[i] = int32(i)
	}
	o.groups.find(&o.keys, o.places)
	o.part = resize(o.part, n)
	for g, rows := range o.groups.rows {
		for i := rows.first; i >= 0; i = o.groups.next[i] {
			o.part[i] = int32(g)
		}
		if g == len(o.parts) {
			o.parts = append(o.parts, &matchPart{})
		}
	}
}

// expire ends the runs whose time is over at upTo.
func (o *match) expire(upTo int64, out exec.Emitter) error {
	if o.spec.Within == 0 {
		return nil
	}
	for {
		o.due.Reset()
		var err error
		if o.dueAt, err = o.timers.take(upTo, batch.Size, &o.due, o.dueAt[:0]); err != nil || len(o.dueAt) == 0 {
			return err
		}
		if err := o.runs.probe(&o.due); err != nil {
			return err
		}
		o.m.take(nil)
		for i, at := range o.dueAt {
			if err := o.expireKey(i, at, out); err != nil {
				return err
			}
		}
		if err := o.runs.done(); err != nil {
			return err
		}
	}
}

// expireKey brings due partition i to time at.
func (o *match) expireKey(i int, at int64, out exec.Emitter) error {
	m := o.m
	m.matchPart = &m.one
	if err := m.begin(o.runs.at(i), o.due.Key(i), o.due.Hashes[i]); err != nil || m.fresh {
		m.one.open = false
		return err
	}
	if err := m.advanceTime(at, out); err != nil {
		return err
	}
	return m.save()
}

// OnBarrier implements exec.Operator.
func (o *match) OnBarrier(checkpoint.Barrier, exec.Emitter) ([]byte, error) {
	return o.state.save(), o.rows.log.save()
}

// Close implements exec.Operator.
func (o *match) Close() error { return nil }

// wallMatch is a match by the wall clock.
type wallMatch struct {
	*match
}

// Process implements exec.Operator.
func (o *wallMatch) Process(_ int, b *batch.Batch, out exec.Emitter) error {
	now := max(o.now(), int64(o.state.watermark)+1) // the clock may have been set back
	o.times = resize(o.times, b.Len())
	for i := range o.times {
		o.times[i] = now
	}
	if len(o.spec.Order) > 0 {
		return o.wait(b)
	}
	o.out = out
	if err := o.leave(b, o.times); err != nil {
		return err
	}
	return o.m.flush(out)
}

// OnWatermark implements exec.Operator: at the end of the input nothing more comes in the last millisecond.
func (o *wallMatch) OnWatermark(w exec.Watermark, out exec.Emitter) error {
	if w != exec.MaxWatermark {
		return nil
	}
	return o.fire(math.MaxInt64, out)
}

// NextTimer implements exec.ProcessingTimer.
func (o *wallMatch) NextTimer() (int64, bool) {
	at, ok := o.timers.next()
	row, some := o.rows.log.next()
	if !ok && !some {
		return 0, false
	}
	if !ok || some && row < at {
		at = row
	}
	return at + 1, true
}

// OnTimer implements exec.ProcessingTimer.
func (o *wallMatch) OnTimer(now int64, out exec.Emitter) error {
	o.state.watermark = max(o.state.watermark, exec.Watermark(now-1))
	return o.fire(now-1, out)
}
