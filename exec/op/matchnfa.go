package op

import (
	"math"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/diag"
)

// matchState is a state of the automaton of a pattern: what the next row may be. State 0 is the end.
type matchState struct {
	variable int
	edges    []matchEdge
}

// matchEdge leads to another state, by taking the row or without it, if all tests hold.
type matchEdge struct {
	take  bool
	to    int
	tests []matchTest
}

// matchTest is the condition of a variable, or that it does not hold.
type matchTest struct {
	variable int
	not      bool
}

const matchEnd = 0

// matchAutomaton is the automaton of a pattern as Flink's CEP builds it, from its end to its beginning.
type matchAutomaton struct {
	vars   []MatchVariable
	states []matchState
	start  int
}

func newMatchAutomaton(vars []MatchVariable) *matchAutomaton {
	a := &matchAutomaton{vars: vars, states: []matchState{{variable: -1}}}
	for v := len(vars) - 1; v >= 0; v-- {
		a.start = a.add(v, a.start)
	}
	return a
}

// add puts variable v in front of state sink.
func (a *matchAutomaton) add(v, sink int) int {
	x := &a.vars[v]
	low := max(x.Min, 1)
	switch {
	case x.Max == 1:
		return a.single(v, sink, sink, x.Min == 0)
	case x.Max > 0:
		return a.times(v, sink, sink, low, x.Max)
	}
	loop := len(a.states)
	a.states = append(a.states, matchState{variable: v})
	if x.Greedy() {
		a.unless(sink, v)
	}
	a.states[loop].edges = []matchEdge{{to: sink}, {take: true, to: loop, tests: []matchTest{{variable: v}}}}
	return a.times(v, loop, sink, low, low)
}

// times has from to to rows of v before sink; leave is where the optional ones lead.
func (a *matchAutomaton) times(v, sink, leave, from, to int) int {
	x := &a.vars[v]
	if x.Greedy() && from != to {
		a.unless(sink, v)
	}
	last := sink
	for range to - from {
		last = a.single(v, last, leave, true)
	}
	for range from - 1 {
		last = a.single(v, last, leave, false)
	}
	return a.single(v, last, leave, x.Min == 0)
}

func (a *matchAutomaton) single(v, sink, leave int, optional bool) int {
	s := matchState{variable: v, edges: []matchEdge{{take: true, to: sink, tests: []matchTest{{variable: v}}}}}
	if optional {
		s.edges = append(s.edges, matchEdge{to: leave})
	}
	a.states = append(a.states, s)
	return len(a.states) - 1
}

// unless makes state s pass on only rows that v does not take: v is greedy.
func (a *matchAutomaton) unless(s, v int) {
	edges := a.states[s].edges
	for i := range edges {
		edges[i].tests = append(edges[i].tests, matchTest{variable: v, not: true})
	}
}

// matchRun is a match, complete or not yet. As nothing may stand between the rows of a pattern, the rows of a run are
// those from start on, counts[v] for each variable v in turn.
type matchRun struct {
	state  int
	start  int64 // number of its first row, unstarted before it
	since  int64 // time of that row
	counts []int32
}

// unstarted sorts what waits for a first row behind all runs.
const unstarted = math.MaxInt64

func (r *matchRun) started() bool { return r.start != unstarted }

// rows is how many rows the run has.
func (r *matchRun) rows() int64 {
	n := int64(0)
	for _, c := range r.counts {
		n += int64(c)
	}
	return n
}

// first is the place of the first row of variable v in the run.
func (r *matchRun) first(v int) int64 {
	n := int64(0)
	for _, c := range r.counts[:v] {
		n += int64(c)
	}
	return n
}

// runQueue is a heap of runs, the one that started first on top. Which of several of one start is on top decides about
// matches: the sifting is that of Java's PriorityQueue, as Flink uses it.
type runQueue []matchRun

// push adds a run.
func (q *runQueue) push(r matchRun) {
	*q = append(*q, r)
	h := *q
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if h[i].start >= h[up].start {
			return
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

// pop removes the run on top.
func (q *runQueue) pop() {
	h := *q
	n := len(h) - 1
	h[0] = h[n]
	*q = h[:n]
	q.down(0)
}

func (q *runQueue) down(i int) {
	h := *q
	for {
		k := 2*i + 1
		if k >= len(h) {
			return
		}
		if k+1 < len(h) && h[k+1].start < h[k].start {
			k++
		}
		if h[i].start <= h[k].start {
			return
		}
		h[i], h[k] = h[k], h[i]
		i = k
	}
}

// drop removes the runs that gone names.
func (q *runQueue) drop(gone func(r *matchRun) bool) {
	kept := (*q)[:0]
	for i := range *q {
		if r := &(*q)[i]; !gone(r) {
			kept = append(kept, *r)
		}
	}
	if n := len(*q); len(kept) < n {
		*q = kept
		for i := len(*q)/2 - 1; i >= 0; i-- {
			q.down(i)
		}
	}
}

// step matches row r of work, the next row of the partition at hand, and reports whether it began a run.
func (m *matcher) step(r int, at int64, out exec.Emitter) (started bool, err error) {
	m.compact()
	m.current = r
	num := m.runs.next
	old := m.runs.partial
	m.runs.partial = m.spare[:0]
	m.found = m.found[:0]
	for i := range old {
		run := &old[i]
		if err := m.decide(run); err != nil {
			return false, err
		}
		for _, e := range m.taken {
			next := matchRun{state: e.to, start: run.start, since: run.since, counts: m.counted(run.counts, e.by)}
			if !run.started() {
				next.start, next.since = num, at
			}
			if next.state == matchEnd {
				m.found.push(next)
				continue
			}
			m.runs.partial.push(next)
			started = started || !run.started()
			ends, err := m.endsAfter(run, next.state)
			if err != nil {
				return false, err
			}
			if ends {
				next.state = matchEnd
				m.found.push(next)
			}
		}
		if !run.started() {
			m.runs.partial.push(*run)
		}
	}
	m.spare = old
	m.placeRow(num, r)
	m.runs.next++
	m.current = -1
	return started, m.settle(at, out)
}

// takenEdge is the way of a row to state to as a row of variable by.
type takenEdge struct{ to, by int }

// decide finds the edges by which the current row continues run.
func (m *matcher) decide(run *matchRun) error {
	m.taken = m.taken[:0]
	m.stack = append(m.stack[:0], run.state)
	for len(m.stack) > 0 {
		s := &m.auto.states[m.stack[len(m.stack)-1]]
		m.stack = m.stack[:len(m.stack)-1]
		for i := range s.edges {
			e := &s.edges[i]
			ok, err := m.holds(e.tests, run)
			switch {
			case err != nil:
				return err
			case ok && e.take:
				m.taken = append(m.taken, takenEdge{e.to, s.variable})
			case ok:
				m.stack = append(m.stack, e.to)
			}
		}
	}
	return nil
}

// endsAfter tells whether the rest of the pattern from state s on may be empty.
func (m *matcher) endsAfter(run *matchRun, s int) (bool, error) {
	m.stack = append(m.stack[:0], s)
	for len(m.stack) > 0 {
		s := &m.auto.states[m.stack[len(m.stack)-1]]
		m.stack = m.stack[:len(m.stack)-1]
		for i := range s.edges {
			e := &s.edges[i]
			if e.take {
				continue
			}
			ok, err := m.holds(e.tests, run)
			if err != nil {
				return false, err
			}
			if ok && e.to == matchEnd {
				return true, nil
			}
			if ok {
				m.stack = append(m.stack, e.to)
			}
		}
	}
	return false, nil
}

func (m *matcher) holds(tests []matchTest, run *matchRun) (bool, error) {
	for _, t := range tests {
		ok, err := m.test(t.variable, run)
		if err != nil || ok == t.not {
			return false, err
		}
	}
	return true, nil
}

// advanceTime drops the runs that cannot end in time any more, in the order of their ends; that can let go matches that
// waited for them. Runs that start earlier end earlier.
func (m *matcher) advanceTime(at int64, out exec.Emitter) error {
	if m.spec.Within == 0 {
		return nil
	}
	q := &m.runs.partial
	for len(*q) > 0 && (*q)[0].started() && (*q)[0].since+m.spec.Within <= at {
		since := (*q)[0].since
		q.drop(func(r *matchRun) bool { return r.started() && r.since <= since })
		m.found = m.found[:0]
		if err := m.settle(since+m.spec.Within, out); err != nil {
			return err
		}
	}
	return nil
}

// settle emits complete matches, new ones among them, until an earlier start is still open, and applies AFTER MATCH SKIP.
func (m *matcher) settle(at int64, out exec.Emitter) error {
	runs := &m.runs
	for i := range m.found { // in the order of the array, as addAll does
		runs.complete.push(m.found[i])
	}
	for len(runs.complete) > 0 {
		first := runs.complete[0]
		if len(runs.partial) > 0 && first.start > runs.partial[0].start {
			return nil
		}
		runs.complete.pop()
		gone, err := m.skip(&first)
		if err != nil {
			return err
		}
		below := func(r *matchRun) bool { return r.started() && r.start < gone }
		runs.partial.drop(below)
		runs.complete.drop(below)
		if err := m.emit(&first, at, out); err != nil {
			return err
		}
	}
	return nil
}

// skip is the number of the first row at which a match may start after match r.
func (m *matcher) skip(r *matchRun) (int64, error) {
	switch m.spec.Skip {
	case SkipToNextRow:
		return r.start + 1, nil
	case SkipPastLastRow:
		return r.start + r.rows(), nil
	}
	v, word := m.spec.SkipTo, "FIRST"
	name := m.spec.Pattern[v].Name
	to := r.start + r.first(v)
	if m.spec.Skip == SkipToLast {
		word = "LAST"
		to += int64(r.counts[v]) - 1
	}
	if r.counts[v] == 0 {
		return 0, diag.New(diag.Data, diag.Pos{}, "AFTER MATCH SKIP TO %s %s: a match has no row of %s", word, name, name).
			WithDetail("so there is no row to go on from").WithHint("skip to a variable that every match has, or write AFTER MATCH SKIP PAST LAST ROW")
	}
	if to == r.start {
		return 0, diag.New(diag.Data, diag.Pos{}, "AFTER MATCH SKIP TO %s %s leads to the first row of the match", word, name).
			WithDetail("the same match would be found for ever").WithHint("write AFTER MATCH SKIP TO NEXT ROW or PAST LAST ROW")
	}
	return to, nil
}
