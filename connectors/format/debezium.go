package format

import (
	"bytes"

	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

var ltz3 = types.TimestampOf(types.TimestampLTZ, 3)

var debeziumJSON = &Format{
	Name: "debezium-json",
	Doc:  "Debezium change events: before, after and op",
	Options: envelopeOptions(append([]connectors.Option{{Key: "schema-include", Type: connectors.BoolOption, Default: "false", Flink: true,
		Doc: "messages carry schema and payload (value.converter.schemas.enable); for reading only"}}, unavailableOptions...)...),
	Metadata: []connectors.MetadataColumn{
		{Key: "schema", Type: types.StringType, Doc: "JSON text of the message's schema, with schema-include"},
		{Key: "ingestion-timestamp", Type: ltz3, Doc: "when the connector processed the event (ts_ms)"},
		{Key: "source.timestamp", Type: ltz3, Doc: "when the change was made in the database (source.ts_ms)"},
		{Key: "source.database", Type: types.StringType, Doc: "database of the change (source.db)"},
		{Key: "source.schema", Type: types.StringType, Doc: "schema of the change (source.schema)"},
		{Key: "source.table", Type: types.StringType, Doc: "table of the change (source.table)"},
		{Key: "source.properties", Type: types.MapOf(types.StringType.NotNull(), types.StringType), Doc: "all members of source"},
	},
	Source: types.Retract,
	Sink:   types.Retract,
	Check: func(s *types.Schema, v *connectors.Values, use connectors.Use) error {
		if use == connectors.UseSink && v.Bool("schema-include") {
			return v.Errorf("schema-include", "writing messages with a schema is not possible").WithHint("remove the option or set it to 'false'")
		}
		return checkJSON(s, v, use)
	},
	NewDecoder: newDebeziumDecoder,
	NewEncoder: func(spec EncodeSpec) (Encoder, error) {
		return &debeziumEncoder{newWriter(spec, readJSONOptions(spec.Options, false))}, nil
	},
}

// The order of debeziumDecoder.root.
const (
	dbzBefore = iota
	dbzAfter
	dbzOp
	dbzSource
	dbzTime
	dbzSchema // located in the message around the payload
)

type debeziumDecoder struct {
	*envelope
	wrapped bool
	outer   []member
	sent    unavailable
}

func newDebeziumDecoder(spec DecodeSpec) (Decoder, error) {
	str, big := newConv(types.StringType), newConv(types.BigIntType)
	metas := map[string]metaField{
		"schema":              {path: []string{"schema"}, c: str},
		"ingestion-timestamp": {path: []string{"ts_ms"}, c: big, ms: true},
		"source.timestamp":    {path: []string{"source", "ts_ms"}, c: big, ms: true},
		"source.database":     {path: []string{"source", "db"}, c: str},
		"source.schema":       {path: []string{"source", "schema"}, c: str},
		"source.table":        {path: []string{"source", "table"}, c: str},
		"source.properties":   {path: []string{"source"}, c: newConv(types.MapOf(types.StringType.NotNull(), types.StringType))},
	}
	return &debeziumDecoder{
		envelope: newEnvelope(spec, metas, "before", "after", "op", "source", "ts_ms", "schema"),
		wrapped:  spec.Options.Bool("schema-include"),
		outer:    []member{{name: "schema"}, {name: "payload"}},
		sent:     newUnavailable(spec),
	}, nil
}

// Decode implements Decoder.
func (d *debeziumDecoder) Decode(msgs [][]byte, out *batch.Builder, row func(i int, k types.RowKind)) (int, error) {
	return d.decode(msgs, out, func(m []byte, i int) error { return d.message(m, i, out, row) })
}

func (d *debeziumDecoder) message(m []byte, i int, out *batch.Builder, row func(i int, k types.RowKind)) error {
	if d.sent.look(m) && d.sent.null {
		m = bytes.Clone(m) // values of it may be kept
		d.begin(m)
	}
	p := startOf(m)
	if d.wrapped {
		if d.locate(p, d.outer) < 0 {
			return malformed(m, "malformed JSON")
		}
		if p = d.outer[1].at; p < 0 {
			return malformed(m, "no member \"payload\"; is 'schema-include' right for this topic?")
		}
	}
	if d.locate(p, d.root) < 0 {
		return malformed(m, "malformed JSON")
	}
	d.root[dbzSchema].at = -1
	if d.wrapped {
		d.root[dbzSchema].at = d.outer[0].at
	}
	before, after := d.root[dbzBefore], d.root[dbzAfter]
	switch op := d.stringAt(d.root[dbzOp]); op {
	case "c", "r":
		if after.at < 0 {
			return malformed(m, "\"after\" is null in a message of op \""+op+"\"")
		}
		return d.image(after, i, types.Insert, out, row)
	case "u":
		if after.at < 0 {
			return malformed(m, "\"after\" is null in a message of op \"u\"")
		}
		if before.at < 0 {
			return noBefore(m, "u")
		}
		if err := d.image(before, i, types.UpdateBefore, out, row); err != nil {
			return err
		}
		return d.image(after, i, types.UpdateAfter, out, row)
	case "d":
		if before.at < 0 {
			return noBefore(m, "d")
		}
		return d.image(before, i, types.Delete, out, row)
	case "":
		return malformed(m, "no member \"op\"; is 'schema-include' right for this topic?")
	default:
		return malformed(m, "unknown op \""+op+"\"")
	}
}

// image decodes the row of a change.
func (d *debeziumDecoder) image(m member, i int, k types.RowKind, out *batch.Builder, row func(i int, k types.RowKind)) error {
	if d.sent.here {
		if err := d.missing(m); err != nil {
			return err
		}
	}
	return d.row(m, i, k, out, row)
}

func noBefore(m []byte, op string) error {
	return malformed(m, "\"before\" is null in a message of op \""+op+"\"; in PostgreSQL set REPLICA IDENTITY FULL on the table")
}

type debeziumEncoder struct{ *writer }

// Encode implements Encoder: an update is written as a delete of the old row and a create of the new one.
func (e *debeziumEncoder) Encode(b *batch.Batch, out *Messages) error {
	e.bind(b)
	for i, n := 0, b.Len(); i < n; i++ {
		r := b.Row(i)
		head, tail := `{"before":null,"after":`, `,"op":"c"}`
		if b.Kind(r).IsRetract() {
			head, tail = `{"before":`, `,"after":null,"op":"d"}`
		}
		out.Buf = append(out.Buf, head...)
		var err error
		if out.Buf, err = e.object(out.Buf, r); err != nil {
			return err
		}
		out.Buf = append(out.Buf, tail...)
		out.end()
	}
	return nil
}
