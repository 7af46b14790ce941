package expr

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// The functions that write JSON.

// isRawJSON reports a call whose result is JSON text.
func isRawJSON(e Expr) bool {
	c, ok := e.(*Call)
	return ok && slices.Contains([]string{"JSON", "JSON_OBJECT", "JSON_ARRAY"}, c.Func.Name)
}

// rawKey notes which arguments are JSON text: once folded to constants they look like other strings.
func rawKey(b *site) string {
	var sb strings.Builder
	for _, a := range b.args {
		if isRawJSON(a) {
			sb.WriteByte('r')
		} else {
			sb.WriteByte('-')
		}
	}
	return sb.String()
}

// jsonArgs refuses types that have no JSON form.
func jsonArgs(b *site) error {
	for i, a := range b.args {
		if a.Type().Kind == types.Null {
			b.args[i] = convert(a, types.StringType)
		}
		if bad := noJSON(a.Type()); bad != nil {
			return badCall(b.CallSite, "a value of type %s has no JSON form", bad.WithNull(true)).WithHint("CAST it to STRING")
		}
	}
	return nil
}

func noJSON(t types.Type) *types.Type {
	switch t.Kind {
	case types.Date, types.Time, types.IntervalDayTime, types.IntervalYearMonth:
		return &t
	case types.Map, types.Multiset:
		key := t.Key
		if t.Kind == types.Multiset {
			key = t.Elem
		}
		if !key.IsString() {
			return &t
		}
	}
	if t.Elem != nil {
		if bad := noJSON(*t.Elem); bad != nil {
			return bad
		}
	}
	for _, f := range t.Fields {
		if bad := noJSON(f.Type); bad != nil {
			return bad
		}
	}
	return nil
}

func jsonObjectCheck(b *site) error {
	if len(b.args)%2 != 0 {
		return wrongArgs(b.CallSite, "JSON_OBJECT([KEY] name VALUE value, …)")
	}
	for i := 0; i < len(b.args); i += 2 {
		if _, ok := b.literal(i); !ok || !b.args[i].Type().IsString() {
			return badCall(b.CallSite, "a key must be a string constant").WithHint("write KEY 'name' VALUE value")
		}
	}
	return jsonArgs(b)
}

// jsonItem writes argument i of a row.
func jsonItem(b *site, i int) func(dst []byte, x row) []byte {
	t := b.args[i].Type()
	if isRawJSON(b.args[i]) {
		return func(dst []byte, x row) []byte { return append(dst, x.str(i)...) }
	}
	if t.IsString() {
		return func(dst []byte, x row) []byte { return appendJSONString(dst, x.str(i)) }
	}
	return func(dst []byte, x row) []byte { return appendJSON(dst, x.datum(i), t) }
}

func jsonStringEval(b *site) func(Session) Eval {
	item := jsonItem(b, 0)
	return func(Session) Eval {
		return textEval(func(dst []byte, x row) ([]byte, *diag.Error) { return item(dst, x), nil })
	}
}

func jsonObjectEval(b *site) func(Session) Eval {
	absent := b.behaviour("NULL") == "ABSENT"
	type member struct {
		key  string
		arg  int
		item func([]byte, row) []byte
	}
	var ms []member
	for i := 0; i < len(b.args); i += 2 {
		d, _ := b.literal(i)
		ms = slices.DeleteFunc(ms, func(m member) bool { return m.key == d.Str }) // the last of equal keys counts
		ms = append(ms, member{d.Str, i + 1, jsonItem(b, i+1)})
	}
	slices.SortFunc(ms, func(a, b member) int { return strings.Compare(a.key, b.key) })
	return func(Session) Eval {
		return textEval(func(dst []byte, x row) ([]byte, *diag.Error) {
			dst = append(dst, '{')
			first := true
			for _, m := range ms {
				null := x.null(m.arg)
				if null && absent {
					continue
				}
				if !first {
					dst = append(dst, ',')
				}
				first = false
				dst = append(appendJSONString(dst, m.key), ':')
				if null {
					dst = append(dst, "null"...)
				} else {
					dst = m.item(dst, x)
				}
			}
			return append(dst, '}'), nil
		})
	}
}

func jsonArrayEval(b *site) func(Session) Eval {
	keep := b.behaviour("NULL") == "NULL"
	items := make([]func([]byte, row) []byte, len(b.args))
	for i := range b.args {
		items[i] = jsonItem(b, i)
	}
	return func(Session) Eval {
		return textEval(func(dst []byte, x row) ([]byte, *diag.Error) {
			dst = append(dst, '[')
			first := true
			for i, item := range items {
				null := x.null(i)
				if null && !keep {
					continue
				}
				if !first {
					dst = append(dst, ',')
				}
				first = false
				if null {
					dst = append(dst, "null"...)
				} else {
					dst = item(dst, x)
				}
			}
			return append(dst, ']'), nil
		})
	}
}

// AppendJSONText appends s as a JSON string, with quotes, as the JSON functions write it.
func AppendJSONText(dst []byte, s string) []byte { return appendJSONString(dst, s) }

// appendJSON writes a value of type t as JSON: time stamps as ISO text, TIMESTAMP_LTZ in UTC, bytes in base 64.
func appendJSON(dst []byte, d types.Datum, t types.Type) []byte {
	if d.IsNull {
		return append(dst, "null"...)
	}
	switch t.Kind {
	case types.Boolean:
		return strconv.AppendBool(dst, d.Bool)
	case types.Char, types.Varchar:
		return appendJSONString(dst, d.Str)
	case types.Binary, types.Varbinary:
		return append(appendBase64(append(dst, '"'), d.Str), '"')
	case types.Float, types.Double:
		bits := 32 << (t.Kind - types.Float)
		if math.IsNaN(d.F64) || math.IsInf(d.F64, 0) {
			return append(types.AppendFloat(append(dst, '"'), d.F64, bits), '"')
		}
		return types.AppendFloat(dst, d.F64, bits)
	case types.Timestamp, types.TimestampLTZ:
		sec, nanos := types.SplitTimestamp(d, t.Precision)
		dst = types.AppendISOTimestamp(append(dst, '"'), sec, nanos, true)
		if t.Kind == types.TimestampLTZ {
			dst = append(dst, 'Z')
		}
		return append(dst, '"')
	case types.Array:
		dst = append(dst, '[')
		for i, e := range d.List {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSON(dst, e, *t.Elem)
		}
		return append(dst, ']')
	case types.Map, types.Multiset, types.Row:
		return appendJSONMembers(dst, d, t)
	}
	return types.AppendText(dst, d, t, nil)
}

func appendJSONMembers(dst []byte, d types.Datum, t types.Type) []byte {
	type member struct {
		key string
		v   types.Datum
		t   types.Type
	}
	var ms []member
	for i := range d.List {
		switch {
		case t.Kind == types.Row:
			ms = append(ms, member{t.Fields[i].Name, d.List[i], t.Fields[i].Type})
		case i%2 == 1:
			key := d.List[i-1].Str
			if d.List[i-1].IsNull {
				key = "null"
			}
			ms = append(ms, member{key, d.List[i], t.Entry(i)})
		}
	}
	slices.SortStableFunc(ms, func(a, b member) int { return strings.Compare(a.key, b.key) })
	dst = append(dst, '{')
	for i, m := range ms {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendJSON(append(appendJSONString(dst, m.key), ':'), m.v, m.t)
	}
	return append(dst, '}')
}

func jsonQuote(dst []byte, x row) ([]byte, *diag.Error) {
	dst = append(dst, '"')
	for _, r := range x.str(0) {
		if i := strings.IndexRune("\"\\/\b\f\n\r\t", r); i >= 0 {
			dst = append(dst, '\\', `"\/bfnrt`[i])
			continue
		}
		if r >= 0x20 && r < 0x7F {
			dst = append(dst, byte(r))
			continue
		}
		units := []rune{r}
		if r > 0xFFFF {
			hi, lo := utf16.EncodeRune(r)
			units = []rune{hi, lo}
		}
		for _, u := range units {
			dst = append(dst, `\u`...)
			for shift := 12; shift >= 0; shift -= 4 {
				dst = append(dst, "0123456789abcdef"[u>>shift&15])
			}
		}
	}
	return append(dst, '"'), nil
}

// jsonUnquote follows Flink: text that starts with a JSON value and stands in quotes loses them and its escapes, as far
// as all of these are good.
func jsonUnquote(dst []byte, s string, doc *jsonDoc) []byte {
	if _, ok := doc.parse(s); !ok || len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return append(dst, s...)
	}
	start := len(dst)
	for in := s[1 : len(s)-1]; in != ""; {
		if in[0] != '\\' {
			_, n := utf8.DecodeRuneInString(in)
			dst, in = append(dst, in[:n]...), in[n:]
			continue
		}
		out, n := unescapeJSON(dst, in)
		if n == 0 {
			return append(out[:start], s...)
		}
		dst, in = out, in[n:]
	}
	return dst
}
