package expr

import (
	"slices"
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
	AggFirst
	AggLast
	AggList // LISTAGG
	AggCollect
	AggArray
	AggStddevPop
	AggStddevSamp
	AggVarPop
	AggVarSamp
	AggJSONObject // over a ROW of the member's name and its value as JSON
	AggJSONArray  // over values as JSON
	AggPercentile // over DOUBLE, or a ROW of a DOUBLE and how often it counts: an array with a value for each of Agg.Fractions
	AggSingle     // the value of a scalar subquery: a second row fails the job
	AggUser       // Agg.User
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
	// Separator stands between the values of LISTAGG.
	Separator string
	// KeepNulls: NULL is a value like others, for ARRAY_AGG and the JSON aggregates with NULL ON NULL. SINGLE_VALUE
	// always counts NULL, the other functions skip it.
	KeepNulls bool
	// Fractions are the percentages of PERCENTILE, of [0, 1].
	Fractions []float64
	// User is the function of AggUser. Its arguments are one column: the argument, or a ROW of several.
	User *UserAgg
	// Pos is where the statement has what SINGLE_VALUE stands for.
	Pos diag.Pos
}

// TakesNull reports that a NULL argument is an input of the aggregate.
func (a *Agg) TakesNull() bool {
	return a.KeepNulls || a.Kind == AggSingle || a.Kind == AggJSONObject
}

// KeepsValues reports an aggregate whose state is all its values.
func (a *Agg) KeepsValues() bool {
	switch a.Kind {
	case AggList, AggCollect, AggArray, AggJSONObject, AggJSONArray, AggPercentile:
		return true
	}
	return false
}

// Same reports that a and b compute the same over the same input.
func (a *Agg) Same(b *Agg) bool {
	return a.Kind == b.Kind && a.Arg == b.Arg && a.Filter == b.Filter && a.Distinct == b.Distinct &&
		a.Separator == b.Separator && a.KeepNulls == b.KeepNulls && a.User == b.User && slices.Equal(a.Fractions, b.Fractions)
}

// aggNames are the functions by their names in SQL. SINGLE_VALUE has none: only the planner uses it.
var aggNames = map[string]AggKind{
	"COUNT": AggCount, "SUM": AggSum, "MIN": AggMin, "MAX": AggMax, "AVG": AggAvg,
	"APPROX_COUNT_DISTINCT": AggCount, // exact, and in batch mode only
	"FIRST_VALUE":           AggFirst, "LAST_VALUE": AggLast, "LISTAGG": AggList, "COLLECT": AggCollect, "ARRAY_AGG": AggArray,
	"STDDEV_POP": AggStddevPop, "STDDEV_SAMP": AggStddevSamp, "STDDEV": AggStddevSamp,
	"VAR_POP": AggVarPop, "VAR_SAMP": AggVarSamp, "VARIANCE": AggVarSamp,
	"JSON_OBJECTAGG": AggJSONObject, "JSON_ARRAYAGG": AggJSONArray, "PERCENTILE": AggPercentile,
}

// String is the function's name.
func (k AggKind) String() string {
	return [...]string{"COUNT", "COUNT", "SUM", "MIN", "MAX", "AVG", "FIRST_VALUE", "LAST_VALUE", "LISTAGG", "COLLECT",
		"ARRAY_AGG", "STDDEV_POP", "STDDEV_SAMP", "VAR_POP", "VAR_SAMP", "JSON_OBJECTAGG", "JSON_ARRAYAGG", "PERCENTILE", "SINGLE_VALUE", ""}[k]
}

// LookupAgg finds an aggregate function by name in any case. COUNT is AggCount; COUNT(*) is the caller's to tell apart.
func LookupAgg(name string) (AggKind, bool) {
	k, ok := aggNames[strings.ToUpper(name)]
	return k, ok
}

// flinkAggs are the aggregate and window functions of Flink that streamsql refuses by name.
var flinkAggs = strings.Fields(`RANK DENSE_RANK ROW_NUMBER LAG LEAD NTILE CUME_DIST PERCENT_RANK
SINGLE_VALUE BITMAP_BUILD_AGG BITMAP_AND_AGG BITMAP_OR_AGG BITMAP_XOR_AGG
BITMAP_BUILD_CARDINALITY_AGG BITMAP_AND_CARDINALITY_AGG BITMAP_OR_CARDINALITY_AGG BITMAP_XOR_CARDINALITY_AGG`)

// IsGrouping reports the functions that tell the grouping sets of a row apart. They are no aggregates, but stand where
// aggregates stand.
func IsGrouping(name string) bool {
	switch strings.ToUpper(name) {
	case "GROUPING", "GROUPING_ID", "GROUP_ID":
		return true
	}
	return false
}

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

// jsonAggType is VARCHAR(2000) NOT NULL, as Flink declares the JSON aggregates. Nothing cuts values to that length.
var jsonAggType = types.Lengthed(types.Varchar, 2000).NotNull()

// AggType is the result type of kind over an argument of type arg (ignored for COUNT). The result is nullable except for
// COUNT, COLLECT and the JSON aggregates: the others give NULL over no rows, or only NULLs.
func AggType(kind AggKind, arg types.Type) (types.Type, error) {
	switch kind {
	case AggCountStar, AggCount:
		return types.BigIntType.NotNull(), nil
	case AggMin, AggMax:
		if arg.IsNested() || arg.Kind == types.Null || arg.Kind == types.Variant || arg.IsBytes() {
			return arg, aggRefused(kind, arg, "it takes numbers, strings, BOOLEAN, DATE, TIME, TIMESTAMP and intervals")
		}
		return arg.WithNull(true), nil
	case AggFirst, AggLast, AggSingle:
		return arg.WithNull(true), nil
	case AggList:
		if !arg.IsString() {
			return arg, aggRefused(kind, arg, "it takes strings")
		}
		return types.StringType, nil
	case AggCollect:
		return types.MultisetOf(arg).NotNull(), nil
	case AggArray:
		return types.ArrayOf(arg), nil
	case AggJSONObject, AggJSONArray:
		return jsonAggType, nil
	case AggPercentile:
		return types.ArrayOf(types.DoubleType), nil
	}
	if !arg.IsNumeric() {
		return arg, aggRefused(kind, arg, "it takes numbers")
	}
	t := arg.WithNull(true)
	if arg.Kind == types.Decimal {
		t.Precision = types.MaxDecimalPrecision
		if kind != AggSum { // the variances have the types of AVG
			t.Scale = max(6, arg.Scale)
		}
	}
	return t, nil
}

func aggRefused(kind AggKind, arg types.Type, takes string) error {
	return diag.New(diag.Semantic, diag.Pos{}, "%s cannot aggregate values of type %s", kind, arg.WithNull(true)).
		WithDetail("%s", takes).WithHint("CAST the argument to such a type")
}
