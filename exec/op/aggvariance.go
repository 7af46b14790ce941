package op

import (
	"math"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// The variances: Welford's method in DOUBLE whatever the argument's type, as Flink computes them. The words at
// accumulator.off are the count, the mean and the sum of squared distances from the mean.

func float(row []byte, off int) float64 { return math.Float64frombits(uint64(word(row, off))) }

func setFloat(row []byte, off int, v float64) { setWord(row, off, int64(math.Float64bits(v))) }

// asFloat is the non-NULL number at index i of v.
func asFloat(v *batch.Vec, i int) float64 {
	switch {
	case v.Type.Phys() == types.PhysF64:
		return v.F64[i]
	case v.Type.Phys() == types.PhysI128:
		return types.DecimalToFloat(v.I128[i], v.Type.Scale)
	case v.Type.Kind == types.Decimal:
		return types.DecimalToFloat(types.I128(v.I64[i]), v.Type.Scale)
	}
	return float64(v.I64[i])
}

func (a *accumulator) addVariance(row []byte, v *batch.Vec, i int, sign int64) {
	x := asFloat(v, i)
	n := word(row, a.off) + sign
	mean, m2 := float(row, a.off+8), float(row, a.off+16)
	switch delta := x - mean; {
	case n <= 0:
		mean, m2 = 0, 0
	case sign > 0:
		mean += delta / float64(n)
		m2 += delta * (x - mean)
	default:
		mean -= delta / float64(n)
		m2 -= delta * (x - mean)
	}
	setWord(row, a.off, n)
	setFloat(row, a.off+8, mean)
	setFloat(row, a.off+16, m2)
}

// variance is the result in the words of an extreme; ok is false for NULL.
func (a *accumulator) variance(row []byte) (lo, hi int64, ok bool) {
	n := word(row, a.off)
	div := n
	if a.Kind == expr.AggStddevSamp || a.Kind == expr.AggVarSamp {
		div--
	}
	if n <= 0 || div <= 0 {
		return 0, 0, false
	}
	r := float(row, a.off+16) / float64(div)
	if a.Kind == expr.AggStddevPop || a.Kind == expr.AggStddevSamp {
		r = math.Sqrt(max(r, 0)) // retractions can leave a sum just below zero
	}
	switch {
	case a.Type.Kind == types.Float:
		return int64(math.Float64bits(float64(float32(r)))), 0, true
	case a.Type.Kind == types.Double:
		return int64(math.Float64bits(r)), 0, true
	case a.Type.Kind == types.Decimal:
		d, ok := types.DecimalFromFloat(r, a.Type.Precision, a.Type.Scale)
		return int64(d.Lo), d.Hi, ok
	}
	return a.Type.Kind.Wrap(truncate(r)), 0, true
}

// truncate is Java's conversion of double to long: toward zero, NaN as 0, out of range as the nearest bound.
func truncate(r float64) int64 {
	switch {
	case r != r:
		return 0
	case r >= math.MaxInt64:
		return math.MaxInt64
	case r <= math.MinInt64:
		return math.MinInt64
	}
	return int64(r)
}
