package op

import (
	"math/big"

	"github.com/streamsql/streamsql/sql/types"
)

// avgDecimal is sum/n where sum has the given scale and the result has scale to: rounded half up to 38 significant
// digits first and then to the scale, as Flink's decimal division. ok is false when the result needs more than 38
// digits.
func avgDecimal(sum types.Int128, n int64, scale, to int) (types.Int128, bool) {
	// The quotient of a 38-digit number by an integer below 2^63 has at least 38-19 integer digits of precision left;
	// working with 40 extra digits makes the first rounding exact.
	const extra = 60
	num := new(big.Int).Mul(sum.Big(), pow10(extra))
	q, r := new(big.Int).QuoRem(num, big.NewInt(n), new(big.Int))
	if r.Sign() != 0 { // sticky digit: keeps ties from appearing where there are none
		q.Mul(q, big.NewInt(10)).Add(q, big.NewInt(int64(q.Sign()|1)))
	} else {
		q.Mul(q, big.NewInt(10))
	}
	s := scale + extra + 1
	if digits := len(new(big.Int).Abs(q).String()); digits > 38 {
		q = divHalfUp(q, pow10(digits-38))
		s -= digits - 38
	}
	if s > to {
		q = divHalfUp(q, pow10(s-to))
	} else {
		q.Mul(q, pow10(to-s))
	}
	v, ok := types.I128FromBig(q)
	return v, ok && !tooWide(v)
}

func pow10(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// divHalfUp is a/b rounded half away from zero; b > 0.
func divHalfUp(a, b *big.Int) *big.Int {
	q, r := new(big.Int).QuoRem(a, b, new(big.Int))
	if r.Abs(r).Lsh(r, 1).Cmp(b) >= 0 {
		if a.Sign() < 0 {
			q.Sub(q, big.NewInt(1))
		} else {
			q.Add(q, big.NewInt(1))
		}
	}
	return q
}
