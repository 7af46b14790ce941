package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// LookupJoin joins each row of L with the rows that a table has for its key when the row is processed.
type LookupJoin struct {
	L    Node
	Info *tableInfo
	Cols []int    // columns of the table that are read, by position
	Kind JoinKind // inner or left
	// Keys say what the table is asked for: the value of column Col (a place in Cols), over the left row.
	Keys []lookupKey
	Ask  expr.Expr // over the left row: others are not looked up and have no match; nil = all are
	Cond expr.Expr // over the fields of L, then Cols; as bound all of the condition
	Hint lookupHint
	// Keep lets changes that take a left row back find what the row was joined with: rows found are kept in state.
	Keep bool
	Pos  diag.Pos
}

type lookupKey struct {
	Col int
	X   expr.Expr
}

// lookupTable resolves t for being looked up.
func (p *Planner) lookupTable(t *catalog.Table, pos diag.Pos, session expr.Session) (*tableInfo, error) {
	info, err := p.typeTable(t, nil, nil, session)
	if err != nil {
		return nil, err
	}
	c, err := p.connector(t, pos)
	if err != nil {
		return nil, err
	}
	if c.NewLookup == nil {
		return nil, connectors.NoLookup(t, pos)
	}
	if c.Check != nil {
		if err := c.Check(t, connectors.UseLookup); err != nil {
			return nil, tableError("lookup", t, pos, err)
		}
	}
	for _, col := range t.Columns {
		if col.Kind != catalog.Physical {
			return nil, diag.New(diag.Unsupported, pos, "table %s cannot be looked up: column %s is not a physical column", t.Name, col.Name).
				WithHint("compute it in the query, and remove it from the table")
		}
	}
	info.Connector, info.Pos, info.ID = c, pos, t.Name
	return info, nil
}

// Inputs implements Node.
func (n *LookupJoin) Inputs() []Node { return []Node{n.L} }

func (n *LookupJoin) withInputs(in []Node) Node { c := *n; c.L = in[0]; return &c }

func (n *LookupJoin) withCond(e expr.Expr) asOfNode { c := *n; c.Cond = e; return &c }

// Fields implements Node. The left side keeps its time attributes.
func (n *LookupJoin) Fields() []Field { return asOfFields(n.L.Fields(), n.rightFields(), n.Kind) }

func (n *LookupJoin) rightFields() []Field {
	out := make([]Field, len(n.Cols))
	for i, c := range n.Cols {
		out[i] = Field{Name: n.Info.Fields[c].Name, Type: n.Info.Fields[c].Type}
	}
	return out
}

func (n *LookupJoin) label() string {
	r := n.rightFields()
	keys := make([]string, len(n.Keys))
	for i, k := range n.Keys {
		keys[i] = r[k.Col].Name + "=" + k.X.String()
	}
	s := fmt.Sprintf("LookupJoin(table=[%s], joinType=[%s], lookup=[%s]", n.Info.Table.Name, n.Kind, strings.Join(keys, ", "))
	if n.Ask != nil {
		s += ", ask=[" + n.Ask.String() + "]"
	}
	if n.Cond != nil {
		s += ", where=[" + asOfText(n.L.Fields(), r, nil, n.Cond) + "]"
	}
	if n.Hint.async {
		s += fmt.Sprintf(", async=[%s, capacity %d, timeout %s]", map[bool]string{false: "ordered", true: "unordered"}[n.Hint.unordered], n.Hint.capacity, n.Hint.timeout)
	}
	if n.Hint.attempts > 0 {
		s += fmt.Sprintf(", retry=[lookup_miss, %s, %d times]", n.Hint.delay, n.Hint.attempts)
	}
	if n.Keep {
		s += ", keep=[rows found]"
	}
	return s + ", select=[" + strings.Join(fieldNames(n.Fields()), ", ") + "])"
}

func (n *LookupJoin) identity(w *identity) {
	w.put("table", n.Info.ID, n.Cols)
	w.put("kind", n.Kind.String())
	for _, k := range n.Keys {
		w.put("key", k.Col, k.X)
	}
	w.put("ask", n.Ask)
	w.put("on", n.Cond)
	w.put("keep", n.Keep)
}

func (n *LookupJoin) slug() string   { return "lookup-join" }
func (n *LookupJoin) stateful() bool { return n.Keep }

// grows implements grower.
func (n *LookupJoin) grows(ttl int64) string {
	if !n.Keep || ttl > 0 {
		return ""
	}
	return "the rows found in " + n.Info.Table.Name + " are kept for every row of the left side; '" + keyStateTTL + "' bounds that"
}

// settle: with +U alone, a left row whose new key finds nothing, or fewer rows, would leave its old rows behind.
func (n *LookupJoin) settle(p *phys, d demand, t *Trait, apply bool) bool {
	if d.Update == OnlyAfter && t.Kinds&Updates != 0 && (len(p.keys) == 0 || n.Kind == InnerJoin && !n.asksByKey(p)) {
		return false
	}
	return p.settleInput(0, demand{Update: d.Update}, apply)
}

// asksByKey reports that an update of a left row by its key asks for the same rows.
func (n *LookupJoin) asksByKey(p *phys) bool {
	reads := make(needs, len(p.in[0].fields)+len(n.Cols))
	for _, k := range n.Keys {
		reads.addExprs(passes, k.X)
	}
	reads.addExprs(passes, n.Ask, n.Cond)
	return slices.ContainsFunc(p.in[0].keys, func(key []int) bool {
		for c, r := range reads[:len(p.in[0].fields)] {
			if r != nil && !slices.Contains(key, c) {
				return false
			}
		}
		return true
	})
}

// distribute: the changes of a left row have to meet where the rows found for it are kept.
func (n *LookupJoin) distribute(b *builder, p *phys) error {
	if n.Keep {
		b.keyed(p, n.keepBy(p))
		p.dist = n.keepBy(p)
		return nil
	}
	p.par, p.dist = p.in[0].par, p.in[0].dist
	return nil
}

// keepBy are the left columns that tell apart the rows to take back: an upsert key, else all.
func (n *LookupJoin) keepBy(p *phys) []int {
	if k := smallest(p.in[0].keys); k != nil {
		return k
	}
	return upTo(0, len(p.in[0].fields))
}

// outside implements outsider.
func (n *LookupJoin) outside() string {
	return "rows of " + n.Info.Table.Name + " are taken as they are when a row is processed: after a failure rows are processed again, and can find others"
}

func (n *LookupJoin) pushFilter(c expr.Expr) (Node, bool) {
	x := *n
	left, cond, ok := pushAsOf(n.L, n.rightFields(), &x.Kind, n.Cond, c)
	x.L, x.Cond = left, cond
	return &x, ok
}

// keyed takes from the condition what the table is asked for: comparisons of its columns with expressions over the left
// row or with constants. What reads the left row only decides whether to ask.
func (n *LookupJoin) keyed(o *optimizer) (Node, error) {
	if n.Keys != nil {
		return n, nil
	}
	c := *n
	c.Cond = nil
	var stay, ask []expr.Expr
	var conjuncts []expr.Expr
	if n.Cond != nil {
		conjuncts = expr.Conjuncts(n.Cond)
	}
	left := len(n.L.Fields())
	for _, e := range conjuncts {
		if k, ok := n.key(e, left); ok && !slices.ContainsFunc(c.Keys, func(x lookupKey) bool { return x.Col == k.Col }) {
			c.Keys = append(c.Keys, k)
			continue
		}
		switch {
		case sidesOf(e, left)&rightSide != 0 || !expr.IsDeterministic(e):
			stay = append(stay, e)
		case n.Kind == InnerJoin:
			c.L = addFilter(c.L, e)
		default:
			ask = append(ask, e)
		}
	}
	if len(c.Keys) == 0 {
		return nil, n.noKey(conjuncts, left)
	}
	if stay != nil {
		c.Cond = expr.And(stay...)
	}
	if ask != nil {
		c.Ask = expr.And(ask...)
	}
	return &c, nil
}

// key recognises column = value, where the value is of the left row or constant and has the column's type.
func (n *LookupJoin) key(e expr.Expr, left int) (lookupKey, bool) {
	b, ok := e.(*expr.Binary)
	if !ok || b.Op != "=" || !expr.IsDeterministic(e) {
		return lookupKey{}, false
	}
	for _, s := range [][2]expr.Expr{{b.L, b.R}, {b.R, b.L}} {
		c, isCol := s[0].(*expr.Column)
		if !isCol || c.Index < left || sidesOf(s[1], left)&rightSide != 0 {
			continue
		}
		if x, _, ok := sameEncoding(s[1], s[0]); ok && keepsEncoding(x.Type(), c.T) {
			return lookupKey{c.Index - left, x}, true
		}
	}
	return lookupKey{}, false
}

// keepsEncoding reports that values of type t can be given for a key column of type want.
func keepsEncoding(t, want types.Type) bool {
	return t.SameIgnoringNull(want) || t.IsInteger() && want.IsInteger() || t.IsString() && want.IsString() ||
		t.IsBytes() && want.IsBytes() || t.Kind == want.Kind && t.Phys() == want.Phys() && t.Scale == want.Scale
}

func (n *LookupJoin) noKey(conjuncts []expr.Expr, left int) error {
	t := n.Info.Table
	e := diag.New(diag.Semantic, n.Pos, "the join with %s must compare a column of it with = to look it up by", t.Name)
	for _, c := range conjuncts {
		b, ok := c.(*expr.Binary)
		if !ok || b.Op != "=" || sidesOf(c, left) != leftSide|rightSide {
			continue
		}
		for _, s := range [][2]expr.Expr{{b.L, b.R}, {b.R, b.L}} {
			cast, isCast := s[0].(*expr.Cast)
			if !isCast {
				continue
			}
			if col, ok := cast.X.(*expr.Column); ok && col.Index >= left {
				return e.WithDetail("column %s has type %s, the other side of the comparison %s", col.Name, col.T.WithNull(true), s[1].Type().WithNull(true)).
					WithHint("cast the other side: CAST(... AS %s) = %s.%s", col.T.WithNull(true), t.Name, col.Name)
			}
		}
	}
	key := "key"
	if len(t.PrimaryKey) > 0 {
		key = t.PrimaryKey[0]
	}
	return e.WithDetail("every row of the stream asks the table for the rows of its key; without one each would read all of it").
		WithHint("write ON s.%s = %s.%s; other conditions may follow with AND", key, t.Name, key)
}

// upsertKeys are those of the left side if the table has one row at most for what it is asked.
func (n *LookupJoin) upsertKeys(p *phys) [][]int {
	pk := n.Info.Table.PrimaryKey
	for _, name := range pk {
		if !slices.ContainsFunc(n.Keys, func(k lookupKey) bool { return n.Info.Fields[n.Cols[k.Col]].Name == name }) {
			return nil
		}
	}
	if len(pk) == 0 || n.Cond != nil && !expr.IsDeterministic(n.Cond) {
		return nil
	}
	return p.in[0].keys
}

func (n *LookupJoin) prune(need []bool) (Node, []int) {
	lw := len(n.L.Fields())
	both := slices.Clone(need)
	mark(both, n.Cond)
	mark(both, n.Ask)
	for _, k := range n.Keys {
		both[lw+k.Col] = true
		mark(both, k.X)
	}
	l, lm := prune(n.L, both[:lw])
	c := *n
	c.L, c.Cols, c.Keys = l, nil, make([]lookupKey, len(n.Keys))
	rm := make([]int, len(n.Cols))
	for i, t := range n.Cols {
		rm[i] = -1
		if both[lw+i] {
			rm[i] = len(c.Cols)
			c.Cols = append(c.Cols, t)
		}
	}
	for i, k := range n.Keys {
		c.Keys[i] = lookupKey{rm[k.Col], expr.Remap(k.X, lm)}
	}
	m := joinMap(lm, rm, len(l.Fields()))
	if n.Cond != nil {
		c.Cond = expr.Remap(n.Cond, m)
	}
	if n.Ask != nil {
		c.Ask = expr.Remap(n.Ask, lm)
	}
	return &c, m
}

func (n *LookupJoin) lower(l *lowering, x *exec.Node, p *phys) {
	spec := op.LookupJoinSpec{Left: p.schema(0), Connector: n.Info.Connector, Ask: n.Ask, Outer: n.Kind == LeftJoin, Cond: n.Cond,
		Lookup: connectors.LookupSpec{Table: n.Info.Table, Columns: n.Cols, Schema: schemaOf(n.rightFields()), Session: l.b.session, Embedded: l.o.Embedded},
		Retry:  op.LookupRetry{MaxAttempts: n.Hint.attempts, Delay: n.Hint.delay}, Session: l.b.session, Output: x.Output}
	if n.Hint.async {
		// Changes of one row must not overtake each other.
		spec.Async = op.LookupAsync{Capacity: n.Hint.capacity, Timeout: n.Hint.timeout, Unordered: n.Hint.unordered && p.in[0].trait.Kinds == Inserts}
	}
	if n.Keep {
		spec.Keep, spec.KeepBy, spec.TTL = true, smallest(p.in[0].keys), l.ttl()
	}
	for _, k := range n.Keys {
		spec.Lookup.Keys = append(spec.Lookup.Keys, k.Col)
		spec.Keys = append(spec.Keys, k.X)
	}
	x.Operator = op.NewLookupJoin(spec)
}
