package expr

import (
	"fmt"
	"math"
	"strings"

	"github.com/streamsql/streamsql/sql/types"
)

// OverKind is a function of an OVER window.
type OverKind uint8

// The functions: OverAgg is any aggregate, the others exist in OVER windows only.
const (
	OverAgg OverKind = iota
	OverRowNumber
	OverRank
	OverDenseRank
	OverLag
	OverLead
	OverNtile
	OverPercentRank
	OverCumeDist
)

var overNames = map[string]OverKind{
	"ROW_NUMBER": OverRowNumber, "RANK": OverRank, "DENSE_RANK": OverDenseRank, "LAG": OverLag, "LEAD": OverLead,
	"NTILE": OverNtile, "PERCENT_RANK": OverPercentRank, "CUME_DIST": OverCumeDist,
}

// LookupOver finds a function that only OVER windows have, by name in any case.
func LookupOver(name string) (OverKind, bool) {
	k, ok := overNames[strings.ToUpper(name)]
	return k, ok
}

// String is the function's name; "" for an aggregate, which has its own.
func (k OverKind) String() string {
	return [...]string{"", "ROW_NUMBER", "RANK", "DENSE_RANK", "LAG", "LEAD", "NTILE", "PERCENT_RANK", "CUME_DIST"}[k]
}

// Framed reports whether a frame may be written for the function. The frame of the others is everything up to the
// current row.
func (k OverKind) Framed() bool { return k == OverAgg }

// The bounds of a frame that have no distance.
const (
	UnboundedPreceding = math.MinInt64
	UnboundedFollowing = math.MaxInt64
)

// Frame is the part of a partition that a call sees at a row: from Lo to Hi, relative to the row. 0 is the current row
// (with RANGE its peers too), -n is n PRECEDING, n is n FOLLOWING. Distances are rows with Rows; else, for a time column,
// milliseconds, and for a number units of its last digit.
type Frame struct {
	Rows   bool
	Lo, Hi int64
}

// Running reports UNBOUNDED PRECEDING to CURRENT ROW.
func (f Frame) Running() bool { return f.Lo == UnboundedPreceding && f.Hi == 0 }

// String is the frame as SQL.
func (f Frame) String() string {
	bound := func(n int64) string {
		switch {
		case n == UnboundedPreceding:
			return "UNBOUNDED PRECEDING"
		case n == UnboundedFollowing:
			return "UNBOUNDED FOLLOWING"
		case n < 0:
			return fmt.Sprintf("%d PRECEDING", -n)
		case n > 0:
			return fmt.Sprintf("%d FOLLOWING", n)
		}
		return "CURRENT ROW"
	}
	unit := "RANGE"
	if f.Rows {
		unit = "ROWS"
	}
	return unit + " BETWEEN " + bound(f.Lo) + " AND " + bound(f.Hi)
}

// OverCall is a bound call in an OVER window. Arguments are columns of the window's input.
type OverCall struct {
	Func OverKind
	// Agg is the aggregate of OverAgg. Of the other functions Agg.Arg and Agg.ArgType are the first argument of LAG and
	// LEAD (-1 without one), Agg.Type and Agg.Text the result's type and the call as SQL.
	Agg Agg
	// Offset is how many rows LAG and LEAD look back or ahead, or the number of buckets of NTILE.
	Offset int64
	// Default is the input column that LAG and LEAD give where there is no such row, -1 = NULL.
	Default int
	Frame   Frame
}

// RankType is the result type of the functions that number rows.
func RankType(k OverKind) types.Type {
	switch k {
	case OverPercentRank, OverCumeDist:
		return types.DoubleType.NotNull()
	}
	return types.BigIntType.NotNull()
}
