package format

// Goal: the rules of Flink's json format, one case each, and the examples of its documentation.
// Method: messages in, rendered rows or the error out.

import (
	"strconv"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/types"
)

var (
	str     = types.StringType
	i32     = types.IntType
	i64     = types.BigIntType
	dbl     = types.DoubleType
	ts3     = types.TimestampMs
	mapSI   = types.MapOf(str.NotNull(), i32)
	example = cols("id", i64, "p", types.DecimalOf(6, 2), "ts", ts3, "m", mapSI)
)

func TestJSONDecode(t *testing.T) {
	one := func(ty types.Type) *types.Schema { return cols("a", ty) }
	ab := cols("a", i32, "b", str)
	for _, c := range []struct {
		name string
		s    *types.Schema
		opts string
		msg  string
		want string
	}{
		{"doc 1", example, "", `{"id":"7","p":"1.005","ts":"2024-01-02 03:04:05.1234","m":{"x":1},"zz":9}`, "+I(7, 1.01, 2024-01-02 03:04:05.123, {x=1})"},
		{"doc 2", example, "", `{"id":1.9,"p":123456,"ts":null}`, "+I(1, NULL, NULL, NULL)"},
		{"doc 3", example, "", `[{"id":1},{"id":"x"}]`, "error at 0: column id: not an integer in the range of BIGINT: \"x\""},
		{"doc 3 ignore", example, "ignore-parse-errors=true", `[{"id":1},{"id":"x"}]`, "+I(1, NULL, NULL, NULL) +I(NULL, NULL, NULL, NULL)"},
		{"empty message", ab, "", ``, ""},
		{"scalar", ab, "", `7`, "error at 0: not a JSON object or array of objects: 7"},
		{"blank", ab, "", `  `, "error at 0: not a JSON object or array of objects:"},
		{"bom", ab, "", "\xef\xbb\xbf{\"a\":1}", "+I(1, NULL)"},
		{"text behind", ab, "", `{"a":1}garbage`, "+I(1, NULL)"},
		{"empty object", ab, "", ` { } `, "+I(NULL, NULL)"},
		{"spaces", ab, "", "{ \"a\" : 1 ,\n\t\"b\" : \"x\" }", "+I(1, x)"},
		{"python style", ab, "", `{"a": 1, "b": "x"}`, "+I(1, x)"},
		{"other order", ab, "", `{"b":"x","a":1}`, "+I(1, x)"},
		{"case sensitive", ab, "", `{"A":1,"b":"x"}`, "+I(NULL, x)"},
		{"left out members", cols("a", i32, "b", i32, "c", i32, "d", i32, "e", i32), "", `[{"a":1,"d":4 ,"e" :5},{"e": 5},{"b":2,"c":3},{"d":1,"a":2}]`,
			"+I(1, NULL, NULL, 4, 5) +I(NULL, NULL, NULL, NULL, 5) +I(NULL, 2, 3, NULL, NULL) +I(2, NULL, NULL, 1, NULL)"},
		{"escaped name", ab, "", `{"\u0061":1}`, "+I(1, NULL)"},
		{"duplicate", ab, "", `{"a":1,"a":2,"b":"x","b":"y","b":null}`, "+I(2, NULL)"},
		{"duplicate null first", ab, "", `{"a":null,"b":"y","a":3}`, "+I(3, y)"},
		{"unknown nested", ab, "", `{"x":{"a":[1,{"a":5}],"s":"}\""},"a":1}`, "+I(1, NULL)"},
		{"unknown malformed", ab, "", `{"x":{"a":[1,]},"a":1}`, "error at 0: malformed JSON"},
		{"unknown bad word", ab, "", `{"x":nul,"a":1}`, "error at 0: malformed JSON"},
		{"trailing comma", ab, "", `{"a":1,}`, "error at 0: malformed JSON"},
		{"no comma", ab, "", `{"a":1 "b":"x"}`, "error at 0: malformed JSON"},
		{"open", ab, "", `{"a":1`, "error at 0: malformed JSON"},
		{"missing fails", ab, "fail-on-missing-field=true", `{"a":1}`, "error at 0: column b: the field is missing"},
		{"null is not missing", ab, "fail-on-missing-field=true", `{"a":1,"b":null}`, "+I(1, NULL)"},
		{"drop", ab, "ignore-parse-errors=true", `{"a":1`, ""},
		{"drop scalar element", ab, "ignore-parse-errors=true", `[1,{"a":2},null]`, "+I(2, NULL)"},
		{"scalar element", ab, "", `[1,{"a":2}]`, "error at 0: an element of the top-level array is no object: 1"},
		{"array open", ab, "", `[{"a":2}`, "error at 0: malformed JSON"},
		{"empty array", ab, "", ` [ ] `, ""},

		{"bool", one(types.BoolType), "", `[{"a":true},{"a":false},{"a":"TRUE"},{"a":" true "},{"a":1},{"a":"x"}]`, "+I(true) +I(false) +I(true) +I(true) +I(false) +I(false)"},
		{"bool object", one(types.BoolType), "", `{"a":{}}`, "error at 0: column a: an object where BOOLEAN is expected: {}"},
		{"tinyint", one(types.Of(types.TinyInt)), "", `[{"a":-128},{"a":" 127 "},{"a":"+7"}]`, "+I(-128) +I(127) +I(7)"},
		{"tinyint range", one(types.Of(types.TinyInt)), "", `{"a":128}`, "error at 0: column a: out of the range of TINYINT: 128"},
		{"tinyint float", one(types.Of(types.TinyInt)), "", `{"a":1.0}`, "error at 0: column a: a fraction where TINYINT is expected: 1.0"},
		{"smallint float", one(types.Of(types.SmallInt)), "ignore-parse-errors=true", `{"a":1e1}`, "+I(NULL)"},
		{"int", one(i32), "", `[{"a":-2147483648},{"a":1.9},{"a":-1.9},{"a":1e3},{"a":-0}]`, "+I(-2147483648) +I(1) +I(-1) +I(1000) +I(0)"},
		{"int range", one(i32), "", `{"a":2147483648}`, "error at 0: column a: out of the range of INT: 2147483648"},
		{"int string float", one(i32), "", `{"a":"1.9"}`, "error at 0: column a: not an integer in the range of INT: \"1.9\""},
		{"int bool", one(i32), "", `{"a":true}`, "error at 0: column a: a boolean where INT is expected: true"},
		{"int leading zero", one(i32), "", `{"a":01}`, "error at 0: malformed JSON"},
		{"bigint", one(i64), "", `[{"a":9223372036854775807},{"a":-9223372036854775808},{"a":123456789012345678}]`, "+I(9223372036854775807) +I(-9223372036854775808) +I(123456789012345678)"},
		{"bigint range", one(i64), "", `{"a":9223372036854775808}`, "error at 0: column a: out of the range of BIGINT: 9223372036854775808"},
		{"bigint float range", one(i64), "", `{"a":1e19}`, "error at 0: column a: out of the range of BIGINT: 1e19"},
		{"double", one(dbl), "", `[{"a":1},{"a":"0x1p3"},{"a":" 1e5d "},{"a":"NaN"},{"a":"-Infinity"},{"a":1e999},{"a":1.5e-7}]`, "+I(1.0) +I(8.0) +I(100000.0) +I(NaN) +I(-Infinity) +I(Infinity) +I(1.5E-7)"},
		{"double go spelling", one(dbl), "", `{"a":"inf"}`, "error at 0: column a: not a number"},
		{"double nan token", one(dbl), "", `{"a":NaN}`, "error at 0: malformed JSON"},
		{"float", one(types.Of(types.Float)), "", `[{"a":0.1},{"a":3.4028235e38}]`, "+I(0.1) +I(3.4028235E38)"},
		{"decimal", one(types.DecimalOf(6, 2)), "", `[{"a":1},{"a":1.005},{"a":-1.005},{"a":" 1e2 "},{"a":"9999.994"},{"a":9999.995},{"a":0.004}]`, "+I(1.00) +I(1.01) +I(-1.01) +I(100.00) +I(9999.99) +I(NULL) +I(0.00)"},
		{"decimal 38", one(types.DecimalOf(38, 10)), "", `[{"a":1234567890123456789012345678.0123456789},{"a":-0.00000000005},{"a":1e-50},{"a":1e99}]`, "+I(1234567890123456789012345678.0123456789) +I(-0.0000000001) +I(0.0000000000) +I(NULL)"},
		{"decimal text", one(types.DecimalOf(6, 2)), "", `{"a":"x"}`, "error at 0: column a: not a number: \"x\""},
		{"string", one(str), "", `[{"a":"x"},{"a":1.10},{"a":true},{"a":{"b" : [1, "\u00e9\n"]}},{"a":[ ]}]`, "+I(x) +I(1.10) +I(true) +I({\"b\":[1,\"é\\n\"]}) +I([])"},
		{"escapes", one(str), "", `[{"a":"\"\\\/\b\f\n\r\t"},{"a":"\u00e9\ud83d\ude00"},{"a":"\ud83d!"},{"a":"é😀"}]`, "+I(\"\\/\b\f\n\r\t) +I(é😀) +I(\uFFFD!) +I(é😀)"},
		{"control characters", one(str), "", "{\"a\":\"x\ty\nz\"}", "+I(x\ty\nz)"},
		{"bad escape", one(str), "", `{"a":"\x"}`, "error at 0: malformed JSON"},
		{"bad utf-8", one(str), "", "{\"a\":\"\xff\"}", `error at 0: the text is not UTF-8: "{\"a\":\"\xff\"}"`},
		{"bad utf-8 skipped", one(str), "", "{\"x\":\"12345678\xff\",\"a\":\"b\"}", "error at 0: the text is not UTF-8"},
		{"varchar length", one(types.Lengthed(types.Varchar, 2)), "", `{"a":"long"}`, "+I(long)"},
		{"bytes", one(types.BytesType), "", `[{"a":"AQID"},{"a":""},{"a":"AQ=="}]`, "+I(x'010203') +I(x'') +I(x'01')"},
		{"bytes bad", one(types.BytesType), "", `{"a":"A"}`, "error at 0: column a: not base64: \"A\""},
		{"date", one(types.DateType), "", `[{"a":"2024-02-29"},{"a":"0001-01-01"},{"a":"1969-12-31"}]`, "+I(2024-02-29) +I(0001-01-01) +I(1969-12-31)"},
		{"date bad day", one(types.DateType), "", `{"a":"2023-02-29"}`, "error at 0: column a: not a date like 2024-01-31: \"2023-02-29\""},
		{"date long", one(types.DateType), "", `{"a":"2023-02-27 "}`, "error at 0: column a: not a date"},
		{"date number", one(types.DateType), "", `{"a":19000}`, "error at 0: column a: a number where a string is expected: 19000"},
		{"time", one(types.Of(types.Time)), "", `[{"a":"12:34:56"},{"a":"12:34:56.7899"}]`, "+I(12:34:56) +I(12:34:56.789)"},
		{"time short", one(types.Of(types.Time)), "", `{"a":"12:34"}`, "error at 0: column a: not a time"},
		{"ts", one(ts3), "", `[{"a":"2024-01-02 03:04:05"},{"a":"2024-01-02 03:04:05.1"},{"a":"2024-01-02 03:04:05.123456789"},{"a":"2021-02-30 00:00:00"},{"a":"2021-12-31 24:00:00"},{"a":"1969-12-31 23:59:59.999"},{"a":"2024-01-02 03:04:05.120"}]`,
			"+I(2024-01-02 03:04:05) +I(2024-01-02 03:04:05.1) +I(2024-01-02 03:04:05.123) +I(2021-02-28 00:00:00) +I(2022-01-01 00:00:00) +I(1969-12-31 23:59:59.999) +I(2024-01-02 03:04:05.12)"},
		{"ts iso in sql", one(ts3), "", `{"a":"2024-01-02T03:04:05.123"}`, "error at 0: column a: not a timestamp like 2024-01-31 12:34:56.789: \"2024-01-02T03:04:05.123\""},
		{"ts number", one(ts3), "", `{"a":1700000000000}`, "error at 0: column a: a number where a string is expected"},
		{"ts bad digits", one(ts3), "", `{"a":"2024-13-02 03:04:05.123"}`, "error at 0: column a: not a timestamp"},
		{"ts 9", one(types.TimestampOf(types.Timestamp, 9)), "", `[{"a":"2024-01-02 03:04:05.123456789"},{"a":"0001-01-01 00:00:00.000000001"},{"a":"9999-12-31 23:59:59.999999999"}]`, "+I(2024-01-02 03:04:05.123456789) +I(0001-01-01 00:00:00.000000001) +I(9999-12-31 23:59:59.999999999)"},
		{"ts 0", one(types.TimestampOf(types.Timestamp, 0)), "", `{"a":"2024-01-02 03:04:05.9"}`, "+I(2024-01-02 03:04:05)"},
		{"ts iso", one(ts3), "timestamp-format.standard=ISO-8601", `[{"a":"2024-01-02T03:04:05.123"},{"a":"2024-01-02T03:04"}]`, "+I(2024-01-02 03:04:05.123) +I(2024-01-02 03:04:00)"},
		{"ts iso strict day", one(ts3), "timestamp-format.standard=ISO-8601", `{"a":"2021-02-30T00:00:00"}`, "error at 0: column a: not a timestamp"},
		{"ltz", one(types.TimestampOf(types.TimestampLTZ, 3)), "", `{"a":"2024-01-02 03:04:05.1Z"}`, "+I(2024-01-02 03:04:05.1)"},
		{"ltz no zone", one(types.TimestampOf(types.TimestampLTZ, 3)), "", `{"a":"2024-01-02 03:04:05.1"}`, "error at 0: column a: not a timestamp like 2024-01-31 12:34:56.789Z"},
		{"ltz offset", one(types.TimestampOf(types.TimestampLTZ, 3)), "", `{"a":"2024-01-02 03:04:05+01:00"}`, "error at 0: column a: not a timestamp"},
		{"ltz iso", one(types.TimestampOf(types.TimestampLTZ, 3)), "timestamp-format.standard=ISO-8601", `{"a":"2024-01-02T03:04:05Z"}`, "+I(2024-01-02 03:04:05)"},
		{"interval", one(types.Of(types.IntervalDayTime)), "", `{"a":1500}`, "+I(1500)"},

		{"array", one(types.ArrayOf(i32)), "", `[{"a":[1, "2",null]},{"a":[]}]`, "+I([1 2 NULL]) +I([])"},
		{"array not array", one(types.ArrayOf(i32)), "", `{"a":{"x":1}}`, "error at 0: column a: an object where an array is expected: {\"x\":1}"},
		{"array bad element", one(types.ArrayOf(i32)), "", `{"a":[1,"x"]}`, "error at 0: column a: not an integer in the range of INT: \"x\""},
		{"array bad element ignored", one(types.ArrayOf(i32)), "ignore-parse-errors=true", `{"a":[1,"x",[2],3]}`, "+I([1 NULL NULL 3])"},
		{"wrong shape is skipped cleanly", cols("a", types.ArrayOf(i32), "b", i32), "ignore-parse-errors=true", `{"a":{"b":7,"c":[{}]},"b":1}`, "+I(NULL, 1)"},
		{"map", one(mapSI), "", `{"a":{"x":1,"y":null,"x":3}}`, "+I({x=3 y=NULL})"},
		{"multiset", one(types.MultisetOf(str)), "", `{"a":{"x":2}}`, "+I({x=2})"},
		{"map not object", one(mapSI), "", `{"a":[]}`, "error at 0: column a: an array where an object is expected: []"},
		{"row", one(types.RowOf(types.Field{Name: "x", Type: i32}, types.Field{Name: "y", Type: types.ArrayOf(str)})), "",
			`[{"a":{"y":["p",1],"z":0,"x":1}},{"a":{}},{"a":null},{"a":{"x":1,"x":2}}]`, "+I([1 [p 1]]) +I([NULL NULL]) +I(NULL) +I([2 NULL])"},
		{"row bad field", one(types.RowOf(types.Field{Name: "x", Type: i32})), "", `{"a":{"x":"q"}}`, "error at 0: column a.x: not an integer"},
		{"row bad field ignored", one(types.RowOf(types.Field{Name: "x", Type: i32}, types.Field{Name: "y", Type: i32})), "ignore-parse-errors=true", `{"a":{"x":"q","y":1}}`, "+I([NULL 1])"},
		{"row missing fails", one(types.RowOf(types.Field{Name: "x", Type: i32}, types.Field{Name: "y", Type: i32})), "fail-on-missing-field=true", `{"a":{"x":null}}`, "error at 0: column a.y: the field is missing"},
		{"array of rows", one(types.ArrayOf(types.RowOf(types.Field{Name: "x", Type: i32}))), "", `{"a":[{"x":1},{"x":2},null]}`, "+I([[1] [2] NULL])"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var opts []string
			if c.opts != "" {
				opts = strings.Split(c.opts, ",")
			}
			d, out := decoder(t, "json", c.s, nil, opts...)
			// The second round runs on a plan that has learned the message's keys.
			for range 2 {
				if got := decode(d, out, c.msg); got != c.want && !(strings.HasPrefix(c.want, "error") && strings.HasPrefix(got, c.want)) {
					t.Errorf("%s\n got %s\nwant %s", c.msg, got, c.want)
				}
			}
		})
	}
}

// A bad message keeps the rows before it and tells its index; what it had appended is gone.
func TestJSONErrorKeepsEarlierRows(t *testing.T) {
	d, out := decoder(t, "json", cols("a", i32, "b", i32), nil)
	got := decode(d, out, `{"a":1,"b":1}`, `[{"a":2,"b":2},{"a":3,"b":"x"}]`, `{"a":4,"b":4}`)
	if want := `+I(1, 1) error at 1: column b: not an integer in the range of INT: "x"`; got != want {
		t.Fatalf("got %s", got)
	}
}

func TestJSONCounts(t *testing.T) {
	d, out := decoder(t, "json", cols("a", i32, "d", types.DecimalOf(3, 0), "f", types.BoolType), nil, "ignore-parse-errors=true")
	decode(d, out, `{"a":1.5}`, `{"a":"x"}`, `{"d":1e9}`, `{"f":3}`, `{"f":true,"a":1,"d":1}`, `{`, `[1]`)
	s := d.(Stats)
	if s.Lenient() != 4 || s.Skipped() != 2 {
		t.Fatalf("lenient %d, skipped %d", s.Lenient(), s.Skipped())
	}
}

// Only the asked columns are filled, in any builder order.
func TestJSONProjection(t *testing.T) {
	f := format(t, "json")
	d, _ := f.NewDecoder(DecodeSpec{Schema: cols("a", i32, "b", str, "c", i64), Targets: []Target{{Field: 2, Col: 0}}, Options: mustOptions(t, f)})
	_, out := decoder(t, "json", cols("c", i64), nil)
	if got := decode(d, out, `{"a":"not read as INT","b":1,"c":5,"d":{}}`); got != "+I(5)" {
		t.Fatal(got)
	}
}

// Messages whose key order changes all the time, and with ever new names, still decode, and the plan stays small.
func TestJSONPlanIsBounded(t *testing.T) {
	d, out := decoder(t, "json", cols("a", i32, "b", i32), nil)
	for i := range 3000 {
		name := strings.Repeat("k", 1+i%7) + string(strconv.AppendInt(nil, int64(i), 10))
		m := `{"b":2,"` + name + `":0,"a":1}`
		if i%2 == 0 {
			m = `{"` + name + `":{"a":9},"a":1,"b":2}`
		}
		if got := decode(d, out, m); got != "+I(1, 2)" {
			t.Fatal(i, got)
		}
	}
	if n := len(d.(*jsonDecoder).plan.o.slots); n > maxSlots {
		t.Fatalf("%d slots", n)
	}
}

func TestJSONDepthLimit(t *testing.T) {
	d, out := decoder(t, "json", cols("a", str), nil)
	deep := func(n int) string { return `{"x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `,"a":"b"}` }
	if got := decode(d, out, deep(900)); got != "+I(b)" {
		t.Fatal(got)
	}
	if got := decode(d, out, deep(100000)); !strings.HasPrefix(got, "error") {
		t.Fatal(got)
	}
}

func TestJSONCheck(t *testing.T) {
	f := format(t, "json")
	for _, c := range []struct {
		s    *types.Schema
		opts []string
		want string
	}{
		{cols("a", i32), []string{"timestamp-format.standard=iso-8601"}, "unsupported value 'iso-8601'"},
		{cols("a", i32), []string{"fail-on-missing-field=true", "ignore-parse-errors=true"}, "exclude each other"},
		{cols("a", types.MapOf(i32, str)), nil, "string keys"},
		{cols("a", types.RowOf(types.Field{Name: "x", Type: types.ArrayOf(types.MultisetOf(i32))})), nil, "string keys"},
	} {
		err := f.Check(c.s, mustOptions(t, f, c.opts...), connectors.UseSource)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.opts, err)
		}
	}
	if _, err := options(t, f, "map-null-key.mode=literal"); err != nil {
		t.Error("enum values ignore case:", err)
	}
}

func TestJSONEncode(t *testing.T) {
	D, N, S := types.IntDatum, types.NullDatum, types.StrDatum
	us := func(s string) types.Datum {
		sec, nanos, ok := parseTimestamp(s, false, false)
		if !ok {
			t.Fatal(s)
		}
		return types.JoinTimestamp(sec, nanos, 6)
	}
	row := types.RowOf(types.Field{Name: "x", Type: i32}, types.Field{Name: "y", Type: str})
	for _, c := range []struct {
		name string
		ty   types.Type
		opts string
		d    types.Datum
		want string
	}{
		{"null", i32, "", N, `{"a":null}`},
		{"null omitted", i32, "encode.ignore-null-fields=true", N, `{}`},
		{"int", i32, "", D(-5), `{"a":-5}`},
		{"bool", types.BoolType, "", types.BoolDatum(true), `{"a":true}`},
		{"double", dbl, "", types.FloatDatum(1e10), `{"a":1.0E10}`},
		{"double nan", dbl, "", types.FloatDatum(nan()), `{"a":"NaN"}`},
		{"float", types.Of(types.Float), "", types.FloatDatum(float64(float32(0.1))), `{"a":0.1}`},
		{"decimal", types.DecimalOf(10, 2), "", D(10000), `{"a":1E+2}`},
		{"decimal small", types.DecimalOf(18, 9), "", D(27), `{"a":2.7E-8}`},
		{"decimal fraction", types.DecimalOf(10, 2), "", D(-1250), `{"a":-12.5}`},
		{"decimal zero", types.DecimalOf(10, 2), "", D(0), `{"a":0}`},
		{"decimal plain", types.DecimalOf(10, 2), "encode.decimal-as-plain-number=true", D(10000), `{"a":100.00}`},
		{"decimal 38", types.DecimalOf(38, 2), "encode.decimal-as-plain-number=true", types.I128Datum(types.Mul64(-1e18, 1e18)), `{"a":-10000000000000000000000000000000000.00}`},
		{"string", str, "", S("q\"\\\n\x01é€"), `{"a":"q\"\\\n\u0001é€"}`},
		{"bytes", types.BytesType, "", S("\x01\x02\x03"), `{"a":"AQID"}`},
		{"date", types.DateType, "", D(19724), `{"a":"2024-01-02"}`},
		{"time", types.Of(types.Time), "", D(45296500), `{"a":"12:34:56.5"}`},
		{"ts", types.TimestampOf(types.Timestamp, 6), "", us("2024-01-02 03:04:05.120"), `{"a":"2024-01-02 03:04:05.12"}`},
		{"ts whole", types.TimestampOf(types.Timestamp, 6), "", us("2024-01-02 03:04:00"), `{"a":"2024-01-02 03:04:00"}`},
		{"ts iso", types.TimestampOf(types.Timestamp, 6), "timestamp-format.standard=ISO-8601", us("2024-01-02 03:04:00"), `{"a":"2024-01-02T03:04:00"}`},
		{"ltz", types.TimestampOf(types.TimestampLTZ, 6), "", us("1969-12-31 23:59:59.999999"), `{"a":"1969-12-31 23:59:59.999999Z"}`},
		{"ts 9", types.TimestampOf(types.Timestamp, 9), "", types.I128Datum(types.I128(-1)), `{"a":"1969-12-31 23:59:59.999999999"}`},
		{"interval", types.Of(types.IntervalYearMonth), "", D(14), `{"a":14}`},
		{"array", types.ArrayOf(i32), "", types.ListDatum(D(1), N), `{"a":[1,null]}`},
		{"map", mapSI, "", types.ListDatum(S("k"), D(1), S("l"), N), `{"a":{"k":1,"l":null}}`},
		{"map null key", types.MapOf(str, i32), "", types.ListDatum(N, D(1)), `error: column a: a map has a NULL key`},
		{"map null key drop", types.MapOf(str, i32), "map-null-key.mode=drop", types.ListDatum(N, D(1), S("k"), D(2)), `{"a":{"k":2}}`},
		{"map null key literal", types.MapOf(str, i32), "map-null-key.mode=LITERAL,map-null-key.literal=none", types.ListDatum(N, D(1)), `{"a":{"none":1}}`},
		{"multiset", types.MultisetOf(str), "", types.ListDatum(S("k"), D(2)), `{"a":{"k":2}}`},
		{"row", row, "", types.ListDatum(D(1), N), `{"a":{"x":1,"y":null}}`},
		{"row omitted", row, "encode.ignore-null-fields=true", types.ListDatum(N, S("v")), `{"a":{"y":"v"}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var opts []string
			if c.opts != "" {
				opts = strings.Split(c.opts, ",")
			}
			s := cols("a", c.ty)
			got := encode(t, encoder(t, "json", s, opts...), rows(s, nil, []types.Datum{c.d}))[0]
			if got != c.want && !(strings.HasPrefix(c.want, "error") && strings.HasPrefix(got, c.want)) {
				t.Errorf("got %s want %s", got, c.want)
			}
		})
	}
}

// Selections and constant columns are honoured.
func TestJSONEncodeSelection(t *testing.T) {
	s := cols("a", i32, "b", str)
	b := rows(s, nil, []types.Datum{types.IntDatum(1), types.StrDatum("x")}, []types.Datum{types.IntDatum(2), types.StrDatum("y")})
	b.Sel = []int32{1}
	if got := encode(t, encoder(t, "json", s), b); len(got) != 1 || got[0] != `{"a":2,"b":"y"}` {
		t.Fatal(got)
	}
}

func nan() float64 { z := 0.0; return z / z }
