package streamsql

import (
	"slices"
	"strings"

	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/connectors/format"
	"github.com/streamsql/streamsql/planner"
)

// SettingNames are the keys of SET that have an effect, sorted.
func (e *Engine) SettingNames() []string { return planner.SettingKeys() }

// SettingValues are the values of a key of SET when they are few, such as true and false; else nil.
func (e *Engine) SettingValues(key string) []string { return planner.SettingValues(key) }

// OptionNames are the keys that a WITH clause with 'connector' = connector takes, sorted; just 'connector' when there is no
// such connector. formats are the formats the clause names, with the prefix of their option: "json", "value.csv".
func (e *Engine) OptionNames(connector string, formats []string) []string {
	out := []string{"connector"}
	c := e.connectorOf(connector)
	if c == nil {
		return out
	}
	for _, o := range e.options(c) {
		out = append(out, o.Key)
	}
	for _, f := range formats {
		if known, ok := format.Lookup(f[strings.LastIndexByte(f, '.')+1:]); ok {
			for _, o := range known.Options {
				out = append(out, f+"."+o.Key)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// OptionValues are the values of an option of a connector when they are few; else nil.
func (e *Engine) OptionValues(connector, key string) (values []string) {
	if key == "connector" {
		for _, c := range e.conns {
			values = append(values, c.Name)
		}
		return values
	}
	if key == "format" || strings.HasSuffix(key, ".format") {
		return format.Names()
	}
	c := e.connectorOf(connector)
	if c == nil {
		return nil
	}
	for _, o := range e.options(c) {
		switch {
		case o.Key != key:
		case o.Type == connectors.BoolOption:
			return []string{"true", "false"}
		default:
			return o.Values
		}
	}
	return nil
}

func (e *Engine) connectorOf(name string) *connectors.Connector {
	for i := range e.conns {
		if e.conns[i].Name == name {
			return &e.conns[i]
		}
	}
	return nil
}

// options are the options of a connector, with those by which it names its formats.
func (e *Engine) options(c *connectors.Connector) []connectors.Option {
	out := slices.Clone(c.Options)
	if c.NeedsFormat {
		out = append(out, connectors.Option{Key: "format"})
		if c.Name == "kafka" || c.Name == "upsert-kafka" {
			out = append(out, connectors.Option{Key: "key.format"}, connectors.Option{Key: "value.format"})
		}
	}
	return out
}
