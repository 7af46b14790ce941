package expr

import (
	"slices"
	"strings"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// A VARIANT is a JSON value. It is held as text in one form: sorted keys, no spaces, integers as they are, other numbers
// without an exponent as decimals of at most 38 digits without trailing zeros, all others as Java writes a DOUBLE.

func variantFuncs() []*Func {
	const usage, try = "PARSE_JSON(string [, allowDuplicateKeys])", "TRY_PARSE_JSON(string [, allowDuplicateKeys])"
	return []*Func{
		{Name: "PARSE_JSON", Category: "variant", Usage: usage,
			Doc:  "JSON text as a VARIANT: v['key'] and v[1] are its parts, CAST takes numbers and BOOLEAN out of it, JSON_STRING makes it text again. Other text, and an object with a key twice unless allowed, is an error of the row.",
			Bind: fn(usage, spec{params: "s|c", ret: types.VariantType, eval: parseJSONEval(false)})},
		{Name: "TRY_PARSE_JSON", Category: "variant", Usage: try, Doc: "PARSE_JSON that gives NULL where it would fail.",
			Bind: fn(try, spec{params: "s|c", ret: types.VariantType, nullable: true, eval: parseJSONEval(true)})},
	}
}

func parseJSONEval(try bool) func(*site) func(Session) Eval {
	return func(b *site) func(Session) Eval {
		return func(Session) Eval {
			p := variantParser{}
			return textEval(func(dst []byte, x row) ([]byte, *diag.Error) {
				out, problem := p.parse(dst, x.str(0), x.has(1) && x.bool(1))
				switch {
				case problem == "":
					return out, nil
				case try:
					return dst, isNull
				}
				return dst, badJSON(strings.ToUpper(b.Name), x.str(0)).WithDetail("%s", problem).WithHint("use TRY_PARSE_JSON to get NULL instead")
			})
		}
	}
}

// variantParser turns JSON text into the form of a VARIANT. Its memory is reused from row to row.
type variantParser struct {
	doc  jsonDoc
	keys []string
}

// parse appends the value of s to dst, or says what is wrong with s.
func (p *variantParser) parse(dst []byte, s string, duplicates bool) (out []byte, problem string) {
	root, ok := p.doc.parse(s)
	if !ok || !jsonEnds(s) {
		return dst, "the text is not in the syntax of JSON"
	}
	if !duplicates {
		for i := range p.doc.nodes {
			if key, twice := p.duplicate(int32(i)); twice {
				return dst, "the key " + string(appendJSONString(nil, key)) + " occurs twice in an object"
			}
		}
	}
	for i := range p.doc.nodes {
		n := &p.doc.nodes[i]
		if n.kind != jsonNumber {
			continue
		}
		if n.text, ok = variantNumber(n.text); !ok {
			return dst, "a number is out of the range of DOUBLE"
		}
	}
	return p.doc.appendWith(dst, root, true), ""
}

// jsonEnds reports that nothing follows the value at the front of s, which is known to be one.
func jsonEnds(s string) bool {
	depth, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
			continue
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		default:
			continue
		}
		if depth == 0 && !quoted {
			return strings.Trim(s[i+1:], " \t\r\n") == ""
		}
	}
	return true // a number or a word, whose end the parser has checked
}

// duplicate finds a key that object i has twice.
func (p *variantParser) duplicate(i int32) (key string, ok bool) {
	n := &p.doc.nodes[i]
	if n.kind != jsonObject || n.count < 2 {
		return "", false
	}
	p.keys = p.keys[:0]
	for m := n.first; m >= 0; m = p.doc.nodes[m].next {
		p.keys = append(p.keys, p.doc.nodes[m].key)
	}
	slices.Sort(p.keys)
	for k := 1; k < len(p.keys); k++ {
		if p.keys[k] == p.keys[k-1] {
			return p.keys[k], true
		}
	}
	return "", false
}

// variantNumber is the form of a JSON number in a VARIANT; ok is false for one beyond DOUBLE.
func variantNumber(s string) (_ string, ok bool) {
	digits := 0
	point, exp := false, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c == '.':
			point = true
		case c == 'e' || c == 'E':
			exp = true
		}
	}
	if s == "-0" {
		return "0", true
	}
	if !exp && digits <= types.MaxDecimalPrecision {
		if point {
			s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
		}
		if s == "-0" {
			s = "0"
		}
		return s, true
	}
	f, ok := types.ParseFloat(s, 64)
	if !ok || f-f != 0 {
		return "", false
	}
	return string(types.AppendFloat(nil, f, 64)), true
}

func castableVariant(to types.Type) (why, hint string, ok bool) {
	switch {
	case to.IsNumeric(), to.Kind == types.Boolean, to.Kind == types.Variant:
		return "", "", true
	case to.IsString():
		return "", "write JSON_STRING(x), and JSON_UNQUOTE of it for the text of a JSON string", false
	}
	return "a JSON value is a number, a string, a BOOLEAN, an object or an array", "take it as text: JSON_UNQUOTE(JSON_STRING(x))", false
}

// fromVariant converts to a number or BOOLEAN. Numbers wrap and saturate as numbers do; other values have no such form.
func fromVariant(to types.Type) castFn {
	if to.Kind == types.Boolean {
		return func(d types.Datum) (types.Datum, bool) {
			return types.BoolDatum(d.Str == "true"), d.Str == "true" || d.Str == "false"
		}
	}
	exact := toNumber(types.DecimalOf(types.MaxDecimalPrecision, 0), to)
	fromDouble := toNumber(types.DoubleType, to)
	return func(d types.Datum) (types.Datum, bool) {
		if d.Str == "null" {
			return types.NullDatum, true
		}
		if d.Str == "" || d.Str[0] != '-' && (d.Str[0] < '0' || d.Str[0] > '9') {
			return d, false
		}
		if to.Kind == types.Decimal && !strings.Contains(d.Str, "E") {
			v, fits, ok := types.ParseBigDecimal(d.Str, to.Precision, to.Scale)
			return decimalOrNull(v, fits, to.Precision), ok
		}
		if strings.IndexByte(d.Str, '.') < 0 && to.Phys() != types.PhysF64 {
			v, fits, ok := types.ParseBigDecimal(d.Str, types.MaxDecimalPrecision, 0)
			if ok && fits {
				return exact(types.I128Datum(v))
			}
		}
		f, ok := types.ParseFloat(d.Str, 64)
		if !ok {
			return d, false
		}
		return fromDouble(types.FloatDatum(f))
	}
}

// newVariantItem is x[index] of a VARIANT: an element from 1 on, or the value of a key; NULL where there is none.
func newVariantItem(x, index Expr) (Expr, error) {
	t := index.Type()
	switch {
	case t.IsInteger():
		index = convert(index, types.BigIntType)
	case !t.IsString():
		return nil, diag.New(diag.Semantic, diag.Pos{}, "the index of a VARIANT must be an integer or a string, %s is of type %s", index, t.WithNull(true)).
			WithHint("v[1] is the first element of an array, v['key'] a value of an object")
	}
	return &Item{X: x, Index: index, T: types.VariantType}, nil
}

func variantItemKernel(e *Item) kernel {
	byKey := e.Index.Type().IsString()
	var doc jsonDoc
	return func(c *evalCtx, n *node, a []*batch.Vec, out *batch.Vec, sel []int32, rows int) {
		if n.arena == nil {
			n.arena = &arena{}
		}
		ar := n.arena
		ar.reset()
		for _, i := range rowsOf(c, sel, rows) {
			if out.IsNull(int(i)) {
				continue
			}
			root, ok := doc.parse(a[0].Str[a[0].Idx(int(i))])
			at := int32(-1)
			switch k := doc.nodes; {
			case !ok:
			case byKey && k[root].kind == jsonObject:
				at = doc.member(root, a[1].Str[a[1].Idx(int(i))])
			case !byKey && k[root].kind == jsonArray:
				at = doc.nth(root, a[1].I64[a[1].Idx(int(i))])
			}
			if at < 0 {
				n.setNull(int(i), rows)
				continue
			}
			ar.buf = doc.appendWith(ar.buf, at, true)
			out.Str[i] = ar.take()
		}
	}
}

// nth is an element of array at, counted from 1, or -1.
func (d *jsonDoc) nth(at int32, i int64) int32 {
	m := d.nodes[at].first
	for ; m >= 0 && i > 1; i-- {
		m = d.nodes[m].next
	}
	if i < 1 {
		return -1
	}
	return m
}
