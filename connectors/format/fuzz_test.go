package format

// Goal: no input panics a decoder; json accepts what encoding/json accepts, as far as the two agree on JSON, and reads
// the same values; what is written is read back the same.

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/streamsql/streamsql/sql/types"
)

var fuzzSchema = cols("i", i64, "s", str, "d", dbl, "b", types.BoolType, "p", types.DecimalOf(20, 3), "t", ts3,
	"a", types.ArrayOf(str), "m", types.MapOf(str.NotNull(), str), "r", types.RowOf(types.Field{Name: "x", Type: i32}, types.Field{Name: "y", Type: types.ArrayOf(dbl)}))

func seeds(f *testing.F) {
	for _, s := range []string{
		`{"i":1,"s":"x","d":1.5,"b":true,"p":1.25,"t":"2024-01-02 03:04:05.678","a":["x"],"m":{"k":"v"},"r":{"x":1,"y":[1]}}`,
		`{"s":"\u00e9\ud83d\ude00\ud83d","a":[],"m":{},"r":{}}`, `[{"i":1},{"i":null}]`, `{"i":1e3,"i":2}`, `{"unknown":{"x":[1,2,{"y":null}]},"i":-0}`,
		`{"before":{"i":1},"after":{"i":2},"op":"u","source":{"db":"x"},"ts_ms":5}`, `{"data":{"i":1},"op":"-D"}`, "1,a,1.5,true,2,2024-01-02 03:04:05,x;y", `"a ""b""",'`, "",
	} {
		f.Add([]byte(s))
	}
}

// FuzzJSONDecode compares with encoding/json where the two are meant to agree: no control characters inside strings,
// valid UTF-8, nothing behind the value, not too deep.
func FuzzJSONDecode(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, msg []byte) {
		s := cols("i", i64, "s", str, "d", dbl)
		d, out := decoder(t, "json", s, nil)
		if _, err := d.Decode([][]byte{msg}, out, func(int, types.RowKind) { out.RowDone() }); err != nil {
			checkRejected(t, msg, err)
			return
		}
		checkAccepted(t, msg, rowsOf(out.Finish().N, func(i int) []types.Datum {
			b := out.Finish()
			return []types.Datum{b.Cols[0].Datum(i), b.Cols[1].Datum(i), b.Cols[2].Datum(i)}
		}))
	})
}

func rowsOf(n int, f func(int) []types.Datum) [][]types.Datum {
	var out [][]types.Datum
	for i := range n {
		out = append(out, f(i))
	}
	return out
}

// checkRejected: a rejected object must be invalid, or hold a value that does not fit its column.
func checkRejected(t *testing.T, msg []byte, err error) {
	if !utf8.Valid(msg) || bytes.Count(msg, []byte("["))+bytes.Count(msg, []byte("{")) > 900 {
		return
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(msg, &m) != nil || m == nil {
		return
	}
	if bad, ok := err.(*BadRecord); ok && bad.Column != "" {
		return // a value of another type: TestJSONDecode has the rules
	}
	t.Fatalf("%q is valid JSON but was rejected: %v", msg, err)
}

func checkAccepted(t *testing.T, msg []byte, rows [][]types.Datum) {
	if len(rows) != 1 || bytes.IndexFunc(msg, func(r rune) bool { return r < 0x20 }) >= 0 {
		return
	}
	msg = bytes.TrimPrefix(msg, []byte("\xef\xbb\xbf"))
	dec := json.NewDecoder(bytes.NewReader(msg))
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		// encoding/json limits depth at 10000 and we at 1000, so an accepted text must parse there.
		t.Fatalf("%q was accepted, but: %v", msg, err)
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return // a top-level array
	}
	var want string
	if v, ok := m["s"]; ok && json.Unmarshal(v, &want) == nil && string(v) != "null" && v[0] == '"' {
		if got := rows[0][1]; got.IsNull || got.Str != want {
			t.Fatalf("%q: s = %q, want %q", msg, got.Str, want)
		}
	}
	var n int64
	if v, ok := m["i"]; ok && json.Unmarshal(v, &n) == nil && string(v) != "null" {
		if got := rows[0][0]; got.IsNull || got.I64 != n {
			t.Fatalf("%q: i = %d, want %d", msg, got.I64, n)
		}
	}
	if v, ok := m["d"]; ok && v[0] != '"' && string(v) != "null" {
		x, _ := strconv.ParseFloat(string(v), 64)
		if got := rows[0][2]; got.IsNull || got.F64 != x {
			t.Fatalf("%q: d = %v, want %v", msg, got.F64, x)
		}
	}
}

// Any row that can be read can be written and read again.
func FuzzJSONRoundTrip(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, msg []byte) {
		for _, name := range []string{"json", "changelog-json"} {
			d, out := decoder(t, name, fuzzSchema, nil, "ignore-parse-errors=true")
			first := decode(d, out, string(msg))
			msgs := encode(t, encoder(t, name, fuzzSchema), out.Finish())
			for _, m := range msgs {
				if !json.Valid([]byte(m)) {
					t.Fatalf("%q: wrote invalid %q", msg, m)
				}
			}
			d2, out2 := decoder(t, name, fuzzSchema, nil)
			if second := decode(d2, out2, msgs...); second != first {
				t.Fatalf("%q\n first %s\nsecond %s", msg, first, second)
			}
		}
	})
}

func FuzzDebezium(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, msg []byte) {
		for _, opt := range []string{"schema-include=true", "schema-include=false"} {
			d, out := decoder(t, "debezium-json", fuzzSchema, []string{"schema", "source.properties", "ingestion-timestamp", "source.timestamp"}, opt)
			decode(d, out, string(msg), string(msg))
		}
	})
}

// FuzzChangelog: records of changelog-json, as they come, and text as values of every scalar type.
func FuzzChangelog(f *testing.F) {
	seeds(f)
	f.Add([]byte(`{"data":{"i":1,"r":{"x":null}},"op":"+U"}`))
	f.Add([]byte(`{"op":"-U","data":null}`))
	f.Fuzz(func(t *testing.T, msg []byte) {
		d, out := decoder(t, "changelog-json", fuzzSchema, nil)
		decode(d, out, string(msg), string(msg))
		for _, ty := range []types.Type{i32, i64, dbl, str, types.BoolType, types.DecimalOf(20, 3), ts3, types.DateType, types.BytesType} {
			_, _ = ParseText(string(msg), ty)
		}
	})
}

func FuzzCSV(f *testing.F) {
	seeds(f)
	s := cols("i", i64, "s", str, "d", dbl, "b", types.BoolType, "p", types.DecimalOf(20, 3), "t", ts3, "a", types.ArrayOf(str))
	f.Fuzz(func(t *testing.T, msg []byte) {
		for _, opts := range []string{"", `escape-character=\\|ignore-parse-errors=true|trim-spaces=true|null-literal=x`} {
			d, out := decoder(t, "csv", s, nil, split(opts)...)
			decode(d, out, string(msg))
		}
		// Strings survive the way out and back, whatever they hold.
		line := strings.ToValidUTF8(string(msg), "")
		two := cols("a", str, "b", str)
		b := rows(two, nil, []types.Datum{types.StrDatum(line), types.StrDatum("z")})
		d, out := decoder(t, "csv", two, nil)
		if got, want := decode(d, out, encode(t, encoder(t, "csv", two), b)...), "+I("+line+", z)"; got != want {
			t.Fatalf("got %q want %q", got, want)
		}
	})
}

func FuzzRaw(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, msg []byte) {
		for _, ty := range []types.Type{str, types.BytesType, i32, dbl, types.BoolType} {
			for _, cs := range []string{"UTF-8", "UTF-16", "ISO-8859-1"} {
				d, out := decoder(t, "raw", cols("a", ty), nil, "charset="+cs)
				decode(d, out, string(msg))
			}
		}
	})
}

func FuzzParseJavaDouble(f *testing.F) {
	for _, s := range []string{"1", "-Infinity", "NaN", "0x1p3", "1e5f", "0x.8p1d", "+.5e-3", "", "d", "1_0", "infinity"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, ok := types.ParseFloat(s, 64)
		if !ok || math.IsNaN(v) {
			return
		}
		if w, ok := types.ParseFloat(string(types.AppendFloat(nil, v, 64)), 64); !ok || w != v {
			t.Fatalf("%q: %v prints as something read as %v", s, v, w)
		}
	})
}
