package op

import (
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
	spec    MatchSpec
	enc     *exec.KeyEncoder
	order   *sortKeyEncoder
	keys    checkpoint.Keys
	waiting *multimap // partition → time, order and number → row
	runs    *multimap // partition → number → row that runs hold; headSub → the runs
	timers  timers    // of waiting rows, and when runs time out
	due     checkpoint.Keys
	dueAt   []int64
	state   overState
	now     func() int64
	late    *exec.Counter
	m       *matcher
	sub     []byte
	row     []byte
	ends    []int // per due key, how many rows of work there are up to its last
}

// Open implements exec.Operator.
func (o *match) Open(s exec.Subtask) (err error) {
	o.enc = exec.NewKeyEncoder(o.spec.Partition)
	o.order = newSortKeyEncoder(o.spec.Order, o.spec.Input)
	o.late, o.now = s.Counter("late-dropped"), s.Now
	if o.m, err = newMatcher(s, &o.spec); err != nil {
		return err
	}
	if err := o.state.restore(s.Restored()); err != nil {
		return err
	}
	rows := rowFormat(o.spec.Input)
	if o.waiting, err = openMultimap(s, "waiting", "match-waiting/1:"+rows, 0); err != nil {
		return err
	}
	if o.runs, err = openMultimap(s, "runs", "match/1:"+o.spec.format()+rows, 0); err != nil {
		return err
	}
	return o.openTimers(s)
}

// openTimers sets the timers of the rows and runs in state.
func (o *match) openTimers(s exec.Subtask) error {
	if err := o.timers.open(s, "timers"); err != nil {
		return err
	}
	var failed error
	err := o.waiting.scan(func(key, sub, _ []byte) bool {
		failed = o.timers.addStored(fromOrderedTime(sub), key)
		return failed == nil
	})
	if err == nil {
		err = failed
	}
	if err != nil || o.spec.Within == 0 {
		return err
	}
	var runs matchRuns
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
func (o *match) Process(_ int, b *batch.Batch, _ exec.Emitter) error {
	v := b.Cols[o.spec.Time]
	return o.wait(b, func(r int) (int64, error) {
		if v.IsNull(r) && o.spec.NullFirst {
			return beforeAll, nil
		}
		if v.IsNull(r) {
			return 0, nullMatchTime(r, o.spec.Input.Columns[o.spec.Time].Name)
		}
		return millis(v, v.Idx(r)), nil
	})
}

// beforeAll is the time of rows without one: WITHIN parts them from all others.
const beforeAll = math.MinInt64 / 4

// wait keeps the rows of b until time has passed theirs.
func (o *match) wait(b *batch.Batch, time func(r int) (int64, error)) error {
	if b.Len() == 0 {
		return nil
	}
	o.enc.Encode(b, &o.keys)
	if err := o.waiting.probe(&o.keys); err != nil {
		return err
	}
	for i := range o.keys.Ends {
		r := b.Row(i)
		at, err := time(r)
		if err != nil {
			return err
		}
		if exec.Watermark(at) <= o.state.watermark {
			o.late.Add(1)
			continue
		}
		o.state.seq++
		o.sub = o.order.appendTo(orderedTime(o.sub[:0], at), b, r)
		o.sub = appendNumber(o.sub, o.state.seq)
		o.row = appendRow(o.row[:0], b, r)
		if err := o.waiting.at(i).put(o.sub, o.row); err != nil {
			return err
		}
		o.timers.add(at, o.keys.Key(i), o.keys.Hashes[i])
	}
	if err := o.timers.commit(); err != nil {
		return err
	}
	return o.waiting.done()
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
	for {
		o.due.Reset()
		var err error
		if o.dueAt, err = o.timers.take(upTo, batch.Size, &o.due, o.dueAt[:0]); err != nil {
			return err
		}
		if len(o.dueAt) == 0 {
			return o.m.flush(out)
		}
		for i := 0; i < len(o.dueAt); {
			if i, err = o.fireSome(i, out); err != nil {
				return err
			}
		}
	}
}

// fireSome matches rows of the due keys from i on, as many as make a batch, and returns the key to go on with.
func (o *match) fireSome(i int, out exec.Emitter) (next int, err error) {
	if next, err = o.collect(i); err != nil {
		return 0, err
	}
	if err := o.runs.probe(&o.due); err != nil {
		return 0, err
	}
	o.m.prepare()
	from := 0
	for k, end := range o.ends {
		if err := o.advance(i+k, o.dueAt[i+k], from, end, &o.due, out); err != nil {
			return 0, err
		}
		from = end
	}
	return next, o.runs.done()
}

// collect moves rows of the due keys from i on from waiting to work, as many as make a batch. next is the first key that
// may have more.
func (o *match) collect(i int) (next int, err error) {
	if err := o.waiting.probe(&o.due); err != nil {
		return 0, err
	}
	o.m.work.Reset()
	o.ends = o.ends[:0]
	for next = i; next < len(o.dueAt) && !o.m.work.Full(); next++ {
		more, err := o.collectKey(o.waiting.at(next), o.dueAt[next])
		if err != nil {
			return 0, err
		}
		o.ends = append(o.ends, o.m.work.Len())
		if more {
			break
		}
	}
	return next, o.waiting.done()
}

// collectKey moves the rows of time at from w to work, until that is full: then there may be more.
func (o *match) collectKey(w bucket, at int64) (more bool, err error) {
	n := o.m.work.Len()
	o.sub = orderedTime(o.sub[:0], at)
	var failed error
	err = w.ascend(o.sub, func(sub, row []byte) bool {
		if fromOrderedTime(sub) != at {
			return false
		}
		if more = o.m.work.Full(); more {
			return false
		}
		o.row = append(o.row[:0], sub...)
		failed = emitRow(o.m.work, row, types.Insert)
		return failed == nil
	})
	if err == nil {
		err = failed
	}
	if err == nil && o.m.work.Len() > n {
		err = w.removeBelow(append(o.row, 0))
	}
	return more, err
}

// advance brings partition i of keys to time at and matches rows from to end of work, which are of that time.
func (o *match) advance(i int, at int64, from, end int, keys *checkpoint.Keys, out exec.Emitter) error {
	m := o.m
	if err := m.begin(o.runs.at(i), keys.Key(i), keys.Hashes[i]); err != nil {
		return err
	}
	if m.fresh && from == end {
		return nil
	}
	if err := m.advanceTime(at, out); err != nil {
		return err
	}
	for r := from; r < end; r++ {
		started, err := m.step(r, at, out)
		if err != nil {
			return err
		}
		if started && o.spec.Within > 0 {
			o.timers.add(at+o.spec.Within, keys.Key(i), keys.Hashes[i])
		}
	}
	return m.save()
}

// OnBarrier implements exec.Operator.
func (o *match) OnBarrier(checkpoint.Barrier, exec.Emitter) ([]byte, error) {
	return o.state.save(), nil
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
	if len(o.spec.Order) > 0 {
		return o.wait(b, func(int) (int64, error) { return now, nil })
	}
	if b.Len() == 0 {
		return nil
	}
	o.enc.Encode(b, &o.keys)
	if err := o.runs.probe(&o.keys); err != nil {
		return err
	}
	o.m.work.Reset()
	for i := range o.keys.Ends {
		copyRow(o.m.work, b, b.Row(i), types.Insert)
	}
	o.m.prepare()
	for i := range o.keys.Ends {
		if err := o.advance(i, now, i, i+1, &o.keys, out); err != nil {
			return err
		}
	}
	if err := o.runs.done(); err != nil {
		return err
	}
	if err := o.timers.commit(); err != nil {
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
	if !ok {
		return 0, false
	}
	return at + 1, true
}

// OnTimer implements exec.ProcessingTimer.
func (o *wallMatch) OnTimer(now int64, out exec.Emitter) error {
	o.state.watermark = max(o.state.watermark, exec.Watermark(now-1))
	return o.fire(now-1, out)
}
