package format

// Goal: json agrees with encoding/json on every escape, on numbers, and on what is written. Method: all escapes of one character, numbers in
// every spelling beside every column type, and random rows that are written here and read there.

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/streamsql/streamsql/sql/types"
)

// Every \uXXXX alone, behind a high surrogate and before a low one, and every two-character escape.
func TestJSONEscapesLikeEncodingJSON(t *testing.T) {
	d, out := decoder(t, "json", cols("s", str), nil)
	check := func(text string) {
		t.Helper()
		msg := `{"s":"` + text + `"}`
		var want struct{ S string }
		werr := json.Unmarshal([]byte(msg), &want)
		out.Reset()
		_, err := d.Decode([][]byte{[]byte(msg)}, out, func(int, types.RowKind) { out.RowDone() })
		if (err == nil) != (werr == nil) {
			t.Fatalf("%s: %v here, %v of encoding/json", msg, err, werr)
		}
		if err != nil {
			return
		}
		if got := out.Finish().Cols[0].Str[0]; got != want.S {
			t.Fatalf("%s: %q, want %q", msg, got, want.S)
		}
	}
	for r := range 1 << 16 {
		check(fmt.Sprintf(`\u%04x`, r))
		check(fmt.Sprintf(`a\uD83D\u%04Xb`, r))
		check(fmt.Sprintf(`\u%04x\udE00é`, r))
	}
	for c := range 256 {
		check(`x\` + string(byte(c)) + `y`)
		if c >= 0x20 { // control characters are allowed here, as Flink configures Jackson
			check(`x` + string(byte(c)) + `y`)
		}
		check(fmt.Sprintf(`\u00%c0`, c))
	}
	check(`\u12`)
	check(`\`)
}

// A number is accepted here exactly when it is one there, and has the same value in each type that can hold it.
func TestJSONNumbersLikeEncodingJSON(t *testing.T) {
	var texts []string
	for _, sign := range []string{"", "-", "+"} {
		for _, whole := range []string{"", "0", "00", "7", "01", "127", "128", "32768", "2147483647", "2147483648", "9007199254740993", "9223372036854775807", "9223372036854775808", "18446744073709551616", strings.Repeat("9", 40)} {
			for _, fraction := range []string{"", ".", ".0", ".5", ".125", ".000000000000000000001", ".1e"} {
				for _, exponent := range []string{"", "e", "e0", "E+2", "e-3", "e400", "e-400", "e+", "e1.0"} {
					texts = append(texts, sign+whole+fraction+exponent)
				}
			}
		}
	}
	texts = append(texts, "0x10", "NaN", "Infinity", "-Infinity", "1_000", "1 2", "1,", "--1", ".5", "1d", "1f", "5.e1")
	for _, ty := range []types.Type{{Kind: types.TinyInt}, {Kind: types.SmallInt}, i32, i64, dbl, types.DecimalOf(38, 9)} {
		d, out := decoder(t, "json", cols("v", ty), nil)
		for _, text := range texts {
			msg := `{"v":` + text + `}`
			out.Reset()
			_, err := d.Decode([][]byte{[]byte(msg)}, out, func(int, types.RowKind) { out.RowDone() })
			if bad, ok := err.(*BadRecord); ok && bad.Column != "" {
				if !json.Valid([]byte(msg)) {
					t.Errorf("%s as %s: %v, but it is no JSON at all", msg, ty, err)
				}
				continue // out of range: the rules are Flink's (TestJSONDecode)
			}
			if valid := json.Valid([]byte(msg)); valid != (err == nil) {
				t.Errorf("%s as %s: %v, valid JSON: %v", msg, ty, err, valid)
			}
			if err == nil {
				sameNumber(t, text, out.Finish().Cols[0].Datum(0), ty)
			}
		}
	}
}

// sameNumber compares with what encoding/json, or exact arithmetic, makes of the text.
func sameNumber(t *testing.T, text string, got types.Datum, ty types.Type) {
	t.Helper()
	exact, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Errorf("%s is no number for math/big", text)
		return
	}
	switch ty.Kind {
	case types.Double:
		want, _ := strconv.ParseFloat(text, 64)
		if got.IsNull || got.F64 != want || math.Signbit(got.F64) != math.Signbit(want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	case types.Decimal:
		if got.IsNull { // too large: Flink's NULL
			return
		}
		v, ok := new(big.Rat).SetString(string(types.AppendDecimal(nil, got.Decimal(ty), ty.Scale)))
		if diff := new(big.Rat).Sub(v, exact); !ok || diff.Abs(diff).Cmp(big.NewRat(1, 2_000_000_000)) > 0 {
			t.Errorf("%s: %v", text, v)
		}
	default:
		var want int64
		if json.Unmarshal([]byte(text), &want) == nil && (got.IsNull || got.I64 != want) {
			t.Errorf("%s: %v, want %d", text, got, want)
		}
	}
}

// What is written is read by encoding/json as the same values.
func FuzzJSONEncode(f *testing.F) {
	f.Add("plain", int64(1), 1.5, true, int64(12345), []byte("k"))
	f.Add("\x00\x1f\"\\/\b\f\n\r\t\u2028é😀", int64(math.MinInt64), math.MaxFloat64, false, int64(-1), []byte{0xff, 0xfe})
	f.Add("", int64(0), math.SmallestNonzeroFloat64, false, int64(0), []byte{})
	schema := cols("s", str, "i", i64, "d", dbl, "b", types.BoolType, "p", types.DecimalOf(18, 3), "y", types.BytesType,
		"a", types.ArrayOf(str), "m", types.MapOf(str.NotNull(), dbl), "n", str)
	f.Fuzz(func(t *testing.T, s string, i int64, d float64, b bool, p int64, y []byte) {
		s = strings.ToValidUTF8(s, "?")
		if math.IsNaN(d) || math.IsInf(d, 0) {
			d = 0.1 // written as texts, as Jackson does
		}
		p %= 1_000_000_000_000_000_000
		row := []types.Datum{types.StrDatum(s), {I64: i}, {F64: d}, {Bool: b}, {I64: p, Hi: p >> 63}, types.StrDatum(string(y)),
			{List: []types.Datum{types.StrDatum(s), types.NullDatum}}, {List: []types.Datum{types.StrDatum(s), {F64: d}}}, types.NullDatum}
		text := encode(t, encoder(t, "json", schema), rows(schema, nil, row))[0]
		var v struct {
			S string
			I int64
			D float64
			B bool
			P json.Number
			Y []byte
			A []*string
			M map[string]float64
			N *string
		}
		if err := json.Unmarshal([]byte(text), &v); err != nil || !utf8.ValidString(text) {
			t.Fatalf("%s: %v", text, err)
		}
		if v.S != s || v.I != i || v.D != d || v.B != b || string(v.Y) != string(y) || v.N != nil {
			t.Fatalf("%s: read as %+v", text, v)
		}
		if got, ok := new(big.Rat).SetString(v.P.String()); !ok || got.Cmp(big.NewRat(p, 1000)) != 0 {
			t.Fatalf("%s: p is read as %s, want %d thousandths", text, v.P, p)
		}
		if len(v.A) != 2 || *v.A[0] != s || v.A[1] != nil || len(v.M) != 1 || v.M[s] != d {
			t.Fatalf("%s: read as %v, %v", text, v.A, v.M)
		}
	})
}
