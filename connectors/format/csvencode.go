package format

import (
	"encoding/base64"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

type csvEncoder struct {
	o      csvOptions
	fields []outField
	safe   rune // smallest character that never asks for quotes
	tmp    []byte
}

// maxUnquoted is the length from which Jackson quotes without looking.
const maxUnquoted = 24

func newCSVEncoder(spec EncodeSpec, o csvOptions) *csvEncoder {
	e := &csvEncoder{o: o, safe: max(o.delim, o.quote) + 1}
	for i, c := range spec.Schema.Columns {
		e.fields = append(e.fields, outField{name: c.Name, ty: c.Type, col: spec.Columns[i]})
	}
	return e
}

// Encode implements Encoder.
func (e *csvEncoder) Encode(b *batch.Batch, out *Messages) error {
	for i := range e.fields {
		e.fields[i].vec = b.Cols[e.fields[i].col]
	}
	for i, n := 0, b.Len(); i < n; i++ {
		r := b.Row(i)
		for j := range e.fields {
			if j > 0 {
				out.Buf = append(out.Buf, byte(e.o.delim))
			}
			f := &e.fields[j]
			if f.vec.IsNull(r) {
				out.Buf = append(out.Buf, e.o.nullLiteral...)
				continue
			}
			out.Buf = e.cell(out.Buf, f, f.vec.Idx(r))
		}
		out.end()
	}
	return nil
}

func (e *csvEncoder) cell(dst []byte, f *outField, i int) []byte {
	switch f.ty.Kind {
	case types.TinyInt, types.SmallInt, types.Int, types.BigInt:
		return strconv.AppendInt(dst, f.vec.I64[i], 10)
	case types.Char, types.Varchar:
		return e.text(dst, f.vec.Str[i])
	}
	if f.ty.Kind == types.Timestamp && f.ty.Precision <= 6 {
		sec, nanos := types.SplitMicros(f.vec.I64[i])
		e.tmp = appendTimestamp(e.tmp[:0], sec, nanos, ' ')
		return e.text(dst, text(e.tmp))
	}
	d := f.vec.Datum(i)
	e.tmp = e.tmp[:0]
	switch f.ty.Kind {
	case types.Array:
		for k := range d.List {
			e.part(k, d.List[k], *f.ty.Elem)
		}
	case types.Row:
		for k := range d.List {
			e.part(k, d.List[k], f.ty.Fields[k].Type)
		}
	default:
		var isText bool
		e.tmp, isText = e.scalar(e.tmp, d, f.ty)
		if !isText {
			return append(dst, e.tmp...)
		}
	}
	return e.text(dst, text(e.tmp))
}

// part adds element k of an ARRAY or ROW to tmp.
func (e *csvEncoder) part(k int, d types.Datum, t types.Type) {
	if k > 0 {
		e.tmp = append(e.tmp, byte(e.o.elem))
	}
	if d.IsNull {
		e.tmp = append(e.tmp, e.o.nullLiteral...)
		return
	}
	e.tmp, _ = e.scalar(e.tmp, d, t)
}

// scalar appends the text of d; isText says that it is subject to quoting.
func (e *csvEncoder) scalar(dst []byte, d types.Datum, t types.Type) (_ []byte, isText bool) {
	switch t.Kind {
	case types.Boolean:
		if d.Bool {
			return append(dst, "true"...), false
		}
		return append(dst, "false"...), false
	case types.Float, types.Double:
		return types.AppendFloat(dst, d.F64, floatBits(t)), false
	case types.Decimal:
		if e.o.scientific {
			return types.AppendBigDecimal(dst, d.Decimal(t), t.Scale, true), false
		}
		return types.AppendDecimal(dst, d.Decimal(t), t.Scale), false
	case types.Char, types.Varchar:
		return append(dst, d.Str...), true
	case types.Binary, types.Varbinary:
		return base64.StdEncoding.AppendEncode(dst, bytesOf(d.Str)), true
	case types.Date:
		return types.AppendISODate(dst, d.I64), true
	case types.Time:
		return appendClock(dst, d.I64/1e3, d.I64%1e3*1e6), true
	case types.Timestamp, types.TimestampLTZ:
		sec, nanos := types.SplitTimestamp(d, t.Precision)
		dst = appendTimestamp(dst, sec, nanos, ' ')
		if t.Kind == types.TimestampLTZ {
			dst = append(dst, 'Z')
		}
		return dst, true
	}
	return strconv.AppendInt(dst, d.I64, 10), false
}

// text appends s, quoted when it must or might have to be.
func (e *csvEncoder) text(dst []byte, s string) []byte {
	o := &e.o
	if o.quote < 0 || !e.quotes(s) {
		return append(dst, s...)
	}
	dst = append(dst, byte(o.quote))
	if strings.IndexByte(s, byte(o.quote)) < 0 && (o.escape < 0 || strings.IndexByte(s, byte(o.escape)) < 0) {
		dst = append(dst, s...)
		return append(dst, byte(o.quote))
	}
	for i := 0; i < len(s); i++ {
		c := rune(s[i])
		switch {
		case o.escape >= 0 && (c == o.quote || c == o.escape):
			dst = append(dst, byte(o.escape))
		case c == o.quote:
			dst = append(dst, byte(o.quote))
		}
		dst = append(dst, s[i])
	}
	return append(dst, byte(o.quote))
}

func (e *csvEncoder) quotes(s string) bool {
	if len(s) > maxUnquoted && (len(s) > 3*maxUnquoted || utf16Len(s) > maxUnquoted) {
		return true
	}
	for i := 0; i < len(s); i++ {
		if c := rune(s[i]); c < e.safe || c == e.o.escape {
			return true
		}
	}
	return false
}

// utf16Len is Java's String.length of s, or just any number above maxUnquoted when that is clear early.
func utf16Len(s string) int {
	n := 0
	for i, r := range s {
		if i == n && r < 0x80 && n > maxUnquoted {
			return n // ASCII so far, and long enough
		}
		n += max(1, utf16.RuneLen(r))
	}
	return n
}
