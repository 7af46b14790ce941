package format

import (
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// envelope is what the changelog formats share: messages that wrap rows. The members of the wrapper are located first,
// because the kind of change may stand behind the rows.
type envelope struct {
	*reader
	plan *rowPlan
	meta []metaField
	root []member // of the message, or of its payload
}

// member is a member of a wrapper; at is its position in the message, -1 when missing or null.
type member struct {
	name string
	at   int
}

// metaField is a metadata value: the member called path[0], or path[1] inside it.
type metaField struct {
	path []string
	c    *conv
	ms   bool // epoch milliseconds to read as TIMESTAMP_LTZ(3)
	col  int
}

func newEnvelope(spec DecodeSpec, metas map[string]metaField, names ...string) *envelope {
	r := &reader{jsonOptions: readJSONOptions(spec.Options, false)}
	e := &envelope{reader: r, plan: newRowPlan(r, spec)}
	for _, n := range names {
		e.root = append(e.root, member{name: n})
	}
	for _, t := range spec.Metadata {
		m := metas[t.Key]
		m.col = t.Col
		e.meta = append(e.meta, m)
	}
	return e
}

// decode runs one for every message and applies ignore-parse-errors to its errors.
func (e *envelope) decode(msgs [][]byte, out *batch.Builder, one func(m []byte, i int) error) (int, error) {
	e.plan.bind(out)
	for i, m := range msgs {
		if len(m) == 0 {
			continue
		}
		n0 := out.Len()
		e.begin(m)
		if err := one(m, i); err != nil {
			out.Truncate(n0)
			if !e.ignoreErrors {
				return i, err
			}
			e.skipped++
		}
	}
	return len(msgs), nil
}

// locate finds ms in the object at p. Of members that appear twice the last counts.
func (e *envelope) locate(p int, ms []member) int {
	for i := range ms {
		ms[i].at = -1
	}
	b := e.b
	if p >= len(b) || b[p] != '{' {
		return -1
	}
	p = skipSpace(b, p+1)
	if p < len(b) && b[p] == '}' {
		return p + 1
	}
	for more := true; more; {
		from := p
		if p = skipKey(b, p); p < 0 {
			return -1
		}
		name := e.keyText(from)
		for i := range ms {
			if ms[i].name == name {
				ms[i].at = p
				if p < len(b) && b[p] == 'n' {
					ms[i].at = -1
				}
			}
		}
		if p = skipValue(b, p, 1); p < 0 {
			return -1
		}
		if p, more = e.comma(p, '}'); p < 0 {
			return -1
		}
	}
	return p
}

// stringAt is the string at a located member, "" when it is missing or no string.
func (e *envelope) stringAt(m member) string {
	if m.at < 0 || e.b[m.at] != '"' {
		return ""
	}
	return e.keyText(m.at)
}

// row decodes the object at m as a row of kind k.
func (e *envelope) row(m member, i int, k types.RowKind, out *batch.Builder, done func(i int, k types.RowKind)) error {
	if e.b[m.at] != '{' {
		return &BadRecord{Column: m.name, Offset: m.at, Reason: "not an object", Value: shorten(e.b)}
	}
	n := out.Len()
	p, st := e.plan.read(m.at, n)
	if p < 0 {
		return malformed(e.b, "malformed JSON")
	}
	if st == bad {
		return e.badValue()
	}
	if err := e.appendMeta(out); err != nil {
		return err
	}
	done(i, k)
	return nil
}

// appendMeta appends the metadata values of the message.
func (e *envelope) appendMeta(out *batch.Builder) error {
	for i := range e.meta {
		m := &e.meta[i]
		at := -1
		for j := range e.root {
			if e.root[j].name == m.path[0] {
				at = e.root[j].at
			}
		}
		if at >= 0 && len(m.path) > 1 {
			sub := [1]member{{name: m.path[1]}}
			e.locate(at, sub[:]) // finds nothing when it is no object
			at = sub[0].at
		}
		col := out.Cols[m.col]
		if at < 0 {
			col.AppendNull()
			continue
		}
		e.v = types.Datum{}
		p, st := e.value(at, m.c, 1)
		switch {
		case p < 0 || st == bad:
			e.field = m.path[len(m.path)-1]
			return e.badValue()
		case st == null:
			col.AppendNull()
		default:
			if m.ms {
				e.v.I64 *= 1000
			}
			e.appendTo(col, m.c)
		}
	}
	return nil
}

// envelopeOptions are json's options as far as the envelopes have them.
func envelopeOptions(more ...connectors.Option) []connectors.Option {
	return append(append([]connectors.Option{}, jsonShared...), more...)
}
