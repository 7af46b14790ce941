package planner

import (
	"slices"
	"strings"

	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// matching binds the expressions of MATCH_RECOGNIZE: what they read of the rows of a match becomes a ref.
type matching struct {
	scope *scope // the input
	vars  []patternVar
	time  int // the column of ORDER BY
	refs  []op.MatchRef
	own   int // the variable whose condition is bound; -1 = a measure

	nav  *sql.Call // FIRST or LAST around what is bound
	off  int64     // its second argument
	agg  *sql.Call // the aggregate around what is bound
	seen int       // the variable read inside nav or agg: seenNone, -1 = all rows
}

const seenNone = -2

// matchRecognize binds MATCH_RECOGNIZE.
func (b *binder) matchRecognize(r *sql.MatchRecognize) (Node, *scope, error) {
	in, s, err := b.tableRef(r.Input)
	if err != nil {
		return nil, nil, err
	}
	group, over, subs, outer := b.group, b.over, b.subs, b.match
	b.group, b.over, b.subs = nil, nil, nil
	defer func() { b.group, b.over, b.subs, b.match = group, over, subs, outer }()
	if err := refuseMatch(r); err != nil {
		return nil, nil, err
	}
	n := &Match{In: in, Pos: r.Pos, Batch: b.conf.Batch(), Pattern: strings.Join(strings.Fields(r.Pattern[1:len(r.Pattern)-1]), " ")}
	m := &matching{scope: s, own: -1, seen: seenNone}
	if err := m.keys(b, r, n); err != nil {
		return nil, nil, err
	}
	if m.vars, err = parsePattern(r); err != nil {
		return nil, nil, err
	}
	b.match = m
	if err := m.define(b, r); err != nil {
		return nil, nil, err
	}
	if err := m.measures(b, r, n); err != nil {
		return nil, nil, err
	}
	b.match = outer
	if err := m.skip(r, n); err != nil {
		return nil, nil, err
	}
	if w := r.Within; w != nil {
		if w.Type.Kind != types.IntervalDayTime || w.Value <= 0 {
			return nil, nil, diag.New(diag.Semantic, w.Pos, "WITHIN needs an interval of days to seconds, more than none").
				WithHint("write WITHIN INTERVAL '1' HOUR")
		}
		n.Within = w.Value
	}
	for _, v := range m.vars {
		n.Vars = append(n.Vars, v.MatchVariable)
	}
	n.Refs = m.refs
	return aliased(n, "", r.Alias, r.Pos)
}

// refuseMatch names the clauses that Flink does not have either.
func refuseMatch(r *sql.MatchRecognize) error {
	switch {
	case r.AllRows:
		return diag.New(diag.Unsupported, r.Pos, "ALL ROWS PER MATCH is not supported").
			WithDetail("Flink SQL has it not either: a match gives one row").WithHint("write ONE ROW PER MATCH and collect what you need of the rows in MEASURES: ARRAY_AGG(A.x)")
	case len(r.Subsets) > 0:
		return diag.New(diag.Unsupported, r.Subsets[0].Name.Pos, "SUBSET is not supported").
			WithDetail("Flink SQL reads it, but measures over a subset are NULL there").WithHint("name the variables in MEASURES one by one: COALESCE(LAST(B.x), LAST(A.x))")
	case len(r.Measures) == 0:
		return diag.New(diag.Semantic, r.Pos, "MATCH_RECOGNIZE needs MEASURES").WithHint("write MEASURES A.x AS x in front of PATTERN: the columns of a match")
	}
	return nil
}

// keys binds PARTITION BY and ORDER BY.
func (m *matching) keys(b *binder, r *sql.MatchRecognize, n *Match) error {
	for _, e := range r.Partition {
		c, err := m.inputColumn(b, e, "PARTITION BY")
		if err != nil {
			return err
		}
		if !slices.Contains(n.Partition, c) {
			n.Partition = append(n.Partition, c)
		}
	}
	if len(r.Order) == 0 {
		return diag.New(diag.Semantic, r.Pos, "MATCH_RECOGNIZE needs an ORDER BY").
			WithHint("write ORDER BY and the time attribute of the input behind PARTITION BY")
	}
	for i, it := range r.Order {
		c, err := m.inputColumn(b, it.X, "ORDER BY")
		if err != nil {
			return err
		}
		k := sortKey(it)
		k.Col = c
		f := m.scope.cols[c].field
		if i == 0 && f.Time == NoTime && !(b.conf.Batch() && f.Type.IsTimestamp()) {
			return diag.New(diag.Semantic, it.X.Position(), "ORDER BY of MATCH_RECOGNIZE begins with %s of type %s, which is no time attribute", f.Name, f.Type).
				WithDetail("rows are matched in order of time; a time attribute is a column with a watermark, or a PROCTIME() column, passed on unchanged").
				WithHint("order by the time attribute of the input first; %s may follow it", f.Name)
		}
		if i == 0 && k.Desc {
			return diag.New(diag.Semantic, it.X.Position(), "ORDER BY %s of MATCH_RECOGNIZE must be ascending", f.Name).
				WithDetail("time goes on in one direction").WithHint("remove DESC")
		}
		if f.Type.IsNested() {
			return diag.New(diag.Semantic, it.X.Position(), "ORDER BY cannot sort %s of type %s", f.Name, f.Type.WithNull(true)).
				WithHint("order by one of its elements or fields")
		}
		n.Order = append(n.Order, k)
	}
	m.time = n.Order[0].Col
	return nil
}

// inputColumn binds e, which must be a column of the input.
func (m *matching) inputColumn(b *binder, e sql.Expr, clause string) (int, error) {
	x, err := b.expr(m.scope, e)
	if err != nil {
		return 0, err
	}
	if c, ok := x.(*expr.Column); ok {
		return c.Index, nil
	}
	return 0, diag.New(diag.Unsupported, e.Position(), "%s of MATCH_RECOGNIZE takes columns only", clause).
		WithHint("compute it below: FROM (SELECT *, %s AS x FROM ...) MATCH_RECOGNIZE (... %s x ...)", x, clause)
}

func (m *matching) variable(name string) int {
	return slices.IndexFunc(m.vars, func(v patternVar) bool { return v.Name == name })
}

func (m *matching) unknownVariable(n sql.Name, where string) error {
	var names []string
	for _, v := range m.vars {
		names = append(names, v.Name)
	}
	e := diag.New(diag.Semantic, n.Pos, "%s is no variable of the pattern", n.Text).WithDetail("%s; PATTERN has %s", where, strings.Join(names, ", "))
	if near := diag.Nearest(n.Text, names); near != "" && len(n.Text) > 1 { // any letter is near to any other
		return e.WithHint("did you mean %s?", near)
	}
	return e.WithHint("add %s to PATTERN, or name one of its variables", n.Text)
}

// define binds the conditions.
func (m *matching) define(b *binder, r *sql.MatchRecognize) error {
	for _, d := range r.Definitions {
		v := m.variable(d.Name.Text)
		if v < 0 {
			return m.unknownVariable(d.Name, "DEFINE gives a condition for each of them, or none")
		}
		if m.vars[v].Cond != nil {
			return diag.New(diag.Semantic, d.Name.Pos, "variable %s is defined twice", d.Name.Text).WithHint("join the conditions with AND")
		}
		m.own = v
		c, err := b.condition(m.scope, d.Cond, "DEFINE")
		if err != nil {
			return err
		}
		m.vars[v].Cond = c
	}
	m.own = -1
	return nil
}

// measures binds the columns of a match, behind those of PARTITION BY.
func (m *matching) measures(b *binder, r *sql.MatchRecognize, n *Match) error {
	add := func(f Field, x expr.Expr) {
		n.fields = append(n.fields, f)
		n.Results = append(n.Results, x)
	}
	for _, c := range n.Partition {
		f := m.scope.cols[c].field
		add(Field{Name: f.Name, Type: f.Type}, m.ref(op.MatchRef{Var: -1, Col: c, Type: f.Type}, f.Name))
	}
	for _, it := range r.Measures {
		if it.Semantics == "RUNNING" {
			return diag.New(diag.Unsupported, it.X.Position(), "RUNNING is not supported in MEASURES").
				WithDetail("Flink SQL has it not either: with one row per match a measure is that of the last row").WithHint("remove RUNNING")
		}
		if slices.ContainsFunc(n.fields, func(f Field) bool { return f.Name == it.Name.Text }) {
			return diag.New(diag.Semantic, it.Name.Pos, "column %s stands twice in the result of MATCH_RECOGNIZE", it.Name.Text).
				WithDetail("its columns are those of PARTITION BY, then the measures").WithHint("give the measure another name behind AS")
		}
		x, err := b.expr(m.scope, it.X)
		if err != nil {
			return err
		}
		if x.Type().Kind == types.Null {
			return diag.New(diag.Semantic, it.X.Position(), "measure %s is NULL and has no type", it.Name.Text).WithHint("write CAST(NULL AS INT)")
		}
		add(Field{Name: it.Name.Text, Type: x.Type(), Time: m.timeOf(x)}, x)
	}
	return nil
}

// timeOf is the time attribute that a measure is: the time of the match, the rowtime of one of its rows as in Flink, or
// the wall clock.
func (m *matching) timeOf(x expr.Expr) TimeAttr {
	if isProctime(x) {
		return Proctime
	}
	c, ok := x.(*expr.Column)
	if !ok {
		return NoTime
	}
	r := &m.refs[c.Index]
	if r.Kind == op.MatchTime || r.Kind == op.MatchValue && m.scope.cols[r.Col].field.Time == Rowtime {
		return Rowtime
	}
	return NoTime
}

// skip binds AFTER MATCH SKIP; the default is Flink's.
func (m *matching) skip(r *sql.MatchRecognize, n *Match) error {
	switch r.AfterMatch {
	case "", "TO NEXT ROW":
		n.Skip = op.SkipToNextRow
		return nil
	case "PAST LAST ROW":
		n.Skip = op.SkipPastLastRow
		return nil
	case "TO FIRST":
		n.Skip = op.SkipToFirst
	default:
		n.Skip = op.SkipToLast
	}
	if n.SkipTo = m.variable(r.SkipTo.Text); n.SkipTo < 0 {
		return m.unknownVariable(*r.SkipTo, "AFTER MATCH SKIP goes on from a row of one of them")
	}
	v := &m.vars[n.SkipTo]
	if n.SkipTo == 0 && (n.Skip == op.SkipToFirst || v.Max == 1) {
		return diag.New(diag.Semantic, r.SkipTo.Pos, "AFTER MATCH SKIP TO %s leads to the first row of the match", v.Name).
			WithDetail("the same match would be found for ever").WithHint("write AFTER MATCH SKIP TO NEXT ROW or PAST LAST ROW")
	}
	return nil
}
