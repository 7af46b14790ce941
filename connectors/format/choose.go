package format

import (
	"slices"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// formats is every format there is, by name.
var formats = []*Format{changelogJSON, csvFormat, debeziumJSON, jsonFormat, rawFormat}

// Lookup is the format called name.
func Lookup(name string) (*Format, bool) {
	for _, f := range formats {
		if f.Name == name {
			return f, true
		}
	}
	return nil, false
}

// All are the formats, sorted by name, for documentation.
func All() []*Format { return slices.Clone(formats) }

// Names are the names of All.
func Names() []string {
	out := make([]string, len(formats))
	for i, f := range formats {
		out[i] = f.Name
	}
	return out
}

// elsewhere are formats Flink has and streamsql refuses by name.
var elsewhere = []string{"avro", "avro-confluent", "debezium-avro-confluent", "canal-json", "maxwell-json", "ogg-json", "parquet", "orc", "protobuf"}

// Slots says which format options a connector takes.
type Slots uint8

// The slots, to be or-ed.
const (
	// Plain is 'format', or 'value.format' when Keyed is set too; required unless ValueOnly.
	Plain Slots = 1 << iota
	// Keyed is 'key.format' beside 'value.format'.
	Keyed
	// ValueOnly refuses 'format': upsert-kafka knows 'value.format' and 'key.format' only, both required.
	ValueOnly
)

// Choice is what a table's format options select.
type Choice struct {
	Value       *Format
	ValuePrefix string // of the value format's options: "json." or "value.json."
	Key         *Format
	KeyPrefix   string
	slots       Slots
}

// Choose reads 'format', 'value.format' and 'key.format' of t. Errors name the option, the known formats and a near miss.
func Choose(t *catalog.Table, slots Slots) (*Choice, error) {
	c := &Choice{slots: slots}
	key := "format"
	plain, hasPlain := t.Options.Get("format")
	value, hasValue := t.Options.Get("value.format")
	switch {
	case slots&ValueOnly != 0:
		if !hasValue {
			return nil, missing(t, "value.format")
		}
		key = "value.format"
	case slots&Keyed != 0 && hasPlain && hasValue:
		return nil, diag.New(diag.Config, t.Options.Pos("value.format"), "table %s: 'format' and 'value.format' exclude each other", t.Name).
			WithHint("keep 'value.format' and remove 'format'")
	case slots&Keyed != 0 && hasValue:
		key = "value.format"
	case !hasPlain:
		return nil, missing(t, "format")
	}
	name := plain
	if key == "value.format" {
		name = value
		c.ValuePrefix = "value."
	}
	var err error
	if c.Value, err = find(t, key, name); err != nil {
		return nil, err
	}
	c.ValuePrefix += c.Value.Name + "."
	if slots&(Keyed|ValueOnly) == 0 {
		return c, nil
	}
	keyName, hasKey := t.Options.Get("key.format")
	if !hasKey {
		if slots&ValueOnly != 0 {
			return nil, missing(t, "key.format")
		}
		return c, nil
	}
	if c.Key, err = find(t, "key.format", keyName); err != nil {
		return nil, err
	}
	c.KeyPrefix = "key." + c.Key.Name + "."
	if c.Key.Source != types.AppendOnly {
		return nil, diag.New(diag.Config, t.Options.Pos("key.format"), "table %s: format '%s' cannot be a key format: it describes changes", t.Name, keyName).
			WithHint("use 'key.format' = 'json', 'csv' or 'raw'")
	}
	return c, nil
}

func missing(t *catalog.Table, key string) error {
	return diag.New(diag.Config, t.Options.Pos("connector"), "table %s: missing required option '%s'", t.Name, key).
		WithDetail("known formats: %v", Names()).WithHint("add '%s' = 'json' to the WITH clause", key)
}

func find(t *catalog.Table, key, name string) (*Format, error) {
	f, ok := Lookup(name)
	if ok {
		return f, nil
	}
	if slices.Contains(elsewhere, name) {
		return nil, diag.New(diag.Unsupported, t.Options.Pos(key), "table %s: option '%s': format '%s' is not supported", t.Name, key, name).
			WithDetail("known formats: %v", Names()).WithHint("write the data as 'json' or 'csv'")
	}
	err := diag.New(diag.Config, t.Options.Pos(key), "table %s: option '%s': unknown format '%s'", t.Name, key, name).
		WithDetail("known formats: %v", Names())
	if near := diag.Nearest(name, Names()); near != "" {
		err = err.WithHint("did you mean '%s'?", near)
	}
	return nil, err
}

// Options are the options the choice adds to a connector's own: the format options and those of the chosen formats
// under their prefix.
func (c *Choice) Options() []connectors.Option {
	var out []connectors.Option
	if c.slots&ValueOnly == 0 {
		out = append(out, connectors.Option{Key: "format", Flink: true, Doc: "format of messages or records"})
	}
	if c.slots&(Keyed|ValueOnly) != 0 {
		out = append(out, connectors.Option{Key: "value.format", Flink: true, Doc: "format of the value part"},
			connectors.Option{Key: "key.format", Flink: true, Doc: "format of the key part"})
	}
	out = append(out, connectors.Prefixed(c.ValuePrefix, c.Value.Options)...)
	if c.Key != nil {
		out = append(out, connectors.Prefixed(c.KeyPrefix, c.Key.Options)...)
	}
	return out
}

// Check runs the chosen formats' checks; key is nil when the table has no key format.
func (c *Choice) Check(value, key *types.Schema, v *connectors.Values, use connectors.Use) error {
	if err := c.Value.Check(value, v.Sub(c.ValuePrefix), use); err != nil {
		return err
	}
	if c.Key == nil {
		return nil
	}
	return c.Key.Check(key, v.Sub(c.KeyPrefix), use)
}
