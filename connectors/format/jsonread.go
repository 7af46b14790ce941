package format

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/streamsql/streamsql/sql/types"
)

// status is what reading one value came to; a position of -1 beside it means the text is not JSON.
type status uint8

const (
	good status = iota // the value is in reader.v
	null
	bad // consumed, but not a value of the type; reader.why says why
)

// reader reads JSON values into datums and columns. It holds what one message needs, reused for the next.
type reader struct {
	jsonOptions
	counts
	b       []byte
	v       types.Datum   // the last good value
	stack   []types.Datum // elements of unfinished lists
	lists   []types.Datum // memory of finished lists, valid for one top-level value
	scratch []byte
	strs    arena
	why     string // reason of the last bad
	badFrom int    // and the text of the value
	badTo   int
	field   string // innermost named member of the last bad
}

func (r *reader) fail(why string) status {
	r.why = why
	return bad
}

// value reads a value of type c. Depth counts the containers around it.
func (r *reader) value(p int, c *conv, depth int) (int, status) {
	b := r.b
	if p >= len(b) {
		return -1, bad
	}
	var st status
	from := p
	switch b[p] {
	case '"':
		next, plain := skipString(b, p+1)
		if next < 0 {
			return -1, bad
		}
		s := b[p+1 : next-1]
		if !plain {
			r.scratch = appendUnescaped(r.scratch[:0], s)
			s = bytesOf(r.strs.keep(r.scratch))
		}
		p, st = next, r.fromString(text(s), c)
	case 'n':
		return skipWord(b, p, "null"), null
	case 't':
		p, st = skipWord(b, p, "true"), r.fromBool("true", c)
	case 'f':
		p, st = skipWord(b, p, "false"), r.fromBool("false", c)
	case '{', '[':
		if depth >= maxDepth {
			return -1, bad
		}
		p, st = r.container(p, c, depth+1)
		if st == bad && r.badTo > from {
			return p, bad // an inner value has said what and where
		}
	default:
		next, isFloat := skipNumber(b, p)
		if next < 0 {
			return -1, bad
		}
		p, st = next, r.fromNumber(text(b[p:next]), isFloat, c)
	}
	if st == bad {
		r.badFrom, r.badTo, r.field = from, p, ""
	}
	return p, st
}

// fromString converts the content of a JSON string.
func (r *reader) fromString(s string, c *conv) status {
	switch c.kind {
	case types.Char, types.Varchar:
		r.v.Str = s
		return good
	case types.Boolean:
		s = trimJava(s)
		r.v.Bool = strings.EqualFold(s, "true")
		if !r.v.Bool && !strings.EqualFold(s, "false") {
			r.lenient++
		}
		return good
	case types.TinyInt, types.SmallInt, types.Int, types.BigInt, types.IntervalYearMonth, types.IntervalDayTime:
		v, ok := parseJavaInt(trimJava(s), c.lo, c.hi)
		if !ok {
			return r.fail("not an integer in the range of " + c.kind.String())
		}
		r.v.I64 = v
		return good
	case types.Float, types.Double:
		v, ok := types.ParseFloat(s, floatBits(c.ty))
		if !ok {
			return r.fail("not a number")
		}
		r.v.F64 = v
		return good
	case types.Decimal:
		return r.decimal(trimJava(s), c)
	case types.Binary, types.Varbinary:
		return r.base64(s)
	case types.Date, types.Time, types.Timestamp, types.TimestampLTZ:
		return r.temporal(s, c)
	}
	return r.fail("a string where " + shape(c.kind) + " is expected")
}

func (r *reader) decimal(s string, c *conv) status {
	v, fits, ok := types.ParseBigDecimal(s, c.ty.Precision, c.ty.Scale)
	switch {
	case !ok:
		return r.fail("not a number")
	case !fits:
		r.lenient++
		return null
	}
	r.v.I64, r.v.Hi = int64(v.Lo), v.Hi
	return good
}

func (r *reader) base64(s string) status {
	enc := base64.StdEncoding
	n := enc.DecodedLen(len(s))
	if cap(r.scratch) < n {
		r.scratch = make([]byte, n, 2*n)
	}
	n, err := enc.Decode(r.scratch[:n], bytesOf(s))
	if err != nil {
		return r.fail("not base64")
	}
	r.v.Str = r.strs.keep(r.scratch[:n])
	return good
}

func (r *reader) temporal(s string, c *conv) status {
	switch c.kind {
	case types.Date:
		if days, ok := parseDate(s, false); ok && len(s) == 10 {
			r.v.I64 = days
			return good
		}
		return r.fail("not a date like 2024-01-31")
	case types.Time:
		if sec, nanos, ok := parseClock(s, false); ok && sec < daySeconds {
			r.v.I64 = sec*1e3 + nanos/1e6
			return good
		}
		return r.fail("not a time like 12:34:56")
	}
	sec, nanos, ok := parseTimestamp(s, r.iso, c.kind == types.TimestampLTZ)
	if !ok {
		return r.fail(timestampHelp(r.iso, c.kind == types.TimestampLTZ))
	}
	r.v = types.JoinTimestamp(sec, nanos, c.ty.Precision)
	return good
}

func timestampHelp(iso, zone bool) string {
	s := "not a timestamp like 2024-01-31 12:34:56.789"
	if iso {
		s = "not a timestamp like 2024-01-31T12:34:56.789"
	}
	if zone {
		s += "Z"
	}
	return s
}

// fromNumber converts a number token.
func (r *reader) fromNumber(s string, isFloat bool, c *conv) status {
	switch c.kind {
	case types.Char, types.Varchar:
		r.v.Str = s
		return good
	case types.Boolean:
		r.lenient++
		r.v.Bool = false
		return good
	case types.TinyInt, types.SmallInt, types.Int, types.BigInt, types.IntervalYearMonth, types.IntervalDayTime:
		return r.integer(s, isFloat, c)
	case types.Float, types.Double:
		// The token is a number, so the only error is the range, and then the value is infinite as in Java.
		r.v.F64, _ = strconv.ParseFloat(s, floatBits(c.ty))
		return good
	case types.Decimal:
		return r.decimal(s, c)
	case types.Binary, types.Varbinary, types.Date, types.Time, types.Timestamp, types.TimestampLTZ:
		return r.fail("a number where a string is expected")
	}
	return r.fail("a number where " + shape(c.kind) + " is expected")
}

// integer cuts a fraction for INT and BIGINT, as Flink does, but not for the smaller types.
func (r *reader) integer(s string, isFloat bool, c *conv) status {
	if !isFloat {
		v, ok := parseJavaInt(s, c.lo, c.hi)
		if !ok {
			return r.fail("out of the range of " + c.kind.String())
		}
		r.v.I64 = v
		return good
	}
	if c.kind == types.TinyInt || c.kind == types.SmallInt {
		return r.fail("a fraction where " + c.kind.String() + " is expected")
	}
	f, _ := strconv.ParseFloat(s, 64)
	if !(f >= float64(c.lo) && f < float64(c.hi)+1) {
		return r.fail("out of the range of " + c.kind.String())
	}
	r.lenient++
	r.v.I64 = int64(f)
	return good
}

// fromBool converts true and false.
func (r *reader) fromBool(s string, c *conv) status {
	switch c.kind {
	case types.Boolean:
		r.v.Bool = s == "true"
		return good
	case types.Char, types.Varchar:
		r.v.Str = s
		return good
	}
	return r.fail("a boolean where " + shape(c.kind) + " is expected")
}

func shape(k types.Kind) string {
	switch k {
	case types.Array:
		return "an array"
	case types.Map, types.Multiset, types.Row:
		return "an object"
	}
	return k.String()
}
