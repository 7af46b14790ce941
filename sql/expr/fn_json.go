package expr

import (
	"errors"
	"strconv"
	"strings"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

func jsonFn(name, usage, doc string, sp spec) *Func {
	return &Func{Name: name, Category: "JSON", Usage: usage, Doc: doc, Bind: fn(usage, sp)}
}

func jsonFuncs() []*Func {
	return []*Func{
		jsonFn("JSON_EXISTS", "JSON_EXISTS(json, path [{TRUE | FALSE | UNKNOWN | ERROR} ON ERROR])", "Whether the path finds something. ON ERROR is FALSE by default.",
			spec{params: "ss", ret: types.BoolType, nullable: true, check: pathArg, eval: jsonExistsEval}),
		jsonFn("JSON_VALUE", "JSON_VALUE(json, path [RETURNING type] [{NULL | ERROR | DEFAULT value} ON EMPTY] [… ON ERROR])",
			"The scalar at the path as STRING, BOOLEAN, INT or DOUBLE. A path without lax or strict is strict: a missing value is an error, so ON ERROR applies.",
			spec{params: "ss|xx", retOf: jsonValueType, nullable: true, sees: true, check: jsonValueCheck, eval: jsonValueEval}),
		jsonFn("JSON_QUERY", "JSON_QUERY(json, path [RETURNING type] [{WITHOUT | WITH [CONDITIONAL | UNCONDITIONAL]} WRAPPER] [{NULL | EMPTY ARRAY | EMPTY OBJECT | ERROR} ON EMPTY] [… ON ERROR])",
			"The object or array at the path as JSON text with sorted keys, or as ARRAY<STRING>.",
			spec{params: "ss", retOf: jsonQueryType, nullable: true, check: jsonQueryCheck, eval: jsonQueryEval}),
		jsonFn("JSON_STRING", "JSON_STRING(value)", "The value as JSON text with sorted keys.",
			spec{params: "x", ret: types.StringType, check: jsonArgs, key: rawKey, eval: jsonStringEval}),
		jsonFn("JSON_OBJECT", "JSON_OBJECT([KEY] name VALUE value, … [{NULL | ABSENT} ON NULL])",
			"A JSON object with sorted keys. Values of JSON_OBJECT, JSON_ARRAY and JSON stand as they are. NULL ON NULL by default.",
			spec{params: "|x*", ret: types.StringType, notNull: true, sees: true, check: jsonObjectCheck, key: rawKey, eval: jsonObjectEval}),
		jsonFn("JSON_ARRAY", "JSON_ARRAY(value, … [{NULL | ABSENT} ON NULL])",
			"A JSON array. Values of JSON_OBJECT, JSON_ARRAY and JSON stand as they are. ABSENT ON NULL by default.",
			spec{params: "|x*", ret: types.StringType, notNull: true, sees: true, check: jsonArgs, key: rawKey, eval: jsonArrayEval}),
		jsonFn("JSON", "JSON(string)", "JSON text to be put into JSON_OBJECT or JSON_ARRAY as it is; NULL for blank text, an error of the row for other text.",
			spec{params: "s", ret: types.StringType, nullable: true, eval: func(*site) func(Session) Eval {
				return func(Session) Eval {
					doc := &jsonDoc{}
					return textEval(func(dst []byte, x row) ([]byte, *diag.Error) {
						if strings.TrimSpace(x.str(0)) == "" {
							return dst, isNull
						}
						root, ok := doc.parse(x.str(0))
						if !ok {
							return dst, badJSON("JSON", x.str(0))
						}
						return doc.append(dst, root), nil
					})
				}
			}}),
		jsonFn("JSON_QUOTE", "JSON_QUOTE(string)", "The string as a JSON string literal of ASCII characters.",
			spec{params: "s", ret: types.StringType, eval: texts(jsonQuote)}),
		jsonFn("JSON_UNQUOTE", "JSON_UNQUOTE(string)", "The text of a quoted JSON string; other text stays as it is.",
			spec{params: "s", ret: types.StringType, eval: func(*site) func(Session) Eval {
				return func(Session) Eval {
					doc := &jsonDoc{}
					return textEval(func(dst []byte, x row) ([]byte, *diag.Error) { return jsonUnquote(dst, x.str(0), doc), nil })
				}
			}}),
	}
}

// isJSONFunc is IS JSON, which has no call syntax.
var isJSONFunc = &Func{Name: "IS JSON", Category: "JSON", Usage: "string IS [NOT] JSON [VALUE | SCALAR | ARRAY | OBJECT]"}

// newIsJSON is x IS [NOT] JSON [what].
func newIsJSON(x Expr, what string, not bool) (Expr, error) {
	c := &CallSite{Name: "IS " + what, Args: []Expr{x}}
	b, err := fn(isJSONFunc.Usage, spec{params: "s", ret: types.BoolType, eval: func(*site) func(Session) Eval {
		return func(Session) Eval {
			doc := &jsonDoc{}
			return perRow(vecBool, func(x row) (bool, *diag.Error) {
				root, ok := doc.parse(x.str(0))
				if ok {
					k := doc.nodes[root].kind
					switch what {
					case "JSON SCALAR":
						ok = k < jsonArray
					case "JSON ARRAY":
						ok = k == jsonArray
					case "JSON OBJECT":
						ok = k == jsonObject
					}
				}
				return ok != not, nil
			})
		}
	}})(c)
	if err != nil {
		return nil, err
	}
	words := []string{what}
	if not {
		words = append(words, "NOT")
	}
	return &Call{Func: isJSONFunc, Bound: b, Options: CallOptions{Words: words}}, nil
}

// isJSONText prints IS JSON as SQL.
func isJSONText(e *Call) string {
	return operand(e.Bound.Args[0]) + " IS " + not(len(e.Options.Words) > 1) + e.Options.Words[0]
}

func badJSON(name, s string) *diag.Error {
	return badValue(name, "'%s' is no JSON", diag.Shorten(s, maxShown)).WithHint("filter such rows out: WHERE x IS JSON")
}

func pathArg(b *site) error {
	d, ok := b.literal(1)
	if !ok {
		return nil
	}
	if _, err := parseJSONPath(d.Str); err != nil {
		return pathError(strings.ToUpper(b.Name), d.Str, err, diag.Semantic)
	}
	return nil
}

func pathError(name, path string, err error, code diag.Code) *diag.Error {
	if errors.Is(err, errUnsupportedRegex) {
		code = diag.Unsupported
	}
	return diag.New(code, diag.Pos{}, "%s: the path '%s' cannot be used", name, path).WithDetail("%s", err).
		WithHint("for example 'lax $.name', '$.list[0]', '$.list[*].name'")
}

// jsonReader evaluates paths; one per call and Program.
type jsonReader struct {
	name  string
	doc   jsonDoc
	last  string
	path  *jsonPath
	err   error
	known bool
}

// look is what a path found: a node, or empty or failed after the rules of lax and strict.
type look uint8

const (
	lookFound look = iota
	lookEmpty
	lookError
)

func (r *jsonReader) find(x row) (at int32, l look, lax bool, _ *diag.Error) {
	if p := x.str(1); !r.known || p != r.last {
		r.last, r.known = strings.Clone(p), true
		r.path, r.err = parseJSONPath(r.last)
	}
	if r.err != nil {
		return 0, lookError, false, pathError(r.name, r.last, r.err, diag.Data)
	}
	missing := lookError
	if r.path.lax {
		missing = lookEmpty
	}
	root, ok := r.doc.parse(x.str(0))
	if !ok {
		return 0, missing, r.path.lax, nil
	}
	at, ok = r.path.find(&r.doc, root)
	if !ok || r.doc.nodes[at].kind == jsonNull {
		return 0, missing, r.path.lax, nil
	}
	return at, lookFound, r.path.lax, nil
}

// behaviour is the ON EMPTY or ON ERROR clause, upper case, "" for none.
func (b *site) behaviour(when string) string {
	for _, w := range b.Options.Words {
		if s, ok := strings.CutSuffix(w, " ON "+when); ok {
			return s
		}
	}
	return ""
}

func jsonExistsEval(b *site) func(Session) Eval {
	onError := b.behaviour("ERROR")
	return func(Session) Eval {
		r := &jsonReader{name: "JSON_EXISTS"}
		return perRow(vecBool, func(x row) (bool, *diag.Error) {
			_, l, _, err := r.find(x)
			switch {
			case err != nil:
				return false, err
			case l == lookFound:
				return true, nil
			case l == lookEmpty:
				return false, nil
			}
			switch onError {
			case "TRUE":
				return true, nil
			case "UNKNOWN":
				return false, isNull
			case "ERROR":
				return false, onErrorFailure("JSON_EXISTS", x)
			}
			return false, nil
		})
	}
}

func onErrorFailure(name string, x row) *diag.Error {
	return badValue(name, "the path '%s' finds nothing in '%s'", x.str(1), diag.Shorten(x.str(0), maxShown)).
		WithHint("use NULL ON ERROR and NULL ON EMPTY, or a lax path")
}

func jsonValueType(b *site) (types.Type, error) {
	if b.Options.Return == nil {
		return types.StringType, nil
	}
	t := *b.Options.Return
	switch {
	case t.Kind == types.Varchar, t.Kind == types.Boolean, t.Kind == types.Int, t.Kind == types.Double:
		return t, nil
	}
	return t, badCall(b.CallSite, "RETURNING %s is not possible", t.WithNull(true)).
		WithHint("use STRING, BOOLEAN, INTEGER or DOUBLE and CAST the result")
}

// jsonValueCheck gives the values of DEFAULT clauses, which are the further arguments, the result's type.
func jsonValueCheck(b *site) error {
	for i := 2; i < len(b.args); i++ {
		x, err := ImplicitCast(b.args[i], b.ret)
		if err != nil {
			return err
		}
		b.args[i] = x
	}
	return pathArg(b)
}

func jsonValueEval(b *site) func(Session) Eval {
	onEmpty, onError := b.behaviour("EMPTY"), b.behaviour("ERROR")
	errorArg := 2
	if onEmpty == "DEFAULT" {
		errorArg = 3
	}
	return func(Session) Eval {
		r := &jsonReader{name: "JSON_VALUE"}
		ar := &arena{}
		return func(args []*batch.Vec, rows []int32, n int, out *batch.Vec, fail func(int32, *diag.Error)) {
			ar.reset()
			for _, at := range rows {
				x := row{args, int(at)}
				if x.null(0) || x.null(1) {
					out.SetNull(int(at), n)
					continue
				}
				l, err := r.value(x, out, int(at), ar)
				if err != nil {
					fail(at, err)
					continue
				}
				behaviour, arg := onEmpty, 2
				if l == lookError {
					behaviour, arg = onError, errorArg
				}
				switch {
				case l == lookFound:
				case behaviour == "DEFAULT" && !x.null(arg):
					out.Set(int(at), x.datum(arg))
				case behaviour == "ERROR":
					fail(at, onErrorFailure("JSON_VALUE", x))
				default:
					out.SetNull(int(at), n)
				}
			}
		}
	}
}

// value stores the scalar the path finds in row at of out.
func (r *jsonReader) value(x row, out *batch.Vec, at int, ar *arena) (look, *diag.Error) {
	node, l, lax, err := r.find(x)
	if err != nil || l != lookFound {
		return l, err
	}
	n := &r.doc.nodes[node]
	if n.kind >= jsonArray {
		if lax {
			return lookEmpty, nil
		}
		return lookError, nil
	}
	switch out.Type.Kind {
	case types.Boolean:
		if n.kind != jsonBool {
			return lookError, nil
		}
		out.Bool[at] = n.text == "true"
	case types.Int:
		v, err := strconv.ParseInt(n.text, 10, 32)
		if n.kind != jsonNumber || err != nil {
			return lookError, nil
		}
		out.I64[at] = v
	case types.Double:
		v, err := strconv.ParseFloat(n.text, 64)
		if n.kind != jsonNumber || err != nil {
			return lookError, nil
		}
		out.F64[at] = v
	default:
		if n.kind == jsonNumber {
			ar.buf = appendJSONNumber(ar.buf, n.text)
			out.Str[at] = ar.take()
		} else {
			out.Str[at] = n.text
		}
	}
	return lookFound, nil
}

func jsonQueryType(b *site) (types.Type, error) {
	if b.Options.Return == nil {
		return types.StringType, nil
	}
	t := *b.Options.Return
	if t.Kind == types.Varchar || t.Kind == types.Array && t.Elem.Kind == types.Varchar {
		return t, nil
	}
	return t, badCall(b.CallSite, "RETURNING %s is not possible", t.WithNull(true)).WithHint("use STRING or ARRAY<STRING>")
}

func jsonQueryCheck(b *site) error {
	if b.ret.Kind == types.Array && (b.behaviour("EMPTY") == "EMPTY OBJECT" || b.behaviour("ERROR") == "EMPTY OBJECT") {
		return badCall(b.CallSite, "EMPTY OBJECT is no value of type %s", b.ret.WithNull(true)).WithHint("use EMPTY ARRAY or NULL")
	}
	return pathArg(b)
}

func jsonQueryEval(b *site) func(Session) Eval {
	onEmpty, onError, wrapper := b.behaviour("EMPTY"), b.behaviour("ERROR"), ""
	for _, w := range b.Options.Words {
		if s, ok := strings.CutSuffix(w, " WRAPPER"); ok {
			wrapper = s
		}
	}
	asArray := b.ret.Kind == types.Array
	return func(Session) Eval {
		r := &jsonReader{name: "JSON_QUERY"}
		query := func(dst []byte, x row) ([]byte, *diag.Error) {
			at, l, lax, err := r.find(x)
			if err != nil {
				return dst, err
			}
			if l == lookFound {
				k := r.doc.nodes[at].kind
				switch {
				case wrapper == "UNCONDITIONAL", wrapper == "CONDITIONAL" && k != jsonArray:
					at = r.doc.array([]int32{at})
				case k < jsonArray && lax:
					l = lookEmpty
				case k < jsonArray:
					l = lookError
				}
				if asArray && r.doc.nodes[at].kind != jsonArray && l == lookFound {
					l = lookError
				}
			}
			if l == lookFound {
				if asArray {
					return r.doc.appendStrings(dst, at, b.ret), nil
				}
				return r.doc.append(dst, at), nil
			}
			behaviour := onEmpty
			if l == lookError {
				behaviour = onError
			}
			switch {
			case behaviour == "EMPTY ARRAY" && asArray:
				return types.AppendListLen(dst, 0), nil
			case behaviour == "EMPTY ARRAY":
				return append(dst, "[]"...), nil
			case behaviour == "EMPTY OBJECT":
				return append(dst, "{}"...), nil
			case behaviour == "ERROR":
				return dst, onErrorFailure("JSON_QUERY", x)
			}
			return dst, isNull
		}
		return textEval(query)
	}
}

// appendStrings encodes the array at as ARRAY<STRING>.
func (d *jsonDoc) appendStrings(dst []byte, at int32, t types.Type) []byte {
	dst = types.AppendListLen(dst, int(d.nodes[at].count))
	for m := d.nodes[at].first; m >= 0; m = d.nodes[m].next {
		v := types.StrDatum(d.nodes[m].text)
		switch d.nodes[m].kind {
		case jsonNull:
			v = types.NullDatum
		case jsonNumber, jsonArray, jsonObject:
			v.Str = string(d.append(nil, m))
		}
		dst = types.AppendValue(dst, v, *t.Elem)
	}
	return dst
}
