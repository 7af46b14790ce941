package expr

import (
	"fmt"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/sql/diag"
)

// NewRegistry is a registry of all built-in functions.
func NewRegistry() *Registry {
	r := &Registry{funcs: map[string]*Func{}}
	for _, f := range builtins() {
		if err := r.Register(f); err != nil {
			panic(err) // two built-ins of one name: a mistake in the tables
		}
	}
	return r
}

// Register adds f under its name and aliases. A name that is taken is an error.
func (r *Registry) Register(f *Func) error {
	names := append([]string{f.Name}, f.Aliases...)
	for _, n := range names {
		if u := strings.ToUpper(n); r.funcs[u] != nil || r.tables[u] != nil || r.aggs[u] != nil {
			return diag.New(diag.Semantic, diag.Pos{}, "function %s already exists", n).
				WithHint("register it under another name")
		}
	}
	for _, n := range names {
		r.funcs[strings.ToUpper(n)] = f
	}
	return nil
}

// Lookup finds a function by name or alias in any case, nil when there is none.
func (r *Registry) Lookup(name string) *Func { return r.funcs[strings.ToUpper(name)] }

// Functions are all functions ordered by name; aliases are not listed apart.
func (r *Registry) Functions() []*Func {
	out := make([]*Func, 0, len(r.funcs))
	for n, f := range r.funcs {
		if n == strings.ToUpper(f.Name) {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b *Func) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// NewCall binds a call of a scalar function. An unknown name is an error that suggests the nearest known one; functions
// of Flink that streamsql does not have are refused as unsupported.
func (r *Registry) NewCall(name string, args []Expr, o CallOptions, s Session) (Expr, error) {
	f := r.Lookup(name)
	if f == nil {
		return nil, r.unknown(name)
	}
	b, err := f.Bind(&CallSite{Name: name, Args: args, Options: o, Session: s})
	if err != nil {
		return nil, err
	}
	if b.Rewrite != nil {
		return b.Rewrite, nil
	}
	return &Call{Func: f, Bound: b, Options: o}, nil
}

func (r *Registry) unknown(name string) error {
	upper := strings.ToUpper(name)
	if IsGrouping(upper) {
		return diag.New(diag.Semantic, diag.Pos{}, "function %s cannot be used here", upper).
			WithHint("it stands in the SELECT list, HAVING or ORDER BY of a query with GROUP BY")
	}
	if _, ok := LookupAgg(upper); ok {
		return diag.New(diag.Semantic, diag.Pos{}, "aggregate function %s cannot be used here", upper).
			WithHint("aggregates stand in the SELECT list, HAVING or ORDER BY of a query with GROUP BY or a window")
	}
	if slices.Contains(flinkFunctions, upper) {
		return diag.New(diag.Unsupported, diag.Pos{}, "function %s is not supported", upper).
			WithDetail("Flink SQL has it, streamsql does not").
			WithHint("%s", insteadOf(upper))
	}
	err := diag.New(diag.Semantic, diag.Pos{}, "unknown function %s", name).
		WithHint("SHOW FUNCTIONS lists the functions there are")
	if s := foreign[upper]; s != "" {
		return err.WithHint("write %s", s)
	}
	names := make([]string, 0, len(r.funcs))
	for n := range r.funcs {
		names = append(names, n)
	}
	slices.Sort(names)
	if near := diag.Nearest(upper, names); near != "" {
		err.WithHint("did you mean %s?", near)
	}
	return err
}

// foreign says what to write in place of functions of other dialects.
var foreign = map[string]string{
	"STRING_AGG": "LISTAGG(x, ',')", "GROUP_CONCAT": "LISTAGG(x, ',')", "LIST": "ARRAY_AGG(x)",
	"COUNT_IF": "COUNT(*) FILTER (WHERE condition)", "COUNTIF": "COUNT(*) FILTER (WHERE condition)",
	"MEDIAN": "PERCENTILE(x, 0.5)", "QUANTILE": "PERCENTILE(x, 0.9)", "QUANTILE_CONT": "PERCENTILE(x, 0.9)",
	"BOOL_OR": "COUNT(*) FILTER (WHERE condition) > 0", "BOOL_AND": "COUNT(*) FILTER (WHERE NOT condition) = 0",
	"ANY_VALUE": "FIRST_VALUE(x)", "FIRST": "FIRST_VALUE(x)", "LAST": "LAST_VALUE(x)", "VARIANCE_SAMP": "VAR_SAMP(x)",
	"ARG_MAX":    "ROW_NUMBER() OVER (PARTITION BY k ORDER BY y DESC) in a subquery and keep row 1",
	"ARG_MIN":    "ROW_NUMBER() OVER (PARTITION BY k ORDER BY y) in a subquery and keep row 1",
	"MAX_BY":     "ROW_NUMBER() OVER (PARTITION BY k ORDER BY y DESC) in a subquery and keep row 1",
	"MIN_BY":     "ROW_NUMBER() OVER (PARTITION BY k ORDER BY y) in a subquery and keep row 1",
	"DATE_TRUNC": "FLOOR(x TO HOUR)", "TO_CHAR": "DATE_FORMAT(x, 'yyyy-MM-dd')", "STRFTIME": "DATE_FORMAT(x, 'yyyy-MM-dd')",
	"TIME_BUCKET": "the window TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' MINUTE), or FLOOR(x TO HOUR)",
	"DATE_BIN":    "the window TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' MINUTE), or FLOOR(x TO HOUR)",
	"DATEDIFF":    "TIMESTAMPDIFF(DAY, a, b)", "DATE_DIFF": "TIMESTAMPDIFF(DAY, a, b)", "AGE": "TIMESTAMPDIFF(DAY, a, b)",
	"DATE_ADD": "x + INTERVAL '1' DAY", "DATEADD": "x + INTERVAL '1' DAY", "DATE_SUB": "x - INTERVAL '1' DAY",
	"DATE_PART": "EXTRACT(HOUR FROM x)", "DATEPART": "EXTRACT(HOUR FROM x)", "EPOCH": "UNIX_TIMESTAMP(x)",
	"STRPTIME": "TO_TIMESTAMP(x, 'yyyy-MM-dd')", "EPOCH_MS": "TO_TIMESTAMP_LTZ(x, 3)",
	"GETDATE": "NOW()", "SYSDATE": "NOW()", "CLOCK_TIMESTAMP": "CURRENT_ROW_TIMESTAMP()", "CURDATE": "CURRENT_DATE",
	"LENGTH": "CHAR_LENGTH(x)", "LEN": "CHAR_LENGTH(x)", "STRLEN": "CHAR_LENGTH(x)", "STRPOS": "INSTR(x, part)", "CHARINDEX": "LOCATE(part, x)",
	"SPLIT_PART": "SPLIT_INDEX(x, ',', 0), which counts from 0", "STARTS_WITH": "STARTSWITH(x, part)", "ENDS_WITH": "ENDSWITH(x, part)",
	"STRING_SPLIT": "SPLIT(x, ',')", "STR_SPLIT": "SPLIT(x, ',')", "STRING_TO_ARRAY": "SPLIT(x, ',')",
	"LCASE": "LOWER(x)", "UCASE": "UPPER(x)", "FORMAT": "PRINTF(format, x)", "RANDOM": "RAND()", "POW": "POWER(x, y)",
	"NVL": "COALESCE(a, b)", "ISNULL": "COALESCE(a, b)", "ZEROIFNULL": "COALESCE(x, 0)", "IIF": "IF(condition, a, b)",
	"CONVERT": "CAST(x AS INT)", "TO_NUMBER": "CAST(x AS DECIMAL(18, 2))", "STRUCT_PACK": "ROW(a, b)",
	"REGEXP_MATCHES": "REGEXP(x, pattern)", "REGEXP_LIKE": "REGEXP(x, pattern)",
	"LIST_CONTAINS": "ARRAY_CONTAINS(x, element)", "ARRAY_LENGTH": "CARDINALITY(x)", "ARRAY_SIZE": "CARDINALITY(x)", "LIST_VALUE": "ARRAY[a, b]",
	"JSON_EXTRACT": "JSON_VALUE(x, '$.a')", "JSON_EXTRACT_STRING": "JSON_VALUE(x, '$.a')", "GET_JSON_OBJECT": "JSON_VALUE(x, '$.a')",
	"GEN_RANDOM_UUID": "UUID()", "SHA": "SHA256(x)", "NEXTVAL": "UUID(), or a number from the source: a stream has no sequences",
}

// wrongArgs is the error of a call with the wrong number or types of arguments.
func wrongArgs(c *CallSite, usage string) error {
	kinds := make([]string, len(c.Args))
	for i, a := range c.Args {
		kinds[i] = a.Type().WithNull(true).String()
	}
	return diag.New(diag.Semantic, diag.Pos{}, "function %s cannot be called with (%s)", strings.ToUpper(c.Name),
		strings.Join(kinds, ", ")).WithHint("%s", fmt.Sprintf("usage: %s", usage))
}

// flinkFunctions are the scalar functions of Flink 2.x. Those in no registry are refused by name.
var flinkFunctions = strings.Fields(`
ABS ACOS ARRAY_APPEND ARRAY_CONCAT ARRAY_CONTAINS ARRAY_DISTINCT ARRAY_EXCEPT ARRAY_INTERSECT ARRAY_JOIN ARRAY_MAX ARRAY_MIN
ARRAY_POSITION ARRAY_PREPEND ARRAY_REMOVE ARRAY_REVERSE ARRAY_SLICE ARRAY_SORT ARRAY_UNION ASCII ASIN ATAN ATAN2 BIN
BITMAP_AND BITMAP_ANDNOT BITMAP_BUILD BITMAP_CARDINALITY BITMAP_FROM_BYTES BITMAP_OR BITMAP_TO_ARRAY BITMAP_TO_BYTES
BITMAP_TO_STRING BITMAP_XOR BTRIM CARDINALITY CEIL CEILING CHARACTER_LENGTH CHAR_LENGTH CHR COALESCE CONCAT CONCAT_WS
CONVERT_TZ COS COSH COT CURRENT_DATABASE CURRENT_DATE CURRENT_ROW_TIMESTAMP CURRENT_TIME CURRENT_TIMESTAMP
CURRENT_WATERMARK DATE_FORMAT DAYOFMONTH DAYOFWEEK DAYOFYEAR DECODE DEGREES E ELEMENT ELT ENCODE ENDSWITH EXP EXTRACT FLOOR
FROM_BASE64 FROM_UNIXTIME GREATEST HASH_CODE HEX HOUR IF IFNULL INET_ATON INET_NTOA INITCAP
INSTR IS_ALPHA IS_DECIMAL IS_DIGIT IS_VALID_UTF8 JSON JSON_ARRAY JSON_EXISTS JSON_LENGTH JSON_OBJECT JSON_QUERY JSON_QUOTE
JSON_STRING JSON_UNQUOTE JSON_VALUE LEAST LEFT LN LOCALTIME LOCALTIMESTAMP LOCATE LOG LOG10 LOG2 LOWER LPAD LTRIM
MAKE_VALID_UTF8 MAP_ENTRIES MAP_FROM_ARRAYS MAP_KEYS MAP_UNION MAP_VALUES MD5 MINUTE MOD MONTH NOW NULLIF OBJECT_OF
OBJECT_UPDATE OVERLAY PARSE_JSON PARSE_URL PI POSITION POWER PRINT PRINTF PROCTIME QUARTER RADIANS RAND RAND_INTEGER
REGEXP REGEXP_COUNT REGEXP_EXTRACT REGEXP_EXTRACT_ALL REGEXP_INSTR REGEXP_REPLACE REGEXP_SUBSTR REPEAT REPLACE REVERSE
RIGHT ROUND RPAD RTRIM SECOND SHA1 SHA2 SHA224 SHA256 SHA384 SHA512 SIGN SIN SINH SOURCE_WATERMARK SPLIT SPLIT_INDEX SQRT
STARTSWITH STREAMRECORD_TIMESTAMP STR_TO_MAP SUBSTR SUBSTRING TAN TANH TIMESTAMPADD TIMESTAMPDIFF TO_BASE64 TO_DATE
TO_TIMESTAMP TO_TIMESTAMP_LTZ TRANSLATE TRIM TRUNCATE TRY_PARSE_JSON TYPEOF UNHEX UNIX_TIMESTAMP UPPER URL_DECODE
URL_ENCODE UUID WEEK YEAR`)
