package planner

import (
	"slices"
	"strings"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
)

// Match is MATCH_RECOGNIZE with one row per match: the columns of Partition, then the measures. Conditions of variables
// and Results are expressions over Refs, which read the rows of a match.
type Match struct {
	In        Node
	Partition []int
	Order     []SortKey // the time attribute first
	Pattern   string
	Vars      []op.MatchVariable
	Skip      op.MatchSkip
	SkipTo    int
	Within    int64 // ms, 0 = any
	Refs      []op.MatchRef
	Results   []expr.Expr
	Pos       diag.Pos
	Batch     bool // rows without a time come first, as in a sort
	fields    []Field
}

// Inputs implements Node.
func (n *Match) Inputs() []Node { return []Node{n.In} }

func (n *Match) withInputs(in []Node) Node { c := *n; c.In = in[0]; return &c }

// Fields implements Node.
func (n *Match) Fields() []Field { return n.fields }

func (n *Match) label() string {
	in := n.In.Fields()
	var parts []string
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+"=["+value+"]")
		}
	}
	add("partitionBy", keyNames(in, n.Partition))
	add("orderBy", orderText(n.Order, in))
	var measures, define []string
	for i, x := range n.Results {
		if c, ok := x.(*expr.Column); !ok || c.Name != n.fields[i].Name {
			measures = append(measures, x.String()+" AS "+n.fields[i].Name)
		}
	}
	add("measures", strings.Join(measures, ", "))
	add("rowsPerMatch", "ONE ROW PER MATCH")
	skip := [...]string{"TO NEXT ROW", "PAST LAST ROW", "TO FIRST ", "TO LAST "}[n.Skip]
	if n.Skip >= op.SkipToFirst {
		skip += n.Vars[n.SkipTo].Name
	}
	add("after", "SKIP "+skip)
	add("pattern", n.Pattern)
	if n.Within > 0 {
		add("within", millis(n.Within))
	}
	for _, v := range n.Vars {
		if v.Cond != nil {
			define = append(define, v.Name+" AS "+v.Cond.String())
		}
	}
	add("define", strings.Join(define, ", "))
	return "Match(" + strings.Join(parts, ", ") + ")"
}

func (n *Match) identity(w *identity) {
	w.put("partition", n.Partition)
	w.put("order", n.Order)
	for _, v := range n.Vars {
		w.put("variable", v.Min, v.Max, v.Reluctant, v.Cond)
	}
	w.put("skip", [...]string{"next", "past", "first", "last"}[n.Skip], n.SkipTo)
	w.put("within", n.Within)
	for _, r := range n.Refs {
		w.put("ref", [...]string{"value", "aggregate", "time"}[r.Kind], r.Var, r.First, r.Offset, r.Col, r.Arg)
		if r.Kind == op.MatchAgg {
			w.put("aggregate", r.Agg)
		}
	}
	w.put("select", n.Results)
}

func (n *Match) slug() string   { return "match" }
func (n *Match) stateful() bool { return true }
func (n *Match) updates() bool  { return false }

func (n *Match) modify(*phys, Kinds) Kinds { return Inserts }

func (n *Match) settle(p *phys, _ demand, _ *Trait, apply bool) bool {
	return p.settleInput(0, full, apply)
}

func (n *Match) distribute(b *builder, p *phys) error {
	if kinds := p.in[0].trait.Kinds &^ Inserts; kinds != 0 {
		return diag.New(diag.Semantic, n.Pos, "MATCH_RECOGNIZE does not support consuming %s changes produced by %s",
			kinds.words(), origin(p.in[0]).op.label()).
			WithDetail("a match leaves once, and cannot be taken back when one of its rows changes").
			WithHint("match the rows before they are aggregated or joined, or aggregate by a window, whose results are final")
	}
	b.keyed(p, n.Partition)
	for _, c := range n.Partition {
		at := slices.IndexFunc(upTo(0, len(n.Results)), func(i int) bool { return n.keyAt(i) == c })
		if at < 0 {
			p.dist = nil
			break
		}
		p.dist = append(p.dist, at)
	}
	return nil
}

func (n *Match) grows(int64) string {
	if n.Within > 0 || !slices.ContainsFunc(n.Vars, func(v op.MatchVariable) bool { return v.Max < 0 }) {
		return ""
	}
	return "matches that have begun wait for their end for ever: bound them with WITHIN"
}

// keyAt is the column of the partition that result i is, -1 when it is another.
func (n *Match) keyAt(i int) int {
	c, ok := n.Results[i].(*expr.Column)
	if !ok {
		return -1
	}
	if r := &n.Refs[c.Index]; r.Kind == op.MatchValue && slices.Contains(n.Partition, r.Col) {
		return r.Col
	}
	return -1
}

// pushFilter moves conditions on the partition below: they keep or drop whole partitions.
func (n *Match) pushFilter(c expr.Expr) (Node, bool) {
	m := make([]int, len(n.fields))
	for i := range m {
		m[i] = n.keyAt(i)
	}
	for _, i := range expr.ColumnsOf(c) {
		if m[i] < 0 {
			return nil, false
		}
	}
	if len(n.Partition) == 0 {
		return nil, false
	}
	return n.withInputs([]Node{addFilter(n.In, expr.Remap(c, m))}), true
}

// prune drops measures nobody reads, and what only they read.
func (n *Match) prune(need []bool) (Node, []int) {
	c := *n
	c.Results, c.fields, c.Refs, c.Vars = nil, nil, nil, slices.Clone(n.Vars)
	out := make([]int, len(need))
	refs := make([]bool, len(n.Refs))
	for i, x := range n.Results {
		if out[i] = -1; need[i] {
			out[i] = len(c.fields)
			c.fields = append(c.fields, n.fields[i])
			mark(refs, x)
		}
	}
	for _, v := range n.Vars {
		mark(refs, v.Cond)
	}
	in := make([]bool, len(n.In.Fields()))
	markRank(in, n.Partition, n.Order)
	rm := make([]int, len(n.Refs))
	for i, r := range n.Refs {
		if rm[i] = -1; !refs[i] {
			continue
		}
		rm[i] = len(c.Refs)
		c.Refs = append(c.Refs, r)
		if r.Kind == op.MatchValue {
			in[r.Col] = true
		}
		mark(in, r.Arg)
	}
	x, im := prune(n.In, in)
	c.In, c.Partition, c.Order = x, remapInts(n.Partition, im), remapOrder(n.Order, im)
	for i := range c.Refs {
		r := &c.Refs[i]
		if r.Kind == op.MatchValue {
			r.Col = im[r.Col]
		}
		if r.Arg != nil {
			r.Arg = expr.Remap(r.Arg, im)
		}
	}
	for i, e := range n.Results {
		if need[i] {
			c.Results = append(c.Results, expr.Remap(e, rm))
		}
	}
	for i := range c.Vars {
		if c.Vars[i].Cond != nil {
			c.Vars[i].Cond = expr.Remap(c.Vars[i].Cond, rm)
		}
	}
	return &c, out
}

func (n *Match) lower(l *lowering, x *exec.Node, p *phys) {
	spec := op.MatchSpec{Input: p.schema(0), Partition: n.Partition, Time: n.Order[0].Col, Order: opKeys(n.Order[1:]), Pattern: n.Vars,
		Skip: n.Skip, SkipTo: n.SkipTo, Within: n.Within, Refs: n.Refs, Results: n.Results, NullFirst: n.Batch, Session: l.b.session, Output: x.Output}
	switch f := p.in[0].fields[spec.Time]; {
	case f.Time == Proctime:
		spec.Time = -1
	case f.Type.Precision > 3: // within the millisecond
		spec.Order = opKeys(n.Order)
	}
	x.Operator = op.NewMatch(spec)
}
