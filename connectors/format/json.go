package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

var jsonFormat = &Format{
	Name: "json",
	Doc:  "one JSON object per message, or an array of objects; fields by name",
	Options: append([]connectors.Option{
		{Key: "fail-on-missing-field", Type: connectors.BoolOption, Default: "false", Flink: true, Doc: "fail when a column's field is missing instead of reading NULL"},
		{Key: "decode.json-parser.enabled", Type: connectors.BoolOption, Default: "true", Flink: true,
			Doc: "Flink's choice between two parsers; both values read the same here"},
	}, jsonShared...),
	ReadsFields: true,
	Check: func(s *types.Schema, v *connectors.Values, use connectors.Use) error {
		if v.Bool("fail-on-missing-field") && v.Bool("ignore-parse-errors") {
			return v.Errorf("ignore-parse-errors", "'fail-on-missing-field' and 'ignore-parse-errors' exclude each other").
				WithHint("remove one of the two options")
		}
		return checkJSON(s, v, use)
	},
	NewDecoder: func(spec DecodeSpec) (Decoder, error) { return newJSONDecoder(spec), nil },
	NewEncoder: func(spec EncodeSpec) (Encoder, error) {
		return newJSONEncoder(spec, readJSONOptions(spec.Options, true)), nil
	},
}

type jsonDecoder struct {
	*reader
	plan *rowPlan
}

func newJSONDecoder(spec DecodeSpec) *jsonDecoder {
	r := &reader{jsonOptions: readJSONOptions(spec.Options, true)}
	return &jsonDecoder{reader: r, plan: newRowPlan(r, spec)}
}

// Decode implements Decoder.
func (d *jsonDecoder) Decode(msgs [][]byte, out *batch.Builder, row func(i int, k types.RowKind)) (int, error) {
	d.plan.bind(out)
	for i, m := range msgs {
		if len(m) == 0 {
			continue
		}
		n0 := out.Len()
		if err := d.message(m, i, out, row); err != nil {
			out.Truncate(n0)
			if !d.ignoreErrors {
				return i, err
			}
			d.skipped++
		}
	}
	return len(msgs), nil
}

func (d *jsonDecoder) message(m []byte, i int, out *batch.Builder, row func(i int, k types.RowKind)) error {
	d.begin(m)
	p := startOf(m)
	if p < len(m) && m[p] == '[' {
		return d.list(p, i, out, row)
	}
	if p >= len(m) || m[p] != '{' {
		return malformed(m, "not a JSON object or array of objects")
	}
	p, st := d.plan.read(p, out.Len())
	if p < 0 {
		return malformed(m, "malformed JSON")
	}
	if st == bad {
		return d.badValue()
	}
	row(i, types.Insert)
	return nil
}

// list reads a top-level array: a row per element.
func (d *jsonDecoder) list(p, i int, out *batch.Builder, row func(i int, k types.RowKind)) error {
	b := d.b
	p = skipSpace(b, p+1)
	if p < len(b) && b[p] == ']' {
		return nil
	}
	for more := true; more; {
		st := good
		switch {
		case p < len(b) && b[p] == '{':
			n := out.Len()
			if p, st = d.plan.read(p, n); p < 0 {
				return malformed(b, "malformed JSON")
			}
			if st == bad {
				return d.badValue()
			}
			row(i, types.Insert)
			d.stack, d.lists = d.stack[:0], d.lists[:0]
		case p < len(b) && b[p] == 'n':
			p = skipWord(b, p, "null") // no row, as for a NULL message
		default:
			from := p
			if p = skipValue(b, p, 1); p < 0 {
				return malformed(b, "malformed JSON")
			}
			if !d.ignoreErrors {
				return &BadRecord{Offset: from, Reason: "an element of the top-level array is no object", Value: shorten(b[from:p])}
			}
			d.skipped++
		}
		if p < 0 {
			return malformed(b, "malformed JSON")
		}
		if p, more = d.comma(p, ']'); p < 0 {
			return malformed(b, "malformed JSON")
		}
	}
	return nil
}

// startOf is the position of the first value, behind a byte order mark and white space.
func startOf(m []byte) int {
	p := 0
	if bytes.HasPrefix(m, []byte("\xef\xbb\xbf")) {
		p = 3
	}
	return skipSpace(m, p)
}

// malformed is the error for a message that is not JSON of the expected shape. The place of the fault is found by a
// second, slow parse, because the fast one does not keep it.
func malformed(m []byte, why string) *BadRecord {
	if !utf8.Valid(m) {
		return &BadRecord{Offset: -1, Reason: "the text is not UTF-8", Value: fmt.Sprintf("%q", shorten(m))}
	}
	e := &BadRecord{Offset: -1, Reason: why, Value: shorten(m)}
	var se *json.SyntaxError
	var v json.RawMessage
	dec := json.NewDecoder(bytes.NewReader(m))
	if errors.As(dec.Decode(&v), &se) {
		e.Offset = int(se.Offset)
		e.Reason += " (" + se.Error() + ")"
	}
	return e
}
