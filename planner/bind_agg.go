package planner

import (
	"fmt"
	"strings"

	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// aggregate binds an aggregate call and returns its output column; equal calls share one.
func (g *grouping) aggregate(b *binder, e *sql.Call) (expr.Expr, error) {
	saved := b.group
	b.group = g.outer
	defer func() { b.group = saved }()
	c := &aggCall{b: b, s: g.input, e: e, name: strings.ToUpper(e.Name[0].Text)}
	if err := c.bind(); err != nil {
		return nil, err
	}
	a := expr.Agg{Kind: c.kind, Arg: -1, Filter: -1, Distinct: c.distinct, Type: c.typ, Separator: c.sep, KeepNulls: c.nulls, Fractions: c.fractions}
	if c.arg != nil {
		a.Arg, a.ArgType = g.column(c.arg), c.arg.Type()
	}
	a.Text = c.text()
	if e.Filter != nil {
		f, err := b.condition(g.input, e.Filter, "FILTER")
		if err != nil {
			return nil, err
		}
		a.Filter = g.column(f)
		a.Text += " FILTER (WHERE " + f.String() + ")"
	}
	out := g.output(a)
	if c.first {
		return firstOf(out)
	}
	return out, nil
}

// output is the column of aggregate a, new or shared.
func (g *grouping) output(a expr.Agg) expr.Expr {
	for i, o := range g.aggs {
		if o.Same(&a) {
			return &expr.Column{Index: g.width() + i, Name: g.names[i], T: o.Type}
		}
	}
	name := fmt.Sprintf("$f%d", g.width()+len(g.aggs))
	g.aggs = append(g.aggs, a)
	g.names = append(g.names, name)
	return &expr.Column{Index: g.width() + len(g.aggs) - 1, Name: name, T: a.Type}
}

// aggCall is an aggregate call being bound over s.
type aggCall struct {
	b        *binder
	s        *scope
	e        *sql.Call
	name     string // upper case
	kind     expr.AggKind
	distinct bool
	arg      expr.Expr   // what is aggregated; nil for rows
	shown    []expr.Expr // the arguments as written
	sep      string
	nulls    bool
	// fractions are the percentages of PERCENTILE; first: one is given, not an array of them.
	fractions []float64
	first     bool
	typ       types.Type
}

func (c *aggCall) bind() error {
	c.distinct = c.e.Distinct
	if err := c.find(); err != nil {
		return err
	}
	if err := c.clauses(); err != nil {
		return err
	}
	if c.e.Star {
		c.kind = expr.AggCountStar
	} else if err := c.arguments(); err != nil {
		return err
	}
	of := types.BigIntType
	if c.arg != nil {
		of = c.arg.Type()
	}
	var err error
	if c.typ, err = expr.AggType(c.kind, of); err != nil {
		return diag.At(err, c.e.Pos)
	}
	if c.kind == expr.AggCount && !of.Nullable && !c.distinct {
		c.kind, c.arg = expr.AggCountStar, nil // the same count, and no column to read
	}
	if c.arg != nil && (c.distinct || c.kind == expr.AggCollect) && hasMap(of) {
		what := c.name
		if c.distinct {
			what += "(DISTINCT ...)"
		}
		return diag.New(diag.Semantic, c.e.Pos, "%s cannot compare values of type %s", what, of.WithNull(true)).
			WithDetail("a MAP or MULTISET has no equality that grouping could use").WithHint("aggregate its entries, or CAST it to STRING")
	}
	return nil
}

func hasMap(t types.Type) bool {
	if t.Kind == types.Map || t.Kind == types.Multiset || t.Elem != nil && hasMap(*t.Elem) {
		return true
	}
	for _, f := range t.Fields {
		if hasMap(f.Type) {
			return true
		}
	}
	return false
}

// find looks the function up.
func (c *aggCall) find() error {
	var ok bool
	if c.kind, ok = expr.LookupAgg(c.name); !ok {
		return unsupportedAggregate(c.e, c.name)
	}
	if c.name == "APPROX_COUNT_DISTINCT" {
		if !c.b.conf.Batch() {
			return diag.New(diag.Unsupported, c.e.Pos, "APPROX_COUNT_DISTINCT is not supported in streaming").
				WithHint("write COUNT(DISTINCT x), or SET '%s' = 'batch' for bounded tables", keyRuntimeMode)
		}
		c.distinct = true // the exact count is a good approximation
	}
	return nil
}

// clauses refuses what the function does not take.
func (c *aggCall) clauses() error {
	e := c.e
	switch {
	case e.Within != nil && c.kind == expr.AggList:
		return diag.New(diag.Unsupported, e.Pos, "LISTAGG(...) WITHIN GROUP (ORDER BY ...) is not supported").
			WithDetail("Flink SQL has it not either: values stand in the order in which they come").
			WithHint("leave WITHIN GROUP out; ARRAY_SORT(ARRAY_AGG(x)) sorts values")
	case e.Within != nil:
		return diag.New(diag.Semantic, e.Pos, "%s takes no WITHIN GROUP", c.name).WithHint("leave WITHIN GROUP (ORDER BY ...) out: the order of rows does not change the result")
	case e.Nulls != sql.NullsUnset && c.kind != expr.AggArray:
		d := diag.New(diag.Semantic, e.Pos, "%s takes neither IGNORE NULLS nor RESPECT NULLS", c.name).
			WithHint("leave it out; FILTER (WHERE x IS NOT NULL) takes the rows with a value")
		if c.kind == expr.AggFirst || c.kind == expr.AggLast {
			d.WithHint("leave it out: %s always ignores NULL", c.name)
		}
		return d
	case e.Star && c.kind != expr.AggCount:
		return diag.New(diag.Semantic, e.Pos, "%s(*) does not exist", c.name).WithHint("only COUNT takes *")
	case e.Star && e.Distinct:
		return diag.New(diag.Semantic, e.Pos, "COUNT(DISTINCT *) does not exist").WithHint("name a column: COUNT(DISTINCT c)")
	}
	return nil
}

// arguments binds the arguments into one value to aggregate.
func (c *aggCall) arguments() error {
	least, most := 1, 1
	switch c.kind {
	case expr.AggList:
		most = 2
	case expr.AggJSONObject:
		least, most = 2, 2
	case expr.AggPercentile:
		least, most = 2, 3
	}
	if n := len(c.e.Args); n < least || n > most {
		takes := [...]string{"", "one argument", "two arguments"}[least]
		if least < most {
			takes = [...]string{"", "one or two arguments", "two or three arguments"}[least]
		}
		d := diag.New(diag.Semantic, c.e.Pos, "%s takes %s, %d were given", c.name, takes, n)
		if c.kind == expr.AggCount && n > 1 {
			return d.WithHint("count of one field: COUNT(DISTINCT (a, b)) is not supported; count DISTINCT a || '|' || b")
		}
		args := [...]string{"", "(x)", "(k, v)"}[least]
		switch c.kind {
		case expr.AggList:
			args = "(x, ',')"
		case expr.AggPercentile:
			args = "(x, 0.5)"
		}
		d.WithHint("write %s%s", c.name, args)
		return d
	}
	list, err := c.b.exprs(c.s, c.e.Args)
	if err != nil {
		return err
	}
	for i, x := range list {
		if x.Type().Kind == types.Null && c.kind != expr.AggJSONObject && c.kind != expr.AggJSONArray {
			return diag.New(diag.Semantic, c.e.Args[i].Position(), "%s(NULL) has no type", c.name).WithHint("write CAST(NULL AS INT)")
		}
	}
	c.arg, c.shown = list[0], list
	switch c.kind {
	case expr.AggList:
		return c.separator()
	case expr.AggPercentile:
		return c.percentile()
	case expr.AggArray:
		c.nulls = c.e.Nulls != sql.IgnoreNulls
	case expr.AggJSONArray:
		c.nulls = c.e.JSON != nil && c.e.JSON.OnNull == "NULL"
		c.arg, err = c.json(0)
	case expr.AggJSONObject:
		c.nulls = c.e.JSON == nil || c.e.JSON.OnNull != "ABSENT"
		if !list[0].Type().IsString() {
			return diag.New(diag.Semantic, c.e.Args[0].Position(), "the key of %s is %s, not a string", c.name, list[0].Type().WithNull(true)).
				WithHint("CAST it to STRING")
		}
		var v expr.Expr
		if v, err = c.json(1); err == nil {
			c.arg, err = expr.NewRow(nil, []expr.Expr{list[0], v})
		}
	}
	return err
}

// separator reads the second argument of LISTAGG.
func (c *aggCall) separator() error {
	c.sep = ","
	if len(c.shown) == 1 {
		return nil
	}
	l, ok := c.shown[1].(*expr.Literal)
	if !ok || !l.T.IsString() || l.Value.IsNull {
		return diag.New(diag.Semantic, c.e.Args[1].Position(), "the separator of LISTAGG is not a string constant").
			WithHint("write it as a literal: LISTAGG(x, '; ')")
	}
	c.sep = l.Value.Str
	return nil
}

// json is argument i as JSON text.
func (c *aggCall) json(i int) (expr.Expr, error) {
	x, err := c.b.p.funcs.NewCall("JSON_STRING", []expr.Expr{c.shown[i]}, expr.CallOptions{}, c.b.session)
	return x, diag.At(err, c.e.Args[i].Position())
}

// text is the call as SQL, without FILTER.
func (c *aggCall) text() string {
	if c.kind == expr.AggCountStar && c.arg == nil && len(c.shown) == 0 {
		return "COUNT(*)"
	}
	var sb strings.Builder
	sb.WriteString(c.name + "(")
	if c.e.Distinct {
		sb.WriteString("DISTINCT ")
	}
	switch c.kind {
	case expr.AggJSONObject:
		fmt.Fprintf(&sb, "KEY %s VALUE %s", c.shown[0], c.shown[1])
	default:
		sb.WriteString(exprList(c.shown))
	}
	if j := c.e.JSON; j != nil && j.OnNull != "" {
		sb.WriteString(" " + j.OnNull + " ON NULL")
	}
	switch c.e.Nulls {
	case sql.IgnoreNulls:
		sb.WriteString(" IGNORE NULLS")
	case sql.RespectNulls:
		sb.WriteString(" RESPECT NULLS")
	}
	sb.WriteString(")")
	return sb.String()
}
