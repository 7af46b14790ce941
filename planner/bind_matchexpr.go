package planner

import (
	"fmt"
	"strings"

	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// replace binds what reads the rows of a match; nil when e does not and its parts are to be bound.
func (m *matching) replace(b *binder, e sql.Expr) (expr.Expr, error) {
	switch e := e.(type) {
	case *sql.Ident:
		return m.ident(e)
	case *sql.Call:
		if e.Over != nil || len(e.Name) != 1 {
			return nil, nil
		}
		return m.call(b, e)
	}
	return nil, nil
}

// ident is a column of a variable's rows, or without a variable of all rows: of the last one unless FIRST or LAST say
// otherwise.
func (m *matching) ident(e *sql.Ident) (expr.Expr, error) {
	path, v := e.Path, -1
	if len(path) > 1 {
		if v = m.variable(path[0].Text); v >= 0 {
			path = path[1:]
		} else if _, n := m.scope.find("", path[0].Text); n == 0 {
			return nil, m.foreign(path)
		}
	}
	c, rest, err := m.scope.resolve(path)
	if err != nil {
		return nil, err
	}
	if inside := m.inside(); inside != nil {
		if m.seen != seenNone && m.seen != v {
			return nil, diag.New(diag.Semantic, e.Pos, "%s reads rows of several variables", strings.ToUpper(inside.Name.Last())).
				WithDetail("inside it all columns are of one variable").WithHint("write one call per variable")
		}
		m.seen = v
	}
	f := m.scope.cols[c].field
	var x expr.Expr
	if m.agg != nil {
		x = m.scope.columnAt(c)
	} else {
		r := op.MatchRef{Var: v, Col: c}
		if m.nav != nil {
			r.First, r.Offset = strings.EqualFold(m.nav.Name[0].Text, "FIRST"), m.off
		}
		r.Type = f.Type.WithNull(f.Type.Nullable || !m.sure(r))
		x = m.ref(r, m.text(r, f.Name))
	}
	for _, n := range rest {
		if x, err = expr.NewField(x, n.Text); err != nil {
			return nil, diag.At(err, n.Pos)
		}
	}
	return x, nil
}

// foreign is the error for a column written with a name that is no variable.
func (m *matching) foreign(path sql.Path) error {
	err := m.unknownVariable(path[0], "columns are written with the variable whose rows they are of")
	var d *diag.Error
	if asDiag(err, &d) && m.scope.hasTable(path[0].Text) {
		v := m.vars[max(m.own, 0)].Name
		d.WithHint("write %s.%s", v, path[1].Text)
	}
	return err
}

// inside is the call that wants all columns of one variable.
func (m *matching) inside() *sql.Call {
	if m.agg != nil {
		return m.agg
	}
	return m.nav
}

// sure reports that there is a row for r wherever it is read.
func (m *matching) sure(r op.MatchRef) bool {
	if m.own >= 0 {
		return r.Offset == 0 && (r.Var < 0 || r.Var == m.own)
	}
	least := int64(1)
	if r.Var >= 0 {
		least = int64(m.vars[r.Var].Min)
	}
	return r.Offset < least
}

// text is r as SQL.
func (m *matching) text(r op.MatchRef, column string) string {
	name := column
	if r.Var >= 0 {
		name = m.vars[r.Var].Name + "." + column
	}
	fn := "LAST"
	if r.First {
		fn = "FIRST"
	}
	switch {
	case r.Offset > 0:
		return fmt.Sprintf("%s(%s, %d)", fn, name, r.Offset)
	case r.First:
		return "FIRST(" + name + ")"
	}
	return name
}

// ref is the column that stands for r; equal ones share it.
func (m *matching) ref(r op.MatchRef, text string) expr.Expr {
	i := 0
	for ; i < len(m.refs); i++ {
		x := &m.refs[i]
		if x.Kind == r.Kind && x.Var == r.Var && x.First == r.First && x.Offset == r.Offset && x.Col == r.Col && x.Type.String() == r.Type.String() &&
			(r.Kind != op.MatchAgg || x.Agg.Same(&r.Agg) && sameArg(x.Arg, r.Arg)) {
			break
		}
	}
	if i == len(m.refs) {
		m.refs = append(m.refs, r)
	}
	return &expr.Column{Index: i, Name: text, T: r.Type}
}

func sameArg(x, y expr.Expr) bool {
	if x == nil || y == nil {
		return x == nil && y == nil
	}
	return expr.Equal(x, y) && expr.IsDeterministic(x)
}

// call binds the functions that only MATCH_RECOGNIZE has, and aggregates.
func (m *matching) call(b *binder, e *sql.Call) (expr.Expr, error) {
	name := strings.ToUpper(e.Name[0].Text)
	refuse := func(why, hint string) (expr.Expr, error) {
		return nil, diag.New(diag.Unsupported, e.Pos, "%s is not supported in MATCH_RECOGNIZE", name).WithDetail("%s", why).WithHint("%s", hint)
	}
	switch name {
	case "FIRST", "LAST":
		return m.navigate(b, e, name)
	case "PREV", "NEXT":
		return refuse("Flink SQL has it not either: rows are counted within the match only", "write LAST(A.x, 1) for the row of A before the last one")
	case "CLASSIFIER", "MATCH_NUMBER":
		return refuse("Flink SQL has it not either", "tell the variables apart by what they read: CASE WHEN COUNT(B.x) > 0 THEN 'B' END")
	case "MATCH_ROWTIME":
		return m.rowtime(b, e)
	case "MATCH_PROCTIME":
		if m.own >= 0 || m.inside() != nil || len(e.Args) > 0 {
			return nil, diag.New(diag.Semantic, e.Pos, "MATCH_PROCTIME stands in MEASURES only, and in no other function of a match").
				WithHint("write MEASURES MATCH_PROCTIME() AS proctime")
		}
		x, err := b.p.funcs.NewCall("PROCTIME", nil, expr.CallOptions{}, b.session)
		return x, err
	}
	user := b.userAgg(e) != nil
	if !user && (!expr.IsFlinkAgg(name) || b.p.funcs.Lookup(name) != nil) {
		return nil, nil
	}
	return m.aggregate(b, e, name, user)
}

// navigate binds FIRST(x, n) and LAST(x, n): x with its columns read from that row.
func (m *matching) navigate(b *binder, e *sql.Call, name string) (expr.Expr, error) {
	if in := m.inside(); in != nil {
		return nil, diag.New(diag.Semantic, e.Pos, "%s cannot stand inside %s", name, strings.ToUpper(in.Name.Last())).
			WithHint("write one of them: %s(A.x, 1)", name)
	}
	if e.Star || e.Distinct || e.Filter != nil || e.Within != nil || e.Nulls != sql.NullsUnset || len(e.Args) < 1 || len(e.Args) > 2 {
		return nil, diag.New(diag.Semantic, e.Pos, "%s takes a value and a number of rows", name).WithHint("write %s(A.x) or %s(A.x, 1)", name, name)
	}
	m.off = 0
	if len(e.Args) == 2 {
		l, ok := e.Args[1].(*sql.Literal)
		if !ok || l.Kind != sql.LitInteger {
			return nil, diag.New(diag.Semantic, e.Args[1].Position(), "the second argument of %s must be a whole number", name).
				WithDetail("it counts rows of the variable").WithHint("write %s(A.x, 1)", name)
		}
		n, err := expr.NewIntLiteral(l.Text)
		if err != nil {
			return nil, diag.At(err, l.Pos)
		}
		m.off = n.(*expr.Literal).Value.I64
	}
	m.nav, m.seen = e, seenNone
	x, err := b.expr(m.scope, e.Args[0])
	m.nav, m.off = nil, 0
	return x, err
}

// rowtime binds MATCH_ROWTIME: the time of the match, by which its row is on time.
func (m *matching) rowtime(b *binder, e *sql.Call) (expr.Expr, error) {
	f := m.scope.cols[m.time].field
	switch {
	case m.own >= 0 || m.inside() != nil:
		return nil, diag.New(diag.Semantic, e.Pos, "MATCH_ROWTIME stands in MEASURES only, and in no other function of a match").
			WithHint("write MEASURES MATCH_ROWTIME(%s) AS rowtime", f.Name)
	case f.Time == NoTime: // of batch mode
		last := m.vars[len(m.vars)-1].Name
		return nil, diag.New(diag.Semantic, e.Pos, "MATCH_ROWTIME needs a column with a WATERMARK, %s has none", f.Name).
			WithHint("name the time of a row: LAST(%s.%s)", last, f.Name)
	case f.Time != Rowtime:
		return nil, diag.New(diag.Semantic, e.Pos, "MATCH_ROWTIME needs rows ordered by event time").
			WithDetail("they are ordered by %s, the wall clock", f.Name).WithHint("write MATCH_PROCTIME()")
	case len(e.Args) > 1:
		return nil, diag.New(diag.Semantic, e.Pos, "MATCH_ROWTIME takes one argument, %d were given", len(e.Args)).WithHint("write MATCH_ROWTIME(%s)", f.Name)
	case len(e.Args) == 0 && f.Type.Kind != types.Timestamp:
		return nil, diag.New(diag.Semantic, e.Pos, "MATCH_ROWTIME() is a TIMESTAMP, but %s is of type %s", f.Name, f.Type).
			WithHint("write MATCH_ROWTIME(%s)", f.Name)
	}
	t := f.Type.NotNull()
	if len(e.Args) == 1 {
		saved := b.match
		b.match = nil
		x, err := b.expr(m.scope, e.Args[0])
		b.match = saved
		if err != nil {
			return nil, err
		}
		if c, ok := x.(*expr.Column); !ok || m.scope.cols[c.Index].field.Time != Rowtime {
			return nil, diag.New(diag.Semantic, e.Args[0].Position(), "the argument of MATCH_ROWTIME is %s, which is no event time", x).
				WithHint("write MATCH_ROWTIME(%s)", f.Name)
		}
		t = x.Type()
	}
	return m.ref(op.MatchRef{Kind: op.MatchTime, Var: -1, Type: t}, "MATCH_ROWTIME("+f.Name+")"), nil
}

// aggregate binds an aggregate over the rows of one variable, or of all.
func (m *matching) aggregate(b *binder, e *sql.Call, name string, user bool) (expr.Expr, error) {
	if in := m.inside(); in != nil {
		return nil, diag.New(diag.Semantic, e.Pos, "%s cannot stand inside %s", name, strings.ToUpper(in.Name.Last())).
			WithHint("aggregate a value of a row: %s(A.x)", name)
	}
	if e.Distinct || e.Filter != nil {
		return nil, diag.New(diag.Unsupported, e.Pos, "DISTINCT and FILTER are not supported in MATCH_RECOGNIZE").
			WithDetail("Flink SQL has them not either").WithHint("collect the values with ARRAY_AGG(A.x) and aggregate them in the query above; for FILTER write %s(CASE WHEN ... THEN A.x END)", name)
	}
	g := &grouping{input: m.scope}
	m.agg, m.seen = e, seenNone
	var x expr.Expr
	var err error
	if user {
		x, err = g.userAggregate(b, e)
	} else {
		x, err = g.aggregate(b, e)
	}
	m.agg = nil
	if err != nil {
		return nil, err
	}
	if len(g.aggs) != 1 || g.aggs[0].Kind == expr.AggPercentile {
		return nil, diag.New(diag.Unsupported, e.Pos, "%s is not supported in MATCH_RECOGNIZE", name).WithHint("use COUNT, SUM, AVG, MIN or MAX")
	}
	a := g.aggs[0]
	r := op.MatchRef{Kind: op.MatchAgg, Var: max(m.seen, -1), Agg: a, Type: x.Type()}
	if a.Arg >= 0 {
		r.Arg = g.pre[a.Arg]
	}
	r.Agg.Arg, r.Agg.Filter = -1, -1
	text := a.Text
	if r.Var >= 0 {
		text += " OF " + m.vars[r.Var].Name
	}
	return m.ref(r, text), nil
}
