package types

import (
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"sync"
)

// DECIMAL arithmetic on unscaled 128-bit values, to the digit of java.math.BigDecimal as Flink uses it: exact sums and
// products, quotients rounded to 38 significant digits, then everything rounded HALF_UP to the result scale. A result
// that needs more than p digits has ok = false, which SQL shows as NULL.

// MaxDecimalPrecision is the largest p of DECIMAL(p,s).
const MaxDecimalPrecision = 38

type u128 struct{ hi, lo uint64 }

func (a Int128) abs() (u u128, neg bool) {
	if a.Hi < 0 {
		a = a.Neg()
		neg = true
	}
	return u128{uint64(a.Hi), a.Lo}, neg
}

func (u u128) signed(neg bool) Int128 {
	v := Int128{int64(u.hi), u.lo}
	if neg {
		return v.Neg()
	}
	return v
}

func (u u128) less(v u128) bool { return u.hi < v.hi || u.hi == v.hi && u.lo < v.lo }

// div64 is u/d and u%d.
func (u u128) div64(d uint64) (q u128, r uint64) {
	q.hi, r = u.hi/d, u.hi%d
	q.lo, r = bits.Div64(r, u.lo, d)
	return q, r
}

// mul64 is u*m; ok is false when it passes 127 bits.
func (u u128) mul64(m uint64) (p u128, ok bool) {
	c, lo := bits.Mul64(u.lo, m)
	over, hi := bits.Mul64(u.hi, m)
	hi, carry := bits.Add64(hi, c, 0)
	return u128{hi, lo}, over == 0 && carry == 0 && hi>>63 == 0
}

var (
	pow10U64 [20]uint64
	pow10U   [39]u128
	pow10Big [100]*big.Int
)

func init() {
	p := u128{0, 1}
	for i := range pow10U {
		if i < len(pow10U64) {
			pow10U64[i] = p.lo
		}
		pow10U[i] = p
		p, _ = p.mul64(10)
	}
	b := big.NewInt(1)
	for i := range pow10Big {
		pow10Big[i] = new(big.Int).Set(b)
		b.Mul(b, big.NewInt(10))
	}
}

// Pow10 is 10^n for 0 <= n <= 38.
func Pow10(n int) Int128 { return pow10U[n].signed(false) }

// Pow10I64 is 10^n for 0 <= n <= 18.
func Pow10I64(n int) int64 { return int64(pow10U64[n]) }

func bigPow10(n int) *big.Int {
	if n < len(pow10Big) {
		return pow10Big[n]
	}
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

// mulPow10 is u*10^n; ok is false when it passes 127 bits.
func (u u128) mulPow10(n int) (u128, bool) {
	if u == (u128{}) {
		return u, true
	}
	ok := true
	for n > 0 && ok {
		k := min(n, 19)
		u, ok = u.mul64(pow10U64[k])
		n -= k
	}
	return u, ok
}

// divPow10 is u/10^n rounded half up.
func (u u128) divPow10(n int) u128 {
	for n > 19 {
		u, _ = u.div64(pow10U64[19])
		n -= 19
		if n == 0 {
			break
		}
	}
	q, r := u.div64(pow10U64[n])
	// What an earlier step cut off lies below half of this step's unit, so it cannot change the rounding.
	if n > 0 && r >= 5*pow10U64[n-1] {
		var c uint64
		q.lo, c = bits.Add64(q.lo, 1, 0)
		q.hi += c
	}
	return q
}

func (u u128) digits() int {
	n := 0
	if u.hi == 0 {
		n = bits.Len64(u.lo)
	} else {
		n = 64 + bits.Len64(u.hi)
	}
	d := n * 1233 >> 12
	if d < len(pow10U) && !u.less(pow10U[d]) {
		d++
	}
	return d
}

// FitsDigits reports |a| < 10^p.
func (a Int128) FitsDigits(p int) bool { u, _ := a.abs(); return u.less(pow10U[p]) }

// Rescale moves the unscaled value v from scale from to scale to, rounding half up, and checks it against p digits.
func Rescale(v Int128, from, to, p int) (r Int128, ok bool) {
	u, neg := v.abs()
	switch {
	case to > from:
		if u, ok = u.mulPow10(to - from); !ok {
			return r, false
		}
	case to < from:
		if from-to > 39 {
			u = u128{}
		} else {
			u = u.divPow10(from - to)
		}
	}
	return u.signed(neg), u.less(pow10U[p])
}

// RescaleTrunc is v at scale 0, cut toward zero, with its low 64 bits (BigDecimal.longValue).
func RescaleTrunc(v Int128, from int) int64 {
	u, neg := v.abs()
	for n := from; n > 0; {
		k := min(n, 19)
		u, _ = u.div64(pow10U64[k])
		n -= k
	}
	return u.signed(neg).Int64()
}

// bigs are the registers of the slow paths.
type bigs struct{ a, b, q, r big.Int }

var bigPool = sync.Pool{New: func() any { return new(bigs) }}

func (v Int128) toBig(z *big.Int) {
	u, neg := v.abs()
	z.SetUint64(u.hi)
	z.Lsh(z, 64)
	var lo big.Int
	z.Or(z, lo.SetUint64(u.lo))
	if neg {
		z.Neg(z)
	}
}

// roundBig rescales z in place, as Rescale.
func roundBig(z *big.Int, from, to, p int, tmp *big.Int) (Int128, bool) {
	if to >= from {
		z.Mul(z, bigPow10(to-from))
	} else {
		divHalfUp(z, z, bigPow10(from-to), tmp)
	}
	v, ok := I128FromBig(z)
	return v, ok && v.FitsDigits(p)
}

// divHalfUp is q = n/d rounded half away from zero, for d > 0.
func divHalfUp(q, n, d, r *big.Int) {
	neg := n.Sign() < 0
	q.QuoRem(n, d, r)
	r.Abs(r).Lsh(r, 1)
	if r.Cmp(d) >= 0 {
		if neg {
			q.Sub(q, bigOne)
		} else {
			q.Add(q, bigOne)
		}
	}
}

var bigOne = big.NewInt(1)

// DecimalAdd is a+b for unscaled values of scales sa and sb, as DECIMAL(p,s).
func DecimalAdd(a Int128, sa int, b Int128, sb, p, s int) (Int128, bool) {
	top := max(sa, sb)
	x, ok1 := scaleUp(a, top-sa)
	y, ok2 := scaleUp(b, top-sb)
	if ok1 && ok2 {
		if r := x.Add(y); (x.Hi^r.Hi)&(y.Hi^r.Hi) >= 0 {
			return Rescale(r, top, s, p)
		}
	}
	t := bigPool.Get().(*bigs)
	defer bigPool.Put(t)
	a.toBig(&t.a)
	b.toBig(&t.b)
	t.a.Mul(&t.a, bigPow10(top-sa))
	t.b.Mul(&t.b, bigPow10(top-sb))
	return roundBig(t.a.Add(&t.a, &t.b), top, s, p, &t.r)
}

func scaleUp(v Int128, n int) (Int128, bool) {
	if n == 0 {
		return v, true
	}
	u, neg := v.abs()
	u, ok := u.mulPow10(n)
	return u.signed(neg), ok
}

// DecimalSub is a-b; see DecimalAdd.
func DecimalSub(a Int128, sa int, b Int128, sb, p, s int) (Int128, bool) {
	return DecimalAdd(a, sa, b.Neg(), sb, p, s)
}

// DecimalMul is a*b; see DecimalAdd.
func DecimalMul(a Int128, sa int, b Int128, sb, p, s int) (Int128, bool) {
	if a.Fits64() && b.Fits64() {
		return Rescale(Mul64(a.Int64(), b.Int64()), sa+sb, s, p)
	}
	t := bigPool.Get().(*bigs)
	defer bigPool.Put(t)
	a.toBig(&t.a)
	b.toBig(&t.b)
	return roundBig(t.q.Mul(&t.a, &t.b), sa+sb, s, p, &t.r)
}

// DecimalDiv is a/b for b <> 0: the quotient rounded to 38 significant digits, then to scale s; see DecimalAdd.
func DecimalDiv(a Int128, sa int, b Int128, sb, p, s int) (Int128, bool) {
	ua, na := a.abs()
	ub, nb := b.abs()
	if k := s + sb - sa; k >= 0 && ub.hi == 0 {
		if n, ok := ua.mulPow10(k); ok {
			q, r := n.div64(ub.lo)
			// With this much room the first rounding cannot lift the digit the second one looks at.
			if q.digits()+ub.digits() <= 37 {
				if r >= ub.lo-r {
					q.lo++
					if q.lo == 0 {
						q.hi++
					}
				}
				return q.signed(na != nb), q.less(pow10U[p])
			}
		}
	}
	return decimalDivBig(ua, sa, ub, sb, p, s, na != nb)
}

func decimalDivBig(ua u128, sa int, ub u128, sb, p, s int, neg bool) (Int128, bool) {
	t := bigPool.Get().(*bigs)
	defer bigPool.Put(t)
	if ua == (u128{}) {
		return Int128{}, true
	}
	e := 38 - ua.digits() + ub.digits()
	for {
		ua.signed(false).toBig(&t.a)
		ub.signed(false).toBig(&t.b)
		if e >= 0 {
			t.a.Mul(&t.a, bigPow10(e))
		} else {
			t.b.Mul(&t.b, bigPow10(-e))
		}
		t.q.Quo(&t.a, &t.b)
		if t.q.Cmp(pow10Big[38]) < 0 {
			break
		}
		e--
	}
	divHalfUp(&t.q, &t.a, &t.b, &t.r)
	if neg {
		t.q.Neg(&t.q)
	}
	return roundBig(&t.q, e+sa-sb, s, p, &t.r)
}

// DecimalMod is the remainder of a/b with the sign of a, for b <> 0; see DecimalAdd.
func DecimalMod(a Int128, sa int, b Int128, sb, p, s int) (Int128, bool) {
	top := max(sa, sb)
	x, ok1 := scaleUp(a, top-sa)
	y, ok2 := scaleUp(b, top-sb)
	if ok1 && ok2 && x.Fits64() && y.Fits64() {
		return Rescale(I128(x.Int64()%y.Int64()), top, s, p)
	}
	t := bigPool.Get().(*bigs)
	defer bigPool.Put(t)
	a.toBig(&t.a)
	b.toBig(&t.b)
	t.a.Mul(&t.a, bigPow10(top-sa))
	t.b.Mul(&t.b, bigPow10(top-sb))
	return roundBig(t.q.Rem(&t.a, &t.b), top, s, p, &t.r)
}

// DecimalCmp compares a of scale sa with b of scale sb exactly: -1, 0 or 1.
func DecimalCmp(a Int128, sa int, b Int128, sb int) int {
	top := max(sa, sb)
	x, ok1 := scaleUp(a, top-sa)
	y, ok2 := scaleUp(b, top-sb)
	if ok1 && ok2 {
		return x.Cmp(y)
	}
	t := bigPool.Get().(*bigs)
	defer bigPool.Put(t)
	a.toBig(&t.a)
	b.toBig(&t.b)
	t.a.Mul(&t.a, bigPow10(top-sa))
	t.b.Mul(&t.b, bigPow10(top-sb))
	return t.a.Cmp(&t.b)
}

// DecimalToFloat is the double nearest to v / 10^scale.
func DecimalToFloat(v Int128, scale int) float64 {
	// Both numbers are exact doubles, so that the one division rounds once.
	if v.Fits64() && scale <= 22 {
		if i := v.Int64(); i > -1<<53 && i < 1<<53 {
			return float64(i) / math.Pow10(scale)
		}
	}
	var buf [48]byte
	f, _ := strconv.ParseFloat(string(AppendDecimal(buf[:0], v, scale)), 64)
	return f
}

// DecimalFromFloat is f's shortest decimal text as DECIMAL(p,s) (BigDecimal.valueOf). ok is false when it does not fit;
// f must be finite.
func DecimalFromFloat(f float64, p, s int) (Int128, bool) {
	var buf [32]byte
	return ParseDecimal(string(strconv.AppendFloat(buf[:0], f, 'e', -1, 64)), p, s)
}
