package planner

import (
	"slices"

	"github.com/streamsql/streamsql/exec/op"
)

// settled puts what makes a final table of changes below n where n takes none. Batch mode has one final result of every
// part of a query: changes are settled before a sink sees a row, and before an operator that only takes rows that stay.
func settled(n Node) Node {
	switch n := n.(type) {
	case *Sink, *IntervalJoin, *WindowJoin, *WindowRank, *Match, *TimeSort:
	case *Over:
		if n.Final || n.by() == op.OverByValue {
			return n
		}
	default:
		return n
	}
	in := slices.Clone(n.Inputs())
	changed := false
	for i, x := range in {
		if updating(x) {
			in[i], changed = &Sort{In: x, Limit: -1}, true
		}
	}
	if !changed {
		return n
	}
	return n.withInputs(in)
}
