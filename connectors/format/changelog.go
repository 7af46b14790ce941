package format

import (
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// changelogJSON keeps all four row kinds: {"data":{…},"op":"+I"}. Flink had such a format outside its distribution.
var changelogJSON = &Format{
	Name:    "changelog-json",
	Doc:     `rows with their kind, {"data":{…},"op":"+I"}; keeps +I, -U, +U and -D apart`,
	Options: envelopeOptions(),
	Source:  types.Retract,
	Sink:    types.Retract,
	Check:   checkJSON,
	NewDecoder: func(spec DecodeSpec) (Decoder, error) {
		return &changelogDecoder{newEnvelope(spec, nil, "data", "op")}, nil
	},
	NewEncoder: func(spec EncodeSpec) (Encoder, error) {
		return &changelogEncoder{newWriter(spec, readJSONOptions(spec.Options, false))}, nil
	},
}

type changelogDecoder struct{ *envelope }

// Decode implements Decoder.
func (d *changelogDecoder) Decode(msgs [][]byte, out *batch.Builder, row func(i int, k types.RowKind)) (int, error) {
	return d.decode(msgs, out, func(m []byte, i int) error {
		if d.locate(startOf(m), d.root) < 0 {
			return malformed(m, "malformed JSON")
		}
		var kind types.RowKind
		switch op := d.stringAt(d.root[1]); op {
		case "+I":
			kind = types.Insert
		case "-U":
			kind = types.UpdateBefore
		case "+U":
			kind = types.UpdateAfter
		case "-D":
			kind = types.Delete
		default:
			return malformed(m, "\"op\" is \""+op+"\", expected \"+I\", \"-U\", \"+U\" or \"-D\"")
		}
		if d.root[0].at < 0 {
			return malformed(m, "no member \"data\"")
		}
		return d.row(d.root[0], i, kind, out, row)
	})
}

type changelogEncoder struct{ *writer }

// Encode implements Encoder.
func (e *changelogEncoder) Encode(b *batch.Batch, out *Messages) error {
	e.bind(b)
	for i, n := 0, b.Len(); i < n; i++ {
		r := b.Row(i)
		out.Buf = append(out.Buf, `{"data":`...)
		var err error
		if out.Buf, err = e.object(out.Buf, r); err != nil {
			return err
		}
		out.Buf = append(out.Buf, `,"op":"`...)
		out.Buf = append(out.Buf, b.Kind(r).String()...)
		out.Buf = append(out.Buf, `"}`...)
		out.end()
	}
	return nil
}
