package planner

import (
	"slices"
	"strings"

	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
)

var joinKinds = map[sql.JoinKind]JoinKind{sql.InnerJoin: InnerJoin, sql.CrossJoin: InnerJoin, sql.CommaJoin: InnerJoin,
	sql.LeftJoin: LeftJoin, sql.RightJoin: RightJoin, sql.FullJoin: FullJoin}

// join binds l JOIN r. Its scope has the columns of both sides by their tables' names, behind those of USING or NATURAL,
// which stand for one of each side.
func (b *binder) join(r *sql.Join) (Node, *scope, error) {
	ln, ls, err := b.tableRef(r.L)
	if err != nil {
		return nil, nil, err
	}
	if isLateral(r.R) {
		left, err := lateralJoin(r)
		if err != nil {
			return nil, nil, err
		}
		return b.lateral(ln, ls, r.R, left)
	}
	if t := asOf(r); t != nil {
		return b.asOfJoin(r, t, ln, ls)
	}
	rn, rs, err := b.tableRef(r.R)
	if err != nil {
		return nil, nil, err
	}
	if err := checkTableNames(ls, rs, r); err != nil {
		return nil, nil, err
	}
	j := &Join{L: ln, R: rn, Kind: joinKinds[r.Kind], TTL: [2]*int64{b.hints.take(ls.onlyTable()), b.hints.take(rs.onlyTable())}, Pos: r.Pos}
	s := joinScope(j, ls, rs)
	if r.On != nil {
		both := &scope{cols: slices.Clone(s.cols)}
		for i, f := range j.sideFields() {
			both.cols[i].field.Type = f.Type // no side has NULLs for a missing row yet
		}
		if hasQuery(r.On) {
			return b.onQuery(j, both, r.On, len(ls.cols))
		}
		if j.Cond, err = b.condition(both, r.On, "ON"); err != nil {
			return nil, nil, err
		}
		return j, joinScope(j, ls, rs), nil // the condition decides which columns are time attributes
	}
	names := r.Using
	if r.Natural {
		names = commonNames(ls, rs, r.Pos)
	}
	if len(names) == 0 {
		return j, s, nil
	}
	return b.using(j, s, len(ls.cols), names)
}

// joinScope is the scope of both sides over the join's output.
func joinScope(j *Join, ls, rs *scope) *scope {
	s := &scope{}
	f := j.Fields()
	for i, c := range slices.Concat(ls.cols, rs.cols) {
		if c.field.Time != NoTime {
			c.timed = c.field.Time
		}
		c.field = Field{Name: c.field.Name, Type: f[i].Type, Time: f[i].Time}
		s.cols = append(s.cols, c)
	}
	return s
}

// checkTableNames refuses two tables of one name: no column of them could be told apart.
func checkTableNames(ls, rs *scope, r *sql.Join) error {
	for _, c := range rs.cols {
		if c.table != "" && ls.hasTable(c.table) {
			return diag.New(diag.Semantic, r.R.Position(), "two tables of the FROM clause are called %s", c.table).
				WithHint("give one of them another name: %s AS %s2", c.table, c.table)
		}
	}
	return nil
}

// commonNames are the columns that both sides of a NATURAL join have.
func commonNames(ls, rs *scope, pos diag.Pos) []sql.Name {
	var out []sql.Name
	for _, c := range ls.cols {
		if _, n := rs.find("", c.field.Name); n > 0 && !c.qualified {
			out = append(out, sql.Name{Text: c.field.Name, Pos: pos})
		}
	}
	return out
}

// using joins by equality of columns of one name; the output has each once in front, in the order of the list.
func (b *binder) using(j *Join, s *scope, left int, names []sql.Name) (Node, *scope, error) {
	ls, rs := &scope{cols: s.cols[:left]}, &scope{cols: s.cols[left:]}
	in := j.sideFields()
	var conds []expr.Expr
	var shared []scopeCol
	var exprs []expr.Expr
	for i, name := range names {
		if slices.ContainsFunc(names[:i], func(n sql.Name) bool { return n.Text == name.Text }) {
			return nil, nil, diag.New(diag.Semantic, name.Pos, "column %s is listed twice in USING", name.Text).WithHint("list it once")
		}
		li, err := ls.usingColumn(name, "left")
		if err != nil {
			return nil, nil, err
		}
		ri, err := rs.usingColumn(name, "right")
		if err != nil {
			return nil, nil, err
		}
		eq, err := expr.NewBinary("=", col(in, li), col(in, left+ri))
		if err != nil {
			return nil, nil, diag.At(err, name.Pos)
		}
		conds = append(conds, eq)
		x, err := sharedColumn(j, li, left+ri)
		if err != nil {
			return nil, nil, diag.At(err, name.Pos)
		}
		exprs = append(exprs, x)
		shared = append(shared, scopeCol{field: Field{Name: name.Text, Type: x.Type()}})
		s.cols[li].qualified, s.cols[left+ri].qualified = true, true
	}
	j.Cond = expr.And(conds...)
	f := j.Fields()
	p := &Project{In: j, Exprs: exprs, Names: make([]string, len(exprs))}
	taken := map[string]bool{}
	for i := range exprs {
		p.Names[i] = unique(names[i].Text, taken)
	}
	for i := range f {
		p.Exprs, p.Names = append(p.Exprs, col(f, i)), append(p.Names, unique(f[i].Name, taken))
	}
	return p, &scope{cols: append(shared, s.cols...)}, nil
}

// usingColumn is the column of one side that USING or NATURAL names.
func (s *scope) usingColumn(n sql.Name, side string) (int, error) {
	i, count := s.find("", n.Text)
	switch {
	case count == 0:
		return 0, diag.New(diag.Semantic, n.Pos, "column %s of USING does not exist on the %s side of the join", n.Text, side).
			WithDetail("its columns: %s", strings.Join(s.names(), ", ")).WithHint("write ON with the two columns to compare")
	case count > 1:
		return 0, diag.New(diag.Semantic, n.Pos, "column %s of USING is ambiguous: the %s side of the join has several", n.Text, side).
			WithHint("write ON with the columns of the tables that are meant")
	}
	return i, nil
}

// sharedColumn is the value of a column of USING: that of a side which has it in every row of the result.
func sharedColumn(j *Join, l, r int) (expr.Expr, error) {
	f := j.Fields()
	switch j.Kind {
	case RightJoin:
		return col(f, r), nil
	case FullJoin:
		return expr.NewCoalesce([]expr.Expr{col(f, l), col(f, r)})
	}
	return col(f, l), nil
}
