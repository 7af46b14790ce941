package planner

import (
	"math/bits"
	"strings"

	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// maxSets bounds the grouping sets of a query: every row is copied that often.
const maxSets = 1024

// groupSets binds GROUP BY: g.keys are all expressions in it, g.sets the grouping sets when there is more than one.
func (b *binder) groupSets(q *sql.Select, s *scope, g *grouping) error {
	product := [][]int{nil}
	for _, it := range q.GroupBy {
		sets, err := b.setsOf(q, s, g, it)
		if err != nil {
			return err
		}
		var next [][]int
		for _, p := range product {
			for _, set := range sets {
				next = append(next, append(append([]int(nil), p...), set...))
			}
		}
		if product = next; len(product) > maxSets {
			return tooManySets(it)
		}
	}
	if len(product) < 2 {
		return nil
	}
	if len(g.keys) > 31 {
		return diag.New(diag.Unsupported, q.GroupBy[0].Pos, "GROUPING SETS over %d expressions are not supported", len(g.keys)).
			WithDetail("the id of a grouping set has room for 31").WithHint("group by fewer expressions")
	}
	g.setKeys = len(g.keys)
	for _, set := range product {
		rolled := int64(1)<<g.setKeys - 1
		for _, k := range set {
			rolled &^= g.bit(k)
		}
		g.sets = append(g.sets, rolled)
	}
	return nil
}

func tooManySets(it sql.GroupItem) error {
	return diag.New(diag.Unsupported, it.Pos, "GROUP BY has more than %d grouping sets", maxSets).
		WithDetail("every input row is copied once per grouping set").WithHint("list the sets that are needed: GROUPING SETS ((a, b), (a))")
}

// bit is key k's bit in the ids of grouping sets, which is set where the key is rolled up: the first key's is the highest.
// Keys behind the setKeys first ones are in every set.
func (g *grouping) bit(k int) int64 {
	if k >= g.setKeys {
		return 0
	}
	return 1 << (g.setKeys - 1 - k)
}

// setsOf are the grouping sets of one element of GROUP BY, each a list of keys.
func (b *binder) setsOf(q *sql.Select, s *scope, g *grouping, it sql.GroupItem) ([][]int, error) {
	if it.Kind == sql.GroupExprs {
		set, err := b.keySet(q, s, g, it.Exprs)
		return [][]int{set}, err
	}
	var out, parts [][]int
	for _, sub := range it.Items {
		sets, err := b.setsOf(q, s, g, sub)
		if err != nil {
			return nil, err
		}
		if out = append(out, sets...); len(out) > maxSets {
			return nil, tooManySets(it)
		}
		parts = append(parts, sets[0]) // of ROLLUP and CUBE each is a list of expressions
	}
	n := len(parts)
	switch it.Kind {
	case sql.GroupRollup:
		out = nil
		for k := n; k >= 0; k-- {
			out = append(out, join(parts[:k]))
		}
	case sql.GroupCube:
		if n > bits.Len(maxSets)-1 {
			return nil, tooManySets(it)
		}
		out = nil
		for gone := range 1 << n { // the last expression disappears first, as in ROLLUP
			var kept [][]int
			for i, p := range parts {
				if gone>>(n-1-i)&1 == 0 {
					kept = append(kept, p)
				}
			}
			out = append(out, join(kept))
		}
	}
	return out, nil
}

func join(parts [][]int) []int {
	var out []int
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// keySet binds a list of expressions to keys, new or known ones.
func (b *binder) keySet(q *sql.Select, s *scope, g *grouping, list []sql.Expr) ([]int, error) {
	var set []int
	for _, e := range list {
		x, err := b.groupKey(q, s, e)
		if err != nil {
			return nil, err
		}
		k := indexExpr(g.keys, x)
		if k < 0 {
			k = len(g.keys)
			g.keys = append(g.keys, x)
		}
		set = append(set, k)
	}
	return set, nil
}

func indexExpr(list []expr.Expr, x expr.Expr) int {
	for i, e := range list {
		if expr.Equal(e, x) {
			return i
		}
	}
	return -1
}

// keyType is the type of key k above the aggregation: NULL in the groups that roll it up.
func (g *grouping) keyType(k int) types.Type {
	t := g.keys[k].Type()
	for _, s := range g.sets {
		if s&g.bit(k) != 0 {
			return t.WithNull(true)
		}
	}
	return t
}

// width is the number of key columns of the Aggregate.
func (g *grouping) width() int {
	if g.sets == nil {
		return len(g.keys)
	}
	return len(g.keys) + 1
}

// expand puts the copies for the grouping sets over in, whose first columns are the keys. The id of a set is its
// bits of rolled-up keys; a repeated set gets its number above them, because its groups are groups of their own.
func (g *grouping) expand(in Node) *Expand {
	e := &Expand{In: in, IDs: g.ids()}
	for _, s := range g.sets {
		var nulls []int
		for k := range g.keys {
			if s&g.bit(k) != 0 {
				nulls = append(nulls, k)
			}
		}
		e.Nulls = append(e.Nulls, nulls)
	}
	return e
}

func (g *grouping) ids() []int64 {
	var out []int64
	seen := map[int64]int64{}
	for _, s := range g.sets {
		out = append(out, s|seen[s]<<g.setKeys)
		seen[s]++
	}
	return out
}

// groupingID binds GROUPING(k, …) and GROUPING_ID(k, …), a bit per key that is 1 where it is rolled up, the first key's the
// highest; and GROUP_ID(), the number of a repeated grouping set.
func (g *grouping) groupingID(b *binder, e *sql.Call) (expr.Expr, error) {
	name := strings.ToUpper(e.Name[0].Text)
	if (name == "GROUP_ID") != (len(e.Args) == 0) || e.Star || e.Distinct || e.Filter != nil || e.Within != nil || e.Nulls != sql.NullsUnset {
		usage := map[bool]string{true: "GROUP_ID()", false: name + "(key, ...)"}
		return nil, diag.New(diag.Semantic, e.Pos, "%s is not called like this", name).WithHint("write %s", usage[name == "GROUP_ID"])
	}
	var keys []int
	for _, a := range e.Args {
		b.group = nil
		x, err := b.expr(g.input, a)
		b.group = g
		if err != nil {
			return nil, err
		}
		k := indexExpr(g.keys, x)
		if k < 0 {
			return nil, diag.New(diag.Semantic, a.Position(), "the argument of %s is no expression of GROUP BY", name).
				WithHint("%s takes expressions that GROUP BY lists, such as %s(%s)", name, name, g.someKey())
		}
		keys = append(keys, k)
	}
	bigint := types.BigIntType.NotNull()
	lit := func(v int64) expr.Expr { return &expr.Literal{Value: types.IntDatum(v), T: bigint} }
	if g.sets == nil {
		return lit(0), nil
	}
	id := &expr.Column{Index: len(g.keys), Name: expandID, T: bigint}
	var when, then []expr.Expr
	same, constant, first := true, true, g.idValue(keys, g.ids()[0])
	for _, set := range g.ids() {
		v := g.idValue(keys, set)
		same, constant = same && v == set, constant && v == first
		when, then = append(when, lit(set)), append(then, lit(v))
	}
	switch {
	case same:
		return id, nil
	case constant:
		return lit(first), nil
	}
	last := len(then) - 1
	return expr.NewCase(id, when[:last], then[:last], then[last])
}

// idValue is GROUPING_ID(keys) for the set with this id, or GROUP_ID() without keys.
func (g *grouping) idValue(keys []int, id int64) int64 {
	if keys == nil {
		return id >> g.setKeys
	}
	v := int64(0)
	for _, k := range keys {
		v <<= 1
		if id&g.bit(k) != 0 {
			v |= 1
		}
	}
	return v
}

func (g *grouping) someKey() string {
	if len(g.keys) == 0 {
		return "a"
	}
	return g.keys[0].String()
}
