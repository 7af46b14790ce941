package planner

import (
	"slices"
	"strings"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
)

// asOf is the right side of r if it is a table FOR SYSTEM_TIME AS OF a time, else nil.
func asOf(r *sql.Join) *sql.Table {
	t, ok := r.R.(*sql.Table)
	if !ok || t.AsOf == nil {
		return nil
	}
	return t
}

// refuseAsOf is the error for FOR SYSTEM_TIME anywhere but on the right of a join.
func refuseAsOf(t *sql.Table) error {
	return diag.New(diag.Semantic, t.AsOf.Position(), "FOR SYSTEM_TIME AS OF must stand on the right of a join").
		WithDetail("it asks for the table as it was at the time of a row of the other side").
		WithHint("write FROM stream AS s JOIN %s FOR SYSTEM_TIME AS OF s.time_column AS t ON s.key = t.key", t.Path.Plain())
}

// asOfJoin binds l JOIN t FOR SYSTEM_TIME AS OF a time attribute of l: a lookup join by processing time, a temporal join
// by event time.
func (b *binder) asOfJoin(r *sql.Join, t *sql.Table, ln Node, ls *scope) (Node, *scope, error) {
	kind := joinKinds[r.Kind]
	if kind != InnerJoin && kind != LeftJoin {
		return nil, nil, diag.New(diag.Unsupported, r.Pos, "%s JOIN with FOR SYSTEM_TIME AS OF is not supported", r.Kind).
			WithDetail("rows of the right side are only looked for when a left row asks").WithHint("write JOIN or LEFT JOIN")
	}
	if r.Using != nil || r.Natural {
		return nil, nil, diag.New(diag.Unsupported, r.Pos, "USING and NATURAL are not supported with FOR SYSTEM_TIME AS OF").WithHint("write ON with the columns to compare")
	}
	at, err := b.asOfTime(t, ls)
	if err != nil {
		return nil, nil, err
	}
	name := t.Path.Last()
	if t.Alias.Name != nil {
		name = t.Alias.Name.Text
	}
	if t.Alias.Columns != nil {
		return nil, nil, diag.New(diag.Unsupported, t.Alias.Columns[0].Pos, "a list of columns behind FOR SYSTEM_TIME AS OF is not supported").
			WithHint("rename the columns in SELECT")
	}
	var n asOfNode
	if ls.cols[at].field.Time == Proctime {
		n, err = b.lookupJoin(t, name, ln, kind)
	} else {
		n, err = b.temporalJoin(t, ln, kind, at)
	}
	if err != nil {
		return nil, nil, err
	}
	rs := scopeOf(name, n.rightFields())
	if err := checkTableNames(ls, rs, r); err != nil {
		return nil, nil, err
	}
	s := &scope{cols: slices.Concat(ls.cols, rs.cols)}
	if r.On != nil {
		c, err := b.condition(s, r.On, "ON")
		if err != nil {
			return nil, nil, err
		}
		n = n.withCond(c)
	}
	out := &scope{cols: slices.Clone(s.cols)}
	for i, f := range n.Fields() {
		out.cols[i].field = Field{Name: out.cols[i].field.Name, Type: f.Type, Time: f.Time}
	}
	return n, out, nil
}

// asOfNode is a join whose right side is a table as of a time of the left side. As bound it has all of its condition.
type asOfNode interface {
	Node
	rightFields() []Field // before NULLs for missing rows
	withCond(c expr.Expr) asOfNode
}

// asOfTime is the column of the left side that FOR SYSTEM_TIME AS OF names.
func (b *binder) asOfTime(t *sql.Table, ls *scope) (int, error) {
	pos := t.AsOf.Position()
	x, err := b.expr(ls, t.AsOf)
	if err != nil {
		return 0, err
	}
	now := isProctime(x)
	times := func(e *diag.Error) error {
		var list []string
		for _, c := range ls.cols {
			if c.field.Time == Proctime || c.field.Time != NoTime && !now {
				list = append(list, strings.TrimPrefix(c.table+"."+c.field.Name, "."))
			}
		}
		if list != nil {
			return e.WithHint("write FOR SYSTEM_TIME AS OF %s", strings.Join(list, ", or "))
		}
		if now {
			return e.WithHint("add a column proc AS PROCTIME() to the left table and write FOR SYSTEM_TIME AS OF its proc")
		}
		return e.WithHint("give the left table a time attribute: a column proc AS PROCTIME() to look rows up as they are now, or a WATERMARK on a TIMESTAMP(3) column for the version of that time")
	}
	c, ok := x.(*expr.Column)
	switch {
	case !ok && now:
		return 0, times(diag.New(diag.Unsupported, pos, "FOR SYSTEM_TIME AS OF PROCTIME() is not supported").
			WithDetail("the time must be a column of the left side, as in Flink"))
	case !ok:
		return 0, times(diag.New(diag.Unsupported, pos, "FOR SYSTEM_TIME AS OF takes a time attribute of the left side, not an expression"))
	case ls.cols[c.Index].field.Time == NoTime:
		f := ls.cols[c.Index].field
		return 0, times(diag.New(diag.Semantic, pos, "column %s is no time attribute: it has type %s", f.Name, f.Type.WithNull(true)).
			WithDetail("a time attribute is a column with a watermark, or a PROCTIME() column, passed on unchanged"))
	}
	return c.Index, nil
}

// temporalJoin binds the versioned table: one with a key and a rowtime, or a query that makes one.
func (b *binder) temporalJoin(t *sql.Table, ln Node, kind JoinKind, at int) (asOfNode, error) {
	rn, err := b.table(t.Path, t.Hints)
	if err != nil {
		return nil, err
	}
	name := t.Path.Plain()
	f := rn.Fields()
	rt := slices.IndexFunc(f, func(f Field) bool { return f.Time == Rowtime })
	if rt < 0 {
		return nil, diag.New(diag.Semantic, t.Pos, "%s has no event time, so it has no versions", name).
			WithDetail("a version is valid from its rowtime on, until the next one of its key").
			WithHint("declare a WATERMARK on a TIMESTAMP(3) column of %s; or join the table as it is now, with a PROCTIME() column of the left side", name)
	}
	l := ln.Fields()[at]
	if l.Type.Kind != f[rt].Type.Kind {
		return nil, diag.New(diag.Semantic, t.AsOf.Position(), "a temporal join needs the same rowtime type on both sides: %s is %s, %s is %s",
			l.Name, l.Type.WithNull(true), f[rt].Name, f[rt].Type.WithNull(true)).
			WithHint("declare both rowtime columns as TIMESTAMP_LTZ(3), or both as TIMESTAMP(3), with a watermark")
	}
	return &TemporalJoin{L: ln, R: rn, Kind: kind, LTime: at, RTime: rt, Table: name, Pos: t.Pos}, nil
}

// lookupJoin binds a table that is asked for rows by key.
func (b *binder) lookupJoin(t *sql.Table, name string, ln Node, kind JoinKind) (asOfNode, error) {
	o, err := b.p.cat.Lookup(t.Path)
	if err != nil {
		return nil, b.withCTEs(err, t.Path)
	}
	table, ok := o.(*catalog.Table)
	if !ok {
		return nil, diag.New(diag.Unsupported, t.Pos, "%s is a view: only a table can be looked up", t.Path.Plain()).
			WithHint("join the table below the view, and write the view's filter and columns into the query; or use an event time: FOR SYSTEM_TIME AS OF a rowtime column")
	}
	if table, err = b.hinted(table, t.Hints); err != nil {
		return nil, err
	}
	info, err := b.p.lookupTable(table, t.Pos, b.session)
	if err != nil {
		return nil, err
	}
	return &LookupJoin{L: ln, Info: info, Cols: upTo(0, len(info.Fields)), Kind: kind, Hint: b.lookups.take(name), Pos: b.here(t.Pos)}, nil
}
