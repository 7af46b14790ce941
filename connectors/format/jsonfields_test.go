package format

// Goal: reading single fields of ROWs gives what reading the ROWs and taking the fields out gives, wherever the whole can
// be read; and never more errors.

import (
	"testing"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

var (
	innerRow = types.RowOf(types.Field{Name: "x", Type: i32}, types.Field{Name: "y", Type: str})
	outerRow = types.RowOf(types.Field{Name: "a", Type: i64}, types.Field{Name: "in", Type: innerRow}, types.Field{Name: "b", Type: types.ArrayOf(i32)})
)

// fieldsDecoder reads i, r.a, r.in.y and r.b of a message i, r.
func fieldsDecoder(t testing.TB, kv ...string) (Decoder, *batch.Builder) {
	f := format(t, "json")
	d, err := f.NewDecoder(DecodeSpec{Schema: cols("i", i64, "r", outerRow), Table: "t", Options: mustOptions(t, f, kv...), Targets: []Target{
		{Field: 1, Path: []int{0}, Col: 1}, {Field: 0, Col: 0}, {Field: 1, Path: []int{1, 1}, Col: 2}, {Field: 1, Path: []int{2}, Col: 3}}})
	if err != nil {
		t.Fatal(err)
	}
	return d, batch.NewBuilder(cols("i", i64, "a", i64, "y", str, "b", types.ArrayOf(i32)))
}

func TestJSONFields(t *testing.T) {
	for msg, want := range map[string]string{
		`{"i":1,"r":{"a":2,"in":{"x":3,"y":"z"},"b":[4]}}`: "+I(1, 2, z, [4])",
		`{"r":{"in":{"y":"z"}}}`:                           "+I(NULL, NULL, z, NULL)",
		`{"r":{"in":null,"a":1},"i":2}`:                    "+I(2, 1, NULL, NULL)",
		`{"r":null,"i":2}`:                                 "+I(2, NULL, NULL, NULL)",
		`{"i":2}`:                                          "+I(2, NULL, NULL, NULL)",
		`{"r":{"a":1,"a":2,"in":{"y":"p"}},"r":{"in":{"y":"q"}}}`:    "+I(NULL, NULL, q, NULL)",
		`{"r":{"a":1},"r":null}`:                                     "+I(NULL, NULL, NULL, NULL)",
		`{"r":{"other":{"deep":[1]},"in":{"x":"not read","y":"z"}}}`: "+I(NULL, NULL, z, NULL)",
		` { "r" : { "a" : 5 , "in" : { } } , "i" : 6 } `:             "+I(6, 5, NULL, NULL)",
		`[{"i":1,"r":{"a":1}},{"i":2,"r":{"a":2}}]`:                  "+I(1, 1, NULL, NULL) +I(2, 2, NULL, NULL)",
		`{"i":1,"r":[1]}`:                     `error at 0: column r: an array where an object is expected: [1]`,
		`{"i":1,"r":{"in":5}}`:                `error at 0: column r.in: a number where an object is expected: 5`,
		`{"i":1,"r":{"in":{"y":{}},"a":"x"}}`: `error at 0: column r.a: not an integer in the range of BIGINT: "x"`,
		`{"i":1,"r":{"a":1}`:                  `error at 0: malformed JSON: {"i":1,"r":{"a":1}`,
	} {
		d, out := fieldsDecoder(t)
		if got := decode(d, out, msg); got != want {
			t.Errorf("%s\n got  %s\n want %s", msg, got, want)
		}
	}
	d, out := fieldsDecoder(t, "fail-on-missing-field=true")
	if got, want := decode(d, out, `{"i":1,"r":{"in":{"y":"z"},"b":[]}}`), `error at 0: column r.a: the field is missing`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := decode(d, out, `{"i":1}`), `error at 0: column r: the field is missing`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	d, out = fieldsDecoder(t, "ignore-parse-errors=true")
	if got, want := decode(d, out, `{"i":"x","r":{"a":true,"in":7,"b":[1,"p"]}}`, `{"i":1,"r":7}`, `{"i":1,"r":{"a":1}`, `{"i":3}`),
		"+I(NULL, NULL, NULL, [1 NULL]) +I(1, NULL, NULL, NULL) +I(3, NULL, NULL, NULL)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func FuzzJSONFields(f *testing.F) {
	for _, s := range []string{`{"i":1,"r":{"a":2,"in":{"x":3,"y":"z"},"b":[4]}}`, `{"r":{"a":1,"r":{}},"r":null,"i":1}`, `[{"r":{"in":{}}},null,{"i":7}]`, `{"r":{"in":{"y":"é\n"}}`} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, msg []byte, ignore bool) {
		var kv []string
		if ignore {
			kv = []string{"ignore-parse-errors=true"}
		}
		whole, all := decoder(t, "json", cols("i", i64, "r", outerRow), nil, kv...)
		_, err := whole.Decode([][]byte{msg}, all, func(int, types.RowKind) { all.RowDone() })
		if err != nil {
			return
		}
		part, out := fieldsDecoder(t, kv...)
		if _, err := part.Decode([][]byte{msg}, out, func(int, types.RowKind) { out.RowDone() }); err != nil {
			t.Fatalf("%q: %v; the whole can be read", msg, err)
		}
		want, got := all.Finish(), out.Finish()
		if want.N != got.N {
			t.Fatalf("%q: %d rows, want %d", msg, got.N, want.N)
		}
		for i := range want.N {
			r := want.Cols[1].Datum(i)
			expect := []types.Datum{want.Cols[0].Datum(i), at(r, 0), at(at(r, 1), 1), at(r, 2)}
			for c, ty := range []types.Type{i64, i64, str, types.ArrayOf(i32)} {
				if a, b := string(types.AppendValue(nil, expect[c], ty)), string(types.AppendValue(nil, got.Cols[c].Datum(i), ty)); a != b {
					t.Fatalf("%q: row %d, column %d: %v, want %v", msg, i, c, got.Cols[c].Datum(i), expect[c])
				}
			}
		}
	})
}

// at is field i of a ROW.
func at(r types.Datum, i int) types.Datum {
	if r.IsNull || i >= len(r.List) {
		return types.NullDatum
	}
	return r.List[i]
}
