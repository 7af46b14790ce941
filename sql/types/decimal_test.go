package types

import (
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

// randDecimal is an unscaled value of at most p digits, short ones and round ones included.
func randDecimal(r *rand.Rand, p int) Int128 {
	n := 1 + r.IntN(p)
	var sb strings.Builder
	for i := 0; i < n; i++ {
		switch r.IntN(4) {
		case 0:
			sb.WriteByte('0')
		case 1:
			sb.WriteByte('9')
		default:
			sb.WriteByte(byte('0' + r.IntN(10)))
		}
	}
	b, _ := new(big.Int).SetString(sb.String(), 10)
	v, _ := I128FromBig(b)
	if r.IntN(2) == 0 {
		return v.Neg()
	}
	return v
}

// refRound rounds the rational x to scale s, half away from zero, and checks p digits.
func refRound(x *big.Rat, s, p int) (*big.Int, bool) {
	n := new(big.Int).Mul(x.Num(), bigPow10(s))
	q, rem := new(big.Int), new(big.Int)
	q.QuoRem(n, x.Denom(), rem)
	if rem.Abs(rem).Lsh(rem, 1).Cmp(x.Denom()) >= 0 {
		q.Add(q, big.NewInt(int64(n.Sign())))
	}
	return q, new(big.Int).Abs(q).Cmp(bigPow10(p)) < 0
}

// refPrecision rounds x to 38 significant digits, half up, by trying scales.
func refPrecision(x *big.Rat) *big.Rat {
	for s := 120; s > -120; s-- {
		scaled := new(big.Rat).Set(x)
		f := new(big.Rat).SetInt(bigPow10(abs(s)))
		if s >= 0 {
			scaled.Mul(scaled, f)
		} else {
			scaled.Quo(scaled, f)
		}
		// The unrounded quotient decides the number of digits.
		whole := new(big.Int).Quo(scaled.Num(), scaled.Denom())
		if new(big.Int).Abs(whole).Cmp(bigPow10(38)) >= 0 {
			continue
		}
		q, _ := refRound(scaled, 0, 99)
		out := new(big.Rat).SetInt(q)
		if s >= 0 {
			return out.Quo(out, f)
		}
		return out.Mul(out, f)
	}
	return x
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}

func rat(v Int128, s int) *big.Rat { return new(big.Rat).SetFrac(v.Big(), bigPow10(s)) }

// TestDecimalAgainstBig compares every operation with exact rationals: over random precisions and scales, and the result
// types Flink would derive as well as narrower ones.
func TestDecimalAgainstBig(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := 0; i < 30000; i++ {
		pa, pb := 1+r.IntN(38), 1+r.IntN(38)
		sa, sb := r.IntN(pa+1), r.IntN(pb+1)
		a, b := randDecimal(r, pa), randDecimal(r, pb)
		p := 1 + r.IntN(38)
		s := r.IntN(p + 1)
		x, y := rat(a, sa), rat(b, sb)
		checkDecimal(t, "+", a, sa, b, sb, p, s, DecimalAdd, new(big.Rat).Add(x, y))
		checkDecimal(t, "-", a, sa, b, sb, p, s, DecimalSub, new(big.Rat).Sub(x, y))
		checkDecimal(t, "*", a, sa, b, sb, p, s, DecimalMul, new(big.Rat).Mul(x, y))
		if got, want := DecimalCmp(a, sa, b, sb), x.Cmp(y); got != want {
			t.Fatalf("cmp %s %s: %d", x.FloatString(38), y.FloatString(38), got)
		}
		if b.Sign() == 0 {
			continue
		}
		q := new(big.Rat).Quo(x, y)
		if i%10 == 0 {
			q = refPrecision(q)
			checkDecimal(t, "/", a, sa, b, sb, p, s, DecimalDiv, q)
		}
		top := max(sa, sb)
		m := new(big.Int).Rem(new(big.Int).Mul(a.Big(), bigPow10(top-sa)), new(big.Int).Mul(b.Big(), bigPow10(top-sb)))
		checkDecimal(t, "%", a, sa, b, sb, p, s, DecimalMod, new(big.Rat).SetFrac(m, bigPow10(top)))
	}
}

func checkDecimal(t *testing.T, op string, a Int128, sa int, b Int128, sb, p, s int,
	f func(Int128, int, Int128, int, int, int) (Int128, bool), exact *big.Rat) {
	t.Helper()
	want, wantOK := refRound(exact, s, p)
	got, ok := f(a, sa, b, sb, p, s)
	if ok != wantOK || ok && got.Big().Cmp(want) != 0 {
		t.Fatalf("%s/1e%d %s %s/1e%d as (%d,%d): got %s %t, want %s %t", a.Big(), sa, op, b.Big(), sb, p, s, got.Big(), ok,
			want, wantOK)
	}
}

// TestDecimalDoubleRounding: the quotient is rounded to 38 digits before it is rounded to the scale.
func TestDecimalDoubleRounding(t *testing.T) {
	// 0.4999…9 (39 nines after the 4) rounds up to 0.5 at 38 digits, and then to 1.
	a, _ := ParseDecimal("49999999999999999999999999999999999999", 38, 0)
	d, _ := ParseDecimal("99999999999999999999999999999999999999", 38, 0)
	got, ok := DecimalDiv(a, 0, d, 0, 38, 0)
	want, _ := refRound(refPrecision(new(big.Rat).SetFrac(a.Big(), d.Big())), 0, 38)
	if !ok || got.Big().Cmp(want) != 0 {
		t.Fatalf("got %s, want %s", got.Big(), want)
	}
}

func TestRescale(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for i := 0; i < 20000; i++ {
		from, p := r.IntN(39), 1+r.IntN(38)
		to := r.IntN(p + 1)
		v := randDecimal(r, 38)
		want, wantOK := refRound(rat(v, from), to, p)
		got, ok := Rescale(v, from, to, p)
		if ok != wantOK || ok && got.Big().Cmp(want) != 0 {
			t.Fatalf("%s from %d to (%d,%d): %s %t, want %s %t", v.Big(), from, p, to, got.Big(), ok, want, wantOK)
		}
		trunc := new(big.Int).Quo(v.Big(), bigPow10(from))
		if got := RescaleTrunc(v, from); got != int64(new(big.Int).And(trunc, low64).Uint64()) {
			t.Fatalf("%s trunc %d: %d, want %s", v.Big(), from, got, trunc)
		}
		u, _ := v.abs()
		if n := len(new(big.Int).Abs(v.Big()).String()); v.Sign() != 0 && u.digits() != n {
			t.Fatalf("%s has %d digits", v.Big(), u.digits())
		}
	}
}
