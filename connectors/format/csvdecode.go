package format

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

type csvDecoder struct {
	*reader // its conversions from text, its memory and counts
	o       csvOptions
	names   []string
	convs   []*conv // per column, nil when not needed
	cols    []int
	simple  bool // the line has no line end and escapes are off: a field ends at the next delimiter
}

func newCSVDecoder(spec DecodeSpec, o csvOptions) *csvDecoder {
	d := &csvDecoder{reader: &reader{}, o: o, names: spec.Schema.Names(), convs: make([]*conv, spec.Schema.Len()), cols: make([]int, spec.Schema.Len())}
	for _, t := range spec.Targets {
		d.convs[t.Field] = newConv(spec.Schema.Columns[t.Field].Type)
		d.cols[t.Field] = t.Col
	}
	return d
}

// Decode implements Decoder.
func (d *csvDecoder) Decode(msgs [][]byte, out *batch.Builder, row func(i int, k types.RowKind)) (int, error) {
	for i, m := range msgs {
		if d.blank(m) {
			continue
		}
		err := d.line(m, out)
		if err == nil {
			row(i, types.Insert)
			continue
		}
		out.Abandon()
		if !d.o.ignoreErrors {
			return i, err
		}
		d.skipped++
	}
	return len(msgs), nil
}

func (d *csvDecoder) blank(m []byte) bool {
	for i, c := range m {
		if c > ' ' {
			return d.o.comments && c == '#' && i == 0
		}
		if rune(c) == d.o.delim {
			return false
		}
	}
	return true
}

func (d *csvDecoder) line(m []byte, out *batch.Builder) error {
	d.begin(m)
	if !utf8.Valid(m) {
		return &BadRecord{Offset: -1, Reason: "the line is not UTF-8", Value: fmt.Sprintf("%q", shorten(m))}
	}
	d.simple = d.o.escape < 0 && bytes.IndexByte(m, '\n') < 0 && bytes.IndexByte(m, '\r') < 0
	p, n, more := 0, 0, true
	for more {
		if n == len(d.names) {
			return d.tooMany(m, p)
		}
		from := p
		s, next, end, err := d.cell(m, p)
		if err != nil {
			err.Column = d.names[n]
			return err
		}
		if c := d.convs[n]; c != nil {
			if err := d.store(s, c, n, from, next, out); err != nil {
				return err
			}
		}
		p, more = next, !end
		n++
	}
	if n < len(d.names) {
		return d.tooFew(m, n, out)
	}
	return nil
}

func (d *csvDecoder) tooMany(m []byte, p int) error {
	rest := strings.TrimRight(text(m[p:]), "\r\n")
	if d.o.ignoreTrailing || (rest == "" && d.o.trailingComma) {
		return nil
	}
	return &BadRecord{Offset: p, Reason: fmt.Sprintf("more than %d fields", len(d.names)), Value: shorten(m)}
}

func (d *csvDecoder) tooFew(m []byte, n int, out *batch.Builder) error {
	if !d.o.ignoreErrors || d.o.failOnMissing {
		return &BadRecord{Column: d.names[n], Offset: len(m), Reason: fmt.Sprintf("%d fields, expected %d", n, len(d.names)), Value: shorten(m)}
	}
	d.lenient++
	for ; n < len(d.names); n++ {
		if d.convs[n] != nil {
			out.Cols[d.cols[n]].AppendNull()
		}
	}
	return nil
}

// cell reads the field at p; next is behind its delimiter, end says that it was the last.
func (d *csvDecoder) cell(m []byte, p int) (s string, next int, end bool, err *BadRecord) {
	o := &d.o
	if o.trim {
		for p < len(m) && m[p] == ' ' {
			p++
		}
	}
	if o.quote >= 0 && p < len(m) && rune(m[p]) == o.quote {
		return d.quoted(m, p)
	}
	if d.simple {
		q := bytes.IndexByte(m[p:], byte(o.delim))
		if end = q < 0; end {
			q = len(m) - p
		}
		s = text(m[p : p+q])
		if o.trim {
			s = strings.TrimRight(s, " ")
		}
		return s, min(p+q+1, len(m)), end, nil
	}
	q, escaped := p, false
	for q < len(m) && rune(m[q]) != o.delim && m[q] != '\n' && m[q] != '\r' {
		if rune(m[q]) == o.escape && q+1 < len(m) {
			escaped = true
			q++
		}
		q++
	}
	s = text(m[p:q])
	if escaped {
		s = d.literal(m[p:q], o.escape, -1)
	}
	if o.trim {
		s = strings.TrimRight(s, " ")
	}
	if q < len(m) && rune(m[q]) == o.delim {
		return s, q + 1, false, nil
	}
	return s, q, true, nil
}

// literal resolves escapes and doubled quotes into the arena.
func (d *csvDecoder) literal(m []byte, escape, quote rune) string {
	d.scratch = d.scratch[:0]
	for i := 0; i < len(m); i++ {
		if c := rune(m[i]); (c == escape || c == quote) && i+1 < len(m) {
			i++
		}
		d.scratch = append(d.scratch, m[i])
	}
	return d.strs.keep(d.scratch)
}

func (d *csvDecoder) quoted(m []byte, p int) (s string, next int, end bool, err *BadRecord) {
	o := &d.o
	special := false
	q := p + 1
	for {
		if q >= len(m) {
			return "", len(m), true, &BadRecord{Offset: p, Reason: "the quote of a field is not closed", Value: shorten(m)}
		}
		c := rune(m[q])
		if c == o.escape && c != o.quote {
			special = true
			q += 2
			continue
		}
		if c == o.quote {
			if q+1 == len(m) || rune(m[q+1]) != o.quote {
				break
			}
			special = true
			q++
		}
		q++
	}
	s = text(m[p+1 : q])
	if special {
		s = d.literal(m[p+1:q], o.escape, o.quote)
	}
	for q++; q < len(m) && m[q] == ' ' && o.delim != ' '; q++ {
	}
	switch {
	case q == len(m) || m[q] == '\n' || m[q] == '\r':
		return s, q, true, nil
	case rune(m[q]) == o.delim:
		return s, q + 1, false, nil
	}
	return "", q, true, &BadRecord{Offset: q, Reason: "text behind a closing quote", Value: shorten(m)}
}

// store converts the text of field n and appends it.
func (d *csvDecoder) store(s string, c *conv, n, from, to int, out *batch.Builder) error {
	col := out.Cols[d.cols[n]]
	if !d.o.hasNull && !d.o.emptyIsNull && plainText(col, s, c) {
		return nil
	}
	st := d.convert(s, c)
	if st == bad {
		if !d.o.ignoreErrors {
			why := d.why
			if s == "" {
				why = "the field is empty, and not NULL: 'csv.null-literal' = '' makes it so"
			}
			return &BadRecord{Column: d.names[n], Offset: from, Reason: why, Value: shorten(bytesOf(s))}
		}
		d.lenient++
		st = null
	}
	if st == null {
		col.AppendNull()
		return nil
	}
	d.appendTo(col, c)
	return nil
}

// plainText appends the frequent forms of the frequent types and reports whether it did.
func plainText(col *batch.ColBuilder, s string, c *conv) bool {
	switch c.kind {
	case types.Varchar, types.Char:
		col.AppendStr(s)
		return true
	case types.Int, types.BigInt:
		if len(s) == 0 || len(s) > 18 {
			return false
		}
		var v int64
		for i := 0; i < len(s); i++ {
			x := s[i] - '0'
			if x > 9 {
				return false
			}
			v = v*10 + int64(x)
		}
		if v > c.hi {
			return false
		}
		col.AppendI64(v)
		return true
	case types.Timestamp:
		if c.ty.Precision != 3 || len(s) != 23 || s[10] != ' ' {
			return false
		}
		us, ok := parseMillis(s)
		if ok {
			col.AppendI64(us)
		}
		return ok
	}
	return false
}

func (d *csvDecoder) convert(s string, c *conv) status {
	if (d.o.hasNull && s == d.o.nullLiteral) || (d.o.emptyIsNull && s == "") {
		return null
	}
	switch c.kind {
	case types.Array, types.Row:
		return d.parts(s, c)
	case types.Decimal:
		return d.decimal(s, c) // not trimmed, as in Flink
	case types.Date:
		days, ok := parseLooseDate(s)
		if !ok {
			return d.fail("not a date like 2024-01-31")
		}
		d.v.I64 = days
		return good
	case types.Time:
		sec, nanos, ok := parseClock(s, true)
		if !ok || sec == daySeconds {
			return d.fail("not a time like 12:34:56")
		}
		ms := sec*1e3 + nanos/1e6
		d.v.I64 = ms - ms%types.Pow10I64(3-min(c.ty.Precision, 3))
		return good
	}
	return d.fromString(s, c)
}

// parseLooseDate reads "yyyy-[m]m-[d]d" as java.sql.Date.valueOf does: day 31 of a shorter month runs into the next.
func parseLooseDate(s string) (int64, bool) {
	y, rest, _ := strings.Cut(s, "-")
	mo, d, ok := strings.Cut(rest, "-")
	if !ok || len(y) != 4 || len(mo) == 0 || len(mo) > 2 || len(d) == 0 || len(d) > 2 {
		return 0, false
	}
	var v [3]int
	for i, part := range [3]string{y, mo, d} {
		for _, c := range bytesOf(part) {
			if c-'0' > 9 {
				return 0, false
			}
			v[i] = v[i]*10 + int(c-'0')
		}
	}
	if v[1] < 1 || v[1] > 12 || v[2] < 1 || v[2] > 31 {
		return 0, false
	}
	return types.DaysFromCivil(v[0], v[1], v[2]), true
}

// parts reads the elements of an ARRAY or the fields of a ROW.
func (d *csvDecoder) parts(s string, c *conv) status {
	base := len(d.stack)
	sep := string(d.o.elem)
	for i, rest, more := 0, s, s != "" || c.kind == types.Row; more; i++ {
		var part string
		part, rest, more = strings.Cut(rest, sep)
		e := c.elem
		if c.kind == types.Row {
			if i == len(c.obj.fields) {
				return d.fail("more elements than the ROW has fields")
			}
			e = c.obj.fields[i].c
		}
		if d.o.trim {
			part = strings.Trim(part, " ")
		}
		d.v = types.Datum{}
		st := d.convert(part, e)
		if st == bad {
			if !d.o.ignoreErrors {
				return bad
			}
			d.lenient++
			st = null
		}
		if st == null {
			d.v = types.NullDatum
		}
		d.stack = append(d.stack, d.v)
	}
	if c.kind == types.Row {
		if len(d.stack)-base < len(c.obj.fields) && !d.o.ignoreErrors {
			return d.fail("fewer elements than the ROW has fields")
		}
		for len(d.stack)-base < len(c.obj.fields) {
			d.stack = append(d.stack, types.NullDatum)
		}
	}
	d.v = types.Datum{List: d.seal(base)}
	return good
}
