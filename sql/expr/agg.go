package expr

import (
	"strings"

	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

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

var aggNames = map[string]AggKind{"COUNT": AggCount, "SUM": AggSum, "MIN": AggMin, "MAX": AggMax, "AVG": AggAvg}

// String is the function's name.
func (k AggKind) String() string {
	return [...]string{"COUNT", "COUNT", "SUM", "MIN", "MAX", "AVG"}[k]
}

// LookupAgg finds an aggregate function by name in any case. COUNT is AggCount; COUNT(*) is the caller's to tell apart.
func LookupAgg(name string) (AggKind, bool) {
	k, ok := aggNames[strings.ToUpper(name)]
	return k, ok
}

// flinkAggs are the aggregate and window functions of Flink that streamsql refuses by name.
var flinkAggs = strings.Fields(`STDDEV STDDEV_POP STDDEV_SAMP VAR_POP VAR_SAMP VARIANCE COLLECT FIRST_VALUE LAST_VALUE LISTAGG
ARRAY_AGG RANK DENSE_RANK ROW_NUMBER LAG LEAD NTILE CUME_DIST PERCENT_RANK PERCENTILE APPROX_COUNT_DISTINCT SINGLE_VALUE
JSON_OBJECTAGG JSON_ARRAYAGG BITMAP_BUILD_AGG BITMAP_AND_AGG BITMAP_OR_AGG BITMAP_XOR_AGG`)

// IsFlinkAgg reports an aggregate or window function of Flink, supported or not.
func IsFlinkAgg(name string) bool {
	name = strings.ToUpper(name)
	for _, n := range flinkAggs {
		if n == name {
			return true
		}
	}
	_, ok := aggNames[name]
	return ok
}

// AggType is the result type of kind over an argument of type arg (ignored for COUNT). The result is nullable except for
// COUNT: an aggregation over no rows, or only NULLs, gives NULL.
func AggType(kind AggKind, arg types.Type) (types.Type, error) {
	switch kind {
	case AggCountStar, AggCount:
		return types.BigIntType.NotNull(), nil
	case AggMin, AggMax:
		if arg.IsNested() || arg.Kind == types.Null || arg.IsBytes() {
			return arg, aggRefused(kind, arg, "it takes numbers, strings, BOOLEAN, DATE, TIME, TIMESTAMP and intervals")
		}
		return arg.WithNull(true), nil
	}
	if !arg.IsNumeric() {
		return arg, aggRefused(kind, arg, "it takes numbers")
	}
	t := arg.WithNull(true)
	if arg.Kind == types.Decimal {
		t.Precision = types.MaxDecimalPrecision
		if kind == AggAvg {
			t.Scale = max(6, arg.Scale)
		}
	}
	return t, nil
}

func aggRefused(kind AggKind, arg types.Type, takes string) error {
	return diag.New(diag.Semantic, diag.Pos{}, "%s cannot aggregate values of type %s", kind, arg.WithNull(true)).
		WithDetail("%s", takes).WithHint("CAST the argument to such a type")
}
