package expr

import "github.com/streamsql/streamsql/sql/types"

// AggKind is an aggregate function the engine can compute.
type AggKind uint8

// The aggregate functions.
const (
	AggCountStar AggKind = iota
	AggCount
	AggSum
	AggMin
	AggMax
	AggAvg
)

// Agg is a bound aggregate call over the input of an aggregation. Argument and filter are columns of that input: the
// planner projects expressions first.
type Agg struct {
	Kind     AggKind
	Arg      int // input column, -1 for COUNT(*)
	ArgType  types.Type
	Distinct bool
	Filter   int // BOOLEAN input column of FILTER (WHERE …), -1 = none
	Type     types.Type
	Text     string // as SQL, for EXPLAIN
}
