package connectors

// Goal: every fault of a WITH clause is one Config error that names table, option and remedy, and no secret leaks.
// Method: tables of options in, message parts out.

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/sql/diag"
)

var testOpts = []Option{
	{Key: "topic", Type: ListOption, Required: true},
	{Key: "mode", Type: EnumOption, Default: "earliest-offset", Values: []string{"earliest-offset", "EXCEPT_KEY"}},
	{Key: "interval", Type: DurationOption, Default: "5 min"},
	{Key: "size", Type: MemoryOption, Default: "128mb"},
	{Key: "count", Type: IntOption},
	{Key: "rate", Type: FloatOption, Default: "0"},
	{Key: "flag", Type: BoolOption, Default: "false"},
	{Key: "new-name", Type: StringOption},
	{Key: "old-name", Type: StringOption, Deprecated: "new-name"},
	{Key: "json.ignore-parse-errors", Type: BoolOption},
	{Key: "password", Type: IntOption},
}

func table(kv ...string) *catalog.Table {
	t := &catalog.Table{Name: "orders", Options: catalog.NewOptions()}
	t.Options.Set("connector", "test", diag.Pos{Line: 1, Col: 1})
	for i := 0; i < len(kv); i += 2 {
		t.Options.Set(kv[i], kv[i+1], diag.Pos{Line: 2 + i/2, Col: 3})
	}
	return t
}

func TestParseValues(t *testing.T) {
	v, err := Parse(table("topic", "a; b;;c", "mode", "except_key", "size", "1 KB", "count", "-7", "rate", "0.5", "flag", "TRUE",
		"old-name", "x", "json.ignore-parse-errors", "true", "properties.a.b", "c"), testOpts, []string{"properties."})
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, got, want any) {
		if got != want {
			t.Errorf("%s = %v, want %v", what, got, want)
		}
	}
	check("list", strings.Join(v.List("topic"), "|"), "a|b|c")
	check("enum", v.Enum("mode"), "EXCEPT_KEY")
	check("default duration", v.Duration("interval"), 5*time.Minute)
	check("memory", v.Memory("size"), int64(1024))
	check("int", v.Int("count"), int64(-7))
	check("float", v.Float("rate"), 0.5)
	check("bool", v.Bool("flag"), true)
	check("deprecated spelling", v.String("new-name"), "x")
	check("deprecated has", v.Has("new-name"), true)
	check("sub", v.Sub("json.").Bool("ignore-parse-errors"), true)
	check("has not", v.Has("interval"), false)
	check("pos", v.Pos("mode"), diag.Pos{Line: 3, Col: 3})
	check("errorf", v.Sub("json.").Errorf("ignore-parse-errors", "no").Error(), "9:3: table orders: option 'json.ignore-parse-errors': no")
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct {
		kv   []string
		want []string
	}{
		{nil, []string{"missing required option 'topic'", "1:1"}},
		{[]string{"topik", "a"}, []string{"missing required option 'topic'", "write 'topic' instead of 'topik'"}},
		{[]string{"topic", "a", "intervall", "1"}, []string{"does not support option 'intervall'", "did you mean 'interval'?", "3:3", "old-name (deprecated, use new-name)"}},
		{[]string{"topic", "a", "ignore-parse-errors", "true"}, []string{"did you mean 'json.ignore-parse-errors'?"}},
		{[]string{"topic", "a", "mode", "except-key"}, []string{"'except-key' is not one of its values", "'earliest-offset', 'EXCEPT_KEY'", "did you mean 'EXCEPT_KEY'?"}},
		{[]string{"topic", "a", "mode", "earliest"}, []string{"did you mean 'earliest-offset'?"}},
		{[]string{"topic", "a", "propertis.group.id", "g"}, []string{"did you mean 'properties.group.id'?"}},
		{[]string{"topic", "a", "count", "x"}, []string{"option 'count': 'x' is not a valid integer"}},
		{[]string{"topic", "a", "rate", "x"}, []string{"not a valid number"}},
		{[]string{"topic", "a", "flag", "yes"}, []string{"'true' or 'false'"}},
		{[]string{"topic", "a", "interval", "5 fortnights"}, []string{"unknown time unit"}},
		{[]string{"topic", "a", "size", "5 x"}, []string{"unknown size unit"}},
		{[]string{"topic", "a", "password", "hunter2"}, []string{"'******'"}},
		{[]string{"topic", "a", "properties.", "x"}, []string{"'properties.'"}},
	} {
		_, err := Parse(table(c.kv...), testOpts, []string{"properties."})
		var e *diag.Error
		if !errors.As(err, &e) || e.Code != diag.Config {
			t.Fatalf("%v: %v is no Config error", c.kv, err)
		}
		text := diag.Render(err, "", "")
		for _, w := range c.want {
			if !strings.Contains(text, w) {
				t.Errorf("%v: %q is missing in:\n%s", c.kv, w, text)
			}
		}
		if strings.Contains(text, "hunter2") {
			t.Errorf("secret shown: %s", text)
		}
	}
}

func TestRenderMasks(t *testing.T) {
	got := Render(table("password", "p", "b", "it's", "properties.sasl.jaas.config", "x"))
	want := "'b'='it''s', 'connector'='test', 'password'='******', 'properties.sasl.jaas.config'='******'"
	if got != want {
		t.Fatalf("got %s\nwant %s", got, want)
	}
}

func TestParseDuration(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"5 s": 5 * time.Second, "1min": time.Minute, "100": 100 * time.Millisecond, " 2 Days ": 48 * time.Hour, "3 h": 3 * time.Hour,
		"10 ms": 10 * time.Millisecond, "7 micro": 7 * time.Microsecond, "1 ns": 1, "0": 0, "PT5S": 5 * time.Second, "pt1h30m": 90 * time.Minute,
		"P1D": 24 * time.Hour, "P1DT0.5S": 24*time.Hour + 500*time.Millisecond, "1 m": time.Minute,
	} {
		if got, err := ParseDuration(in); err != nil || got != want {
			t.Errorf("%q: %v, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "s", "-1 s", "1.5 s", "5 x", "P", "PT", "P1H", "PT1S1M", "PT-1S", "99999999999 d", "PTNaNS"} {
		if got, err := ParseDuration(in); err == nil {
			t.Errorf("%q: accepted as %v", in, got)
		}
	}
}

func TestParseMemory(t *testing.T) {
	for in, want := range map[string]int64{"128mb": 128 << 20, "1 GB": 1 << 30, "4096": 4096, "7 kibibytes": 7168, "2b": 2, "1t": 1 << 40} {
		if got, err := ParseMemory(in); err != nil || got != want {
			t.Errorf("%q: %v, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "mb", "-1", "1.5mb", "5 x", "99999999999 t"} {
		if got, err := ParseMemory(in); err == nil {
			t.Errorf("%q: accepted as %v", in, got)
		}
	}
}

// FuzzUnits: any text is a duration or a size that is not negative, or an error.
func FuzzUnits(f *testing.F) {
	for _, s := range []string{"5 s", "1min", "100", "PT1H30M", "p1dt0.5s", "PT-1S", "128mb", "9223372036854775807 tb", "P106751DT23H", "1e9 h"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := ParseDuration(s); err == nil && d < 0 {
			t.Errorf("%q is %s", s, d)
		}
		if n, err := ParseMemory(s); err == nil && n < 0 {
			t.Errorf("%q is %d bytes", s, n)
		}
	})
}
