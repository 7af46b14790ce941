package types

// Goal: numbers print and parse as Java's do; decimals are exact. Method: vectors, and big.Rat as the oracle.

import (
	"math"
	"math/big"
	"strings"
	"testing"
)

func TestAppendFloat(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0.0", 1: "1.0", 0.001: "0.001", 9999999: "9999999.0", 1e7: "1.0E7", 1e-4: "1.0E-4", 1.23456789e8: "1.23456789E8",
		-2.5: "-2.5", 5e-324: "4.9E-324", math.MaxFloat64: "1.7976931348623157E308", 123456.789: "123456.789", 1e100: "1.0E100", math.Inf(-1): "-Infinity",
	} {
		if got := string(AppendFloat(nil, v, 64)); got != want {
			t.Errorf("%g: %s, want %s", v, got, want)
		}
	}
	if got := string(AppendFloat(nil, math.Copysign(0, -1), 64)); got != "-0.0" {
		t.Error(got)
	}
	for v, want := range map[float32]string{0.1: "0.1", 3.4028235e38: "3.4028235E38", 1e-45: "1.4E-45", 16777216: "1.6777216E7"} {
		if got := string(AppendFloat(nil, float64(v), 32)); got != want {
			t.Errorf("%g: %s, want %s", v, got, want)
		}
	}
}

func FuzzParseBigDecimal(f *testing.F) {
	for _, s := range []string{"0", "-1.005", "1e5", "1e-5", ".5", "5.", "99999999999999999999999999999999999999.5", "000000000000000000000000000000000000000000000000.1", "1e400", "-0", "1.0000000000000000000000000000000000000000000000005"} {
		f.Add(s, uint8(10), uint8(2))
	}
	f.Fuzz(func(t *testing.T, s string, p, sc uint8) {
		prec := 1 + int(p)%38
		scale := int(sc) % (prec + 1)
		v, fits, ok := ParseBigDecimal(s, prec, scale)
		if i := strings.IndexAny(s, "eE"); !ok || len(s) > 400 || i >= 0 && len(s)-i > 5 {
			return // big.Rat would need too much memory for wild exponents
		}
		r, good := new(big.Rat).SetString(s)
		if !good {
			t.Fatalf("%q accepted", s)
		}
		// HALF_UP: |r| * 10^scale + 1/2, cut.
		r.Mul(r, new(big.Rat).SetInt(bigPow10(scale)))
		neg := r.Sign() < 0
		r.Abs(r).Add(r, big.NewRat(1, 2))
		want := new(big.Int).Quo(r.Num(), r.Denom())
		if over := want.Cmp(bigPow10(prec)) >= 0; over == fits {
			t.Fatalf("%q (%d,%d): fits %v", s, prec, scale, fits)
		} else if over {
			return
		}
		if neg {
			want.Neg(want)
		}
		if v.Big().Cmp(want) != 0 {
			t.Fatalf("%q (%d,%d): %v, want %v", s, prec, scale, v.Big(), want)
		}
		if w, ok := ParseDecimal(" "+s+"\t", prec, scale); !ok || w != v {
			t.Fatalf("%q with space around does not parse alike", s)
		}
		back := string(AppendDecimal(nil, v, scale))
		if w, fits, ok := ParseBigDecimal(back, prec, scale); !ok || !fits || w != v {
			t.Fatalf("%q does not read back", back)
		}
		sci := string(AppendBigDecimal(nil, v, scale, true))
		if w, fits, ok := ParseBigDecimal(sci, prec, scale); !ok || !fits || w != v {
			t.Fatalf("%q does not read back", sci)
		}
	})
}
