package format

// Goal: the envelopes: which message becomes which changes, metadata, and the way back.

import (
	"strings"
	"testing"

	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/types"
)

func TestDebeziumDecode(t *testing.T) {
	s := cols("id", i32, "v", str)
	for _, c := range []struct {
		name, opts, msg, want string
	}{
		{"read", "", `{"before":null,"after":{"id":1,"v":"a"},"op":"r"}`, "+I(1, a)"},
		{"create", "", `{"op":"c","after":{"v":"a","id":1}}`, "+I(1, a)"},
		{"update", "", `{"before":{"id":1,"v":"a"},"after":{"id":1,"v":"b"},"op":"u"}`, "-U(1, a) +U(1, b)"},
		{"delete", "", `{"before":{"id":1},"after":null,"op":"d"}`, "-D(1, NULL)"},
		{"tombstone", "", ``, ""},
		{"update without before", "", `{"before":null,"after":{"id":1},"op":"u"}`, `error at 0: "before" is null in a message of op "u"; in PostgreSQL set REPLICA IDENTITY FULL on the table`},
		{"delete without before", "", `{"op":"d"}`, `error at 0: "before" is null`},
		{"create without after", "", `{"op":"c"}`, `error at 0: "after" is null`},
		{"truncate", "", `{"op":"t"}`, `error at 0: unknown op "t"`},
		{"truncate ignored", "ignore-parse-errors=true", `{"op":"t"}`, ""},
		{"no op", "", `{"payload":{"op":"c"}}`, `error at 0: no member "op"; is 'schema-include' right`},
		{"wrapped", "schema-include=true", `{"schema":{},"payload":{"after":{"id":2},"op":"c"}}`, "+I(2, NULL)"},
		{"not wrapped", "schema-include=true", `{"after":{"id":2},"op":"c"}`, `error at 0: no member "payload"`},
		{"bad field", "", `{"after":{"id":"x"},"op":"c"}`, `error at 0: column id: not an integer`},
		{"bad field of an update", "", `{"before":{"id":1},"after":{"id":"x"},"op":"u"}`, `error at 0: column id: not an integer`},
		{"row is no object", "", `{"after":[1],"op":"c"}`, `error at 0: column after: not an object`},
		{"malformed", "", `{"after":{"id":1},"op":"c"`, `error at 0: malformed JSON`},
		{"value not sent", "", `{"before":{"id":1,"v":"a"},"after":{"id":1,"v":"__debezium_unavailable_value"},"op":"u"}`, `error at 0: column v: the value was not sent: the update left it alone; in PostgreSQL set REPLICA IDENTITY FULL`},
		{"value not sent, before", "", `{"before":{"v" : "__debezium_unavailable_value" ,"id":1},"op":"d"}`, `error at 0: column v: the value was not sent`},
		{"value not sent, ignored", "ignore-parse-errors=true", `{"after":{"v":"__debezium_unavailable_value"},"op":"c"}`, ""},
		{"value not sent, of another column", "", `{"after":{"id":1,"w":"__debezium_unavailable_value"},"op":"c"}`, "+I(1, NULL)"},
		{"value that holds the words", "", `{"after":{"id":1,"v":"a __debezium_unavailable_value"},"op":"c"}`, "+I(1, a __debezium_unavailable_value)"},
		{"value not sent, NULL", "unavailable-value=null", `{"before":{"id":1,"v":"a"},"after":{"id":2,"v":"__debezium_unavailable_value"},"op":"u"}`, "-U(1, a) +U(2, NULL)"},
		{"value not sent, kept", "unavailable-value=keep", `{"after":{"id":1,"v":"__debezium_unavailable_value"},"op":"c"}`, "+I(1, __debezium_unavailable_value)"},
		{"other placeholder", "unavailable-value.placeholder=?", `{"after":{"id":1,"v":"?"},"op":"c"}`, `error at 0: column v: the value was not sent`},
		{"other placeholder, the usual text", "unavailable-value.placeholder=?", `{"after":{"id":1,"v":"__debezium_unavailable_value"},"op":"c"}`, "+I(1, __debezium_unavailable_value)"},
		{"value not sent, wrapped", "schema-include=true|unavailable-value=null", `{"payload":{"after":{"v":"__debezium_unavailable_value","id":2},"op":"c"}}`, "+I(2, NULL)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, out := decoder(t, "debezium-json", s, nil, split(c.opts)...)
			if got := decode(d, out, c.msg); got != c.want && !(strings.HasPrefix(c.want, "error") && strings.HasPrefix(got, c.want)) {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
}

// Other types than strings have placeholders of their own.
func TestDebeziumUnavailable(t *testing.T) {
	strs := types.ArrayOf(types.StringType)
	s := cols("id", i32, "b", types.BytesType, "a", strs, "h", types.MapOf(types.StringType.NotNull(), types.StringType))
	const before = `{"before":{"id":1,"b":"AQI=","a":["x"],"h":{"k":"v"}},"op":"u","after":{"id":1,`
	for col, value := range map[string]string{
		"b": `"X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="`,
		"a": `["__debezium_unavailable_value"]`,
		"h": `{"__debezium_unavailable_value":"__debezium_unavailable_value"}`,
	} {
		msg := before + `"` + col + `":` + value + `}}`
		d, out := decoder(t, "debezium-json", s, nil)
		if got := decode(d, out, msg); !strings.HasPrefix(got, "error at 0: column "+col+": the value was not sent") {
			t.Errorf("%s: %s", col, got)
		}
		d, out = decoder(t, "debezium-json", s, nil, "unavailable-value=null")
		if got := decode(d, out, msg); !strings.HasSuffix(got, "+U(1, NULL, NULL, NULL)") {
			t.Errorf("%s: %s", col, got)
		}
	}
}

func TestDebeziumMetadata(t *testing.T) {
	metas := []string{"schema", "ingestion-timestamp", "source.timestamp", "source.database", "source.schema", "source.table", "source.properties"}
	d, out := decoder(t, "debezium-json", cols("id", i32), metas, "schema-include=true")
	got := decode(d, out,
		`{"schema":{"type": "struct"},"payload":{"before":{"id":1},"after":{"id":2},"op":"u","ts_ms":1704164645001,"source":{"db":"d","schema":"s","table":"t","ts_ms":1704164645000,"snapshot":false}}}`,
		`{"payload":{"after":{"id":3},"op":"c","source":null}}`)
	meta := `{"type":"struct"}, 2024-01-02 03:04:05.001, 2024-01-02 03:04:05, d, s, t, {db=d schema=s table=t ts_ms=1704164645000 snapshot=false})`
	want := `-U(1, ` + meta + ` +U(2, ` + meta + ` +I(3, NULL, NULL, NULL, NULL, NULL, NULL, NULL)`
	if got != want {
		t.Fatalf("got %s\nwant %s", got, want)
	}
}

func TestChangelogBothWays(t *testing.T) {
	s := cols("id", i32, "v", str)
	kinds := []types.RowKind{types.Insert, types.UpdateBefore, types.UpdateAfter, types.Delete}
	var data [][]types.Datum
	for i := range kinds {
		data = append(data, []types.Datum{types.IntDatum(int64(i)), types.StrDatum("x")})
	}
	b := rows(s, kinds, data...)
	msgs := encode(t, encoder(t, "changelog-json", s), b)
	if msgs[1] != `{"data":{"id":1,"v":"x"},"op":"-U"}` {
		t.Fatal(msgs[1])
	}
	d, out := decoder(t, "changelog-json", s, nil)
	if got := decode(d, out, msgs...); got != "+I(0, x) -U(1, x) +U(2, x) -D(3, x)" {
		t.Fatal(got)
	}
	for msg, want := range map[string]string{
		`{"data":{"id":1},"op":"+X"}`: `error at 0: "op" is "+X", expected`,
		`{"op":"+I"}`:                 `error at 0: no member "data"`,
		`{"data":{"id":1}}`:           `error at 0: "op" is ""`,
		`[]`:                          `error at 0: malformed JSON`,
	} {
		if got := decode(d, out, msg); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", msg, got)
		}
	}
	got := strings.Join(encode(t, encoder(t, "debezium-json", s), b), "\n")
	want := `{"before":null,"after":{"id":0,"v":"x"},"op":"c"}
{"before":{"id":1,"v":"x"},"after":null,"op":"d"}
{"before":null,"after":{"id":2,"v":"x"},"op":"c"}
{"before":{"id":3,"v":"x"},"after":null,"op":"d"}`
	if got != want {
		t.Fatalf("got %s", got)
	}
}

func TestDebeziumSinkRefusesSchema(t *testing.T) {
	f := format(t, "debezium-json")
	err := f.Check(cols("a", i32), mustOptions(t, f, "schema-include=true"), connectors.UseSink)
	if err == nil || !strings.Contains(err.Error(), "option 'debezium-json.schema-include'") {
		t.Fatal(err)
	}
}
