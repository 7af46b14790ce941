package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
)

// legacyWindow is a group window, GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE), which Flink replaced by window table-valued
// functions. It is bound as one below the aggregation; window_start, window_end and window_time become group keys.
type legacyWindow struct {
	call     *sql.Call
	name     string
	spec     window
	time     expr.Expr   // of batch mode: a time that a projection below the window computes into column spec.Time; nil = a column
	at       int         // input column of window_start
	computed []expr.Expr // group keys that a projection below the window computes, for sessions
	columns  []int       // their columns
	key      int         // of window_start in the aggregation
}

// legacyArgs are the names of a group window's intervals, behind the time column.
var legacyArgs = map[string][]string{"TUMBLE": {"size"}, "HOP": {"slide", "size"}, "SESSION": {"gap"}}

var legacyUsage = map[string]string{
	"TUMBLE":  "write TUMBLE(ts, INTERVAL '1' MINUTE)",
	"HOP":     "write HOP(ts, INTERVAL '1' MINUTE, INTERVAL '5' MINUTE): the slide, then the size",
	"SESSION": "write SESSION(ts, INTERVAL '5' MINUTE)",
}

// legacyCall is e as the call of a group window, nil when it is none.
func legacyCall(e sql.Expr) *sql.Call {
	if c, ok := e.(*sql.Call); ok && len(c.Name) == 1 && c.Over == nil && legacyArgs[strings.ToUpper(c.Name[0].Text)] != nil {
		return c
	}
	return nil
}

// openLegacyWindow puts the group window of GROUP BY, if there is one, on top of in. The scope gets its columns, under names
// that no query can write.
func (b *binder) openLegacyWindow(q *sql.Select, in Node, s *scope) (Node, *scope, error) {
	b.legacy = nil
	var call *sql.Call
	for _, it := range q.GroupBy {
		if it.Kind != sql.GroupExprs {
			continue
		}
		for _, e := range it.Exprs {
			c := legacyCall(e)
			if c == nil {
				continue
			}
			if call != nil {
				return nil, nil, diag.New(diag.Semantic, c.Pos, "GROUP BY takes one group window, this is the second").
					WithHint("aggregate by the smaller window first, and that by the larger one in an outer query over TUMBLE_ROWTIME")
			}
			call = c
		}
	}
	if call == nil {
		return in, s, nil
	}
	w := &legacyWindow{call: call, name: strings.ToUpper(call.Name[0].Text)}
	var err error
	if w.spec, w.time, err = b.legacySpec(call, s); err != nil {
		return nil, nil, err
	}
	if w.time != nil {
		in, s = withTime(in, s, w.time)
	}
	if in, err = b.timeKnown(in, w.spec.Time); err != nil {
		return nil, nil, diag.At(err, call.Pos)
	}
	if w.spec.Kind == op.Session {
		if in, err = b.legacySessions(q, in, s, w); err != nil {
			return nil, nil, err
		}
	}
	tvf := &WindowTVF{In: in, Window: w.spec, Pos: call.Pos, Legacy: true}
	w.at = len(in.Fields())
	out := &scope{cols: slices.Clone(s.cols)}
	for _, f := range tvf.Fields()[len(s.cols):] {
		out.cols = append(out.cols, scopeCol{field: Field{Name: "$" + f.Name, Type: f.Type, Time: f.Time}})
	}
	b.legacy = w
	return tvf, out, nil
}

// withTime is in with the computed time of a window behind its columns, under a name that no query can write.
func withTime(in Node, s *scope, time expr.Expr) (Node, *scope) {
	f := in.Fields()
	p := &Project{In: in, Names: append(fieldNames(f), "$time")}
	for i := range f {
		p.Exprs = append(p.Exprs, col(f, i))
	}
	p.Exprs = append(p.Exprs, time)
	return p, &scope{cols: append(slices.Clone(s.cols), scopeCol{field: Field{Name: "$time", Type: time.Type()}})}
}

// legacySpec reads the arguments of a group window, or of one of its auxiliary functions. time is a time that is computed,
// as batch mode allows: it is to become a column behind those of s.
func (b *binder) legacySpec(c *sql.Call, s *scope) (w window, time expr.Expr, err error) {
	name, _, _ := strings.Cut(strings.ToUpper(c.Name[0].Text), "_")
	args := legacyArgs[name]
	if len(c.Args) != 1+len(args) {
		n := map[int]string{1: "a time column and an interval", 2: "a time column and two intervals"}[len(args)]
		return w, nil, diag.New(diag.Semantic, c.Pos, "%s in GROUP BY takes %s", name, n).WithHint("%s", legacyUsage[name])
	}
	x, err := b.expr(s, c.Args[0])
	if err != nil {
		return w, nil, err
	}
	var f Field
	at := len(s.cols)
	switch t, ok := x.(*expr.Column); {
	case ok:
		at, f = t.Index, s.cols[t.Index].field
	case b.conf.Batch() && x.Type().IsTimestamp():
		time, f = x, Field{Type: x.Type()}
	default:
		return w, nil, diag.New(diag.Semantic, c.Args[0].Position(), "the first argument of %s is a time column", name).WithHint("%s", legacyUsage[name])
	}
	if err := b.checkTimeColumn(f, sql.Name{Text: f.Name, Pos: c.Args[0].Position()}); err != nil {
		return w, nil, err
	}
	w = windowOver(windowFunctions[name].kind, at, f)
	for i, what := range args {
		ms, err := b.millisArg(c.Args[1+i], what)
		if err != nil {
			return w, nil, err
		}
		if ms <= 0 {
			return w, nil, diag.New(diag.Semantic, c.Args[1+i].Position(), "the %s of a window must be positive", what).WithHint("%s", legacyUsage[name])
		}
		if what == "slide" {
			w.Slide = ms
		} else {
			w.Size = ms
		}
	}
	return w, time, nil
}

// legacySessions computes the other group keys below the window: sessions are kept apart by them.
func (b *binder) legacySessions(q *sql.Select, in Node, s *scope, w *legacyWindow) (Node, error) {
	f := in.Fields()
	p := &Project{In: in, Names: fieldNames(f)}
	for i := range f {
		p.Exprs = append(p.Exprs, col(f, i))
	}
	w.spec.Keys = []int{}
	for _, it := range q.GroupBy {
		for _, e := range it.Exprs {
			if e == sql.Expr(w.call) {
				continue
			}
			x, err := b.groupKey(q, s, e)
			if err != nil {
				return nil, err
			}
			if c, ok := x.(*expr.Column); ok {
				w.spec.Keys = append(w.spec.Keys, c.Index)
				continue
			}
			w.computed, w.columns = append(w.computed, x), append(w.columns, len(p.Exprs))
			w.spec.Keys = append(w.spec.Keys, len(p.Exprs))
			p.Exprs, p.Names = append(p.Exprs, x), append(p.Names, fmt.Sprintf("$k%d", len(p.Exprs)))
		}
	}
	if w.computed == nil {
		return in, nil
	}
	return p, nil
}

// start is window_start as a group key.
func (w *legacyWindow) start(s *scope) expr.Expr { return s.columnAt(w.at) }

// close completes an aggregation by a group window: the window's other columns become keys, and keys that are computed below
// it are read from there.
func (w *legacyWindow) close(g *grouping) error {
	if g.sets != nil {
		return diag.New(diag.Semantic, w.call.Pos, "the group window %s cannot be combined with GROUPING SETS, ROLLUP or CUBE", w.name).
			WithHint("use the window function: FROM TABLE(%s(TABLE t, DESCRIPTOR(ts), ...)) GROUP BY window_start, window_end, ROLLUP (...)", w.name)
	}
	w.key = slices.IndexFunc(g.keys, func(k expr.Expr) bool { return expr.Equal(k, w.start(g.input)) })
	for i := 1; i <= 2; i++ {
		g.keys = append(g.keys, g.input.columnAt(w.at+i))
	}
	g.pre = append(g.pre[:0], g.keys...)
	for i, k := range g.pre {
		for j, x := range w.computed {
			if expr.Equal(k, x) {
				g.pre[i] = g.input.columnAt(w.columns[j])
			}
		}
	}
	return nil
}

// legacyPart is the auxiliary function of a group window that e calls: START, END, ROWTIME or PROCTIME.
func legacyPart(e sql.Expr) (c *sql.Call, window, part string) {
	c, ok := e.(*sql.Call)
	if !ok || len(c.Name) != 1 || c.Over != nil {
		return nil, "", ""
	}
	window, part, _ = strings.Cut(strings.ToUpper(c.Name[0].Text), "_")
	if legacyArgs[window] == nil || !slices.Contains([]string{"START", "END", "ROWTIME", "PROCTIME"}, part) {
		return nil, "", ""
	}
	return c, window, part
}

// legacyColumn binds an auxiliary function above the aggregation.
func (g *grouping) legacyColumn(b *binder, c *sql.Call, name, part string) (expr.Expr, error) {
	w := g.legacy
	if w == nil || w.name != name {
		return nil, legacyAlone(c, name)
	}
	b.group = nil
	spec, time, err := b.legacySpec(c, g.input)
	b.group = g
	if err != nil {
		return nil, err
	}
	same := time == nil && spec.Time == w.spec.Time || time != nil && w.time != nil && expr.Equal(time, w.time)
	if !same || !spec.same(w.spec) {
		return nil, diag.New(diag.Semantic, c.Pos, "%s_%s must have the arguments of the %s in GROUP BY", name, part, name).
			WithHint("repeat them: GROUP BY %s", w.spec.text(b.inputFields(g)))
	}
	at := w.key
	n := len(g.keys)
	switch part {
	case "END":
		at = n - 2
	case "ROWTIME", "PROCTIME":
		at = n - 1
		if (part == "PROCTIME") != w.spec.Proctime {
			kind := map[bool]string{true: "processing", false: "event"}[w.spec.Proctime]
			other := map[bool]string{true: "PROCTIME", false: "ROWTIME"}[w.spec.Proctime]
			return nil, diag.New(diag.Semantic, c.Pos, "%s_%s does not exist for a window over %s time", name, part, kind).
				WithHint("use %s_%s", name, other)
		}
	}
	return &expr.Column{Index: at, Name: keyName(g.keys[at], at), T: g.keys[at].Type()}, nil
}

func (b *binder) inputFields(g *grouping) []Field {
	out := make([]Field, len(g.input.cols))
	for i, c := range g.input.cols {
		out[i] = c.field
	}
	return out
}

// legacyAlone is the error for an auxiliary function without its group window.
func legacyAlone(c *sql.Call, name string) error {
	return diag.New(diag.Semantic, c.Pos, "%s needs %s in GROUP BY", strings.ToUpper(c.Name[0].Text), name).
		WithHint("%s into GROUP BY, with the same arguments", legacyUsage[name])
}
