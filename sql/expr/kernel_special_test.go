package expr

// Goal: kernels made for special forms (a CASE that is blended or a switch, pieces of one text, lengths of replaced texts, eight bytes at
// a time) give what the general ones give. Method: random columns with NULLs and random selections; the oracle is the same expression in a
// form that has no special kernel, or a few lines of Go.

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// randomRows are columns s and t (STRING), i and k (BIGINT), d (DECIMAL(38, 3)) with NULLs, and a selection of some rows.
func randomRows(r *rand.Rand, n int) (*batch.Batch, map[string]*Column) {
	pieces := []string{"a", "B", "apple", "/", "/", "//", "é", "Σ", "ß", "😀", "longer piece", "", "İ", "z", "@", "[", "`", "{"}
	text := func() string {
		var sb strings.Builder
		for range r.IntN(8) {
			sb.WriteString(pieces[r.IntN(len(pieces))])
		}
		return sb.String()
	}
	cols := map[string]*Column{}
	b := &batch.Batch{N: n}
	for _, name := range []string{"s", "t", "i", "k", "d"} {
		typ := map[string]types.Type{"s": types.StringType, "t": types.StringType, "i": types.BigIntType, "k": types.BigIntType, "d": types.DecimalOf(38, 3)}[name].WithNull(true)
		v := batch.NewVec(typ, n)
		for row := range n {
			switch typ.Phys() {
			case types.PhysStr:
				v.Str[row] = text()
			case types.PhysI64:
				v.I64[row] = r.Int64N(4)
			default:
				v.I128[row] = types.Pow10(r.IntN(38)).Add(types.I128(r.Int64N(3) - 1))
			}
			if name != "k" && r.IntN(5) == 0 {
				v.SetNull(row, n)
			}
		}
		cols[name] = &Column{Index: len(b.Cols), Name: name, T: typ}
		b.Cols = append(b.Cols, v)
	}
	if r.IntN(3) > 0 {
		few := r.IntN(4) == 0
		b.Sel = []int32{}
		for row := range n {
			if few == (r.IntN(4) == 0) {
				b.Sel = append(b.Sel, int32(row))
			}
		}
	}
	return b, cols
}

func TestSpecialKernels(t *testing.T) {
	special := map[string]string{ // an expression to one without a special kernel
		"CASE WHEN k = 0 THEN i WHEN k = 1 THEN 7 WHEN k > 2 THEN k ELSE i + 1 END":                                          "CASE WHEN k = 0 THEN CAST(CAST(i AS STRING) AS BIGINT) WHEN k = 1 THEN 7 WHEN k > 2 THEN k ELSE i + 1 END",
		"CASE WHEN k = 0 THEN CAST(NULL AS BIGINT) ELSE 3 END":                                                               "CASE WHEN CAST(k AS STRING) = '0' THEN CAST(NULL AS BIGINT) ELSE 3 END",
		"CASE WHEN i = 0 THEN k WHEN i = 1 THEN 5 END":                                                                       "CASE WHEN CAST(i AS STRING) = '0' THEN k WHEN i = 1 THEN 5 END",
		"CASE WHEN LOWER(s) = 'apple' THEN 'x' WHEN LOWER(s) = '' THEN t WHEN LOWER(s) = 'a' THEN NULL ELSE s || '!' END":    "CASE WHEN LOWER(s) || '' = 'apple' THEN 'x' WHEN LOWER(s) = '' THEN t WHEN LOWER(s) = 'a' THEN NULL ELSE s || '!' END",
		"CHAR_LENGTH(s) - CHAR_LENGTH(REPLACE(s, '/', ''))":                                                                  "CHAR_LENGTH(s) - CHAR_LENGTH(REPLACE(s, '/', '') || '')",
		"CHAR_LENGTH(REPLACE(s, 'é', '😀x'))":                                                                                 "CHAR_LENGTH(REPLACE(s, 'é', '😀x') || '')",
		"SPLIT_INDEX(s, '/', 2) || '|' || SPLIT_INDEX(s, '/', 1) || '|' || SPLIT_INDEX(s, '/', 0)":                           "SPLIT_INDEX(s || '', '/', CAST(k - k + 2 AS INT)) || '|' || SPLIT_INDEX(s, SUBSTRING('/', 1 + CAST(k - k AS INT)), 1) || '|' || SPLIT_INDEX(s, SUBSTRING('/', 1 + CAST(k - k AS INT)), 0)",
		"SPLIT_INDEX(s, 'pp', 0) || SPLIT_INDEX(s, 'pp', 1)":                                                                 "SPLIT_INDEX(s, 'pp', CAST(k - k AS INT)) || SPLIT_INDEX(s, 'pp', CAST(k - k AS INT) + 1)",
		"CASE WHEN k = 1 THEN SPLIT_INDEX(s, '/', 3) WHEN k = 2 THEN SPLIT_INDEX(s, '/', 1) ELSE SPLIT_INDEX(s, '/', 2) END": "SPLIT_INDEX(s, '/', CAST(CASE WHEN k = 1 THEN 3 WHEN k = 2 THEN 1 ELSE 2 END AS INT))",
		"s IN ('a', '', 'apple')":      "s = 'a' OR s = '' OR s = 'apple'",
		"LOWER(s) || UPPER(s)":         "LOWER(s || '') || UPPER(s || '')",
		"CAST(d AS DECIMAL(30, 3))":    "CASE WHEN d > -1000000000000000000000000000 AND d < 1000000000000000000000000000 THEN CAST(d AS DECIMAL(30, 3)) END",
		"i = 1 OR CHAR_LENGTH(s) = 1":  "CHAR_LENGTH(s) = 1 OR i = 1",
		"i = 1 AND CHAR_LENGTH(s) = 1": "CHAR_LENGTH(s) = 1 AND i = 1",
	}
	r := rand.New(rand.NewPCG(5, 6))
	for text, plain := range special {
		for range 60 {
			b, cols := randomRows(r, 1+r.IntN(300))
			got, want := evalFresh(t, text, b, cols), evalFresh(t, plain, b, cols)
			for k := range b.Len() {
				row := b.Row(k)
				if a, o := got.Datum(row), want.Datum(row); !reflect.DeepEqual(a, o) {
					t.Fatalf("%s\nrow %d of %d (%d selected): %+v, want %+v", text, row, b.N, b.Len(), a, o)
				}
			}
		}
	}
}

// A CASE whose conditions are the same for all rows, of columns that are, passes on what they all take.
func TestConstantCases(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for _, text := range []string{
		"CASE WHEN k = 0 THEN i WHEN k = 1 THEN 7 WHEN k = 2 THEN k END", "CASE WHEN k = 0 THEN i WHEN i = 1 THEN 7 WHEN k = 2 THEN k ELSE i + 1 END",
		"CASE WHEN k = 0 THEN s WHEN k = 1 THEN s || t WHEN k = 2 THEN NULL ELSE t END", "CASE WHEN i = 1 THEN s WHEN k = 1 THEN s || t WHEN k = 2 THEN 'x' ELSE t END",
		"CASE WHEN k = 0 THEN 12 / i WHEN k = 1 THEN i ELSE 12 / (i - 1) END", "COALESCE(CASE k WHEN 0 THEN s || t ELSE t END, '') || COALESCE(CASE WHEN i = 1 THEN s || t ELSE t END, '')",
		"CASE WHEN 12 / k > 3 THEN i ELSE k END",
	} {
		for range 80 {
			b, cols := randomRows(r, 1+r.IntN(200))
			for _, c := range []string{"k", "i"} {
				if c == "i" && r.IntN(2) == 0 {
					continue
				}
				at := cols[c].Index
				one := batch.NewConst(cols[c].T, b.Cols[at].Datum(0))
				b.Cols[at] = one
			}
			spread := *b
			spread.Cols = append([]*batch.Vec{}, b.Cols...)
			for i, v := range b.Cols {
				if v.Const {
					wide := batch.NewVec(v.Type, b.N)
					for row := range b.N {
						if v.IsNull(row) {
							wide.SetNull(row, b.N)
						} else {
							wide.Set(row, v.Datum(row))
						}
					}
					spread.Cols[i] = wide
				}
			}
			p, err := Compile([]Expr{mustParse(t, text, cols)}, Session{})
			if err != nil {
				t.Fatal(err)
			}
			got, gotErr := p.Eval(b)
			plain, _ := Compile([]Expr{mustParse(t, text, cols)}, Session{})
			want, wantErr := plain.Eval(&spread)
			if gotErr != nil || wantErr != nil {
				if gotErr == nil || wantErr == nil || gotErr.Error() != wantErr.Error() {
					t.Fatalf("%s: %v, want %v", text, gotErr, wantErr)
				}
				continue
			}
			for k := range b.Len() {
				row := b.Row(k)
				if a, o := got[0].Datum(row), want[0].Datum(row); !reflect.DeepEqual(a, o) {
					t.Fatalf("%s\nrow %d of %d (%d selected): %+v, want %+v", text, row, b.N, b.Len(), a, o)
				}
			}
		}
	}
}

func evalFresh(t *testing.T, text string, b *batch.Batch, cols map[string]*Column) *batch.Vec {
	t.Helper()
	p, err := Compile([]Expr{mustParse(t, text, cols)}, Session{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.Eval(b)
	if err != nil {
		t.Fatal(text, err)
	}
	return out[0]
}

func TestEightBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 20_000 {
		b := make([]byte, r.IntN(30))
		for i := range b {
			b[i] = byte(r.IntN(128))
		}
		s := string(b)
		if got := string(appendLower(nil, s)); got != strings.ToLower(s) {
			t.Fatalf("lower case of %q: %q", s, got)
		}
		if got := string(appendUpper(nil, s)); got != strings.ToUpper(s) {
			t.Fatalf("upper case of %q: %q", s, got)
		}
		for range r.IntN(3) {
			s = s[:len(s)/2] + string(rune(r.IntN(0x3000))) + s[len(s)/2:] + string([]byte{byte(r.IntN(256))})
		}
		if got, want := runeCount(s), int64(utf8.RuneCountInString(s)); got != want {
			t.Fatalf("code points of %q: %d, want %d", s, got, want)
		}
		sep := byte(r.IntN(256))
		index := int64(r.IntN(4))
		i, at, end := cutByte(s, sep, 0, 0, index)
		parts := strings.Split(s, string([]byte{sep}))
		if len(s) > 0 && (int(i) != min(int(index), len(parts)-1) || s[at:end] != parts[i]) {
			t.Fatalf("piece %d of %q by %q: %d %q, want %q", index, s, sep, i, s[at:end], parts)
		}
		bools := make([]bool, r.IntN(65))
		for k := range bools {
			bools[k] = r.IntN(2) == 0
		}
		for k, w := 0, packBools(bools); k < len(bools); k++ {
			if w>>k&1 != uint64(b2i(bools[k])) {
				t.Fatalf("%v packed: %b", bools, w)
			}
		}
	}
}
