package format

import (
	"encoding/base64"
	"math"
	"strconv"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// writer writes columns as JSON objects.
type writer struct {
	jsonOptions
	fields []outField
}

type outField struct {
	name string
	key  string // `"name":`
	ty   types.Type
	col  int
	vec  *batch.Vec // of the batch being written
}

func newWriter(spec EncodeSpec, o jsonOptions) *writer {
	w := &writer{jsonOptions: o}
	for i, c := range spec.Schema.Columns {
		w.fields = append(w.fields, outField{name: c.Name, key: string(appendJSONString(nil, c.Name)) + ":", ty: c.Type, col: spec.Columns[i]})
	}
	return w
}

func (w *writer) bind(b *batch.Batch) {
	for i := range w.fields {
		w.fields[i].vec = b.Cols[w.fields[i].col]
	}
}

// object appends physical row r of the bound batch.
func (w *writer) object(dst []byte, r int) ([]byte, error) {
	dst = append(dst, '{')
	first := true
	for i := range w.fields {
		f := &w.fields[i]
		null := f.vec.IsNull(r)
		if null && w.omitNulls {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(dst, f.key...)
		if null {
			dst = append(dst, "null"...)
			continue
		}
		var err error
		if dst, err = w.column(dst, f, f.vec.Idx(r)); err != nil {
			return dst, &BadRecord{Column: f.name, Offset: -1, Reason: err.Error()}
		}
	}
	return append(dst, '}'), nil
}

// column appends the non-NULL value at index i of f's column.
func (w *writer) column(dst []byte, f *outField, i int) ([]byte, error) {
	v := f.vec
	switch f.ty.Kind {
	case types.TinyInt, types.SmallInt, types.Int, types.BigInt:
		return strconv.AppendInt(dst, v.I64[i], 10), nil
	case types.Char, types.Varchar:
		return appendJSONString(dst, v.Str[i]), nil
	case types.Timestamp, types.TimestampLTZ:
		if f.ty.Precision <= 6 {
			sec, nanos := types.SplitMicros(v.I64[i])
			return w.timestamp(dst, sec, nanos, f.ty), nil
		}
	}
	return w.value(dst, v.Datum(i), f.ty)
}

func (w *writer) timestamp(dst []byte, sec, nanos int64, ty types.Type) []byte {
	sep := byte(' ')
	if w.iso {
		sep = 'T'
	}
	dst = append(dst, '"')
	dst = appendTimestamp(dst, sec, nanos, sep)
	if ty.Kind == types.TimestampLTZ {
		dst = append(dst, 'Z')
	}
	return append(dst, '"')
}

// value appends any non-NULL datum.
func (w *writer) value(dst []byte, d types.Datum, t types.Type) ([]byte, error) {
	switch t.Kind {
	case types.Boolean:
		if d.Bool {
			return append(dst, "true"...), nil
		}
		return append(dst, "false"...), nil
	case types.TinyInt, types.SmallInt, types.Int, types.BigInt, types.IntervalYearMonth, types.IntervalDayTime:
		return strconv.AppendInt(dst, d.I64, 10), nil
	case types.Float, types.Double:
		if math.IsNaN(d.F64) || math.IsInf(d.F64, 0) {
			dst = append(dst, '"')
			return append(types.AppendFloat(dst, d.F64, 64), '"'), nil
		}
		return types.AppendFloat(dst, d.F64, floatBits(t)), nil
	case types.Decimal:
		if w.plainDecimal {
			return types.AppendDecimal(dst, d.Decimal(t), t.Scale), nil
		}
		return types.AppendBigDecimal(dst, d.Decimal(t), t.Scale, true), nil
	case types.Char, types.Varchar:
		return appendJSONString(dst, d.Str), nil
	case types.Binary, types.Varbinary:
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, bytesOf(d.Str))
		return append(dst, '"'), nil
	case types.Date:
		dst = append(dst, '"')
		return append(types.AppendISODate(dst, d.I64), '"'), nil
	case types.Time:
		dst = append(dst, '"')
		return append(appendClock(dst, d.I64/1e3, d.I64%1e3*1e6), '"'), nil
	case types.Timestamp, types.TimestampLTZ:
		sec, nanos := types.SplitTimestamp(d, t.Precision)
		return w.timestamp(dst, sec, nanos, t), nil
	}
	return w.nested(dst, d, t)
}

func (w *writer) nested(dst []byte, d types.Datum, t types.Type) ([]byte, error) {
	var err error
	switch t.Kind {
	case types.Array:
		dst = append(dst, '[')
		for i, e := range d.List {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = w.orNull(dst, e, *t.Elem); err != nil {
				return dst, err
			}
		}
		return append(dst, ']'), nil
	case types.Row:
		dst = append(dst, '{')
		n := len(dst)
		for i, f := range t.Fields {
			if d.List[i].IsNull && w.omitNulls {
				continue
			}
			if len(dst) > n {
				dst = append(dst, ',')
			}
			dst = append(appendJSONString(dst, f.Name), ':')
			if dst, err = w.orNull(dst, d.List[i], f.Type); err != nil {
				return dst, err
			}
		}
		return append(dst, '}'), nil
	case types.Map:
		return w.entries(dst, d.List, *t.Elem)
	}
	return w.entries(dst, d.List, types.BigIntType)
}

func (w *writer) orNull(dst []byte, d types.Datum, t types.Type) ([]byte, error) {
	if d.IsNull {
		return append(dst, "null"...), nil
	}
	return w.value(dst, d, t)
}

// entries writes key, value pairs as an object. NULL keys follow map-null-key.mode.
func (w *writer) entries(dst []byte, list []types.Datum, elem types.Type) ([]byte, error) {
	dst = append(dst, '{')
	n := len(dst)
	for i := 0; i < len(list); i += 2 {
		key := list[i].Str
		if list[i].IsNull {
			switch w.mapNullKey {
			case "DROP":
				continue
			case "LITERAL":
				key = w.nullKey
			default:
				return dst, errNullKey
			}
		}
		if len(dst) > n {
			dst = append(dst, ',')
		}
		dst = append(appendJSONString(dst, key), ':')
		var err error
		if dst, err = w.orNull(dst, list[i+1], elem); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

type constError string

// Error implements error.
func (e constError) Error() string { return string(e) }

const errNullKey = constError("a map has a NULL key, which JSON cannot hold; set 'map-null-key.mode' to 'DROP' or 'LITERAL'")

type jsonEncoder struct{ *writer }

func newJSONEncoder(spec EncodeSpec, o jsonOptions) *jsonEncoder {
	return &jsonEncoder{newWriter(spec, o)}
}

// Encode implements Encoder.
func (e *jsonEncoder) Encode(b *batch.Batch, out *Messages) error {
	e.bind(b)
	for i, n := 0, b.Len(); i < n; i++ {
		var err error
		if out.Buf, err = e.object(out.Buf, b.Row(i)); err != nil {
			return err
		}
		out.end()
	}
	return nil
}

// end finishes the message at the end of Buf.
func (m *Messages) end() {
	m.Ends = append(m.Ends, len(m.Buf))
	if m.Null != nil {
		m.Null = append(m.Null, false)
	}
}

// endNull finishes a NULL message.
func (m *Messages) endNull() {
	if m.Null == nil {
		m.Null = make([]bool, len(m.Ends), max(batch.Size, len(m.Ends)+1))
	}
	m.Ends = append(m.Ends, len(m.Buf))
	m.Null = append(m.Null, true)
}
