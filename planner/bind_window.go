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

// windowFunction is how a window table-valued function is called.
type windowFunction struct {
	kind     op.WindowKind
	args     []string // names in order
	required int
	usage    string
}

var windowFunctions = map[string]windowFunction{
	"TUMBLE": {op.Tumble, []string{"DATA", "TIMECOL", "SIZE", "OFFSET"}, 3,
		"write TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE [, offset])"},
	"HOP": {op.Hop, []string{"DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"}, 4,
		"write HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '5' MINUTE [, offset]): the slide, then the size"},
	"CUMULATE": {op.Cumulate, []string{"DATA", "TIMECOL", "STEP", "SIZE", "OFFSET"}, 4,
		"write CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '1' DAY [, offset]): the step, then the longest"},
	"SESSION": {op.Session, []string{"DATA", "TIMECOL", "GAP"}, 3,
		"write SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '5' MINUTE)"},
}

// windowCall are the arguments of a call by position, also when written by name.
func (f windowFunction) arguments(name string, c *sql.Call) ([]sql.Expr, error) {
	out := make([]sql.Expr, len(f.args))
	for i, a := range c.Args {
		at := i
		if n, ok := a.(*sql.NamedArg); ok {
			if at = slices.Index(f.args, strings.ToUpper(n.Name.Text)); at < 0 {
				return nil, diag.New(diag.Semantic, n.Pos, "%s has no argument %s", name, n.Name.Text).
					WithHint("its arguments are %s", strings.Join(f.args, ", "))
			}
			a = n.X
		}
		if at >= len(f.args) || out[at] != nil {
			return nil, f.wrongCount(name, a.Position())
		}
		out[at] = a
	}
	for i := range f.required {
		if out[i] == nil {
			return nil, f.wrongCount(name, c.Pos)
		}
	}
	return out, nil
}

var countWords = [...]string{3: "three", 4: "four", 5: "five"}

func (f windowFunction) wrongCount(name string, at diag.Pos) error {
	n := countWords[f.required]
	if len(f.args) > f.required {
		n += " or " + countWords[len(f.args)]
	}
	return diag.New(diag.Semantic, at, "%s takes %s arguments", name, n).WithHint("%s", f.usage)
}

// isWindowFunc reports a call of a window table-valued function.
func isWindowFunc(c *sql.Call) bool {
	_, ok := windowFunctions[strings.ToUpper(c.Name.Last())]
	return ok && len(c.Name) == 1
}

// windowTVF binds a window table-valued function.
func (b *binder) windowTVF(name string, f windowFunction, c *sql.Call) (Node, error) {
	args, err := f.arguments(name, c)
	if err != nil {
		return nil, err
	}
	in, partition, err := b.tableArg(name, f, args[0])
	if err != nil {
		return nil, err
	}
	d, ok := args[1].(*sql.Descriptor)
	if !ok || len(d.Columns) != 1 {
		return nil, diag.New(diag.Semantic, args[1].Position(), "the second argument of %s is DESCRIPTOR(time column)", name).WithHint("%s", f.usage)
	}
	s := scopeOf("", in.Fields())
	i, _, err := s.resolve(sql.Path{d.Columns[0]})
	if err != nil {
		return nil, err
	}
	if err := b.checkTimeColumn(s.cols[i].field, d.Columns[0]); err != nil {
		return nil, err
	}
	w := windowOver(f.kind, i, s.cols[i].field)
	if w.Keys, err = b.partitionColumns(s, partition); err != nil {
		return nil, err
	}
	if err := b.windowSizes(name, f, args, &w); err != nil {
		return nil, err
	}
	if in, err = b.timeKnown(in, i); err != nil {
		return nil, diag.At(err, d.Pos)
	}
	return &WindowTVF{In: renameWindow(in), Window: w, Pos: c.Pos}, nil
}

// windowSizes reads the intervals of a window function and checks that they fit one another.
func (b *binder) windowSizes(name string, f windowFunction, args []sql.Expr, w *window) error {
	for i := 2; i < len(args); i++ {
		if args[i] == nil {
			continue
		}
		what := strings.ToLower(f.args[i])
		ms, err := b.millisArg(args[i], what)
		if err != nil {
			return err
		}
		if what != "offset" && ms <= 0 {
			return diag.New(diag.Semantic, args[i].Position(), "the %s of a window must be positive", what).WithHint("write INTERVAL '1' MINUTE")
		}
		switch what {
		case "size", "gap":
			w.Size = ms
		case "slide", "step":
			w.Slide = ms
		default:
			w.Offset = ms
		}
	}
	if f.kind == op.Cumulate && w.Size%w.Slide != 0 {
		return diag.New(diag.Semantic, args[3].Position(), "the size of a CUMULATE window must be a multiple of its step, they are %s and %s",
			millis(w.Size), millis(w.Slide)).WithHint("use a step of %s, which divides both, or exchange the two: the step stands first", millis(gcd(w.Size, w.Slide)))
	}
	limit, of := w.Size, "size"
	if f.kind == op.Hop {
		limit, of = w.Slide, "slide"
	}
	if w.Offset >= limit || w.Offset <= -limit {
		if f.kind == op.Session {
			return nil
		}
		return diag.New(diag.Semantic, args[len(args)-1].Position(), "the offset of a window must be smaller than its %s", of).
			WithHint("windows repeat every %s: leave whole ones out of the offset", millis(limit))
	}
	return nil
}

// partitionColumns resolves PARTITION BY of a session window, columns of the table.
func (b *binder) partitionColumns(s *scope, list []sql.Expr) ([]int, error) {
	var out []int
	for _, e := range list {
		id, ok := e.(*sql.Ident)
		if !ok {
			return nil, diag.New(diag.Semantic, e.Position(), "PARTITION BY of a window function takes column names").
				WithHint("compute it below: SESSION((SELECT *, <expression> AS k FROM t) PARTITION BY k, ...)")
		}
		i, _, err := s.resolve(id.Path)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(out, i) {
			out = append(out, i)
		}
	}
	return out, nil
}

// renameWindow renames the window columns of an earlier window, as Flink does: window_start becomes window_start0. The
// newest window's names are the plain ones.
func renameWindow(in Node) Node {
	f := in.Fields()
	p := &Project{In: in}
	taken := map[string]bool{"window_start": true, "window_end": true, "window_time": true}
	for i := range f {
		p.Exprs, p.Names = append(p.Exprs, col(f, i)), append(p.Names, unique(f[i].Name, taken))
	}
	if slices.Equal(p.Names, fieldNames(f)) {
		return in
	}
	return p
}

// tableArg binds the table of a window function; partition is its PARTITION BY, which only sessions take.
func (b *binder) tableArg(name string, f windowFunction, e sql.Expr) (in Node, partition []sql.Expr, err error) {
	if q, ok := e.(*sql.Subquery); ok {
		in, err = b.query(q.Query)
		return in, nil, err
	}
	t, ok := e.(*sql.TableArg)
	if !ok {
		return nil, nil, diag.New(diag.Semantic, e.Position(), "the first argument of %s is TABLE t or (query)", name).WithHint("%s", f.usage)
	}
	switch {
	case t.Order != nil:
		return nil, nil, diag.New(diag.Semantic, t.Pos, "%s takes no ORDER BY", name).
			WithHint("leave it out: windows take rows in the order of the time column, whatever order they arrive in")
	case t.Partition != nil && f.kind != op.Session:
		return nil, nil, diag.New(diag.Semantic, t.Pos, "%s takes no PARTITION BY", name).
			WithDetail("its windows are the same for all rows").WithHint("group by the column: GROUP BY key, window_start, window_end")
	case t.Query != nil:
		in, err = b.query(t.Query)
	default:
		in, err = b.table(t.Table, nil)
	}
	return in, t.Partition, err
}

// windowOver is a window of kind k over column i, which is f.
func windowOver(k op.WindowKind, i int, f Field) window {
	return window{Kind: k, Time: i, TimeKind: f.Type.Kind, Precision: max(f.Type.Precision, 3), Proctime: f.Time == Proctime}
}

// checkTimeColumn refuses a column that is no time attribute. In batch mode any timestamp is one: all rows are there before
// a window ends.
func (b *binder) checkTimeColumn(f Field, n sql.Name) error {
	batch := b.conf.Batch()
	switch {
	case f.Time != NoTime, batch && f.Type.IsTimestamp():
		return nil
	case batch:
		return diag.New(diag.Semantic, n.Pos, "column %s has type %s and cannot be the time of a window", f.Name, f.Type).
			WithHint("use a TIMESTAMP or TIMESTAMP_LTZ column, or CAST(%s AS TIMESTAMP(3)) in a query below", f.Name)
	case f.Type.IsTimestamp():
		return diag.New(diag.Semantic, n.Pos, "column %s is a timestamp without a watermark", f.Name).
			WithDetail("a window needs a time attribute; computing on one, aggregating or joining makes it a plain timestamp").
			WithHint("declare WATERMARK FOR %s AS %s - INTERVAL '5' SECOND on the table, and pass the column through unchanged", f.Name, f.Name)
	}
	return diag.New(diag.Semantic, n.Pos, "column %s has type %s and cannot be the time of a window", f.Name, f.Type).
		WithHint("use a TIMESTAMP(3) or TIMESTAMP_LTZ(3) column with a WATERMARK")
}

// timeKnown is in without the rows that have no time in column i, which are in no window of batch mode.
func (b *binder) timeKnown(in Node, i int) (Node, error) {
	f := in.Fields()
	if !b.conf.Batch() || f[i].Time == Proctime || !f[i].Type.Nullable {
		return in, nil
	}
	known, err := expr.NewIs(col(f, i), "NULL", true)
	return &Filter{In: in, Cond: known}, err
}

// millisArg is a constant day-time interval in milliseconds.
func (b *binder) millisArg(e sql.Expr, what string) (int64, error) {
	x, err := b.expr(&scope{}, e)
	if err != nil {
		return 0, diag.New(diag.Semantic, e.Position(), "the window %s must be a constant interval of days to seconds", what).
			WithHint("write INTERVAL '1' MINUTE; it cannot depend on columns")
	}
	x, err = b.fold(x)
	if err != nil {
		return 0, diag.At(err, e.Position())
	}
	l, ok := x.(*expr.Literal)
	if !ok || l.T.Kind != types.IntervalDayTime || l.Value.IsNull {
		return 0, diag.New(diag.Semantic, e.Position(), "the window %s must be a constant interval of days to seconds", what).
			WithHint("INTERVAL '1' MINUTE; months and years have no fixed length")
	}
	return l.Value.I64, nil
}
