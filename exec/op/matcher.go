package op

import (
	"encoding/binary"
	"strconv"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// matcher runs the automaton for the partitions of some rows: take, for each begin, steps and save.
type matcher struct {
	spec    *MatchSpec
	auto    *matchAutomaton
	tests   []matchCond // per variable
	aggs    []*matchAgg // per ref, nil = no aggregate
	results *expr.Program
	shown   []int          // refs that results read
	hits    *batch.Builder // refs of matches
	out     *batch.Batch

	work    *batch.Builder // rows: those that come, then older ones of the partition at hand as they are needed
	b       *batch.Batch   // of work
	current int            // the row being tested, in work; -1 = none

	*matchPart           // the partition at hand
	one        matchPart // of expiry
	iota       []int32

	taken []takenEdge
	stack []int
	found runQueue
	spare runQueue
	buf   []byte
	sub   []byte
}

// matchPart is a partition whose rows are matched.
type matchPart struct {
	open   bool // between begin and save
	bucket bucket
	key    []byte // borrowed
	hash   uint64
	fresh  bool // it has no state
	runs   matchRuns
	arena  []int32 // memory of the runs
	former []int32 // of arena
	base   int64   // number of the first row in places
	places []int32 // of rows from base on in work, -1 = not read yet
	stored int64   // rows below are in state
}

// matchCond tests rows for one variable.
type matchCond struct {
	prog  *expr.Program // nil = every row
	refs  []int
	row   *batch.Builder
	in    batch.Batch // columns of work as refs
	plain bool        // reads the row at hand only
	known []bool      // of a plain condition, per row of work; nil = not computed
}

// matchRuns are the runs of a partition.
type matchRuns struct {
	next     int64 // number of the next row
	partial  runQueue
	complete runQueue // waiting for earlier starts
}

func newMatcher(s exec.Subtask, spec *MatchSpec) (*matcher, error) {
	m := &matcher{matchPart: &matchPart{}, spec: spec, auto: newMatchAutomaton(spec.Pattern), current: -1, work: batch.NewBuilder(spec.Input)}
	refs := &types.Schema{}
	for i, r := range spec.Refs {
		refs.Columns = append(refs.Columns, types.Column{Name: "ref" + strconv.Itoa(i), Type: r.Type})
		a, err := newMatchAgg(s, spec, i)
		if err != nil {
			return nil, err
		}
		m.aggs = append(m.aggs, a)
	}
	var err error
	for v, x := range spec.Pattern {
		var c matchCond
		if x.Cond != nil {
			if c.prog, err = expr.Compile([]expr.Expr{x.Cond}, spec.Session); err != nil {
				return nil, err
			}
			c.refs, c.row, c.plain = expr.ColumnsOf(x.Cond), batch.NewBuilder(refs), true
			c.in.Cols = make([]*batch.Vec, len(spec.Refs))
			for _, i := range c.refs {
				r := &spec.Refs[i]
				c.plain = c.plain && r.Kind == MatchValue && !r.First && r.Offset == 0 && (r.Var < 0 || r.Var == v)
			}
			c.plain = c.plain && expr.IsDeterministic(x.Cond)
		}
		m.tests = append(m.tests, c)
	}
	if m.results, err = expr.Compile(spec.Results, spec.Session); err != nil {
		return nil, err
	}
	used := make([]bool, len(spec.Refs))
	for _, e := range spec.Results {
		for _, i := range expr.ColumnsOf(e) {
			used[i] = true
		}
	}
	for i, u := range used {
		if u {
			m.shown = append(m.shown, i)
		}
	}
	m.hits, m.out = batch.NewBuilder(refs), &batch.Batch{}
	return m, nil
}

// take makes the rows of b those of work, nil = none, and computes the conditions that read one row only.
func (m *matcher) take(b *batch.Batch) {
	m.work.Reset()
	if b != nil {
		rows := b.Sel
		for rows == nil && len(m.iota) < b.N {
			m.iota = append(m.iota, int32(len(m.iota)))
		}
		if rows == nil {
			rows = m.iota[:b.N]
		}
		for k, v := range b.Cols {
			m.work.Cols[k].AppendRows(v, rows)
		}
		m.work.RowsDone(len(rows))
	}
	m.b = m.work.Finish()
	for v := range m.tests {
		c := &m.tests[v]
		c.known = c.known[:0]
		if !c.plain || m.b.N == 0 {
			continue
		}
		c.in.N = m.b.N
		for _, i := range c.refs {
			c.in.Cols[i] = m.b.Cols[m.spec.Refs[i].Col]
		}
		res, err := c.prog.Eval(&c.in)
		if err != nil {
			continue // of a row that may never be tested: test meets the error if it is
		}
		for r := range m.b.N {
			c.known = append(c.known, isTrue(res[0], r))
		}
	}
}

func isTrue(v *batch.Vec, r int) bool { return !v.IsNull(r) && v.Bool[v.Idx(r)] }

// test tells whether the current row is one of variable v after the rows of run.
func (m *matcher) test(v int, run *matchRun) (bool, error) {
	c := &m.tests[v]
	if c.prog == nil {
		return true, nil
	}
	if m.current < len(c.known) {
		return c.known[m.current], nil
	}
	c.row.Reset()
	for _, i := range c.refs {
		if err := m.read(c.row.Cols[i], i, run, v); err != nil {
			return false, err
		}
	}
	c.row.RowDone()
	res, err := c.prog.Eval(c.row.Finish())
	if err != nil {
		return false, err
	}
	return isTrue(res[0], 0), nil
}

// read appends ref i to col. With a current row, that is one of variable v, else v is -1.
func (m *matcher) read(col *batch.ColBuilder, i int, run *matchRun, v int) error {
	r := &m.spec.Refs[i]
	lo, n := run.start, run.rows()
	if r.Var >= 0 {
		lo, n = run.start+run.first(r.Var), int64(run.counts[r.Var])
	}
	last := m.current >= 0 && (r.Var < 0 || r.Var == v) // the current row counts
	if r.Kind == MatchAgg {
		d, err := m.aggs[i].compute(m, lo, n, last)
		if err == nil {
			col.AppendDatum(d)
		}
		return err
	}
	all := n
	if last {
		all++
	}
	k := r.Offset
	if !r.First {
		k = all - 1 - r.Offset
	}
	if k < 0 || k >= all {
		col.AppendNull()
		return nil
	}
	at := m.current
	if k < n {
		var err error
		if at, err = m.rowAt(lo + k); err != nil {
			return err
		}
	}
	col.AppendFrom(m.b.Cols[r.Col], at)
	return nil
}

// emit adds the match r, found at time at, to the output.
func (m *matcher) emit(r *matchRun, at int64, out exec.Emitter) error {
	for _, i := range m.shown {
		col := m.hits.Cols[i]
		if ref := &m.spec.Refs[i]; ref.Kind == MatchTime {
			col.AppendI64(at * 1000)
			continue
		}
		if err := m.read(col, i, r, -1); err != nil {
			m.hits.Abandon()
			return err
		}
	}
	m.hits.RowDone()
	if m.hits.Full() {
		return m.flush(out)
	}
	return nil
}

// flush emits the matches found.
func (m *matcher) flush(out exec.Emitter) error {
	if m.hits.Len() == 0 {
		return nil
	}
	in := m.hits.Finish()
	res, err := m.results.Eval(in)
	if err != nil {
		return err
	}
	m.out.N, m.out.Cols = in.N, res
	err = out.Emit(m.out)
	m.hits.Reset()
	return err
}

// matchAgg computes an aggregate over rows of a run.
type matchAgg struct {
	arg  *expr.Program
	core aggCore
	rows *batch.Builder
	in   batch.Batch // the arguments
	keys checkpoint.Keys
	refs []checkpoint.Ref
	res  [1]types.Datum
}

func newMatchAgg(s exec.Subtask, spec *MatchSpec, i int) (*matchAgg, error) {
	r := spec.Refs[i]
	if r.Kind != MatchAgg {
		return nil, nil
	}
	a := &matchAgg{}
	if r.Arg == nil {
		return a, nil // rows are counted
	}
	var err error
	if a.arg, err = expr.Compile([]expr.Expr{r.Arg}, spec.Session); err != nil {
		return nil, err
	}
	a.rows = batch.NewBuilder(spec.Input)
	r.Agg.Arg = 0
	return a, a.core.open(s, coreSpec{aggs: []expr.Agg{r.Agg}, state: "agg." + strconv.Itoa(i)})
}

// compute aggregates the n rows from number lo on, then the current one with last. The group lives in state only
// meanwhile, under the key of the partition.
func (a *matchAgg) compute(m *matcher, lo, n int64, last bool) (types.Datum, error) {
	if last {
		n++
	}
	if a.arg == nil {
		return types.IntDatum(n), nil
	}
	a.rows.Reset()
	for k := range n {
		r := m.current
		if k < n-1 || !last {
			var err error
			if r, err = m.rowAt(lo + k); err != nil {
				return types.NullDatum, err
			}
		}
		copyRow(a.rows, m.b, r, types.Insert)
	}
	a.in.N = int(n)
	if n > 0 {
		var err error
		if a.in.Cols, err = a.arg.Eval(a.rows.Finish()); err != nil {
			return types.NullDatum, err
		}
	}
	return a.fold(&a.in, m.key, m.hash)
}

// fold is the aggregate over column 0 of b.
func (a *matchAgg) fold(b *batch.Batch, key []byte, hash uint64) (types.Datum, error) {
	a.keys.Reset()
	for range max(b.N, 1) {
		appendKey(&a.keys, key, hash)
	}
	c := &a.core
	if err := c.probeLists(&a.keys); err != nil {
		return types.NullDatum, err
	}
	a.refs = resize(a.refs, a.keys.Len())
	if err := c.groups.Probe(&a.keys, a.refs); err != nil {
		return types.NullDatum, err
	}
	ref, _, err := c.groups.Insert(&a.keys, 0, newRow(c.fixed, c.tails))
	if err != nil {
		return types.NullDatum, err
	}
	clearRow(c.groups.Mutable(ref), c.fixed, c.tails)
	setWord(c.groups.Mutable(ref), rowCount, int64(b.N))
	for r := range b.N {
		if err := c.accumulateRow(b, &a.keys, ref, r, r, 1); err != nil {
			return types.NullDatum, err
		}
	}
	if err := c.resultsAt(c.groups.Value(ref), 0, a.res[:]); err != nil {
		return types.NullDatum, err
	}
	return a.res[0], c.remove(ref, key, hash)
}

// nullMatchTime is the error of a row without a time.
func nullMatchTime(row int, name string) error {
	return &expr.RowError{Row: row, Expr: name, Err: diag.New(diag.Data, diag.Pos{}, "the rowtime column %q is NULL", name).
		WithHint("filter such rows below MATCH_RECOGNIZE: FROM (SELECT * FROM ... WHERE %s IS NOT NULL) MATCH_RECOGNIZE (...)", name)}
}

// appendNumber appends a number so that bytes sort as numbers do.
func appendNumber(dst []byte, n uint64) []byte { return binary.BigEndian.AppendUint64(dst, n) }
