package planner

import (
	"strings"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// binder resolves names and types of one statement.
type binder struct {
	p       *Planner
	conf    *Config
	hints   stateHints // of the SELECT block being bound
	lookups lookupHints
	session expr.Session
	ctes    []map[string]Node // innermost last
	views   []string          // being expanded
	viewPos diag.Pos          // where the statement names the outermost of them
	tables  map[string]*tableInfo
	group   *grouping     // set while binding what stands above an aggregation
	legacy  *legacyWindow // the group window of the SELECT block being bound
	depth   int           // of the expression being bound inside others
	match   *matching     // set while binding MEASURES and DEFINE
	over    *overing      // set while binding what may hold OVER windows
	subs    *subqueries   // of the SELECT block being bound; nil where none may stand
	outer   *outerQuery   // the query around the one being bound
	outers  int           // how many there were
	notices []string
}

// here is pos, or where the statement names the view whose text pos is in.
func (b *binder) here(pos diag.Pos) diag.Pos {
	if b.viewPos.Known() {
		return b.viewPos
	}
	return pos
}

// expr binds e over the columns of s. A constant part that always fails is an error here rather than of the job.
func (b *binder) expr(s *scope, e sql.Expr) (expr.Expr, error) {
	switch x := e.(type) {
	case *sql.Call:
		if x.Over != nil {
			return b.over.bind(b, x)
		}
		if c, name, _ := legacyPart(x); c != nil && b.group == nil {
			return nil, legacyAlone(c, name)
		}
	case *sql.Ident:
		if a := b.over.alias(x); a != nil {
			return b.expr(s, a)
		}
	}
	if b.match != nil {
		if x, err := b.match.replace(b, e); x != nil || err != nil {
			return x, diag.At(err, e.Position())
		}
	}
	if b.group != nil {
		if x, err := b.group.replace(b, e); x != nil || err != nil {
			return x, err
		}
	}
	b.depth++
	x, err := b.dispatch(s, e)
	b.depth--
	if err != nil {
		return nil, diag.At(err, e.Position())
	}
	x = expr.Place(x, b.here(e.Position()))
	if b.depth == 0 {
		err = expr.CheckConstants(x, b.session)
	}
	return x, diag.At(err, e.Position())
}

func (b *binder) exprs(s *scope, list []sql.Expr) ([]expr.Expr, error) {
	out := make([]expr.Expr, len(list))
	for i, e := range list {
		x, err := b.expr(s, e)
		if err != nil {
			return nil, err
		}
		out[i] = x
	}
	return out, nil
}

// two binds two operands.
func (b *binder) two(s *scope, l, r sql.Expr) (x, y expr.Expr, err error) {
	if x, err = b.expr(s, l); err != nil {
		return nil, nil, err
	}
	y, err = b.expr(s, r)
	return x, y, err
}

// mayBeTime reports a column that may be a time attribute. Above an aggregation any column of such a type may be the
// time of a window.
func (b *binder) mayBeTime(s *scope, c *expr.Column) bool {
	switch {
	case b.match != nil && b.match.agg == nil:
		return b.match.timeOf(c) != NoTime
	case b.group != nil:
		return c.T.IsTimestamp() && c.T.Precision == 3
	}
	return c.Index < len(s.cols) && (s.cols[c.Index].field.Time != NoTime || s.cols[c.Index].timed != NoTime)
}

func (b *binder) dispatch(s *scope, e sql.Expr) (expr.Expr, error) {
	switch e := e.(type) {
	case *sql.Ident:
		return b.ident(s, e)
	case *sql.Literal:
		return literal(e)
	case *sql.Interval:
		return expr.NewIntervalLiteral(e.Type, e.Value), nil
	case *sql.Call:
		return b.call(s, e)
	case *sql.Cast:
		x, err := b.expr(s, e.X)
		if err != nil {
			return nil, err
		}
		r, err := expr.NewCast(x, e.Type, e.Try)
		if c, same := r.(*expr.Column); same && b.mayBeTime(s, c) {
			r = &expr.Cast{X: c, T: c.T} // a cast takes the time attribute away, also one to the same type
		}
		return r, err
	case *sql.Unary:
		x, err := b.expr(s, e.X)
		if err != nil {
			return nil, err
		}
		return expr.NewUnary(e.Op, x)
	case *sql.Binary:
		l, r, err := b.two(s, e.L, e.R)
		if err != nil {
			return nil, err
		}
		x, err := expr.NewBinary(e.Op, l, r)
		if err != nil {
			return nil, diag.At(err, e.OpPos)
		}
		return expr.Place(x, b.here(e.OpPos)), nil
	case *sql.Is:
		return b.is(s, e)
	case *sql.Between:
		lo, hi, err := b.two(s, e.Lo, e.Hi)
		if err != nil {
			return nil, err
		}
		x, err := b.expr(s, e.X)
		if err != nil {
			return nil, err
		}
		return expr.NewBetween(x, lo, hi, e.Not, e.Symmetric)
	case *sql.In:
		if e.Query != nil {
			return b.inQuery(s, e)
		}
		return b.in(s, e)
	case *sql.Subquery:
		return b.scalar(s, e)
	case *sql.Exists:
		return b.exists(s, e)
	case *sql.Quantified:
		return b.quantified(s, e)
	case *sql.Like:
		return b.like(s, e)
	case *sql.Case:
		return b.caseExpr(s, e)
	case *sql.Item:
		x, i, err := b.two(s, e.X, e.Index)
		if err != nil {
			return nil, err
		}
		return elementOf(x, i)
	case *sql.FieldAccess:
		x, err := b.expr(s, e.X)
		if err != nil {
			return nil, err
		}
		x, err = expr.NewField(x, e.Name.Text)
		return x, diag.At(err, e.Name.Pos)
	case *sql.TimeDiff:
		l, r, err := b.two(s, e.L, e.R)
		if err != nil {
			return nil, err
		}
		return expr.NewTimeDiff(l, r, e.Type)
	case *sql.ArrayExpr:
		list, err := b.exprs(s, e.Elems)
		if err != nil {
			return nil, err
		}
		return expr.NewArray(list)
	case *sql.MapExpr:
		return b.mapExpr(s, e)
	case *sql.RowExpr:
		list, err := b.exprs(s, e.Elems)
		if err != nil {
			return nil, err
		}
		return expr.NewRow(nil, list)
	}
	return nil, refuseExpr(e)
}

// elementOf is x[i]; of a ROW it is the field of that name, or the i-th one.
func elementOf(x, i expr.Expr) (expr.Expr, error) {
	l, constant := i.(*expr.Literal)
	if x.Type().Kind != types.Row || !constant || l.Value.IsNull {
		return expr.NewItem(x, i)
	}
	fields := x.Type().Fields
	switch {
	case l.T.IsString():
		return expr.NewField(x, l.Value.Str)
	case l.T.IsInteger() && l.Value.I64 >= 1 && l.Value.I64 <= int64(len(fields)):
		return expr.NewField(x, fields[l.Value.I64-1].Name)
	}
	return nil, diag.New(diag.Semantic, diag.Pos{}, "row %s has no field %s", x, l).WithHint("its fields are 1 to %d", len(fields))
}

// refuseExpr names the expressions of Flink SQL that streamsql does not have.
func refuseExpr(e sql.Expr) error {
	refuse := func(what, hint string) error {
		return diag.New(diag.Unsupported, e.Position(), "%s is not supported", what).WithHint("%s", hint)
	}
	switch e := e.(type) {
	case *sql.NamedArg:
		return refuse("a named argument", "pass the arguments by position")
	case *sql.Star:
		return diag.New(diag.Semantic, e.Pos, "* stands for columns only in a SELECT list and in COUNT(*)")
	case *sql.TableArg, *sql.Descriptor:
		return diag.New(diag.Semantic, e.Position(), "TABLE and DESCRIPTOR are arguments of window functions in FROM only").
			WithHint("write FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE))")
	}
	return refuse("this expression", "see docs/sql")
}

func (b *binder) ident(s *scope, e *sql.Ident) (expr.Expr, error) {
	from := s
	if b.group != nil {
		from = b.group.input
	}
	if !from.knows(e.Path) {
		if x, err := b.outerIdent(e); x != nil || err != nil {
			return x, err
		}
	}
	if b.group != nil {
		return nil, b.group.ungrouped(b, e)
	}
	i, rest, err := s.resolve(e.Path)
	if err != nil {
		return nil, err
	}
	x := s.columnAt(i)
	for _, n := range rest {
		if x, err = expr.NewField(x, n.Text); err != nil {
			return nil, diag.At(err, n.Pos)
		}
	}
	return x, nil
}

func literal(e *sql.Literal) (expr.Expr, error) {
	switch e.Kind {
	case sql.LitString:
		return expr.NewStringLiteral(e.Text), nil
	case sql.LitInteger:
		return expr.NewIntLiteral(e.Text)
	case sql.LitDecimal:
		return expr.NewDecimalLiteral(e.Text)
	case sql.LitApprox:
		return expr.NewApproxLiteral(e.Text)
	case sql.LitBool:
		switch e.Text {
		case "TRUE":
			return expr.NewBoolLiteral(true), nil
		case "FALSE":
			return expr.NewBoolLiteral(false), nil
		}
		return &expr.Literal{Value: types.NullDatum, T: types.BoolType}, nil
	case sql.LitDate:
		return expr.NewDateLiteral(e.Text)
	case sql.LitTime:
		return expr.NewTimeLiteral(e.Text)
	case sql.LitTimestamp:
		return expr.NewTimestampLiteral(e.Text)
	case sql.LitBinary:
		return expr.NewBinaryLiteral(e.Text)
	}
	return expr.NewNullLiteral(), nil
}

func (b *binder) is(s *scope, e *sql.Is) (expr.Expr, error) {
	x, err := b.expr(s, e.X)
	if err != nil {
		return nil, err
	}
	return expr.NewIs(x, e.What, e.Not)
}

func (b *binder) in(s *scope, e *sql.In) (expr.Expr, error) {
	x, err := b.expr(s, e.X)
	if err != nil {
		return nil, err
	}
	list, err := b.exprs(s, e.List)
	if err != nil {
		return nil, err
	}
	return expr.NewIn(x, list, e.Not)
}

func (b *binder) like(s *scope, e *sql.Like) (expr.Expr, error) {
	x, pat, err := b.two(s, e.X, e.Pattern)
	if err != nil {
		return nil, err
	}
	var esc expr.Expr
	if e.Escape != nil {
		if esc, err = b.expr(s, e.Escape); err != nil {
			return nil, err
		}
	}
	return expr.NewLike(x, pat, esc, e.Similar, e.Not)
}

func (b *binder) caseExpr(s *scope, e *sql.Case) (expr.Expr, error) {
	var operand, els expr.Expr
	var err error
	if e.X != nil {
		if operand, err = b.expr(s, e.X); err != nil {
			return nil, err
		}
	}
	when, then := make([]expr.Expr, len(e.Whens)), make([]expr.Expr, len(e.Whens))
	for i, w := range e.Whens {
		if when[i], then[i], err = b.two(s, w.Cond, w.Then); err != nil {
			return nil, err
		}
	}
	if e.Else != nil {
		if els, err = b.expr(s, e.Else); err != nil {
			return nil, err
		}
	}
	return expr.NewCase(operand, when, then, els)
}

func (b *binder) mapExpr(s *scope, e *sql.MapExpr) (expr.Expr, error) {
	var kvs []expr.Expr
	for i := range e.Keys {
		k, v, err := b.two(s, e.Keys[i], e.Values[i])
		if err != nil {
			return nil, err
		}
		kvs = append(kvs, k, v)
	}
	return expr.NewMap(kvs)
}

// call binds a scalar function.
func (b *binder) call(s *scope, e *sql.Call) (expr.Expr, error) {
	name, err := functionName(e.Name)
	if err != nil {
		return nil, err
	}
	switch {
	case b.userAgg(e) != nil:
		return nil, misplaced(e, name)
	case b.p.funcs.LookupTable(name) != nil:
		return nil, misplacedTable(e, name)
	case expr.IsFlinkAgg(name) && b.p.funcs.Lookup(name) == nil:
		return nil, b.misplacedAggregate(e, name)
	case b.p.funcs.Lookup(name) == nil && !strings.EqualFold(name, "COALESCE"):
		return b.p.funcs.NewCall(name, nil, expr.CallOptions{}, b.session) // says what is wrong with the name, before its arguments are looked at
	case e.Distinct || e.Star || e.Filter != nil || e.Within != nil || e.Nulls != sql.NullsUnset:
		return nil, diag.New(diag.Semantic, e.Pos, "%s is not an aggregate function", name).
			WithHint("DISTINCT, *, FILTER, WITHIN GROUP and IGNORE NULLS belong to aggregates")
	}
	args, err := b.exprs(s, e.Args)
	if err != nil {
		return nil, err
	}
	if strings.EqualFold(name, "COALESCE") {
		return expr.NewCoalesce(args)
	}
	o := callOptions(e)
	if args, err = b.jsonDefaults(s, e, args); err != nil {
		return nil, err
	}
	x, err := b.p.funcs.NewCall(name, args, o, b.session)
	if err == nil && expr.IsWatermark(x) {
		err = b.checkWatermarkOf(s, args[0], e)
	}
	return x, err
}

// checkWatermarkOf refuses CURRENT_WATERMARK of anything but a column of event time, as Flink does.
func (b *binder) checkWatermarkOf(s *scope, arg expr.Expr, e *sql.Call) error {
	if b.match != nil {
		return diag.New(diag.Unsupported, e.Pos, "CURRENT_WATERMARK cannot be used in MATCH_RECOGNIZE").
			WithDetail("rows wait there until the watermark has passed them; Flink does not compute it there either").
			WithHint("compute it below: FROM (SELECT *, CURRENT_WATERMARK(ts) AS wm FROM t) MATCH_RECOGNIZE (...)")
	}
	if b.conf.Batch() {
		return diag.New(diag.Unsupported, e.Pos, "CURRENT_WATERMARK does not exist in batch mode").
			WithDetail("all rows are there before a result is computed, so no watermark stands between them").
			WithHint("leave it out, or SET '%s' = 'streaming'", keyRuntimeMode)
	}
	c, ok := arg.(*expr.Column)
	if g := b.group; ok && g != nil { // above the aggregation
		s = g.input
		if ok = c.Index < len(g.keys); ok {
			c, ok = g.keys[c.Index].(*expr.Column)
		}
	}
	if ok && c.Index < len(s.cols) && (s.cols[c.Index].field.Time == Rowtime || s.cols[c.Index].timed == Rowtime) {
		return nil
	}
	return diag.New(diag.Semantic, e.Pos, "CURRENT_WATERMARK needs a column of event time, not %s", strings.ReplaceAll(sql.Format(e.Args[0]), "`", "")).
		WithDetail("event time is a column with a WATERMARK, passed on unchanged").
		WithHint("declare WATERMARK FOR ts AS ts - INTERVAL '5' SECOND in the table, and write CURRENT_WATERMARK(ts)")
}

// functionName is the name of a function without the default catalog and database.
func functionName(p sql.Path) (string, error) {
	if len(p) == 1 {
		return p[0].Text, nil
	}
	return catalog.Resolve(p)
}

func (b *binder) misplacedAggregate(e *sql.Call, name string) error {
	if _, ok := expr.LookupAgg(name); !ok {
		return unsupportedAggregate(e, name)
	}
	if o := b.outer; o != nil && o.group != nil && b.group == nil {
		return misplaced(e, name).WithHint("aggregate below the subquery: SELECT ... FROM (SELECT ..., %s(...) AS x FROM ... GROUP BY ...) WHERE ..., where it can name x", strings.ToUpper(name))
	}
	return misplaced(e, name)
}

func misplaced(e *sql.Call, name string) *diag.Error {
	return diag.New(diag.Semantic, e.Pos, "aggregate %s cannot be used here", strings.ToUpper(name)).
		WithDetail("aggregates stand in SELECT, HAVING and ORDER BY; never in WHERE, GROUP BY, VALUES or inside each other").
		WithHint("aggregate in a subquery: SELECT ... FROM (SELECT ..., %s(...) AS x FROM ... GROUP BY ...)", strings.ToUpper(name))
}

func unsupportedAggregate(e *sql.Call, name string) error {
	if _, ok := expr.LookupOver(name); ok {
		return needsOver(e, name)
	}
	return diag.New(diag.Unsupported, e.Pos, "function %s is not supported", strings.ToUpper(name)).
		WithDetail("Flink SQL has it, streamsql does not").WithHint("SHOW FUNCTIONS lists the aggregates there are")
}

// callOptions carries the keywords of a call over to the function table.
func callOptions(e *sql.Call) expr.CallOptions {
	o := expr.CallOptions{Unit: e.Unit}
	if e.Trim != "" {
		o.Words = append(o.Words, e.Trim)
	}
	if e.JSON == nil {
		return o
	}
	return jsonOptions(o, e.JSON)
}

// jsonOptions passes the clauses of the SQL/JSON functions on as words, in the order ON NULL, wrapper, ON EMPTY, ON ERROR.
func jsonOptions(o expr.CallOptions, j *sql.JSONOptions) expr.CallOptions {
	o.Return = j.Returning
	if j.OnNull != "" {
		o.Words = append(o.Words, j.OnNull+" ON NULL")
	}
	if j.Wrapper != "" {
		o.Words = append(o.Words, j.Wrapper+" WRAPPER")
	}
	if j.OnEmpty.Kind != "" {
		o.Words = append(o.Words, j.OnEmpty.Kind+" ON EMPTY")
	}
	if j.OnError.Kind != "" {
		o.Words = append(o.Words, j.OnError.Kind+" ON ERROR")
	}
	return o
}

// jsonDefaults appends the values of DEFAULT .. ON EMPTY and DEFAULT .. ON ERROR, in this order, to the arguments.
func (b *binder) jsonDefaults(s *scope, e *sql.Call, args []expr.Expr) ([]expr.Expr, error) {
	if e.JSON == nil {
		return args, nil
	}
	for _, d := range []sql.Expr{e.JSON.OnEmpty.Default, e.JSON.OnError.Default} {
		if d == nil {
			continue
		}
		x, err := b.expr(s, d)
		if err != nil {
			return nil, err
		}
		args = append(args, x)
	}
	return args, nil
}
