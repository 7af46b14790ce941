package postgres

import (
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// appendText appends a value given as PostgreSQL's text, with the session's settings (ISO dates, UTC).
func appendText(c *batch.ColBuilder, s string) error {
	ok := true
	switch t := c.Type; t.Kind {
	case types.Boolean:
		ok = s == "t" || s == "f" || s == "true" || s == "false"
		if ok {
			c.AppendBool(s[0] == 't')
		}
	case types.TinyInt, types.SmallInt, types.Int, types.BigInt:
		bits := map[types.Kind]int{types.TinyInt: 8, types.SmallInt: 16, types.Int: 32, types.BigInt: 64}[t.Kind]
		v, err := strconv.ParseInt(s, 10, bits)
		if ok = err == nil; ok {
			c.AppendI64(v)
		}
	case types.Float, types.Double:
		v, err := strconv.ParseFloat(s, 64)
		if ok = err == nil; ok {
			c.AppendF64(v)
		}
	case types.Decimal:
		var v types.Int128
		if v, ok = types.ParseDecimal(s, t.Precision, t.Scale); !ok {
			break
		}
		if t.Phys() == types.PhysI64 {
			c.AppendI64(v.Int64())
		} else {
			c.AppendI128(v)
		}
	case types.Binary, types.Varbinary:
		rest, is := strings.CutPrefix(s, `\x`)
		b, err := hex.DecodeString(rest)
		if ok = is && err == nil; ok {
			c.AppendStr(string(b))
		}
	case types.Date:
		var days int64
		if days, ok = types.ParseDate(s); ok {
			c.AppendI64(days)
		}
	case types.Time:
		var ms int64
		if ms, ok = types.ParseTime(s); ok {
			c.AppendI64(ms)
		}
	case types.Timestamp, types.TimestampLTZ:
		ok = appendInstant(c, strings.TrimSuffix(s, "+00"))
	default:
		c.AppendStr(s)
	}
	if !ok {
		return errText
	}
	return nil
}

// appendInstant appends a timestamp, cut to the digits of its type.
func appendInstant(c *batch.ColBuilder, s string) bool {
	sec, nanos, ok := types.ParseTimestamp(s)
	if !ok {
		return false
	}
	unit := int64(1)
	for range 9 - c.Type.Precision {
		unit *= 10
	}
	nanos -= nanos % unit
	if c.Type.Phys() == types.PhysI128 {
		c.AppendI128(types.JoinNanos(sec, nanos))
	} else {
		c.AppendI64(sec*1e6 + nanos/1000)
	}
	return true
}
