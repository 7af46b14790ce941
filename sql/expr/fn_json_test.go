package expr

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

func TestJSONFunctions(t *testing.T) {
	checkText(t, "Asia/Tokyo", [][2]string{
		{`JSON_VALUE('{"a": {"b": "x"}}', '$.a.b')`, "x"}, {`JSON_VALUE('{"a": true}', 'lax $.a')`, "true"}, {`JSON_VALUE('{"a": 13.370}', '$.a')`, "13.370"}, {`JSON_VALUE('{"a": 1e2}', '$.a')`, "1E+2"},
		{`JSON_VALUE('{"a": 123456789.987654321}', '$.a')`, "123456789.987654321"}, {`JSON_VALUE('{"a":1}', '$.b')`, "NULL"}, {`JSON_VALUE('{"a":[1]}', 'lax $.a')`, "NULL"}, {`JSON_VALUE('bad', '$.b')`, "NULL"},
		{`JSON_VALUE('{"a":1}', '$.b', 'x' | 'DEFAULT ON EMPTY')`, "NULL"}, {`JSON_VALUE('{"a":1}', 'lax $.b', 'x' | 'DEFAULT ON EMPTY')`, "x"}, {`JSON_VALUE('{"a":1}', '$.b', 'x' | 'DEFAULT ON ERROR')`, "x"},
		{`JSON_VALUE('{"a":1}', '$.b', 'e', 'f' | 'DEFAULT ON EMPTY' 'DEFAULT ON ERROR')`, "f"}, {`JSON_VALUE('{}', '$.b' | 'ERROR ON ERROR')`, "error:finds nothing"}, {`JSON_VALUE('{}', 'lax $.b' | 'ERROR ON EMPTY')`, "error:finds nothing"},
		{`JSON_VALUE('{"a": 5}', '$.a' | RETURNING INT)`, "5 :: INT"}, {`JSON_VALUE('{"a": 3000000000}', '$.a' | RETURNING INT)`, "NULL"}, {`JSON_VALUE('{"a": 5}', '$.a' | RETURNING DOUBLE)`, "5.0"}, {`JSON_VALUE('{"a": true}', '$.a' | RETURNING BOOLEAN)`, "TRUE"},
		{`JSON_VALUE('{"a": "5"}', '$.a', 7 | RETURNING INT 'DEFAULT ON ERROR')`, "7"}, {`JSON_VALUE('{}', '$.a' | RETURNING DATE)`, "plan:RETURNING DATE"}, {`JSON_VALUE('{}', 'a')`, "plan:path 'a' cannot be used"}, {`JSON_VALUE(CAST(NULL AS STRING), '$')`, "NULL"},
		{`JSON_VALUE('{"a": "x\u0041\n\ud83d\ude00"}', '$.a')`, "xA\n😀"}, {`JSON_VALUE('{"a": null}', 'lax $.a', 'd' | 'DEFAULT ON EMPTY')`, "d"},
		{`JSON_EXISTS('{"a": true}', '$.a')`, "TRUE"}, {`JSON_EXISTS('{"a": true}', '$.b')`, "FALSE"}, {`JSON_EXISTS('{}', '$.b' | 'TRUE ON ERROR')`, "TRUE"}, {`JSON_EXISTS('{}', '$.b' | 'UNKNOWN ON ERROR')`, "NULL"}, {`JSON_EXISTS('x', '$.b' | 'ERROR ON ERROR')`, "error:finds nothing"},
		{`JSON_QUERY('{ "a": { "itemId":1, "count":2 } }', '$.a')`, `{"count":2,"itemId":1}`}, {`JSON_QUERY('[1, 2]', '$[1]')`, "NULL"}, {`JSON_QUERY('[1, 2]', '$[1]' | 'CONDITIONAL WRAPPER')`, "[2]"}, {`JSON_QUERY('{}', '$' | 'CONDITIONAL WRAPPER')`, "[{}]"}, {`JSON_QUERY('[]', '$' | 'UNCONDITIONAL WRAPPER')`, "[[]]"},
		{`JSON_QUERY('{}', '$.x' | 'EMPTY OBJECT ON ERROR')`, "{}"}, {`JSON_QUERY('{}', 'lax $.x' | 'EMPTY ARRAY ON EMPTY')`, "[]"}, {`JSON_QUERY('{"b":[1,null,"x",{"c":1,"b":2}]}', '$.b' | RETURNING ARRAY<STRING>)`, `[1, NULL, x, {"b":2,"c":1}]`},
		{`JSON_QUERY('{}', '$.x' | RETURNING ARRAY<STRING> 'EMPTY OBJECT ON ERROR')`, "plan:EMPTY OBJECT"}, {`JSON_QUERY('{}', '$.x' | 'ERROR ON ERROR')`, "error:finds nothing"},
		{`JSON_STRING('a"b')`, `"a\"b"`}, {`JSON_STRING(1.50)`, "1.50"}, {`JSON_STRING(1e10)`, "1.0E10"}, {`JSON_STRING(ARRAY[1, NULL])`, "[1,null]"}, {`JSON_STRING(MAP['b', 1, 'a', 2])`, `{"a":2,"b":1}`}, {`JSON_STRING(x'54657374')`, `"VGVzdA=="`},
		{`JSON_STRING(TIMESTAMP '1990-06-02 13:37:42.001')`, `"1990-06-02T13:37:42.001"`}, {`JSON_STRING(TIMESTAMP '1990-06-02 13:37:00')`, `"1990-06-02T13:37:00"`}, {`JSON_STRING(TO_TIMESTAMP_LTZ(0, 3))`, `"1970-01-01T00:00:00Z"`}, {`JSON_STRING(DATE '2020-01-01')`, "plan:no JSON form"}, {`JSON_STRING(CAST(NULL AS INT))`, "NULL"},
		{`JSON_OBJECT('K2', 1, 'K1', 'v')`, `{"K1":"v","K2":1}`}, {`JSON_OBJECT('K', CAST(NULL AS STRING))`, `{"K":null}`}, {`JSON_OBJECT('K', CAST(NULL AS STRING) | 'ABSENT ON NULL')`, "{}"}, {`JSON_OBJECT()`, "{}"}, {`JSON_OBJECT('a')`, "plan:JSON_OBJECT cannot be called"},
		{`JSON_ARRAY(1, CAST(NULL AS INT), 'a')`, `[1,"a"]`}, {`JSON_ARRAY(CAST(NULL AS INT) | 'NULL ON NULL')`, "[null]"}, {`JSON_ARRAY(JSON_OBJECT('k', JSON('{"b": 1, "a": 2}')), JSON_ARRAY())`, `[{"k":{"a":2,"b":1}},[]]`}, {`JSON('')`, "NULL"}, {`JSON('{')`, "error:is no JSON"},
		{`JSON_QUOTE('a"/≠😀')`, `"a\"\/\u2260\ud83d\ude00"`}, {`JSON_UNQUOTE('"\u0041"')`, "A"}, {`JSON_UNQUOTE('"["abc"]"')`, `["abc"]`}, {`JSON_UNQUOTE('"\u006z"')`, `"\u006z"`}, {`JSON_UNQUOTE('[1]')`, "[1]"}, {`JSON_UNQUOTE('"')`, `"`}, {`JSON_UNQUOTE('')`, ""},
	})
	for _, c := range [][3]string{{"1", "JSON", "TRUE"}, {"a", "JSON", "FALSE"}, {`"a"`, "JSON SCALAR", "TRUE"}, {"[1]", "JSON ARRAY", "TRUE"}, {"{}", "JSON OBJECT", "TRUE"}, {"[1]", "JSON OBJECT", "FALSE"}, {"", "JSON", "FALSE"}, {"01", "JSON", "FALSE"}, {"1 x", "JSON", "TRUE"}, {"truex", "JSON", "FALSE"}} {
		for _, not := range []bool{false, true} {
			e, err := NewIs(NewStringLiteral(c[0]), c[1], not)
			if err != nil {
				t.Fatal(err)
			}
			want := c[2]
			if not {
				want = map[string]string{"TRUE": "FALSE", "FALSE": "TRUE"}[want]
			}
			for form := range 4 {
				if got := evalForm(t, e, Session{}, form); got != want {
					t.Errorf("'%s' IS %s (not %t): %s", c[0], c[1], not, got)
				}
			}
		}
	}
}

// TestRawJSON: text that was JSON before it was folded is not mixed up with an equal string, and IS JSON prints as SQL.
func TestRawJSON(t *testing.T) {
	raw, text := mustParse(t, "JSON_ARRAY(JSON('[1]'))", nil), mustParse(t, "JSON_ARRAY(CAST('[1]' AS STRING))", nil)
	p, err := Compile([]Expr{raw, text}, Session{})
	if err != nil {
		t.Fatal(err)
	}
	v, err := p.Eval(&batch.Batch{N: 1})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := v[0].Str[0], v[1].Str[0]; a != "[[1]]" || b != `["[1]"]` {
		t.Errorf("got %s and %s", a, b)
	}
	e, err := NewIs(&Column{Name: "s", T: types.StringType}, "JSON ARRAY", true)
	if err != nil || e.String() != "s IS NOT JSON ARRAY" {
		t.Errorf("got %s, %v", e, err)
	}
}

// TestJSONPath: what a path finds in one document, as compact JSON; "<none>" for nothing.
func TestJSONPath(t *testing.T) {
	const doc = `{"a":{"b":[1,2,3,4],"na me":"x","c":[{"d":1,"e":"p"},{"d":5},{"e":null}]},"s":"str","a.b":7,"dup":1,"dup":2}`
	for _, c := range [][2]string{
		{"$", `{"a":{"b":[1,2,3,4],"c":[{"d":1,"e":"p"},{"d":5},{"e":null}],"na me":"x"},"a.b":7,"dup":2,"s":"str"}`}, {"$.a.b", "[1,2,3,4]"}, {"$.a.b[0]", "1"}, {"$.a.b[-1]", "4"}, {"$.a.b[9]", "<none>"}, {"$.a.b[0,2]", "[1,3]"},
		{"$.a.b[1:3]", "[2,3]"}, {"$.a.b[-2:]", "[3,4]"}, {"$.a.b[:-1]", "[1,2,3]"}, {"$.a['na me']", `"x"`}, {`$["a"]["b"][1]`, "2"}, {"$.['a.b']", "7"}, {"$.dup", "2"}, {"$.a.c[*].d", "[1,5]"}, {"lax $.a.c[*].d", "[1,5]"}, {"$..d", "[1,5]"}, {"$.a.c.*", `[{"d":1,"e":"p"},{"d":5},{"e":null}]`},
		{"$.a.c[?(@.d > 1)]", `[{"d":5}]`}, {"$.a.c[?(@.e)].e", `["p",null]`}, {"$.a.c[?(@.e == 'p' || @.d == 5)].d", "[1,5]"}, {"$.a.c[?(!(@.d < 2) && @.d)].d", "[5]"}, {"$.a.b[?(@ >= $.a.b[2])]", "[3,4]"}, {"$.a.c[?(@.e != 'p')]", `[{"d":5},{"e":null}]`}, {"$.a.c[?(@.e == null)]", `[{"e":null}]`},
		{"$.a.b.length()", "4"}, {"$.s.length()", "3"}, {"$['s','dup']", `{"dup":2,"s":"str"}`}, {"strict $.x", "<none>"}, {"lax $.x", "<none>"}, {"$.x[*]", "<none>"}, {"lax $.x[*]", "[]"}, {"$.s.t", "<none>"}, {"$.a[0]", "<none>"}, {"$.b[*", "<bad>"}, {"x", "<bad>"}, {"$.", "<bad>"}, {"$..", "<bad>"}, {"$.a[?(@.x =~ /a/)]", "<cannot>"}, {"$.a.sum()", "<cannot>"}, {"$[?(1)]", "<bad>"}, {"$a", "<bad>"},
	} {
		var d jsonDoc
		p, err := parseJSONPath(c[0])
		got := "<bad>"
		switch {
		case errors.Is(err, errUnsupportedRegex):
			got = "<cannot>"
		case err == nil:
			root, ok := d.parse(doc)
			if !ok {
				t.Fatal("the document does not parse")
			}
			got = "<none>"
			if at, found := p.find(&d, root); found {
				got = string(d.append(nil, at))
			}
		}
		if got != c[1] {
			t.Errorf("%s: %s (%v), want %s", c[0], got, err, c[1])
		}
	}
}

// FuzzJSON: our parser takes what encoding/json takes (but for broken UTF-8 and depth), and what it writes parses again
// to the same text.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e-3,"x\u00e9",null,true]}`, `[[],{},"",-0]`, `"\ud83d\ude00"`, `{"a":1,"a":2}`, `1e400`, ` [ 1 , 2 ] `, `{"":{}}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var d, again jsonDoc
		root, ok := d.parse(s)
		if json.Valid([]byte(s)) && !ok && strings.Count(s, "[")+strings.Count(s, "{") < maxJSONDepth {
			t.Fatalf("%q does not parse", s)
		}
		if !ok || strings.ToValidUTF8(s, "") != s {
			return
		}
		out := string(d.append(nil, root))
		root, ok = again.parse(out)
		if !ok {
			t.Fatalf("%q becomes %q", s, out)
		}
		if got := string(again.append(nil, root)); got != out {
			t.Errorf("%q becomes %q, then %q", s, out, got)
		}
		if !json.Valid([]byte(out)) {
			t.Errorf("%q becomes %q, which is no JSON", s, out)
		}
	})
}

// FuzzVariant: any text is a VARIANT or has a problem that is named; a VARIANT is JSON, and a VARIANT again, whose form stays. The first
// time a DOUBLE, 0e0 say, becomes 0.0, which is a decimal the second time.
func FuzzVariant(f *testing.F) {
	for _, s := range []string{`{"b":[1,2.50e-3,"x\u00e9",null,true],"a":{}}`, `{"a":1,"a":2}`, `1e400`, ` 12345678901234567890123456789012345678901 `, `-0.0`, `0e0`, `1 2`, ``} {
		f.Add(s, true)
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, s string, duplicates bool) {
		var p variantParser
		out, problem := p.parse(nil, s, duplicates)
		if problem != "" || strings.ToValidUTF8(s, "") != s {
			return
		}
		if !json.Valid(out) {
			t.Fatalf("%q becomes %q, which is no JSON", s, out)
		}
		again, problem := p.parse(nil, string(out), true)
		if problem != "" {
			t.Fatalf("%q becomes %q, of which %s", s, out, problem)
		}
		if more, problem := p.parse(nil, string(again), true); problem != "" || string(more) != string(again) {
			t.Errorf("%q becomes %q, %q, then %q %s", s, out, again, more, problem)
		}
	})
}

// FuzzJSONPath: no path makes the parser or the evaluation panic.
func FuzzJSONPath(f *testing.F) {
	for _, s := range []string{"$.a[0]['x',\"y\"]..b[?(@.c == 'd' && !($.e))].length()", "lax $[*]", "$[1:2]", "$[-1,2]", "$..*..*"} {
		f.Add(s, `{"a":[{"x":1},[2]],"b":{"c":"d"}}`)
	}
	f.Fuzz(func(t *testing.T, path, doc string) {
		p, err := parseJSONPath(path)
		if err != nil || len(path) > 100 || len(doc) > 200 {
			return
		}
		var d jsonDoc
		if root, ok := d.parse(doc); ok {
			if at, found := p.find(&d, root); found {
				d.append(nil, at)
			}
		}
	})
}
