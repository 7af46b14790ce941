package format

import (
	"bytes"
	"encoding/base64"
	"slices"

	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/types"
)

// Debezium does not know the value of a large column that an update left alone (PostgreSQL keeps it apart, in TOAST): it
// sends a placeholder in its place. It is text like any other, and no value.

const (
	unavailableOption  = "unavailable-value"
	placeholderOption  = "unavailable-value.placeholder"
	defaultPlaceholder = "__debezium_unavailable_value" // unavailable.value.placeholder of the connector
)

var unavailableOptions = []connectors.Option{
	{Key: unavailableOption, Type: connectors.EnumOption, Default: "fail", Values: []string{"fail", "null", "keep"},
		Doc: "what a column is read as whose value the connector did not send, because an update left a large value alone: a bad record, NULL, or the placeholder itself (Flink keeps it)"},
	{Key: placeholderOption, Type: connectors.StringOption, Default: defaultPlaceholder, Doc: "unavailable.value.placeholder of the connector"},
}

// unavailable finds placeholders in messages.
type unavailable struct {
	fail, null bool
	forms      [][]byte // how a value that is not there is written
	needles    [][]byte // what a message with one holds
	here       bool     // in the message at hand
}

func newUnavailable(spec DecodeSpec) unavailable {
	mode := spec.Options.Enum(unavailableOption)
	u := unavailable{fail: mode == "fail", null: mode == "null"}
	p := spec.Options.String(placeholderOption)
	if !u.fail && !u.null || p == "" {
		return unavailable{}
	}
	text := []byte(`"` + p + `"`)
	u.needles = [][]byte{text}
	// A string, an array of one, an hstore; bytes come in base64.
	u.forms = [][]byte{text, []byte(`["` + p + `"]`), []byte(`{"` + p + `":"` + p + `"}`)}
	if slices.ContainsFunc(spec.Schema.Columns, func(c types.Column) bool { return c.Type.IsBytes() }) {
		code := []byte(`"` + base64.StdEncoding.EncodeToString([]byte(p)) + `"`)
		u.needles, u.forms = append(u.needles, code), append(u.forms, code)
	}
	return u
}

// look notes whether m may have placeholders. Most messages have none and are read once more for it: a search for bytes.
func (u *unavailable) look(m []byte) bool {
	u.here = slices.ContainsFunc(u.needles, func(n []byte) bool { return bytes.Contains(m, n) })
	return u.here
}

// missing sees to the columns of the row at m whose value was not sent. The message is one that may be changed where they are to
// be NULL.
func (d *debeziumDecoder) missing(m member) error {
	b := d.b
	p := skipSpace(b, m.at+1)
	if b[m.at] != '{' || p < len(b) && b[p] == '}' {
		return nil
	}
	for more := true; more; {
		from := p
		if p = skipKey(b, p); p < 0 {
			return nil // said when the row is read
		}
		at := p
		if p = skipValue(b, p, 1); p < 0 {
			return nil
		}
		value := bytes.TrimSpace(b[at:p])
		if slices.ContainsFunc(d.sent.forms, func(f []byte) bool { return bytes.Equal(f, value) }) {
			if name := d.keyText(from); d.reads(name) {
				if d.sent.fail {
					return &BadRecord{Column: name, Offset: at, Value: shorten(value),
						Reason: "the value was not sent: the update left it alone; in PostgreSQL set REPLICA IDENTITY FULL on the table, or choose '" + debeziumJSON.Name + "." + unavailableOption + "'"}
				}
				n := copy(b[at:p], "null")
				for i := at + n; i < p; i++ {
					b[i] = ' '
				}
			}
		}
		if p, more = d.comma(p, '}'); p < 0 {
			return nil
		}
	}
	return nil
}

// reads reports that a column of that name is read.
func (d *debeziumDecoder) reads(name string) bool {
	return slices.ContainsFunc(d.plan.o.fields, func(f field) bool { return f.name == name })
}
