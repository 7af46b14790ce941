package planner

import (
	"fmt"
	"slices"

	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// The query around a subquery that needs a domain is computed twice: for the domain, and for the rows that the result is
// joined back to. Where the two can differ in a column of the domain, rows would find no result and vanish. Tables are
// read once for both, so what can differ is what the query makes of them: calls such as RAND, which row is the first of
// rows that are alike in the order, and tables that are looked up.

// repeatable is an error if the columns cols of n can have other values when n is computed a second time.
func (o *outerQuery) repeatable(n Node, cols []int, pos diag.Pos) error {
	need := make([]bool, len(n.Fields()))
	markAll(need, cols)
	at, what, hint := o.differs(n, need)
	if what == "" {
		return nil
	}
	if at.Known() {
		pos = at
	}
	return diag.New(diag.Unsupported, pos, "%s can differ when the query around a correlated subquery is computed again", what).
		WithDetail("this subquery is computed for the different values of its outer columns, and the result joined back to the query, so both must see the same values").
		WithHint("%s", hint)
}

func markAll(need []bool, cols []int) {
	for _, c := range cols {
		if c < len(need) {
			need[c] = true
		}
	}
}

const repeatHint = "join the two tables and aggregate the result, or store the value first: INSERT INTO a table, and query that"

// call is the first needed one of list, all where need is nil, that has a call with another result each time.
func (o *outerQuery) call(list []expr.Expr, need []bool) (pos diag.Pos, what, hint string) {
	for i, e := range list {
		if e == nil || need != nil && !need[i] {
			continue
		}
		expr.Walk(e, func(x expr.Expr) bool {
			if c, ok := x.(*expr.Call); ok && what == "" && (c.Bound.Volatile || c.Bound.Dynamic && !o.batch) {
				pos, what, hint = c.Pos, c.String(), repeatHint
			}
			return what == ""
		})
	}
	return pos, what, hint
}

// differs finds what can make the needed columns of n differ, "" for nothing.
func (o *outerQuery) differs(n Node, need []bool) (pos diag.Pos, what, hint string) {
	switch n := n.(type) {
	case *Project:
		if pos, what, hint = o.call(n.Exprs, need); what != "" {
			return pos, what, hint
		}
	case *Filter, *Join, *TemporalJoin, *Unnest, *Correlate, *Values:
		if pos, what, hint = o.call(nodeExprs(n), nil); what != "" {
			return pos, what, hint
		}
	case *LookupJoin:
		for i := len(n.L.Fields()); i < len(need); i++ {
			if need[i] || n.Kind == InnerJoin {
				return n.Pos, "table " + n.Info.Table.Name + ", which is looked up,", "read the table as a changelog and join that, or " + repeatHint
			}
		}
	case *Sort:
		if c := untied(need, n.Keys, nil); c >= 0 && (n.Limit >= 0 || n.Offset > 0) {
			return pos, "which rows LIMIT takes", orderToo(n, c)
		}
	case *Rank: // as bound: LIMIT, or the rows of a place
		if c := untied(need[:len(n.In.Fields())], n.Order, n.Partition); c >= 0 {
			return pos, "which rows LIMIT takes", orderToo(n, c)
		}
	case *Over:
		if c := n.tied(need); c >= 0 {
			return n.Pos, "the order of rows that OVER puts at one place", orderToo(n, c)
		}
	case *Aggregate:
		for i, a := range n.Aggs {
			switch {
			case !need[len(n.Keys)+i]:
			case ordered(a):
				return pos, a.Text + ", which depends on the order in which rows arrive,", "correlate with a grouping column, COUNT, MIN or MAX, or " + repeatHint
			case rounds(a):
				return pos, a.Text + ", whose last digits depend on the order in which rows arrive,", "aggregate exact numbers, CAST(… AS DECIMAL(38, 10)), or " + repeatHint
			}
		}
	}
	for i, in := range n.Inputs() {
		if pos, what, hint = o.differs(in, repeatNeeds(n, i, need)); what != "" {
			return pos, what, hint
		}
	}
	return pos, "", ""
}

func orderToo(n Node, c int) string {
	return fmt.Sprintf("ORDER BY %s too, so that rows alike in the order are alike to the subquery", n.Inputs()[0].Fields()[c].Name)
}

// untied is a needed column that keys do not order, -1 for none: rows at one place of the order differ in it.
func untied(need []bool, keys []SortKey, partition []int) int {
	for c, r := range need {
		if r && !slices.Contains(partition, c) && !slices.ContainsFunc(keys, func(k SortKey) bool { return k.Col == c }) {
			return c
		}
	}
	return -1
}

// tied is a column in which rows at one place of the order differ, where a needed call depends on the place; -1 for none.
func (n *Over) tied(need []bool) int {
	w := len(n.In.Fields())
	rows := slices.Clone(need[:w])
	depends := false
	for i, c := range n.Calls {
		if !need[w+i] || c.Func == expr.OverRank || c.Func == expr.OverDenseRank {
			continue
		}
		depends = true
		if c.Agg.Arg >= 0 && c.Func != expr.OverRowNumber {
			rows[c.Agg.Arg] = true
		}
	}
	if !depends {
		return -1
	}
	return untied(rows, n.Order, n.Partition)
}

// ordered reports an aggregate whose value depends on the order of the rows.
func ordered(a expr.Agg) bool {
	switch a.Kind {
	case expr.AggFirst, expr.AggLast, expr.AggList, expr.AggArray, expr.AggJSONArray:
		return true
	}
	return false
}

// rounds reports an aggregate over floating-point numbers that adds them up: in another order the last digits are others.
func rounds(a expr.Agg) bool {
	switch a.Kind {
	case expr.AggSum, expr.AggAvg, expr.AggStddevPop, expr.AggStddevSamp, expr.AggVarPop, expr.AggVarSamp:
		return a.ArgType.Kind == types.Float || a.ArgType.Kind == types.Double
	}
	return false
}

// repeatNeeds are the columns of n's input i that its rows and the needed columns of them are made of.
func repeatNeeds(n Node, i int, need []bool) []bool {
	w := len(n.Inputs()[i].Fields())
	in := make([]bool, w)
	switch n := n.(type) {
	case *Project:
		for k, e := range n.Exprs {
			if need[k] {
				markAll(in, expr.ColumnsOf(e))
			}
		}
	case *Join, *TemporalJoin:
		at := i * len(n.Inputs()[0].Fields())
		for c := range in {
			in[c] = at+c < len(need) && need[at+c]
		}
		joinNeeds(n, i, at, in)
	case *Filter:
		copy(in, need)
		markAll(in, expr.ColumnsOf(n.Cond))
	case *Unnest, *Correlate:
		copy(in, need)
		for _, e := range nodeExprs(n) {
			markAll(in, expr.ColumnsOf(e))
		}
	case *LookupJoin:
		copy(in, need)
		list := []expr.Expr{n.Ask, n.Cond}
		for _, k := range n.Keys {
			list = append(list, k.X)
		}
		for _, e := range list {
			if e != nil {
				markAll(in, slices.DeleteFunc(expr.ColumnsOf(e), func(c int) bool { return c >= w }))
			}
		}
	case *Union, *Sort:
		copy(in, need)
		if s, ok := n.(*Sort); ok {
			for _, k := range s.Keys {
				in[k.Col] = true
			}
		}
	case *Rank:
		copy(in, need)
		markAll(in, n.Partition)
		for _, k := range n.Order {
			in[k.Col] = true
		}
	case *Over:
		n.repeatNeeds(in, need)
	case *Aggregate:
		markAll(in, n.Keys)
		for k, a := range n.Aggs {
			if need[len(n.Keys)+k] {
				markAll(in, slices.DeleteFunc([]int{a.Arg, a.Filter}, func(c int) bool { return c < 0 }))
			}
		}
	case *WindowTVF:
		copy(in, need)
		if n.Window.Kind == op.Session || slices.Contains(need[w:], true) {
			n.Window.reads(in)
		}
	default:
		for c := range in {
			in[c] = true
		}
	}
	return in
}

func (n *Over) repeatNeeds(in, need []bool) {
	copy(in, need)
	if !slices.Contains(need[len(in):], true) {
		return
	}
	markAll(in, n.Partition)
	for _, k := range n.Order {
		in[k.Col] = true
	}
	for i, c := range n.Calls {
		if need[len(in)+i] {
			markAll(in, slices.DeleteFunc([]int{c.Agg.Arg, c.Agg.Filter, c.Default}, func(c int) bool { return c < 0 || c >= len(in) }))
		}
	}
}

// joinNeeds marks what the condition of a join reads of input i, whose columns begin at column at of the condition.
func joinNeeds(n Node, i, at int, in []bool) {
	var cond expr.Expr
	var keys []JoinKey
	switch n := n.(type) {
	case *Join:
		cond, keys = n.Cond, n.Keys
	case *TemporalJoin:
		cond, keys = n.Cond, n.Keys
		in[[]int{n.LTime, n.RTime}[i]] = true
	}
	for _, k := range keys {
		in[[]int{k.L, k.R}[i]] = true
	}
	if cond == nil {
		return
	}
	for _, c := range expr.ColumnsOf(cond) {
		if c >= at && c-at < len(in) {
			in[c-at] = true
		}
	}
}
