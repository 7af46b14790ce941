package postgres

import (
	"encoding/hex"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// Rows travel in COPY's text format (PostgreSQL manual, "COPY", File Formats): one line per row, tabs between columns,
// \N for NULL. The write-ahead protocol keeps the same bytes in the checkpoint.

// appendCopyRow appends physical row r of b as a line.
func appendCopyRow(dst []byte, b *batch.Batch, r int, schema *types.Schema) ([]byte, error) {
	for i, v := range b.Cols {
		if i > 0 {
			dst = append(dst, '\t')
		}
		var err error
		if dst, err = appendCopyValue(dst, v, r); err != nil {
			return dst, valueError(r, schema.Columns[i].Name, err)
		}
	}
	return append(dst, '\n'), nil
}

func valueError(r int, column string, err error) error {
	return &expr.RowError{Row: r, Expr: column, Err: diag.New(diag.Data, diag.Pos{}, "column %q cannot be written to PostgreSQL", column).Wrap(err).
		WithHint("clean the value in the query, for example with REPLACE or CASE")}
}

type unwritable string

func (u unwritable) Error() string { return string(u) }

func appendCopyValue(dst []byte, v *batch.Vec, r int) ([]byte, error) {
	if v.IsNull(r) {
		return append(dst, '\\', 'N'), nil
	}
	r = v.Idx(r)
	t := v.Type
	switch t.Kind {
	case types.Boolean:
		if v.Bool[r] {
			return append(dst, 't'), nil
		}
		return append(dst, 'f'), nil
	case types.TinyInt, types.SmallInt, types.Int, types.BigInt:
		return strconv.AppendInt(dst, v.I64[r], 10), nil
	case types.Float:
		return types.AppendFloat(dst, v.F64[r], 32), nil
	case types.Double:
		return types.AppendFloat(dst, v.F64[r], 64), nil
	case types.Decimal:
		if t.Phys() == types.PhysI64 {
			return types.AppendDecimal64(dst, v.I64[r], t.Scale), nil
		}
		return types.AppendDecimal(dst, v.I128[r], t.Scale), nil
	case types.Char, types.Varchar:
		return appendCopyText(dst, v.Str[r])
	case types.Binary, types.Varbinary:
		dst = append(dst, '\\', '\\', 'x')
		return hex.AppendEncode(dst, []byte(v.Str[r])), nil
	case types.Date:
		return time.Unix(v.I64[r]*86400, 0).UTC().AppendFormat(dst, time.DateOnly), nil
	case types.Time:
		return time.UnixMilli(v.I64[r]).UTC().AppendFormat(dst, "15:04:05.000"), nil
	case types.Timestamp, types.TimestampLTZ:
		return appendTimestamp(dst, v, r), nil
	}
	return dst, unwritable("type " + t.String() + " has no PostgreSQL form")
}

func appendTimestamp(dst []byte, v *batch.Vec, r int) []byte {
	var t time.Time
	if v.Type.Phys() == types.PhysI128 {
		t = time.Unix(types.SplitNanos(v.I128[r])) // the format cuts to the microseconds that PostgreSQL keeps
	} else {
		t = time.UnixMicro(v.I64[r])
	}
	dst = t.UTC().AppendFormat(dst, "2006-01-02 15:04:05.000000")
	if v.Type.Kind == types.TimestampLTZ {
		dst = append(dst, "+00"...)
	}
	return dst
}

func appendCopyText(dst []byte, s string) ([]byte, error) {
	if !utf8.ValidString(s) {
		return dst, unwritable("the text is not valid UTF-8: " + strconv.Quote(shorten(s)))
	}
	start := 0
	for i := 0; i < len(s); i++ {
		var esc byte
		switch s[i] {
		case '\\':
			esc = '\\'
		case '\n':
			esc = 'n'
		case '\r':
			esc = 'r'
		case '\t':
			esc = 't'
		case 0:
			return dst, unwritable("the text contains the character U+0000, which PostgreSQL cannot store: " + strconv.Quote(shorten(s)))
		default:
			continue
		}
		dst = append(dst, s[start:i]...)
		dst = append(dst, '\\', esc)
		start = i + 1
	}
	return append(dst, s[start:]...), nil
}

// shorten is text for an error message.
func shorten(s string) string { return diag.Shorten(s, 80) }
