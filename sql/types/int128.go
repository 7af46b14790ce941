package types

import (
	"math/big"
	"math/bits"
)

// Int128 is a two's complement 128-bit integer: the storage of DECIMAL(p>18) and of TIMESTAMP(p>6).
type Int128 struct {
	Hi int64
	Lo uint64
}

// I128 widens v.
func I128(v int64) Int128 { return Int128{Hi: v >> 63, Lo: uint64(v)} }

// Fits64 reports whether a is in the range of int64; then int64(a.Lo) is its value.
func (a Int128) Fits64() bool { return a.Hi == int64(a.Lo)>>63 }

// Int64 is the low 64 bits, as Java's BigInteger.longValue.
func (a Int128) Int64() int64 { return int64(a.Lo) }

// Add is a+b, wrapping.
func (a Int128) Add(b Int128) Int128 {
	lo, c := bits.Add64(a.Lo, b.Lo, 0)
	hi, _ := bits.Add64(uint64(a.Hi), uint64(b.Hi), c)
	return Int128{int64(hi), lo}
}

// Sub is a-b, wrapping.
func (a Int128) Sub(b Int128) Int128 {
	lo, c := bits.Sub64(a.Lo, b.Lo, 0)
	hi, _ := bits.Sub64(uint64(a.Hi), uint64(b.Hi), c)
	return Int128{int64(hi), lo}
}

// Neg is -a, wrapping.
func (a Int128) Neg() Int128 { return Int128{}.Sub(a) }

// Sign is -1, 0 or 1.
func (a Int128) Sign() int {
	switch {
	case a.Hi < 0:
		return -1
	case a.Hi == 0 && a.Lo == 0:
		return 0
	}
	return 1
}

// Cmp is -1, 0 or 1 as a is less than, equal to or greater than b.
func (a Int128) Cmp(b Int128) int {
	switch {
	case a.Hi < b.Hi:
		return -1
	case a.Hi > b.Hi:
		return 1
	case a.Lo < b.Lo:
		return -1
	case a.Lo > b.Lo:
		return 1
	}
	return 0
}

// Big is a as a big.Int, for the slow paths of decimal arithmetic.
func (a Int128) Big() *big.Int {
	neg := a.Hi < 0
	if neg {
		a = a.Neg()
	}
	v := new(big.Int).SetUint64(uint64(a.Hi))
	v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(a.Lo))
	if neg {
		v.Neg(v)
	}
	return v
}

var low64 = new(big.Int).SetUint64(^uint64(0))

// I128FromBig narrows v; ok is false when v does not fit.
func I128FromBig(v *big.Int) (r Int128, ok bool) {
	if v.BitLen() > 127 {
		return Int128{}, false
	}
	m := new(big.Int).Abs(v)
	r.Lo = new(big.Int).And(m, low64).Uint64()
	r.Hi = int64(new(big.Int).Rsh(m, 64).Uint64())
	if v.Sign() < 0 {
		r = r.Neg()
	}
	return r, true
}

// Mul64 is the full product of two int64.
func Mul64(a, b int64) Int128 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	h := int64(hi)
	if a < 0 {
		h -= b
	}
	if b < 0 {
		h -= a
	}
	return Int128{h, lo}
}
