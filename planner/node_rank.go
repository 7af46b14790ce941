package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// Rank is a Top-N: of every partition the rows at the places From to To of the order. Where the place is not asked for,
// the first row by a time attribute is a deduplication. ORDER BY with LIMIT, and LIMIT over rows that change, are a
// Rank without a partition.
type Rank struct {
	In        Node
	Partition []int
	Order     []SortKey
	From, To  int64
	ToColumn  int    // column of In that gives To, -1 = none
	Number    string // name of the column with the place, "" = not in the output
	Limit     bool   // made of LIMIT
	Pos       diag.Pos
}

// Inputs implements Node.
func (n *Rank) Inputs() []Node { return []Node{n.In} }

func (n *Rank) withInputs(in []Node) Node { c := *n; c.In = in[0]; return &c }

// Fields implements Node. Time attributes stay.
func (n *Rank) Fields() []Field { return rankFields(n.In.Fields(), n.Number) }

func rankFields(in []Field, number string) []Field {
	if number == "" {
		return in
	}
	return append(slices.Clone(in), Field{Name: number, Type: types.BigIntType.NotNull()})
}

func orderText(order []SortKey, in []Field) string {
	s := make([]string, len(order))
	for i, k := range order {
		s[i] = sortKeyText(k, in)
	}
	return strings.Join(s, ", ")
}

// rangeText is the places from to to, to a number or the column that gives it.
func (n *Rank) rangeText(in []Field) string {
	to := fmt.Sprint(n.To)
	if n.ToColumn >= 0 {
		to = in[n.ToColumn].Name
	}
	return fmt.Sprintf("%d to %s", n.From, to)
}

func (n *Rank) label() string {
	in := n.In.Fields()
	if keep, time, ok := n.deduplicates(); ok {
		return fmt.Sprintf("Deduplicate(keep=[%s], key=[%s], order=[%s])", keep, keyNames(in, n.Partition), time)
	}
	if n.Limit {
		if len(n.Order) == 0 {
			return fmt.Sprintf("Limit(rows=[%s])", n.rangeText(in))
		}
		return fmt.Sprintf("SortLimit(orderBy=[%s], rows=[%s])", orderText(n.Order, in), n.rangeText(in))
	}
	s := fmt.Sprintf("Rank(rows=[%s], partitionBy=[%s], orderBy=[%s]", n.rangeText(in), keyNames(in, n.Partition), orderText(n.Order, in))
	if n.Number != "" {
		s += ", number=[" + n.Number + "]"
	}
	return s + ")"
}

func (n *Rank) identity(w *identity) {
	w.put("partition", n.Partition)
	w.put("order", n.Order)
	w.put("rows", n.From, n.To, n.ToColumn)
	w.put("number", n.Number != "")
}

// single reports that only the first row of a partition is kept and its place, always 1, is not in the output.
func (n *Rank) single() bool {
	return n.From == 1 && n.To == 1 && n.ToColumn < 0 && n.Number == ""
}

// deduplicates reports which row is kept by which time, when the rank is a deduplication: the input is append-only and
// ordered by one time attribute.
func (n *Rank) deduplicates() (keep, time string, ok bool) {
	if !n.single() || len(n.Order) != 1 || n.Limit || updating(n.In) {
		return "", "", false
	}
	keep, time = "FirstRow", "ROWTIME"
	if n.Order[0].Desc {
		keep = "LastRow"
	}
	switch n.In.Fields()[n.Order[0].Col].Time {
	case NoTime:
		return "", "", false
	case Proctime:
		time = "PROCTIME"
	}
	return keep, time, true
}

func (n *Rank) slug() string { return "rank" }

func (n *Rank) stateful() bool { return true }

// arrival reports that rows are in the order they arrive in: that of processing time, or none.
func (n *Rank) arrival() bool {
	return len(n.Order) == 0 || len(n.Order) == 1 && !n.Order[0].Desc && n.In.Fields()[n.Order[0].Col].Time == Proctime
}

// final reports that a row that has come in stays: in the order of arrival, and for the first row by event time.
func (n *Rank) final() bool {
	keep, _, ok := n.deduplicates()
	return n.arrival() || ok && keep == "FirstRow"
}

func (n *Rank) updates() bool { return updating(n.In) || !n.final() }

func (n *Rank) modify(_ *phys, in Kinds) Kinds {
	if in == Inserts && n.final() {
		return Inserts
	}
	return AllKinds
}

// settle chooses the strategy: with rows that only get better +U alone will do, others need the old row.
func (n *Rank) settle(p *phys, _ demand, _ *Trait, apply bool) bool {
	d := full
	if in := p.in[0]; in.trait.Kinds != Inserts && n.improving(p) && p.settleInput(0, demand{Update: OnlyAfter}, false) {
		d = demand{Update: OnlyAfter}
	}
	return p.settleInput(0, d, apply)
}

// improving reports that an update gives a row a place at least as good: its key holds the partition, and every column of
// the order stays or moves in its direction.
func (n *Rank) improving(p *phys) bool {
	in := p.in[0]
	if in.trait.Kinds&Deletes != 0 || len(n.Order) == 0 {
		return false
	}
	return slices.ContainsFunc(in.keys, func(key []int) bool {
		if !subset(n.Partition, key) {
			return false
		}
		return !slices.ContainsFunc(n.Order, func(k SortKey) bool {
			m, fromNull := monotony(in, k.Col)
			return !slices.Contains(key, k.Col) && (m == 0 || m > 0 != k.Desc || fromNull && k.NullsFirst)
		})
	})
}

// upsertKeys: with the rows' numbers, a change replaces what had the number, and a row that leaves or moves is not taken back by
// itself. So no key of the input is one of the output then: by that key, rows that left would stay. (Flink takes it for one.)
func (n *Rank) upsertKeys(p *phys) [][]int {
	partition := append([]int{}, n.Partition...)
	slices.Sort(partition)
	if n.From == n.To && n.ToColumn < 0 {
		return [][]int{partition}
	}
	if n.Number != "" {
		return [][]int{append(partition, len(p.in[0].fields))}
	}
	var out [][]int
	for _, k := range p.in[0].keys {
		if subset(n.Partition, k) {
			out = append(out, k)
		}
	}
	return out
}

func (n *Rank) distribute(b *builder, p *phys) error {
	b.keyed(p, n.Partition)
	p.dist = slices.Clone(n.Partition)
	return nil
}

// pushFilter moves conditions on the partition below: they keep or drop whole partitions.
func (n *Rank) pushFilter(c expr.Expr) (Node, bool) {
	if len(n.Partition) == 0 || !subset(expr.ColumnsOf(c), n.Partition) {
		return nil, false
	}
	return n.withInputs([]Node{addFilter(n.In, c)}), true
}

func (n *Rank) prune(need []bool) (Node, []int) {
	width := len(n.In.Fields())
	in := slices.Clone(need[:width])
	markRank(in, n.Partition, n.Order)
	if n.ToColumn >= 0 {
		in[n.ToColumn] = true
	}
	x, im := prune(n.In, in)
	c := *n
	c.In, c.Partition, c.Order = x, remapInts(n.Partition, im), remapOrder(n.Order, im)
	if n.ToColumn >= 0 {
		c.ToColumn = im[n.ToColumn]
	}
	m := slices.Clone(im)
	if n.Number != "" {
		if need[width] {
			m = append(m, len(x.Fields()))
		} else {
			c.Number = ""
			m = append(m, -1)
		}
	}
	return &c, m
}

func markRank(need []bool, partition []int, order []SortKey) {
	for _, k := range partition {
		need[k] = true
	}
	for _, k := range order {
		need[k.Col] = true
	}
}

func remapOrder(order []SortKey, m []int) []SortKey {
	out := slices.Clone(order)
	for i := range out {
		out[i].Col = m[out[i].Col]
	}
	return out
}

func opKeys(order []SortKey) []op.SortKey {
	out := make([]op.SortKey, len(order))
	for i, k := range order {
		out[i] = op.SortKey(k)
	}
	return out
}

// strategy is how the settled node keeps its rows.
func (n *Rank) strategy(p *phys) op.RankStrategy {
	switch t := p.in[0].trait; {
	case t.Kinds == Inserts:
		return op.RankAppend
	case t.Update == OnlyAfter:
		return op.RankUpdate
	}
	return op.RankRetract
}

func (n *Rank) detail(p *phys) string {
	if _, _, ok := n.deduplicates(); ok {
		return ""
	}
	return ", strategy=[" + [...]string{"append", "update", "retract"}[n.strategy(p)] + "]"
}

func (n *Rank) grows(ttl int64) string {
	what := ""
	_, _, dedup := n.deduplicates()
	switch {
	case ttl > 0:
	case dedup:
		what = "a deduplication keeps a row of every key it has met"
	case updating(n.In) && n.Limit:
		what = "LIMIT over rows that change keeps them all"
	case updating(n.In):
		what = "a Top-N over rows that change keeps them all, or the best of every partition it has met"
	case len(n.Partition) > 0:
		what = "a Top-N keeps the best rows of every partition it has met"
	}
	if what == "" {
		return ""
	}
	return what + "; '" + keyStateTTL + "' bounds that"
}

func (n *Rank) lower(l *lowering, x *exec.Node, p *phys) {
	in := p.schema(0)
	mini, _ := l.b.miniBatch() // without a size there is none, and each change leaves, as in Flink
	if l.versions {
		mini = op.MiniBatch{}
	}
	if keep, _, ok := n.deduplicates(); ok {
		spec := op.DedupSpec{Input: in, Key: n.Partition, Time: n.Order[0].Col, Last: keep == "LastRow", EmitUpdateBefore: p.before(), EachChange: mini.Size == 0, TTL: l.ttl()}
		if p.in[0].fields[spec.Time].Time == Proctime {
			spec.Time = -1
		}
		x.Operator = op.NewDedup(spec)
		return
	}
	spec := op.RankSpec{Input: in, Partition: n.Partition, Order: opKeys(n.Order), Strategy: n.strategy(p), From: n.From, To: n.To,
		ToColumn: n.ToColumn, Number: n.Number != "", EmitUpdateBefore: p.before(), TTL: l.ttl(), Mini: mini, Output: x.Output}
	switch spec.Strategy {
	case op.RankAppend:
		if n.arrival() {
			spec.Order = nil
		}
	case op.RankUpdate:
		spec.UniqueKey = n.uniqueKey(p)
	}
	x.Operator = op.NewRank(spec)
}

// uniqueKey is the smallest key of the input that holds the partition.
func (n *Rank) uniqueKey(p *phys) []int {
	var keys [][]int
	for _, k := range p.in[0].keys {
		if subset(n.Partition, k) {
			keys = append(keys, k)
		}
	}
	return smallest(keys)
}
