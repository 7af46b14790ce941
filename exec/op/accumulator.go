package op

import (
	"encoding/binary"
	"math"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// A state row of an aggregation:
//
//	0   u32  position+1 in the list of rows touched by the current batch, 0 between batches
//	4   u32  flags
//	8   i64  number of rows in the group (COUNT(*)); 0 = the group is empty and about to be removed
//	16  ...  fixed accumulators, 8-byte words, at accumulator.off
//	    ...  tails: the variable-size accumulators in order, each u32 length (tailNone = no value) and bytes
//
// All numbers are little endian. The layout is part of the state format aggFormat.
const (
	rowTouch  = 0
	rowCount  = 8
	rowFixed  = 16
	tailNone  = ^uint32(0)
	aggFormat = "agg/2"
)

// accKind selects the accumulator of an aggregate.
type accKind uint8

const (
	accCount      accKind = iota // word: count of non-NULL arguments (or rows)
	accSumInt                    // words: sum (wrapping), count
	accSumFloat                  // words: sum, count
	accSumDec                    // words: sum lo, sum hi, count: see decCount
	accExtreme                   // words: value, has — MIN and MAX of PhysI64, PhysF64, PhysBool
	accExtreme2                  // words: value lo, value hi, has — MIN and MAX of PhysI128
	accTail                      // tail: MIN and MAX of strings, FIRST_VALUE and LAST_VALUE of all PhysStr
	accVariance                  // words: count, mean, sum of squared distances from the mean
	accSingle                    // words: rows, value lo, value hi, has — SINGLE_VALUE
	accSingleTail                // words: rows; tail: SINGLE_VALUE of PhysStr
	accList                      // word: number of the next value; the values are in a valueList
)

// accumulator is one aggregate's place in a state row.
type accumulator struct {
	expr.Agg
	acc      accKind
	off      int // byte offset of its words
	size     int // of its words, in bytes
	tail     int // index of its tail, -1 = none
	distinct int // index of its distinct set, -1 = none
	slot     int // its counter within the distinct set's rows
	extremes *extremeSet
	list     *valueList // the values of accList, and of FIRST_VALUE and LAST_VALUE under retraction
	nulls    bool       // NULL arguments are inputs too
	user     expr.UserAccumulator
	state    int  // with user, index of the tail that holds its accumulator
	slow     bool // not in the fixed words of a row alone: see aggCore.slow
	shared   bool // its words are those of the row count or of an aggregate before it, which keep them
}

// layout places the accumulators of aggs in a row and returns the size of the fixed part and the number of tails.
func layout(aggs []expr.Agg) (accs []accumulator, fixed, tails int) {
	fixed = rowFixed
	for _, a := range aggs {
		acc := accumulator{Agg: a, off: fixed, tail: -1, distinct: -1, nulls: a.TakesNull()}
		str := a.Arg >= 0 && a.ArgType.Phys() == types.PhysStr
		switch a.Kind {
		case expr.AggUser:
			// The result is kept as an extreme of its type is, the accumulator in a tail.
			acc.user, acc.state, tails = a.User.New(), tails, tails+1
			if acc.acc, fixed = accExtreme, fixed+16; a.Type.Phys() == types.PhysStr {
				acc.acc, acc.tail, tails, fixed = accTail, tails, tails+1, fixed-16
			}
		case expr.AggStddevPop, expr.AggStddevSamp, expr.AggVarPop, expr.AggVarSamp:
			acc.acc, fixed = accVariance, fixed+24
		case expr.AggList, expr.AggCollect, expr.AggArray, expr.AggJSONObject, expr.AggJSONArray, expr.AggPercentile:
			acc.acc, fixed = accList, fixed+8
		case expr.AggSingle:
			if acc.acc, fixed = accSingle, fixed+32; str {
				acc.acc, acc.tail, tails, fixed = accSingleTail, tails, tails+1, fixed-24
			}
		case expr.AggCountStar, expr.AggCount:
			acc.acc, fixed = accCount, fixed+8
		case expr.AggSum, expr.AggAvg:
			switch {
			case a.ArgType.Kind == types.Decimal:
				acc.acc, fixed = accSumDec, fixed+24
			case a.ArgType.Phys() == types.PhysF64:
				acc.acc, fixed = accSumFloat, fixed+16
			default:
				acc.acc, fixed = accSumInt, fixed+16
			}
		default:
			switch a.ArgType.Phys() {
			case types.PhysStr:
				acc.acc, acc.tail, tails = accTail, tails, tails+1
			case types.PhysI128:
				acc.acc, fixed = accExtreme2, fixed+24
			default:
				acc.acc, fixed = accExtreme, fixed+16
			}
		}
		if a.Kind == expr.AggFirst || a.Kind == expr.AggLast {
			fixed += 8 // the number of the next value, used under retraction
		}
		acc.size = fixed - acc.off
		if acc.share(accs) {
			fixed -= acc.size
			acc.size = sharedSize(acc.acc)
		}
		accs = append(accs, acc)
	}
	return accs, fixed, tails
}

// share finds the words that hold what the aggregate needs already: the number of rows is COUNT(*), a sum has its count,
// and AVG what SUM has.
func (a *accumulator) share(before []accumulator) bool {
	if a.Distinct || a.user != nil {
		return false
	}
	if a.Kind == expr.AggCountStar && a.Filter < 0 {
		a.off, a.shared = rowCount, true
		return true
	}
	for k := range before {
		b := &before[k]
		if b.Distinct || b.Arg != a.Arg || b.Filter != a.Filter || b.Arg < 0 {
			continue
		}
		switch {
		case b.acc == a.acc && (a.acc == accSumInt || a.acc == accSumDec || a.acc == accSumFloat && (a.Kind == b.Kind || a.ArgType.Kind != types.Float)):
			a.off, a.shared = b.off, true
		case a.acc == accCount && a.Kind == expr.AggCount && (b.acc == accSumInt || b.acc == accSumFloat):
			a.off, a.shared = b.off+8, true
		default:
			continue
		}
		return true
	}
	return false
}

func sharedSize(k accKind) int {
	switch k {
	case accSumInt, accSumFloat:
		return 16
	case accSumDec:
		return 24
	}
	return 8
}

// newRow is the size of an empty row: fixed words and empty tails.
func newRow(fixed, tails int) int { return fixed + 4*tails }

// clearRow makes a row that of an empty group, keeping the touch word and the flags.
func clearRow(row []byte, fixed, tails int) {
	clear(row[rowCount:fixed])
	for i := 0; i < tails; i++ {
		binary.LittleEndian.PutUint32(row[fixed+4*i:], tailNone)
	}
}

func word(row []byte, off int) int64 { return int64(binary.LittleEndian.Uint64(row[off:])) }

func setWord(row []byte, off int, v int64) { binary.LittleEndian.PutUint64(row[off:], uint64(v)) }

// add accumulates (sign 1) or retracts (sign -1) the non-NULL argument at index i of v into the fixed words of row.
// Extremes are not retracted here: see extremeSet.
func (a *accumulator) add(row []byte, v *batch.Vec, i int, sign int64) {
	switch a.acc {
	case accCount:
		setWord(row, a.off, word(row, a.off)+sign)
	case accSumInt:
		setWord(row, a.off, word(row, a.off)+sign*v.I64[i])
		setWord(row, a.off+8, word(row, a.off+8)+sign)
	case accSumFloat:
		sum := math.Float64frombits(uint64(word(row, a.off))) + float64(sign)*v.F64[i]
		if a.Kind == expr.AggSum && a.ArgType.Kind == types.Float {
			sum = float64(float32(sum)) // SUM(FLOAT) adds in FLOAT
		}
		setWord(row, a.off, int64(math.Float64bits(sum)))
		setWord(row, a.off+8, word(row, a.off+8)+sign)
	case accSumDec:
		a.addDec(row, v, i, sign)
	case accVariance:
		a.addVariance(row, v, i, sign)
	case accExtreme, accExtreme2:
		a.offer(row, v, i)
	}
}

// overflowed is the bit of the count of a DECIMAL's sum that marks an overflow, which sticks.
const overflowed = math.MinInt64

// decCount takes the count word of a DECIMAL's sum apart. The count is signed and takes 63 bits: it is below zero while more
// has been taken back than was there.
func decCount(word int64) (n, flag int64) { return word << 1 >> 1, word & overflowed }

// decWord is the opposite of decCount.
func decWord(n, flag int64) int64 { return n&^overflowed | flag }

func (a *accumulator) addDec(row []byte, v *batch.Vec, i int, sign int64) {
	var x types.Int128
	if v.Type.Phys() == types.PhysI64 {
		x = types.I128(v.I64[i])
	} else {
		x = v.I128[i]
	}
	if sign < 0 {
		x = x.Neg()
	}
	sum := types.Int128{Lo: uint64(word(row, a.off)), Hi: word(row, a.off+8)}
	r := sum.Add(x)
	n, flag := decCount(word(row, a.off+16))
	if (sum.Sign() >= 0) == (x.Sign() >= 0) && (r.Sign() >= 0) != (sum.Sign() >= 0) || !r.FitsDigits(types.MaxDecimalPrecision) {
		flag = overflowed
	}
	setWord(row, a.off, int64(r.Lo))
	setWord(row, a.off+8, r.Hi)
	setWord(row, a.off+16, decWord(n+sign, flag))
}

// offer replaces the extreme by the value at index i of v if that is more extreme.
func (a *accumulator) offer(row []byte, v *batch.Vec, i int) {
	hasOff := a.off + 8
	if a.acc == accExtreme2 {
		hasOff = a.off + 16
	}
	if word(row, hasOff) != 0 && !a.beats(row, v, i) {
		return
	}
	setWord(row, hasOff, 1)
	setValue(row, a.off, v, i)
}

// setValue stores the non-NULL value at index i of v, of a fixed-size class, at off: one word, two for PhysI128.
func setValue(row []byte, off int, v *batch.Vec, i int) {
	switch v.Type.Phys() {
	case types.PhysI64:
		setWord(row, off, v.I64[i])
	case types.PhysF64:
		setWord(row, off, int64(math.Float64bits(v.F64[i])))
	case types.PhysBool:
		setWord(row, off, boolWord(v.Bool[i]))
	case types.PhysI128:
		setWord(row, off, int64(v.I128[i].Lo))
		setWord(row, off+8, v.I128[i].Hi)
	}
}

func boolWord(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (a *accumulator) beats(row []byte, v *batch.Vec, i int) bool {
	if a.Kind == expr.AggFirst || a.Kind == expr.AggLast {
		return a.Kind == expr.AggLast
	}
	var c int
	switch v.Type.Phys() {
	case types.PhysI64:
		c = compare(v.I64[i], word(row, a.off))
	case types.PhysF64:
		c = compare(v.F64[i], math.Float64frombits(uint64(word(row, a.off))))
	case types.PhysBool:
		c = compare(boolWord(v.Bool[i]), word(row, a.off))
	case types.PhysI128:
		c = v.I128[i].Cmp(types.Int128{Lo: uint64(word(row, a.off)), Hi: word(row, a.off+8)})
	}
	if a.Kind == expr.AggMin {
		return c < 0
	}
	return c > 0
}

func compare[T int64 | float64 | string](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// result is the aggregate's value for a row; not of accList, whose values are elsewhere.
func (a *accumulator) result(row []byte, fixed int) types.Datum {
	if a.tail >= 0 {
		tail, ok := tailOf(row, fixed, a.tail)
		switch {
		case !ok:
			return types.NullDatum
		case a.Type.IsNested():
			d, err := types.DecodeNested(string(tail), a.Type)
			if err != nil {
				panic(err) // written by this process: a bug
			}
			return d
		}
		return types.StrDatum(string(tail))
	}
	lo, hi, ok := a.value(row)
	if !ok {
		return types.NullDatum
	}
	return extremeDatum(a.Type.Phys(), lo, hi)
}

// value is the result of an accumulator in fixed words, as extremeDatum reads them; ok is false for NULL.
func (a *accumulator) value(row []byte) (lo, hi int64, ok bool) {
	switch a.acc {
	case accCount:
		return word(row, a.off), 0, true
	case accSumInt:
		n := word(row, a.off+8)
		if n == 0 {
			return 0, 0, false
		}
		sum := word(row, a.off)
		if a.Kind == expr.AggAvg {
			sum /= n
		}
		return a.Type.Kind.Wrap(sum), 0, true
	case accSumFloat:
		n := word(row, a.off+8)
		if n == 0 {
			return 0, 0, false
		}
		sum := float(row, a.off)
		if a.Kind == expr.AggAvg {
			sum /= float64(n)
		}
		if a.Type.Kind == types.Float {
			sum = float64(float32(sum))
		}
		return int64(math.Float64bits(sum)), 0, true
	case accSumDec:
		return a.decimal(row)
	case accVariance:
		return a.variance(row)
	case accExtreme:
		return word(row, a.off), 0, word(row, a.off+8) != 0
	case accExtreme2:
		return word(row, a.off), word(row, a.off+8), word(row, a.off+16) != 0
	case accSingle:
		return word(row, a.off+8), word(row, a.off+16), word(row, a.off) > 0 && word(row, a.off+24) != 0
	}
	return 0, 0, false
}

func extremeDatum(p types.Phys, lo, hi int64) types.Datum {
	switch p {
	case types.PhysF64:
		return types.FloatDatum(math.Float64frombits(uint64(lo)))
	case types.PhysBool:
		return types.BoolDatum(lo != 0)
	case types.PhysI128:
		return types.Datum{I64: lo, Hi: hi}
	}
	return types.IntDatum(lo)
}

// decimal is SUM as DECIMAL(38,s) or AVG as DECIMAL(38,max(6,s)); NULL without arguments or after an overflow.
func (a *accumulator) decimal(row []byte) (lo, hi int64, ok bool) {
	n, flag := decCount(word(row, a.off+16))
	if n == 0 || flag != 0 {
		return 0, 0, false
	}
	sum := types.Int128{Lo: uint64(word(row, a.off)), Hi: word(row, a.off+8)}
	if a.Kind == expr.AggAvg {
		if sum, ok = types.DecimalDiv(sum, a.ArgType.Scale, types.I128(n), 0, types.MaxDecimalPrecision, a.Type.Scale); !ok {
			return 0, 0, false
		}
	}
	return int64(sum.Lo), sum.Hi, true
}

// tailOf is tail i of a row; ok is false when it holds no value.
func tailOf(row []byte, fixed, i int) (tail []byte, ok bool) {
	p := fixed
	for ; i > 0; i-- {
		p += 4 + tailLen(row, p)
	}
	if binary.LittleEndian.Uint32(row[p:]) == tailNone {
		return nil, false
	}
	return row[p+4 : p+4+tailLen(row, p)], true
}

func tailLen(row []byte, p int) int {
	n := binary.LittleEndian.Uint32(row[p:])
	if n == tailNone {
		return 0
	}
	return int(n)
}

// withTail is row with tail i replaced, built in dst's memory. none removes the value.
func withTail(dst, row []byte, fixed, i int, value string, none bool) []byte {
	p := fixed
	for k := 0; k < i; k++ {
		p += 4 + tailLen(row, p)
	}
	dst = append(dst[:0], row[:p]...)
	if none {
		dst = binary.LittleEndian.AppendUint32(dst, tailNone)
	} else {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(value)))
		dst = append(dst, value...)
	}
	return append(dst, row[p+4+tailLen(row, p):]...)
}
