package planner

import (
	"strings"

	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// setOp binds UNION, INTERSECT and EXCEPT, with or without ALL.
func (b *binder) setOp(q *sql.SetOp) (Node, error) {
	l, err := b.query(q.L)
	if err != nil {
		return nil, err
	}
	r, err := b.query(q.R)
	if err != nil {
		return nil, err
	}
	out, l, r, err := alignSides(l, r, q)
	if err != nil {
		return nil, err
	}
	var n Node
	switch {
	case q.Op == "UNION":
		n = unionOf(l, r, out)
		if !q.All {
			n = distinct(n)
		}
	case q.All:
		n, err = b.countedSetOp(q.Op, l, r, out)
	default:
		j := &Join{L: l, R: r, Kind: SemiJoin, Pos: q.Pos}
		if q.Op == "EXCEPT" {
			j.Kind = AntiJoin
		}
		for i := range out {
			j.Keys = append(j.Keys, JoinKey{i, i, true})
		}
		n = distinct(j)
	}
	if err != nil {
		return nil, diag.At(err, q.Pos)
	}
	return b.tail(n, q.Tail, q.Pos)
}

// alignSides gives both sides of a set operation the same types. Names are the left side's.
func alignSides(l, r Node, q *sql.SetOp) (out []Field, _, _ Node, err error) {
	lf, rf := l.Fields(), r.Fields()
	if len(lf) != len(rf) {
		return nil, nil, nil, diag.New(diag.Semantic, q.Pos, "%s of %d and %s", q.Op, len(lf), plural(len(rf), "column")).
			WithHint("select as many columns on both sides; CAST(NULL AS type) fills one that a side lacks").
			WithDetail("left: %s; right: %s", strings.Join(fieldNames(lf), ", "), strings.Join(fieldNames(rf), ", "))
	}
	out = make([]Field, len(lf))
	for i := range lf {
		t, err := expr.CommonType([]types.Type{lf[i].Type, rf[i].Type})
		if err != nil {
			return nil, nil, nil, diag.New(diag.Semantic, q.Pos, "column %d of %s: %s is %s on the left and %s (%s) on the right", i+1, q.Op,
				lf[i].Name, lf[i].Type.WithNull(true), rf[i].Type.WithNull(true), rf[i].Name).WithHint("CAST one of them")
		}
		out[i] = Field{Name: lf[i].Name, Type: t}
		if lf[i].Time == rf[i].Time && lf[i].Type.Kind == rf[i].Type.Kind {
			out[i].Time = lf[i].Time
		}
	}
	if l, err = castTo(l, out); err == nil {
		r, err = castTo(r, out)
	}
	return out, l, r, diag.At(err, q.Pos)
}

// unionOf merges two aligned inputs, flattening unions of unions.
func unionOf(l, r Node, out []Field) Node {
	u := &Union{Out: out}
	for _, side := range []Node{l, r} {
		if s, ok := side.(*Union); ok {
			u.Ins = append(u.Ins, s.Ins...)
		} else {
			u.Ins = append(u.Ins, side)
		}
	}
	return u
}

// countedSetOp is INTERSECT ALL and EXCEPT ALL as Flink rewrites them: both sides are counted per row, and the row comes
// as often as the smaller count, or the difference, says.
func (b *binder) countedSetOp(op string, l, r Node, out []Field) (Node, error) {
	w := len(out)
	marks := [2][]int64{{1, 0}, {0, 1}} // what a row of each side adds to the counts
	if op == "EXCEPT" {
		marks = [2][]int64{{1}, {-1}}
	}
	long := types.BigIntType.NotNull()
	fields := append([]Field(nil), out...)
	for i := range fields {
		fields[i].Time = NoTime
	}
	agg := &Aggregate{Keys: upTo(0, w)}
	for i := range marks[0] {
		name := [...]string{"$l", "$r"}[i]
		fields = append(fields, Field{Name: name, Type: long})
		t, err := expr.AggType(expr.AggSum, long)
		if err != nil {
			return nil, err
		}
		agg.Aggs = append(agg.Aggs, expr.Agg{Kind: expr.AggSum, Arg: w + i, Filter: -1, ArgType: long, Type: t, Text: "SUM(" + name + ")"})
		agg.Names = append(agg.Names, name)
	}
	marked := func(n Node, add []int64) Node {
		f := n.Fields()
		p := &Project{In: n}
		for i := range f {
			p.Exprs, p.Names = append(p.Exprs, col(f, i)), append(p.Names, out[i].Name)
		}
		for i, x := range add {
			p.Exprs, p.Names = append(p.Exprs, &expr.Literal{Value: types.Datum{I64: x}, T: long}), append(p.Names, fields[w+i].Name)
		}
		return p
	}
	agg.In = &Union{Ins: []Node{marked(l, marks[0]), marked(r, marks[1])}, Out: fields}
	return replicated(agg, w)
}

// replicated repeats the first w columns of n as often as the smallest of the others says.
func replicated(n Node, w int) (Node, error) {
	f := n.Fields()
	zero := &expr.Literal{T: types.BigIntType.NotNull()}
	var conds []expr.Expr
	for i := w; i < len(f); i++ {
		c, err := expr.NewBinary(">", col(f, i), zero)
		if err != nil {
			return nil, err
		}
		conds = append(conds, c)
	}
	times := col(f, w)
	if len(f) > w+1 {
		less, err := expr.NewBinary("<", col(f, w), col(f, w+1))
		if err != nil {
			return nil, err
		}
		if times, err = expr.NewCase(nil, []expr.Expr{less}, []expr.Expr{col(f, w)}, col(f, w+1)); err != nil {
			return nil, err
		}
	}
	p := &Project{In: &Filter{In: n, Cond: expr.And(conds...)}}
	for i := range w {
		p.Exprs, p.Names = append(p.Exprs, col(f, i)), append(p.Names, f[i].Name)
	}
	p.Exprs, p.Names = append(p.Exprs, times), append(p.Names, "$times")
	return &Replicate{In: p}, nil
}
