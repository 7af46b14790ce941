package planner

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// overing collects the OVER calls of a SELECT block while its expressions are bound. What stands for a call meanwhile is
// a column from overBase on; columns become those of the Over nodes when the block is put together.
type overing struct {
	scope   *scope
	q       *sql.Select
	args    *grouping // binds aggregates and holds the columns that calls, partitions and orders read
	calls   []overBound
	aliases bool // QUALIFY is bound: it may name columns of the SELECT list
	many    bool // the call bound last gives an array of percentiles, or is no PERCENTILE
}

// overBound is a bound call and its window; columns are places in overing.args.pre.
type overBound struct {
	call      expr.OverCall
	partition []int
	order     []SortKey
	pos       diag.Pos
}

// overBase is the first column that stands for an OVER call.
const overBase = 1 << 30

// hasOver reports an OVER call in e.
func hasOver(e sql.Expr) bool {
	found := false
	walkSQL(e, func(x sql.Expr) bool {
		if c, ok := x.(*sql.Call); ok && c.Over != nil {
			found = true
		}
		return !found
	})
	return found
}

// openOver starts the collection for the SELECT block q, whose expressions are bound over s, and checks its WINDOW clause.
func (b *binder) openOver(q *sql.Select, s *scope) (*overing, error) {
	o := &overing{scope: s, q: q, args: &grouping{input: s, outer: b.group}}
	for i, w := range q.Windows {
		for _, x := range q.Windows[:i] {
			if strings.EqualFold(x.Name.Text, w.Name.Text) {
				return nil, diag.New(diag.Semantic, w.Name.Pos, "window %s is defined twice", w.Name.Text).WithHint("give each window a name of its own")
			}
		}
		spec, err := o.resolve(w.Window, i)
		if err != nil {
			return nil, err
		}
		if _, _, err := o.keys(b, spec); err != nil {
			return nil, err
		}
	}
	o.args.pre = nil // columns of windows that no call uses are not needed
	b.over = o
	return o, nil
}

// bind binds a call with OVER.
func (o *overing) bind(b *binder, e *sql.Call) (expr.Expr, error) {
	if o == nil {
		return nil, misplacedOver(e)
	}
	b.over = nil // no OVER inside OVER
	defer func() { b.over = o }()
	w, err := o.window(b, e.Over)
	if err != nil {
		return nil, err
	}
	x := overBound{pos: e.Over.Position()}
	if x.partition, x.order, err = o.keys(b, w); err != nil {
		return nil, err
	}
	if x.call, err = o.call(b, e, w); err != nil {
		return nil, diag.At(err, e.Pos)
	}
	if x.call.Frame, err = o.frame(w, e, x); err != nil {
		return nil, err
	}
	if x.call.Agg.Kind == expr.AggPercentile && !o.many {
		return firstOf(o.column(x))
	}
	return o.column(x), nil
}

func misplacedOver(e *sql.Call) error {
	name := strings.ToUpper(e.Name.Last())
	return diag.New(diag.Semantic, e.Pos, "%s(...) OVER cannot be used here", name).
		WithDetail("OVER windows stand in SELECT, QUALIFY and ORDER BY; never in WHERE, GROUP BY, HAVING, VALUES or inside each other").
		WithHint("compute it in a subquery: SELECT ... FROM (SELECT ..., %s(...) OVER (...) AS x FROM ...) WHERE x ...", name)
}

// needsOver is the error of a window function without OVER.
func needsOver(e *sql.Call, name string) error {
	name = strings.ToUpper(name)
	return diag.New(diag.Semantic, e.Pos, "%s needs an OVER window", name).WithHint("write %s(...) OVER (PARTITION BY ... ORDER BY ...)", name)
}

// column is the column that stands for a call; equal calls share one.
func (o *overing) column(x overBound) expr.Expr {
	i := slices.IndexFunc(o.calls, func(y overBound) bool {
		return y.sameWindow(x) && y.call.Func == x.call.Func && y.call.Agg.Same(&x.call.Agg) && y.call.Agg.Text == x.call.Agg.Text &&
			y.call.Offset == x.call.Offset && y.call.Default == x.call.Default
	})
	if i < 0 {
		i = len(o.calls)
		o.calls = append(o.calls, x)
	}
	return &expr.Column{Index: overBase + i, Name: x.call.Agg.Text, T: x.call.Agg.Type}
}

func (x overBound) sameOrder(y overBound) bool {
	return slices.Equal(x.partition, y.partition) && slices.Equal(x.order, y.order)
}

func (x overBound) sameWindow(y overBound) bool {
	return x.sameOrder(y) && x.call.Frame == y.call.Frame
}

// window resolves OVER w and OVER (w ...) with the WINDOW clause.
func (o *overing) window(b *binder, w *sql.Window) (*sql.Window, error) {
	return o.resolve(w, len(o.q.Windows))
}

// resolve is w with what it takes from the first n windows of the WINDOW clause.
func (o *overing) resolve(w *sql.Window, n int) (*sql.Window, error) {
	if w.Ref == nil {
		return w, nil
	}
	i := slices.IndexFunc(o.q.Windows[:n], func(x sql.NamedWindow) bool { return strings.EqualFold(x.Name.Text, w.Ref.Text) })
	if i < 0 {
		var names []string
		for _, x := range o.q.Windows[:n] {
			names = append(names, x.Name.Text)
		}
		d := diag.New(diag.Semantic, w.Ref.Pos, "window %s does not exist", w.Ref.Text)
		if near := diag.Nearest(w.Ref.Text, names); near != "" {
			return nil, d.WithHint("did you mean %s?", near)
		}
		return nil, d.WithHint("define it behind FROM and WHERE: WINDOW %s AS (PARTITION BY ... ORDER BY ...)", w.Ref.Text)
	}
	base, err := o.resolve(o.q.Windows[i].Window, i)
	if err != nil || w.Bare {
		return base, err
	}
	refuse := func(what string) error {
		return diag.New(diag.Semantic, w.Position(), "the window cannot have %s of its own beside that of %s", what, w.Ref.Text).
			WithHint("remove it from one of the two")
	}
	switch {
	case len(w.Partition) > 0:
		return nil, diag.New(diag.Semantic, w.Partition[0].Position(), "a window that builds on %s cannot have PARTITION BY", w.Ref.Text).
			WithHint("write PARTITION BY in the definition of %s", w.Ref.Text)
	case len(w.Order) > 0 && len(base.Order) > 0:
		return nil, refuse("an ORDER BY")
	case w.Frame != "" && base.Frame != "":
		return nil, refuse("a frame")
	}
	c := *base
	c.Place = w.Place
	if len(w.Order) > 0 {
		c.Order = w.Order
	}
	if w.Frame != "" {
		c.Frame, c.Lo, c.Hi = w.Frame, w.Lo, w.Hi
	}
	return &c, nil
}

// keys binds PARTITION BY and ORDER BY.
func (o *overing) keys(b *binder, w *sql.Window) (partition []int, order []SortKey, err error) {
	for _, e := range w.Partition {
		x, err := b.expr(o.scope, e)
		if err != nil {
			return nil, nil, err
		}
		if c := o.args.column(x); !slices.Contains(partition, c) {
			partition = append(partition, c)
		}
	}
	for _, it := range w.Order {
		if _, ok := it.X.(*sql.Literal); ok {
			return nil, nil, diag.New(diag.Semantic, it.X.Position(), "ORDER BY a constant orders nothing").
				WithHint("name a column; numbers do not stand for columns of the SELECT list here")
		}
		x, err := b.expr(o.scope, it.X)
		if err != nil {
			return nil, nil, err
		}
		if x.Type().IsNested() {
			return nil, nil, diag.New(diag.Semantic, it.X.Position(), "ORDER BY cannot sort %s of type %s", x, x.Type().WithNull(true)).
				WithHint("order by one of its elements or fields")
		}
		k := sortKey(it)
		k.Col = o.args.column(x)
		if !slices.ContainsFunc(order, func(y SortKey) bool { return y.Col == k.Col }) {
			order = append(order, k)
		}
	}
	return partition, order, nil
}

// call binds the function and its arguments.
func (o *overing) call(b *binder, e *sql.Call, w *sql.Window) (expr.OverCall, error) {
	name := strings.ToUpper(e.Name.Last())
	kind, own := expr.LookupOver(name)
	if !own {
		return o.aggregate(b, e, name)
	}
	c := expr.OverCall{Func: kind, Default: -1, Agg: expr.Agg{Arg: -1, Filter: -1, Type: expr.RankType(kind), Text: name + "()"}}
	switch {
	case e.Star || e.Distinct || e.Filter != nil || e.Within != nil || e.Nulls != sql.NullsUnset:
		return c, diag.New(diag.Semantic, e.Pos, "%s takes neither *, DISTINCT, FILTER, WITHIN GROUP nor IGNORE NULLS", name)
	case len(w.Order) == 0 && kind != expr.OverRowNumber:
		return c, diag.New(diag.Semantic, e.Over.Position(), "%s needs an ORDER BY in its window", name).
			WithHint("write %s(...) OVER (PARTITION BY ... ORDER BY ...)", name)
	case w.Frame != "":
		return c, diag.New(diag.Semantic, w.Position(), "%s cannot have a frame", name).
			WithDetail("it counts from the first row of the partition").WithHint("remove %s ... from the window", w.Frame)
	}
	switch kind {
	case expr.OverLag, expr.OverLead:
		return c, o.shift(b, e, &c, name)
	case expr.OverNtile:
		n, err := constantOffset(b, e, 0, name, "a number of buckets", 1)
		c.Offset, c.Agg.Text = n, fmt.Sprintf("NTILE(%d)", n)
		return c, err
	}
	if len(e.Args) > 0 {
		return c, diag.New(diag.Semantic, e.Args[0].Position(), "%s takes no arguments", name).WithHint("write %s() OVER (...)", name)
	}
	return c, nil
}

// shift binds the arguments of LAG and LEAD.
func (o *overing) shift(b *binder, e *sql.Call, c *expr.OverCall, name string) error {
	if len(e.Args) < 1 || len(e.Args) > 3 {
		return diag.New(diag.Semantic, e.Pos, "%s takes one to three arguments, %d were given", name, len(e.Args)).
			WithHint("write %s(value, offset, default)", name)
	}
	x, err := b.expr(o.scope, e.Args[0])
	if err != nil {
		return err
	}
	if x.Type().Kind == types.Null {
		return diag.New(diag.Semantic, e.Args[0].Position(), "%s(NULL) has no type", name).WithHint("write CAST(NULL AS INT)")
	}
	t, text := x.Type().WithNull(true), x.String()
	c.Offset = 1
	if len(e.Args) > 1 {
		if c.Offset, err = constantOffset(b, e, 1, name, "a number of rows", 0); err != nil {
			return err
		}
		text += ", " + strconv.FormatInt(c.Offset, 10)
	}
	if len(e.Args) > 2 {
		d, err := b.expr(o.scope, e.Args[2])
		if err != nil {
			return err
		}
		if d, err = expr.ImplicitCast(d, t); err != nil {
			return diag.New(diag.Semantic, e.Args[2].Position(), "the default of %s", name).Wrap(err).
				WithHint("it must be of the type of the value, %s", t)
		}
		c.Default = o.args.column(d)
		text += ", " + d.String()
		t = t.WithNull(x.Type().Nullable || d.Type().Nullable)
	}
	c.Agg.Arg, c.Agg.ArgType, c.Agg.Type, c.Agg.Text = o.args.column(x), x.Type(), t, name+"("+text+")"
	return nil
}

// constantOffset is argument i of e as a whole number of at least low.
func constantOffset(b *binder, e *sql.Call, i int, name, what string, low int64) (int64, error) {
	if i >= len(e.Args) || i == 0 && len(e.Args) > 1 {
		return 0, diag.New(diag.Semantic, e.Pos, "%s takes one argument: %s", name, what)
	}
	x, err := b.expr(&scope{}, e.Args[i])
	if err == nil {
		x, err = b.fold(x)
	}
	if l, ok := x.(*expr.Literal); err == nil && ok && l.T.IsInteger() && !l.Value.IsNull && l.Value.I64 >= low {
		return l.Value.I64, nil
	}
	return 0, diag.New(diag.Semantic, e.Args[i].Position(), "argument %d of %s must be a constant: %s, at least %d", i+1, name, what, low).
		WithHint("write a whole number there, such as %d", max(low, 1))
}

// aggregate binds an aggregate function in a window.
func (o *overing) aggregate(b *binder, e *sql.Call, name string) (expr.OverCall, error) {
	c := expr.OverCall{Default: -1}
	user := b.userAgg(e)
	if user == nil && (!expr.IsFlinkAgg(name) || len(e.Name) != 1 || b.p.funcs.Lookup(name) != nil) {
		return c, diag.New(diag.Semantic, e.Pos, "%s cannot have OVER", name).
			WithDetail("it is no aggregate and no window function").WithHint("remove OVER (...)")
	}
	if strings.HasPrefix(name, "JSON_") {
		return c, diag.New(diag.Unsupported, e.Pos, "%s cannot have OVER", name).
			WithDetail("Flink has it for GROUP BY only").WithHint("aggregate by GROUP BY, or collect with ARRAY_AGG(...) OVER (...)")
	}
	plain := *e
	plain.Over = nil
	bind := o.args.aggregate
	if user != nil {
		bind = o.args.userAggregate
	}
	x, err := bind(b, &plain)
	if err != nil {
		return c, err
	}
	r, ok := x.(*expr.Column)
	if cols := expr.ColumnsOf(x); !ok && len(cols) == 1 && o.args.aggs[cols[0]].Kind == expr.AggPercentile {
		c.Agg = o.args.aggs[cols[0]] // an array, of which the call is the first element
		o.many = false
		return c, nil
	}
	if o.many = ok; !ok {
		return c, diag.New(diag.Unsupported, e.Pos, "%s cannot have OVER", name).WithHint("aggregate by GROUP BY")
	}
	c.Agg = o.args.aggs[r.Index]
	return c, nil
}

// frame binds the frame of window w for call e.
func (o *overing) frame(w *sql.Window, e *sql.Call, x overBound) (expr.Frame, error) {
	f := expr.Frame{Lo: expr.UnboundedPreceding}
	switch {
	case !x.call.Func.Framed():
		f.Rows = x.call.Func == expr.OverRowNumber
		return f, nil
	case w.Frame == "":
		if len(w.Order) == 0 {
			f.Hi = expr.UnboundedFollowing
		}
		return f, nil
	}
	f.Rows = w.Frame == "ROWS"
	if !f.Rows && len(w.Order) == 0 {
		return f, diag.New(diag.Semantic, w.Position(), "a RANGE frame needs an ORDER BY in its window").
			WithHint("write ORDER BY before RANGE, or use ROWS")
	}
	var err error
	if f.Lo, err = o.bound(w, w.Lo, x, f.Rows); err != nil {
		return f, err
	}
	if f.Hi, err = o.bound(w, w.Hi, x, f.Rows); err != nil {
		return f, err
	}
	switch {
	case f.Lo == expr.UnboundedFollowing:
		return f, diag.New(diag.Semantic, w.Position(), "a frame cannot begin at UNBOUNDED FOLLOWING").WithHint("begin it at CURRENT ROW")
	case f.Hi == expr.UnboundedPreceding:
		return f, diag.New(diag.Semantic, w.Position(), "a frame cannot end at UNBOUNDED PRECEDING").WithHint("end it at CURRENT ROW")
	case f.Lo > f.Hi:
		return f, diag.New(diag.Semantic, w.Position(), "the frame ends before it begins").WithHint("exchange the bounds")
	}
	return f, nil
}

// bound is one end of a frame, relative to the current row.
func (o *overing) bound(w *sql.Window, bd sql.Bound, x overBound, rows bool) (int64, error) {
	switch bd.Kind {
	case sql.UnboundedPreceding:
		return expr.UnboundedPreceding, nil
	case sql.UnboundedFollowing:
		return expr.UnboundedFollowing, nil
	case sql.CurrentRow:
		return 0, nil
	}
	n, err := o.distance(bd.X, x, rows)
	if bd.Kind == sql.Preceding {
		n = -n
	}
	return n, err
}

func (o *overing) distance(e sql.Expr, x overBound, rows bool) (int64, error) {
	if rows {
		if l, ok := e.(*sql.Literal); ok && l.Kind == sql.LitInteger {
			if n, err := strconv.ParseInt(l.Text, 10, 64); err == nil && n < 1<<31 {
				return n, nil
			}
		}
		return 0, diag.New(diag.Semantic, e.Position(), "the distance in a ROWS frame must be a whole number, constant and at least 0").
			WithHint("write ROWS BETWEEN 10 PRECEDING AND CURRENT ROW; for time use RANGE")
	}
	if len(x.order) != 1 {
		return 0, diag.New(diag.Semantic, e.Position(), "RANGE with a distance needs exactly one ORDER BY column").WithHint("use ROWS, or order by one column")
	}
	t := o.args.pre[x.order[0].Col].Type()
	if t.IsTimestamp() || t.Kind == types.Date {
		i, ok := e.(*sql.Interval)
		if ok && i.Type.Kind == types.IntervalDayTime && i.Value >= 0 {
			return i.Value, nil
		}
		return 0, diag.New(diag.Semantic, e.Position(), "the distance in a RANGE frame over %s must be a constant interval of days to seconds", t.WithNull(true)).
			WithHint("write RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW; for a number of rows use ROWS")
	}
	if l, ok := e.(*sql.Literal); ok && l.Kind == sql.LitInteger && t.IsInteger() {
		if n, err := strconv.ParseInt(l.Text, 10, 64); err == nil {
			return min(n, expr.UnboundedFollowing-1), nil // that one has a meaning of its own
		}
	}
	return 0, diag.New(diag.Semantic, e.Position(), "RANGE with a distance over %s is not supported", t.WithNull(true)).
		WithDetail("distances are intervals over timestamps and dates, and whole numbers over integers").
		WithHint("use ROWS, or CAST the ORDER BY column to BIGINT")
}

// node puts the Over nodes on n, filtered by the condition of QUALIFY, and gives the bound expressions their columns.
func (o *overing) node(n Node, qualify expr.Expr, items []item, hidden []expr.Expr) Node {
	if len(o.calls) == 0 {
		return n
	}
	n, at := o.inputs(n)
	windows := 0
	for i, x := range o.calls {
		if !slices.ContainsFunc(o.calls[:i], x.sameWindow) {
			windows++
		}
	}
	place := make([]int, len(o.calls))
	for i, x := range o.calls {
		if slices.ContainsFunc(o.calls[:i], x.sameOrder) {
			continue
		}
		w := &Over{In: n, Partition: remapInts(x.partition, at), Windows: windows, Pos: x.pos}
		for _, k := range x.order {
			k.Col = at[k.Col]
			w.Order = append(w.Order, k)
		}
		width := len(n.Fields())
		for j := i; j < len(o.calls); j++ {
			if y := o.calls[j]; y.sameOrder(x) {
				place[j] = width + len(w.Calls)
				w.Calls = append(w.Calls, overCall{OverCall: y.call, Name: fmt.Sprintf("w%d$o%d", i, len(w.Calls))}.remap(at))
			}
		}
		n = w
	}
	f := n.Fields()
	shift := func(e expr.Expr) expr.Expr {
		return expr.Rewrite(e, func(x expr.Expr) expr.Expr {
			if c, ok := x.(*expr.Column); ok && c.Index >= overBase {
				return col(f, place[c.Index-overBase])
			}
			return x
		})
	}
	for i := range items {
		items[i].x = shift(items[i].x)
	}
	for i := range hidden {
		hidden[i] = shift(hidden[i])
	}
	if qualify != nil {
		n = &Filter{In: n, Cond: shift(qualify)}
	}
	return n
}

// inputs adds the columns to n that the calls read, and says where they are.
func (o *overing) inputs(n Node) (Node, []int) {
	in := n.Fields()
	p := &Project{In: n, Names: fieldNames(in)}
	for i := range in {
		p.Exprs = append(p.Exprs, col(in, i))
	}
	at := make([]int, len(o.args.pre))
	for i, x := range o.args.pre {
		if c, ok := x.(*expr.Column); ok {
			at[i] = c.Index
			continue
		}
		at[i] = len(p.Exprs)
		p.Exprs, p.Names = append(p.Exprs, x), append(p.Names, fmt.Sprintf("$w%d", i))
	}
	if len(p.Exprs) == len(in) {
		return n, at
	}
	return p, at
}

// qualify binds the condition of QUALIFY, which may name columns of the SELECT list.
func (o *overing) qualify(b *binder, q *sql.Select) (expr.Expr, error) {
	if q.Qualify == nil {
		return nil, nil
	}
	o.aliases = true
	c, err := b.condition(o.scope, q.Qualify, "QUALIFY")
	o.aliases = false
	if err != nil {
		return nil, err
	}
	if len(o.calls) == 0 {
		return nil, diag.New(diag.Semantic, q.Qualify.Position(), "QUALIFY needs an OVER window in the query").
			WithHint("filter rows by WHERE, and groups by HAVING")
	}
	return c, nil
}

// alias is the expression of the SELECT list that a name in QUALIFY stands for, nil when it is none.
func (o *overing) alias(e *sql.Ident) sql.Expr {
	if o == nil || !o.aliases || len(e.Path) != 1 {
		return nil
	}
	if _, n := o.scope.find("", e.Path[0].Text); n > 0 {
		return nil
	}
	for _, it := range o.q.Items {
		if it.Alias != nil && it.Alias.Text == e.Path[0].Text {
			return it.X
		}
	}
	return nil
}
