package op

import (
	"encoding/binary"
	"math"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// weigh counts a value of PERCENTILE: a DOUBLE, or a ROW of one and how often it counts, which is never when that is NULL
// or not positive.
func (l *valueList) weigh(b bucket, v *batch.Vec, i int, sign int64) error {
	if v.Type.Kind != types.Row {
		l.val = orderedFloat(l.val[:0], v.F64[i])
		return l.count(b, sign)
	}
	x, _ := types.NestedAt(v.Str[i], v.Type, 0)
	n, _ := types.NestedAt(v.Str[i], v.Type, 1)
	if x.IsNull || n.IsNull || n.I64 <= 0 {
		return nil
	}
	l.val = orderedFloat(l.val[:0], x.F64)
	return l.count(b, sign*n.I64)
}

// percentiles are the values at the fractions of a, between two of them interpolated; NULL without values.
func (l *valueList) percentiles(b bucket, a *accumulator) (s string, ok bool, err error) {
	var total int64
	err = b.ascend(nil, func(_, val []byte) bool {
		if n, _ := binary.Varint(val); n > 0 {
			total += n
		}
		return true
	})
	if err != nil || total == 0 {
		return "", false, err
	}
	l.val = types.AppendListLen(l.val[:0], len(a.Fractions))
	for _, p := range a.Fractions {
		at := p*float64(total-1) + 1 // counted from 1 as in Flink: its roundings show in the result
		lo, hi, err := l.pair(b, int64(math.Floor(at))-1, int64(math.Ceil(at))-1)
		if err != nil {
			return "", false, err
		}
		x := lo
		if lo != hi {
			x = (math.Ceil(at)-at)*lo + (at-math.Floor(at))*hi
		}
		l.val = binary.LittleEndian.AppendUint64(append(l.val, 1), math.Float64bits(x))
	}
	return string(l.val), true, nil
}

// pair are the values at two places, counted from 0, of all values in order.
func (l *valueList) pair(b bucket, first, second int64) (lo, hi float64, err error) {
	var seen int64
	err = b.ascend(nil, func(sub, val []byte) bool {
		n, _ := binary.Varint(val)
		if n <= 0 {
			return true
		}
		before := seen
		seen += n
		w, _ := fromOrdered(types.PhysF64, string(sub))
		x := math.Float64frombits(uint64(w))
		if before <= first && first < seen {
			lo = x
		}
		hi = x
		return seen <= second
	})
	return lo, hi, err
}
