package format

// Goal: the csv rules of Flink (Jackson), one case each. Method: lines in, rendered rows or the error out, and back.

import (
	"strings"
	"testing"

	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/types"
)

func split(opts string) []string {
	if opts == "" {
		return nil
	}
	return strings.Split(opts, "|")
}

func TestCSVDecode(t *testing.T) {
	abc := cols("a", str, "b", i32, "c", types.ArrayOf(i32))
	ab := cols("a", str, "b", str)
	one := func(ty types.Type) *types.Schema { return cols("a", ty) }
	for _, c := range []struct {
		name string
		s    *types.Schema
		opts string
		msg  string
		want string
	}{
		{"doc 1", abc, "", `"x, ""y""", 12 ,1;2`, `+I(x, "y", 12, [1 2])`},
		{"doc 2", abc, "", `,,`, `error at 0: column b: the field is empty, and not NULL: 'csv.null-literal' = '' makes it so`},
		{"doc 2 ignore", abc, "ignore-parse-errors=true", `,,`, `+I(, NULL, [])`},
		{"doc 3", abc, "", `a`, `error at 0: column b: 1 fields, expected 3: a`},
		{"doc 3 ignore", abc, "ignore-parse-errors=true", `a`, `+I(a, NULL, NULL)`},
		{"short line dropped", abc, "ignore-parse-errors=true|fail-on-missing-columns=true", `a`, ``},
		{"empty", ab, "", ``, ``},
		{"blank", ab, "", "  \r", ``},
		{"blank but delimited", ab, "field-delimiter=\\t", "\t", `+I(, )`},
		{"spaces kept", ab, "", ` x , y `, `+I( x ,  y )`},
		{"spaces trimmed", ab, "trim-spaces=true", ` x , "y " `, `+I(x, y )`},
		{"too many", ab, "", `a,b,c`, `error at 0: more than 2 fields: a,b,c`},
		{"too many ignored row", ab, "ignore-parse-errors=true", `a,b,c`, ``},
		{"too many ignored fields", ab, "ignore-trailing-unmappable=true", `a,b,c`, `+I(a, b)`},
		{"trailing comma", ab, "", `a,b,`, `+I(a, b)`},
		{"trailing comma refused", ab, "allow-trailing-comma=false", `a,b,`, `error at 0: more than 2 fields`},
		{"carriage return", ab, "", "a,b\r", `+I(a, b)`},
		{"tab", ab, `field-delimiter=\t`, "a\tb", `+I(a, b)`},
		{"pipe", ab, "field-delimiter=;", "a;b", `+I(a, b)`},
		{"quote off", ab, "disable-quote-character=true", `"a",b`, `+I("a", b)`},
		{"other quote", ab, "quote-character='", `'a,''x',b`, `+I(a,'x, b)`},
		{"newline in quotes", ab, "", "\"a\nb\",c", "+I(a\nb, c)"},
		{"unterminated", ab, "", `x,"a`, `error at 0: column b: the quote of a field is not closed: x,"a`},
		{"unterminated ignored", ab, "ignore-parse-errors=true", `x,"a`, ``},
		{"behind quote", ab, "", `"a"x,b`, `error at 0: column a: text behind a closing quote`},
		{"escape", ab, `escape-character=\\`, `a\,b,"c\"d"`, `+I(a,b, c"d)`},
		{"comment", ab, "allow-comments=true", `# a,b`, ``},
		{"no comment", ab, "", `# a,b`, `+I(# a, b)`},
		{"null literal", ab, "null-literal=n/a", `n/a,x`, `+I(NULL, x)`},
		{"null literal int", cols("a", i32, "b", i32), "null-literal=", `,1`, `+I(NULL, 1)`},
		{"empty as null", ab, "empty-string-as-null=true", `,x`, `+I(NULL, x)`},
		{"utf-8", ab, "", "é,\"ü,\"", `+I(é, ü,)`},
		{"bad utf-8", ab, "", "\xff,b", `error at 0: the line is not UTF-8`},

		{"bool", one(types.BoolType), "", `TRUE`, `+I(true)`},
		{"bool other", one(types.BoolType), "", `1`, `+I(false)`},
		{"int range", one(types.Of(types.TinyInt)), "", `128`, `error at 0: column a: not an integer in the range of TINYINT: 128`},
		{"double", one(dbl), "", ` 1e3 `, `+I(1000.0)`},
		{"decimal", one(types.DecimalOf(5, 2)), "", `1.005`, `+I(1.01)`},
		{"decimal overflow", one(types.DecimalOf(5, 2)), "", `1000`, `+I(NULL)`},
		{"decimal not trimmed", one(types.DecimalOf(5, 2)), "", ` 1`, `error at 0: column a: not a number`},
		{"date", one(types.DateType), "", `2024-1-2`, `+I(2024-01-02)`},
		{"date runs over", one(types.DateType), "", `2023-02-30`, `+I(2023-03-02)`},
		{"date bad", one(types.DateType), "", `2023-02`, `error at 0: column a: not a date`},
		{"time", one(types.Of(types.Time)), "", `12:34`, `+I(12:34:00)`},
		{"time cut", one(types.Type{Kind: types.Time, Nullable: true, Precision: 1}), "", `12:34:56.789`, `+I(12:34:56.7)`},
		{"ts", one(ts3), "", `2024-01-02 03:04:05.6`, `+I(2024-01-02 03:04:05.6)`},
		{"ts iso", one(ts3), "", `2024-01-02T03:04:05`, `error at 0: column a: not a timestamp`},
		{"ltz", one(types.TimestampOf(types.TimestampLTZ, 3)), "", `2024-01-02 03:04:05Z`, `+I(2024-01-02 03:04:05)`},
		{"bytes", one(types.BytesType), "", `AQID`, `+I(x'010203')`},
		{"array strings", one(types.ArrayOf(str)), "array-element-delimiter=:", `a:b:`, `+I([a b ])`},
		{"array bad", one(types.ArrayOf(i32)), "ignore-parse-errors=true", `1;x`, `+I([1 NULL])`},
		{"row", one(types.RowOf(types.Field{Name: "x", Type: i32}, types.Field{Name: "y", Type: str})), "", `1;b`, `+I([1 b])`},
		{"row short", one(types.RowOf(types.Field{Name: "x", Type: i32}, types.Field{Name: "y", Type: str})), "", `1`, `error at 0: column a: fewer elements`},
		{"row long", one(types.RowOf(types.Field{Name: "x", Type: i32})), "", `1;2`, `error at 0: column a: more elements`},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, out := decoder(t, "csv", c.s, nil, split(c.opts)...)
			if got := decode(d, out, c.msg); got != c.want && !(strings.HasPrefix(c.want, "error") && strings.HasPrefix(got, c.want)) {
				t.Errorf("%q\n got %s\nwant %s", c.msg, got, c.want)
			}
		})
	}
}

func TestCSVProjection(t *testing.T) {
	f := format(t, "csv")
	d, _ := f.NewDecoder(DecodeSpec{Schema: cols("a", i32, "b", str, "c", i64), Targets: []Target{{Field: 2, Col: 0}}, Options: mustOptions(t, f)})
	_, out := decoder(t, "json", cols("c", i64), nil)
	if got := decode(d, out, `not an int,"x,y",5`); got != "+I(5)" {
		t.Fatal(got)
	}
}

func TestCSVEncode(t *testing.T) {
	D, N, S := types.IntDatum, types.NullDatum, types.StrDatum
	for _, c := range []struct {
		name string
		ty   types.Type
		opts string
		d    types.Datum
		want string
	}{
		{"plain", str, "", S("abc-1_x"), `abc-1_x`},
		{"space", str, "", S("a b"), `"a b"`},
		{"paren", str, "", S("f(x"), `"f(x"`},
		{"plus", str, "", S("+1"), `"+1"`},
		{"minus is above the comma", str, "", S("-1"), `-1`},
		{"quote", str, "", S(`a"b`), `"a""b"`},
		{"quote escaped", str, `escape-character=\\`, S(`a"b\`), `"a\"b\\"`},
		{"24 characters", str, "", S(strings.Repeat("x", 24)), strings.Repeat("x", 24)},
		{"25 characters", str, "", S(strings.Repeat("x", 25)), `"` + strings.Repeat("x", 25) + `"`},
		{"24 wide characters", str, "", S(strings.Repeat("é", 24)), strings.Repeat("é", 24)},
		{"digits below a pipe", str, "field-delimiter=;", S("12"), `"12"`},
		{"numbers are not quoted", i32, "field-delimiter=;", D(12), `12`},
		{"quoting off", str, "disable-quote-character=true", S(`a, "b"`), `a, "b"`},
		{"null", str, "", N, ``},
		{"null literal", str, "null-literal=n/a", N, `n/a`},
		{"timestamp", ts3, "", D(1704164645000000), `"2024-01-02 03:04:05"`},
		{"ltz", types.TimestampOf(types.TimestampLTZ, 3), "", D(1704164645120000), `"2024-01-02 03:04:05.12Z"`},
		{"date", types.DateType, "", D(19724), `2024-01-02`},
		{"time", types.Of(types.Time), "", D(45296000), `12:34:56`},
		{"decimal", types.DecimalOf(10, 2), "", D(10000), `1E+2`},
		{"decimal plain", types.DecimalOf(10, 2), "write-bigdecimal-in-scientific-notation=false", D(10000), `100.00`},
		{"double", dbl, "", types.FloatDatum(1e7), `1.0E7`},
		{"bool", types.BoolType, "", types.BoolDatum(false), `false`},
		{"bytes", types.BytesType, "", S("\x01"), `AQ==`},
		{"array", types.ArrayOf(i32), "", types.ListDatum(D(1), N, D(3)), `1;;3`},
		{"row", types.RowOf(types.Field{Name: "x", Type: i32}, types.Field{Name: "y", Type: str}), "", types.ListDatum(D(1), S("a b")), `"1;a b"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := cols("a", c.ty)
			if got := encode(t, encoder(t, "csv", s, split(c.opts)...), rows(s, nil, []types.Datum{c.d}))[0]; got != c.want {
				t.Errorf("got %s want %s", got, c.want)
			}
		})
	}
	s := cols("a", str, "b", i32)
	if got := encode(t, encoder(t, "csv", s, "field-delimiter=\\t"), rows(s, nil, []types.Datum{S("x"), D(1)}))[0]; got != "x\t1" {
		t.Errorf("delimiter: %q", got)
	}
}

func TestCSVCheck(t *testing.T) {
	f := format(t, "csv")
	for _, c := range []struct {
		ty   types.Type
		opts string
		want string
	}{
		{i32, "field-delimiter=||", "option 'csv.field-delimiter': '||' must be a single"},
		{i32, "array-element-delimiter=", "must be a single"},
		{i32, "escape-character=ab", "must be a single"},
		{i32, "quote-character='|disable-quote-character=true", "together with 'disable-quote-character'"},
		{mapSI, "", "cannot hold column a of type MAP"},
		{types.ArrayOf(types.ArrayOf(i32)), "", "cannot hold column a"},
		{types.Type{Kind: types.Time, Precision: 6}, "", "cannot hold column a"},
	} {
		opts := split(c.opts)
		if strings.HasPrefix(c.opts, "field-delimiter=") {
			opts = []string{c.opts}
		}
		err := f.Check(cols("a", c.ty), mustOptions(t, f, opts...), connectors.UseSource)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %v: %v", c.opts, c.ty, err)
		}
	}
}
