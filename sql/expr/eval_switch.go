package expr

import "github.com/streamsql/streamsql/sql/types"

// minSwitch is from how many conditions on a CASE pays to be evaluated as a switch.
const minSwitch = 2

// textSwitch is x and the texts of a CASE all of whose conditions are x = 'text'; x is nil for others.
func textSwitch(e *Case) (x Expr, texts []string) {
	if len(e.When) < minSwitch {
		return nil, nil
	}
	for _, w := range e.When {
		b, ok := w.(*Binary)
		if !ok || b.Op != "=" || b.L.Type().Phys() != types.PhysStr || x != nil && !Equal(x, b.L) || !IsDeterministic(b.L) {
			return nil, nil
		}
		text, ok := textOf(b.R)
		if !ok {
			return nil, nil
		}
		x, texts = b.L, append(texts, text)
	}
	return x, texts
}

// switchKernel evaluates x, the first operand, once and each result for the rows with its text. The last operand is of the rows that are
// left.
func switchKernel(texts []string) func(*evalCtx, *node, []int32) {
	lists := make([][]int32, len(texts)+1)
	return func(c *evalCtx, n *node, sel []int32) {
		out := n.begin(c.n)
		rows := c.rows(sel)
		x := n.kids[0]
		v := x.eval(c, sel)
		n.inheritRows(x, rows)
		for i := range lists {
			lists[i] = lists[i][:0]
		}
		for _, r := range rows {
			at := len(texts)
			if !v.IsNull(int(r)) {
				at = indexOf(texts, v.Str[v.Idx(int(r))])
			}
			lists[at] = append(lists[at], r)
		}
		for i, k := range n.kids[1:] {
			n.take(c, k, out, lists[i])
		}
	}
}

// indexOf is the place of s in texts, or their number. Most texts differ in length, which is compared first.
func indexOf(texts []string, s string) int {
	for i := range texts {
		if texts[i] == s {
			return i
		}
	}
	return len(texts)
}
