package format

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

var csvFormat = &Format{
	Name: "csv",
	Doc:  "one line per message, fields by position; a header only with connector 'filesystem', see 'csv.header' there",
	Options: []connectors.Option{
		{Key: "field-delimiter", Default: ",", Flink: true, Doc: `one character between fields; escapes such as \t work`},
		{Key: "disable-quote-character", Type: connectors.BoolOption, Default: "false", Flink: true, Doc: "neither read nor write quotes"},
		{Key: "quote-character", Default: `"`, Flink: true, Doc: "one character around fields that hold a delimiter"},
		{Key: "allow-comments", Type: connectors.BoolOption, Default: "false", Flink: true, Doc: "skip lines that start with #"},
		{Key: "ignore-parse-errors", Type: connectors.BoolOption, Default: "false", Flink: true,
			Doc: "turn a field that cannot be read into NULL and drop a line that cannot be parsed, counting both"},
		{Key: "array-element-delimiter", Default: ";", Flink: true, Doc: "one character between the elements of an ARRAY or ROW"},
		{Key: "escape-character", Flink: true, Doc: "one character that takes the next one literally"},
		{Key: "null-literal", Flink: true, Doc: "text that stands for NULL"},
		{Key: "write-bigdecimal-in-scientific-notation", Type: connectors.BoolOption, Default: "true", Flink: true, Doc: "write DECIMAL as Java does, 1E+2 for 100"},
		{Key: "trim-spaces", Type: connectors.BoolOption, Default: "false", Flink: true, Doc: "drop spaces around unquoted fields when reading"},
		{Key: "ignore-trailing-unmappable", Type: connectors.BoolOption, Default: "false", Flink: true, Doc: "ignore fields behind the last column"},
		{Key: "allow-trailing-comma", Type: connectors.BoolOption, Default: "true", Flink: true, Doc: "accept a delimiter behind the last field"},
		{Key: "fail-on-missing-columns", Type: connectors.BoolOption, Default: "false", Flink: true, Doc: "treat a short line as unparsable, so that ignore-parse-errors drops it"},
		{Key: "empty-string-as-null", Type: connectors.BoolOption, Default: "false", Flink: true, Doc: "read an empty field as NULL"},
	},
	Check: checkCSV,
	NewDecoder: func(spec DecodeSpec) (Decoder, error) {
		o, err := readCSVOptions(spec.Options)
		if err != nil {
			return nil, err
		}
		return newCSVDecoder(spec, o), nil
	},
	NewEncoder: func(spec EncodeSpec) (Encoder, error) {
		o, err := readCSVOptions(spec.Options)
		if err != nil {
			return nil, err
		}
		return newCSVEncoder(spec, o), nil
	},
}

// csvOptions are the options; a character is -1 when it is off.
type csvOptions struct {
	delim, quote, escape, elem rune
	nullLiteral                string
	hasNull                    bool
	comments, ignoreErrors     bool
	scientific                 bool
	trim, ignoreTrailing       bool
	trailingComma              bool
	failOnMissing, emptyIsNull bool
}

func readCSVOptions(v *connectors.Values) (csvOptions, error) {
	o := csvOptions{
		nullLiteral:    v.String("null-literal"),
		hasNull:        v.Has("null-literal"),
		comments:       v.Bool("allow-comments"),
		ignoreErrors:   v.Bool("ignore-parse-errors"),
		scientific:     v.Bool("write-bigdecimal-in-scientific-notation"),
		trim:           v.Bool("trim-spaces"),
		ignoreTrailing: v.Bool("ignore-trailing-unmappable"),
		trailingComma:  v.Bool("allow-trailing-comma"),
		failOnMissing:  v.Bool("fail-on-missing-columns"),
		emptyIsNull:    v.Bool("empty-string-as-null"),
		quote:          -1,
		escape:         -1,
	}
	one := func(key string, to *rune) error {
		s := unescapeJava(v.String(key))
		r, n := utf8.DecodeRuneInString(s)
		if n == 0 || n != len(s) || r >= utf8.RuneSelf {
			return v.Errorf(key, "'%s' must be a single ASCII character", v.String(key))
		}
		*to = r
		return nil
	}
	if err := one("field-delimiter", &o.delim); err != nil {
		return o, err
	}
	if err := one("array-element-delimiter", &o.elem); err != nil {
		return o, err
	}
	switch {
	case !v.Bool("disable-quote-character"):
		if err := one("quote-character", &o.quote); err != nil {
			return o, err
		}
	case v.Has("quote-character"):
		return o, v.Errorf("quote-character", "it cannot be set together with 'disable-quote-character'").WithHint("remove one of the two options")
	}
	if v.Has("escape-character") {
		if err := one("escape-character", &o.escape); err != nil {
			return o, err
		}
	}
	return o, nil
}

// CSVDelimiter is the character between the fields, by the options of format 'csv' without their prefix.
func CSVDelimiter(v *connectors.Values) (rune, error) {
	o, err := readCSVOptions(v)
	return o.delim, err
}

// unescapeJava resolves the escapes of a Java literal: \t \n \r \b \f \\ \" \' and \uXXXX.
func unescapeJava(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var sb strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			sb.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 't':
			sb.WriteByte('\t')
		case 'n':
			sb.WriteByte('\n')
		case 'r':
			sb.WriteByte('\r')
		case 'b':
			sb.WriteByte('\b')
		case 'f':
			sb.WriteByte('\f')
		case 'u':
			if i+5 <= len(s) {
				if r, err := strconv.ParseUint(s[i+1:i+5], 16, 16); err == nil {
					sb.WriteRune(rune(r))
					i += 4
					continue
				}
			}
			sb.WriteByte('u')
		default:
			sb.WriteByte(s[i])
		}
	}
	return sb.String()
}

func checkCSV(s *types.Schema, v *connectors.Values, _ connectors.Use) error {
	if _, err := readCSVOptions(v); err != nil {
		return err
	}
	for _, c := range s.Columns {
		if why := csvTypeFault(c.Type, true); why != "" {
			return diag.New(diag.Semantic, v.Pos("field-delimiter"), "table %s: format 'csv' cannot hold column %s of type %s", v.Table().Name, c.Name, c.Type).
				WithDetail("%s", why).WithHint("use format 'json' for nested data")
		}
	}
	return nil
}

func csvTypeFault(t types.Type, top bool) string {
	switch t.Kind {
	case types.Map, types.Multiset, types.Null:
		return t.Kind.String() + " has no csv form"
	case types.Time:
		if t.Precision > 3 {
			return "the precision of TIME is limited to 3"
		}
	case types.Array, types.Row:
		if !top {
			return "ARRAY and ROW may be one level deep"
		}
		if t.Kind == types.Array {
			return csvTypeFault(*t.Elem, false)
		}
		for _, f := range t.Fields {
			if why := csvTypeFault(f.Type, false); why != "" {
				return why
			}
		}
	}
	return ""
}
