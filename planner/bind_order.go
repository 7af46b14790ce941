package planner

import (
	"strconv"
	"strings"

	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
)

// order binds ORDER BY of a SELECT block: ordinals and output names first, then expressions over FROM, which become
// hidden columns behind the items.
func (b *binder) order(list []sql.OrderItem, s *scope, items []item, distinct bool) (keys []SortKey, hidden []expr.Expr, err error) {
	for _, o := range list {
		k := sortKey(o)
		if k.Col, err = ordinal(o.X, len(items)); err != nil {
			return nil, nil, err
		}
		if k.Col < 0 {
			k.Col = itemNamed(o.X, items)
		}
		if k.Col < 0 {
			x, err := b.expr(s, o.X)
			if err != nil {
				return nil, nil, err
			}
			for i, it := range items {
				if expr.Equal(it.x, x) {
					k.Col = i
					break
				}
			}
			if k.Col < 0 {
				if distinct {
					return nil, nil, diag.New(diag.Semantic, o.X.Position(), "ORDER BY of SELECT DISTINCT must name a selected column").
						WithHint("select the expression too")
				}
				k.Col = len(items) + len(hidden)
				hidden = append(hidden, x)
			}
		}
		keys = append(keys, k)
	}
	return keys, hidden, nil
}

// sortKey takes direction and NULL order; Flink sorts NULLs as the smallest values: first ascending, last descending.
func sortKey(o sql.OrderItem) SortKey {
	k := SortKey{Col: -1, Desc: o.Desc, NullsFirst: !o.Desc}
	switch o.Nulls {
	case "FIRST":
		k.NullsFirst = true
	case "LAST":
		k.NullsFirst = false
	}
	return k
}

// ordinal is the column a number in ORDER BY means, -1 when x is no number.
func ordinal(x sql.Expr, n int) (int, error) {
	l, ok := x.(*sql.Literal)
	if !ok || l.Kind != sql.LitInteger {
		return -1, nil
	}
	i, err := strconv.Atoi(l.Text)
	if err != nil || i < 1 || i > n {
		return 0, diag.New(diag.Semantic, l.Pos, "ORDER BY %s: the query has %s", l.Text, plural(n, "column")).
			WithHint("write a position from 1 to %d, or the name of a column", n)
	}
	return i - 1, nil
}

func itemNamed(x sql.Expr, items []item) int {
	id, ok := x.(*sql.Ident)
	if !ok || len(id.Path) != 1 {
		return -1
	}
	for i, it := range items {
		if it.name == id.Path[0].Text {
			return i
		}
	}
	return -1
}

// tail binds ORDER BY and LIMIT of a query that is no SELECT block: over its output columns.
func (b *binder) tail(n Node, t sql.Tail, pos diag.Pos) (Node, error) {
	if t.IsZero() {
		return n, nil
	}
	f := n.Fields()
	items := make([]item, len(f))
	for i := range f {
		items[i] = item{x: col(f, i), name: f[i].Name}
	}
	keys, hidden, err := b.order(t.Order, scopeOf("", f), items, true)
	if err != nil {
		return nil, err
	}
	if hidden != nil {
		return nil, diag.New(diag.Semantic, pos, "ORDER BY must name an output column here")
	}
	return b.limit(n, keys, t, pos)
}

// maxRows is more than an input can have. LIMIT and OFFSET are cut to it, so that their sum, and twice that, are numbers: a LIMIT of
// the greatest BIGINT is how programs write "all".
const maxRows = 1 << 60

// limit puts a Sort on n when there is an order or a limit.
func (b *binder) limit(n Node, keys []SortKey, t sql.Tail, pos diag.Pos) (Node, error) {
	if t.IsZero() {
		return n, nil
	}
	s := &Sort{In: n, Keys: keys, Limit: -1}
	for i, k := range keys {
		if f := n.Fields()[k.Col]; f.Type.IsNested() {
			return nil, diag.New(diag.Semantic, t.Order[i].X.Position(), "ORDER BY cannot sort %s of type %s", f.Name, f.Type.WithNull(true)).
				WithHint("order by one of its elements or fields")
		}
	}
	var err error
	if t.Limit != nil {
		if s.Limit, err = strconv.ParseInt(t.Limit.Text, 10, 64); err != nil {
			return nil, diag.New(diag.Semantic, t.Limit.Pos, "LIMIT %s is too large", t.Limit.Text)
		}
		s.Limit = min(s.Limit, maxRows)
	}
	if t.Offset != nil {
		if s.Offset, err = strconv.ParseInt(t.Offset.Text, 10, 64); err != nil {
			return nil, diag.New(diag.Semantic, t.Offset.Pos, "OFFSET %s is too large", t.Offset.Text)
		}
		s.Offset = min(s.Offset, maxRows)
	}
	if bounded(n) && (b.conf.Batch() || !s.byTime() && !s.ofChanges() || s.byTime() && updating(n)) {
		return s, nil
	}
	return s.endless(t, pos)
}

// byTime reports ORDER BY event time, ascending: rows can leave while others come, also where the input ends.
func (n *Sort) byTime() bool {
	return n.Limit < 0 && n.Offset == 0 && len(n.Keys) > 0 && !n.Keys[0].Desc && n.In.Fields()[n.Keys[0].Col].Time == Rowtime
}

// ofChanges reports LIMIT without an order over rows that change: which rows are left depends on how they changed.
func (n *Sort) ofChanges() bool { return n.Limit > 0 && len(n.Keys) == 0 && updating(n.In) }

// endless is n over an input that never ends: the first rows of an order are a Top-N, rows in the order of time wait for
// their turn, and anything else is refused.
func (n *Sort) endless(t sql.Tail, pos diag.Pos) (Node, error) {
	in := n.In.Fields()
	if len(t.Order) > 0 {
		pos = t.Order[0].X.Position()
	}
	switch {
	case n.Limit == 0:
		return &Values{Schema: in}, nil
	case n.Limit > 0 && len(n.Keys) == 0 && !updating(n.In):
		return n, nil
	case n.Limit > 0:
		return &Rank{In: n.In, Order: n.Keys, From: n.Offset + 1, To: n.Offset + n.Limit, ToColumn: -1, Limit: true, Pos: pos}, nil
	case n.Offset > 0:
		return nil, diag.New(diag.Unsupported, pos, "OFFSET without LIMIT over an unbounded query is not supported").
			WithDetail("its input never ends, and neither would the rows after the offset, which move with every new row before it").
			WithHint("add LIMIT, or bound the source (for kafka: 'scan.bounded.mode' = 'latest-offset')")
	case in[n.Keys[0].Col].Time != NoTime && !n.Keys[0].Desc:
		if in[n.Keys[0].Col].Time == Proctime && len(n.Keys) == 1 {
			return n.In, nil
		}
		return &TimeSort{In: n.In, Keys: n.Keys, Pos: pos}, nil
	}
	hint := "remove ORDER BY, add LIMIT"
	p, hidden := n.In.(*Project)
	for i, f := range in {
		if f.Time != NoTime {
			name := f.Name
			if hidden && strings.HasPrefix(name, "$") { // a sort column that is not selected
				name = p.Exprs[i].String()
			}
			hint += ", order by time first (ORDER BY " + name + ")"
			break
		}
	}
	return nil, diag.New(diag.Unsupported, pos, "ORDER BY over an unbounded query is not supported").
		WithDetail("its input never ends, so there is no last row to wait for").
		WithHint("%s, or bound the source (for kafka: 'scan.bounded.mode' = 'latest-offset')", hint)
}

// bounded reports that n ends by itself.
func bounded(n Node) bool {
	if s, ok := n.(*Scan); ok {
		return s.Info.Bounded
	}
	for _, in := range n.Inputs() {
		if !bounded(in) {
			return false
		}
	}
	return true
}

// updating reports that n's rows can change.
func updating(n Node) bool {
	if u, ok := n.(updater); ok {
		return u.updates()
	}
	for _, in := range n.Inputs() {
		if updating(in) {
			return true
		}
	}
	return false
}
