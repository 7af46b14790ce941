package format

// Goal: the format options of a table select formats and prefixes as Flink does, and mistakes are named.

import (
	"strings"
	"testing"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		slots Slots
		opts  string
		want  string // "value prefix|key prefix", or the error's parts
	}{
		{Plain, "format=json", "json.|"},
		{Plain | Keyed, "value.format=csv", "value.csv.|"},
		{Plain | Keyed, "format=json key.format=raw", "json.|key.raw."},
		{ValueOnly, "value.format=json key.format=json", "value.json.|key.json."},
		{Plain, "", "missing required option 'format'"},
		{Plain, "value.format=json", "missing required option 'format'"},
		{ValueOnly, "format=json", "missing required option 'value.format'"},
		{ValueOnly, "value.format=json", "missing required option 'key.format'"},
		{Plain | Keyed, "format=json value.format=json", "exclude each other"},
		{Plain, "format=jsn", "unknown format 'jsn'"},
		{Plain, "format=avro", "format 'avro' is not supported"},
		{Plain | Keyed, "format=json key.format=debezium-json", "cannot be a key format"},
	} {
		tab := &catalog.Table{Name: "t", Options: catalog.NewOptions()}
		for _, o := range strings.Fields(c.opts) {
			k, v, _ := strings.Cut(o, "=")
			tab.Options.Set(k, v, diag.Pos{})
		}
		ch, err := Choose(tab, c.slots)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = ch.ValuePrefix + "|" + ch.KeyPrefix
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.opts, got, c.want)
		}
		if err == nil && got != c.want {
			t.Errorf("%s: got %q, want %q", c.opts, got, c.want)
		}
	}
}

// The options of the chosen formats, and only those, are accepted, under their prefix.
func TestChosenOptions(t *testing.T) {
	parse := func(opts ...string) error {
		tab := &catalog.Table{Name: "t", Options: catalog.NewOptions()}
		tab.Options.Set("connector", "x", diag.Pos{})
		for _, o := range opts {
			k, v, _ := strings.Cut(o, "=")
			tab.Options.Set(k, v, diag.Pos{})
		}
		ch, err := Choose(tab, Plain|Keyed)
		if err != nil {
			t.Fatal(err)
		}
		v, err := connectors.Parse(tab, ch.Options(), nil)
		if err != nil {
			return err
		}
		s := cols("a", types.IntType)
		return ch.Check(s, s, v, connectors.UseSource)
	}
	if err := parse("value.format=json", "value.json.ignore-parse-errors=true", "key.format=csv", "key.csv.field-delimiter=;"); err != nil {
		t.Error(err)
	}
	err := parse("value.format=json", "json.ignore-parse-errors=true")
	if text := diag.Render(err, "", ""); !strings.Contains(text, "did you mean 'value.json.ignore-parse-errors'?") {
		t.Error(text)
	}
	if err := parse("format=json", "key.format=csv", "key.csv.field-delimiter=;;"); err == nil || !strings.Contains(err.Error(), "key.csv.field-delimiter") {
		t.Error(err)
	}
}

func TestFormatsAreComplete(t *testing.T) {
	for _, f := range All() {
		if f.Doc == "" || f.Check == nil || f.NewDecoder == nil || f.NewEncoder == nil {
			t.Errorf("format %s is incomplete", f.Name)
		}
		for _, o := range f.Options {
			if o.Doc == "" {
				t.Errorf("option %s.%s has no doc", f.Name, o.Key)
			}
		}
		d, err := f.NewDecoder(DecodeSpec{Schema: cols("a", str), Options: mustOptions(t, f)})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := d.(Stats); !ok {
			t.Errorf("the decoder of %s counts nothing", f.Name)
		}
	}
}

func TestParseText(t *testing.T) {
	for _, c := range []struct {
		s    string
		ty   types.Type
		want string
	}{{"7", i32, "7"}, {"2024-01-02", types.DateType, "2024-01-02"}, {"a/b", str, "a/b"}, {"TRUE", types.BoolType, "true"}} {
		d, err := ParseText(c.s, c.ty)
		if err != nil || datumText(d, c.ty) != c.want {
			t.Errorf("%s: %v %v", c.s, d, err)
		}
	}
	for _, c := range []struct {
		s  string
		ty types.Type
	}{{"x", i32}, {"2024", types.DateType}, {"1", types.ArrayOf(i32)}} {
		if _, err := ParseText(c.s, c.ty); err == nil {
			t.Errorf("%s as %s accepted", c.s, c.ty)
		}
	}
}
