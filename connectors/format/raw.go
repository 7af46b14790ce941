package format

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

var rawFormat = &Format{
	Name: "raw",
	Doc:  "the message is the value of the table's one physical column",
	Options: []connectors.Option{
		{Key: "charset", Default: "UTF-8", Flink: true, Doc: "character set of strings: UTF-8, US-ASCII, ISO-8859-1 or UTF-16 variants"},
		{Key: "endianness", Type: connectors.EnumOption, Default: "big-endian", Values: []string{"big-endian", "little-endian"}, Flink: true, Doc: "byte order of numbers"},
		{Key: "line-delimiter", Flink: true, Doc: "split a message at this text into rows; written after every row"},
	},
	Check:      checkRaw,
	NewDecoder: newRawDecoder,
	NewEncoder: newRawEncoder,
}

func checkRaw(s *types.Schema, v *connectors.Values, _ connectors.Use) error {
	if s.Len() != 1 {
		return diag.New(diag.Semantic, v.Pos("charset"), "table %s: format 'raw' needs exactly one physical column, found %d: %s",
			v.Table().Name, s.Len(), strings.Join(s.Names(), ", ")).WithHint("declare one column, or use format 'json' or 'csv'")
	}
	if _, ok := charsets[strings.ToUpper(v.String("charset"))]; !ok {
		return v.Errorf("charset", "unknown charset '%s'", v.String("charset")).WithHint("use 'UTF-8', 'US-ASCII', 'ISO-8859-1', 'UTF-16', 'UTF-16BE' or 'UTF-16LE'")
	}
	c := s.Columns[0]
	switch c.Type.Kind {
	case types.Char, types.Varchar, types.Binary, types.Varbinary, types.Boolean, types.TinyInt, types.SmallInt, types.Int, types.BigInt, types.Float, types.Double:
	default:
		return diag.New(diag.Semantic, v.Pos("charset"), "table %s: format 'raw' cannot hold column %s of type %s", v.Table().Name, c.Name, c.Type).
			WithHint("use STRING, BYTES, BOOLEAN, an integer type, FLOAT or DOUBLE")
	}
	if v.Has("line-delimiter") && !c.Type.IsString() && !c.Type.IsBytes() {
		return v.Errorf("line-delimiter", "only strings and bytes can be split, column %s is %s", c.Name, c.Type)
	}
	return nil
}

// rawWidth is the byte count of fixed-size types, 0 for strings and bytes.
func rawWidth(k types.Kind) int {
	switch k {
	case types.Boolean, types.TinyInt:
		return 1
	case types.SmallInt:
		return 2
	case types.Int, types.Float:
		return 4
	case types.BigInt, types.Double:
		return 8
	}
	return 0
}

type raw struct {
	counts
	name  string
	ty    types.Type
	order interface {
		binary.ByteOrder
		binary.AppendByteOrder
	}
	charset charset
	delim   []byte
	col     int
	tmp     []byte
}

func newRaw(s *types.Schema, v *connectors.Values, col int) *raw {
	r := &raw{name: s.Columns[0].Name, ty: s.Columns[0].Type, order: binary.BigEndian, col: col}
	if v.Enum("endianness") == "little-endian" {
		r.order = binary.LittleEndian
	}
	r.charset = charsets[strings.ToUpper(v.String("charset"))]
	if d := v.String("line-delimiter"); d != "" {
		r.delim = []byte(unescapeJava(d))
		if r.ty.IsString() {
			set := r.charset
			if set == utf16BOM {
				set = utf16BE // no mark in front of every delimiter
			}
			r.delim = set.append(nil, text(r.delim))
		}
	}
	return r
}

type rawDecoder struct {
	*raw
	strs arena
}

func newRawDecoder(spec DecodeSpec) (Decoder, error) {
	d := &rawDecoder{raw: newRaw(spec.Schema, spec.Options, -1)}
	if len(spec.Targets) > 0 {
		d.col = spec.Targets[0].Col
	}
	return d, nil
}

// Decode implements Decoder. A NULL message (nil) is a row with NULL, an empty one an empty string.
func (d *rawDecoder) Decode(msgs [][]byte, out *batch.Builder, row func(i int, k types.RowKind)) (int, error) {
	for i, m := range msgs {
		if d.delim == nil || m == nil {
			if err := d.one(m, out); err != nil {
				return i, err
			}
			row(i, types.Insert)
			continue
		}
		for rest, more := m, true; more; {
			var part []byte
			part, rest, more = bytes.Cut(rest, d.delim)
			if more || len(part) > 0 { // one empty part at the end is dropped
				if err := d.one(part, out); err != nil {
					return i, err
				}
				row(i, types.Insert)
			}
		}
	}
	return len(msgs), nil
}

func (d *rawDecoder) one(m []byte, out *batch.Builder) error {
	if w := rawWidth(d.ty.Kind); w > 0 && m != nil && len(m) != w {
		return &BadRecord{Column: d.name, Offset: 0, Reason: fmt.Sprintf("%s needs %d bytes, the message has %d", d.ty.Kind, w, len(m)), Value: fmt.Sprintf("%x", shorten(m))}
	}
	if d.col < 0 {
		return nil
	}
	c := out.Cols[d.col]
	if m == nil {
		c.AppendNull()
		return nil
	}
	switch d.ty.Kind {
	case types.Boolean:
		c.AppendBool(m[0] != 0)
	case types.TinyInt:
		c.AppendI64(int64(int8(m[0])))
	case types.SmallInt:
		c.AppendI64(int64(int16(d.order.Uint16(m))))
	case types.Int:
		c.AppendI64(int64(int32(d.order.Uint32(m))))
	case types.BigInt:
		c.AppendI64(int64(d.order.Uint64(m)))
	case types.Float:
		c.AppendF64(float64(math.Float32frombits(d.order.Uint32(m))))
	case types.Double:
		c.AppendF64(math.Float64frombits(d.order.Uint64(m)))
	case types.Char, types.Varchar:
		if d.charset.isUTF8(m) {
			c.AppendStr(text(m))
			return nil
		}
		d.tmp = d.charset.decode(d.tmp[:0], m)
		c.AppendStr(d.strs.keep(d.tmp))
	default:
		c.AppendStr(text(m))
	}
	return nil
}

type rawEncoder struct{ *raw }

func newRawEncoder(spec EncodeSpec) (Encoder, error) {
	return &rawEncoder{newRaw(spec.Schema, spec.Options, spec.Columns[0])}, nil
}

// Encode implements Encoder. NULL is a NULL message.
func (e *rawEncoder) Encode(b *batch.Batch, out *Messages) error {
	v := b.Cols[e.col]
	for i, n := 0, b.Len(); i < n; i++ {
		r := b.Row(i)
		if v.IsNull(r) {
			out.endNull()
			continue
		}
		r = v.Idx(r)
		buf := out.Buf
		switch e.ty.Kind {
		case types.Boolean:
			x := byte(0)
			if v.Bool[r] {
				x = 1
			}
			buf = append(buf, x)
		case types.TinyInt:
			buf = append(buf, byte(v.I64[r]))
		case types.SmallInt:
			buf = e.order.AppendUint16(buf, uint16(v.I64[r]))
		case types.Int:
			buf = e.order.AppendUint32(buf, uint32(v.I64[r]))
		case types.BigInt:
			buf = e.order.AppendUint64(buf, uint64(v.I64[r]))
		case types.Float:
			buf = e.order.AppendUint32(buf, math.Float32bits(float32(v.F64[r])))
		case types.Double:
			buf = e.order.AppendUint64(buf, math.Float64bits(v.F64[r]))
		case types.Char, types.Varchar:
			buf = e.charset.append(buf, v.Str[r])
		default:
			buf = append(buf, v.Str[r]...)
		}
		out.Buf = append(buf, e.delim...)
		out.end()
	}
	return nil
}
