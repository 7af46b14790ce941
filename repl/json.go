package repl

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// appendRowJSON appends a row as an object of its columns, in order.
func appendRowJSON(dst []byte, r streamsql.Row) []byte {
	dst = append(dst, '{')
	for i, c := range r.Schema().Columns {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, c.Name)
		dst = append(dst, ':')
		dst = appendJSON(dst, r.Datum(i), c.Type, r.Session())
	}
	return append(dst, '}')
}

// appendJSON appends a value: numbers and booleans as such (DECIMAL with its full scale), NaN and infinities as
// strings, BYTES in base64, times as CAST AS STRING renders them, ARRAY, ROW and MAP as arrays and objects.
func appendJSON(dst []byte, d types.Datum, t types.Type, s expr.Session) []byte {
	if d.IsNull {
		return append(dst, "null"...)
	}
	switch t.Kind {
	case types.Boolean:
		return strconv.AppendBool(dst, d.Bool)
	case types.TinyInt, types.SmallInt, types.Int, types.BigInt:
		return strconv.AppendInt(dst, d.I64, 10)
	case types.Float, types.Double:
		if math.IsNaN(d.F64) || math.IsInf(d.F64, 0) {
			return appendString(dst, expr.Text(d, t, s))
		}
		bits := 64
		if t.Kind == types.Float {
			bits = 32
		}
		return types.AppendFloat(dst, d.F64, bits)
	case types.Decimal, types.Variant:
		return append(dst, expr.Text(d, t, s)...)
	case types.Char, types.Varchar:
		return appendString(dst, d.Str)
	case types.Binary, types.Varbinary:
		return appendString(dst, base64.StdEncoding.EncodeToString([]byte(d.Str)))
	case types.Array:
		dst = append(dst, '[')
		for i, x := range d.List {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSON(dst, x, *t.Elem, s)
		}
		return append(dst, ']')
	case types.Row:
		dst = append(dst, '{')
		for i, x := range d.List {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendString(dst, t.Fields[i].Name), ':')
			dst = appendJSON(dst, x, t.Fields[i].Type, s)
		}
		return append(dst, '}')
	case types.Map, types.Multiset:
		return appendMap(dst, d, t, s)
	}
	return appendString(dst, expr.Text(d, t, s))
}

func appendMap(dst []byte, d types.Datum, t types.Type, s expr.Session) []byte {
	key, value := t.Key, t.Elem
	if t.Kind == types.Multiset {
		key, value = t.Elem, &types.BigIntType
	}
	dst = append(dst, '{')
	for i := 0; i+1 < len(d.List); i += 2 {
		if i > 0 {
			dst = append(dst, ',')
		}
		name := "null"
		if !d.List[i].IsNull {
			name = expr.Text(d.List[i], *key, s)
		}
		dst = append(appendString(dst, name), ':')
		dst = appendJSON(dst, d.List[i+1], *value, s)
	}
	return append(dst, '}')
}

// appendString appends a string in quotes. Unlike encoding/json's default it leaves <, > and & as they are.
func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			return appendEscaped(dst, s)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}

func appendEscaped(dst []byte, s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err) // strings always encode
	}
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}
