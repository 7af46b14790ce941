package catalog

import (
	"fmt"
	"strings"

	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/types"
)

// Masked replaces the values of secret options wherever options are printed.
const Masked = "******"

// secretWords mark option keys whose values are never printed.
var secretWords = []string{"password", "secret", "token", "apikey", "api-key", "credential", "auth-params", "service-key", "basic-auth",
	"jaas.config", "account.key", "access-key", "http-headers", "private-key"}

// IsSecret reports whether the value of option key must not be printed.
func IsSecret(key string) bool {
	k := strings.ToLower(key)
	for _, w := range secretWords {
		if strings.Contains(k, w) {
			return true
		}
	}
	return false
}

// MaskURL hides user and password in a URL-like option value.
func MaskURL(v string) string {
	scheme, rest, ok := strings.Cut(v, "://")
	if !ok {
		return v
	}
	host, path, slash := rest, "", false
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		host, path, slash = rest[:i], rest[i:], true
	}
	if i := strings.LastIndex(host, "@"); i >= 0 {
		host = Masked + host[i:]
	}
	if slash {
		host += path
	}
	return scheme + "://" + host
}

// ShowOption is the printable value of an option.
func ShowOption(key, value string) string {
	if IsSecret(key) {
		return Masked
	}
	return MaskURL(value)
}

// ShowCreate is the text of SHOW CREATE TABLE and VIEW in Flink's layout, secrets masked.
func ShowCreate(o Object) string {
	switch o := o.(type) {
	case *Table:
		return createTable(o, true)
	case *View:
		return createView(o)
	}
	return o.SQL()
}

// Expanded is a CREATE TABLE statement for t that refers to no other table: what is persisted for CREATE TABLE LIKE.
// Secrets are in it.
func Expanded(t *Table) string { return createTable(t, false) }

func qualified(name string) string {
	return sql.PathOf(DefaultCatalog, DefaultDatabase, name).String()
}

func quoteAll(names []string) string {
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = sql.QuoteIdent(n)
	}
	return strings.Join(q, ", ")
}

func createTable(t *Table, mask bool) string {
	var lines []string
	for _, c := range t.Columns {
		lines = append(lines, columnSQL(c))
	}
	if t.Watermark != nil {
		lines = append(lines, fmt.Sprintf("WATERMARK FOR %s AS %s", sql.QuoteIdent(t.Watermark.Column), t.Watermark.Expr))
	}
	if len(t.PrimaryKey) > 0 {
		lines = append(lines, fmt.Sprintf("CONSTRAINT %s PRIMARY KEY (%s) NOT ENFORCED",
			sql.QuoteIdent("PK_"+strings.Join(t.PrimaryKey, "_")), quoteAll(t.PrimaryKey)))
	}
	var sb strings.Builder
	sb.WriteString("CREATE ")
	if t.Temporary {
		sb.WriteString("TEMPORARY ")
	}
	fmt.Fprintf(&sb, "TABLE %s (\n  %s\n)", qualified(t.Name), strings.Join(lines, ",\n  "))
	if t.Comment != "" {
		fmt.Fprintf(&sb, "\nCOMMENT %s", sql.QuoteString(t.Comment))
	}
	if len(t.Partitions) > 0 {
		fmt.Fprintf(&sb, "\nPARTITIONED BY (%s)", quoteAll(t.Partitions))
	}
	if keys := t.Options.Keys(); len(keys) > 0 {
		opts := make([]string, len(keys))
		for i, k := range keys {
			v, _ := t.Options.Get(k)
			if mask {
				v = ShowOption(k, v)
			}
			opts[i] = sql.QuoteString(k) + " = " + sql.QuoteString(v)
		}
		fmt.Fprintf(&sb, "\nWITH (\n  %s\n)", strings.Join(opts, ",\n  "))
	}
	return sb.String()
}

func columnSQL(c Column) string {
	var sb strings.Builder
	sb.WriteString(sql.QuoteIdent(c.Name))
	switch c.Kind {
	case Computed:
		sb.WriteString(" AS " + c.Expr)
	case Metadata:
		sb.WriteString(" " + Serializable(c.Type) + " METADATA")
		if c.Key != c.Name {
			sb.WriteString(" FROM " + sql.QuoteString(c.Key))
		}
		if c.Virtual {
			sb.WriteString(" VIRTUAL")
		}
	default:
		sb.WriteString(" " + Serializable(c.Type))
	}
	if c.Comment != "" {
		sb.WriteString(" COMMENT " + sql.QuoteString(c.Comment))
	}
	return sb.String()
}

// Serializable is t as Flink writes it in SHOW CREATE: VARCHAR(2147483647) for STRING, children likewise.
func Serializable(t types.Type) string {
	s := ""
	switch t.Kind {
	case types.Varchar:
		s = fmt.Sprintf("VARCHAR(%d)", t.Precision)
	case types.Varbinary:
		s = fmt.Sprintf("VARBINARY(%d)", t.Precision)
	case types.TimestampLTZ:
		s = fmt.Sprintf("TIMESTAMP(%d) WITH LOCAL TIME ZONE", t.Precision)
	case types.Array, types.Multiset:
		s = fmt.Sprintf("%s<%s>", t.Kind, Serializable(*t.Elem))
	case types.Map:
		s = fmt.Sprintf("MAP<%s, %s>", Serializable(*t.Key), Serializable(*t.Elem))
	case types.Row:
		fields := make([]string, len(t.Fields))
		for i, f := range t.Fields {
			fields[i] = sql.QuoteIdent(f.Name) + " " + Serializable(f.Type)
			if f.Comment != "" {
				fields[i] += " " + sql.QuoteString(f.Comment)
			}
		}
		s = "ROW<" + strings.Join(fields, ", ") + ">"
	default:
		return t.String()
	}
	if !t.Nullable {
		s += " NOT NULL"
	}
	return s
}

func createView(v *View) string {
	var sb strings.Builder
	sb.WriteString("CREATE ")
	if v.Temporary {
		sb.WriteString("TEMPORARY ")
	}
	fmt.Fprintf(&sb, "VIEW %s", qualified(v.Name))
	if len(v.Columns) > 0 {
		fmt.Fprintf(&sb, " (\n  %s\n)", strings.ReplaceAll(quoteAll(v.Columns), ", ", ",\n  "))
	}
	if v.Comment != "" {
		fmt.Fprintf(&sb, "\nCOMMENT %s", sql.QuoteString(v.Comment))
	}
	fmt.Fprintf(&sb, "\nAS %s", v.Query)
	return sb.String()
}

// DescribeRow is one row of DESCRIBE: name, type, null, key, extras, watermark and comment.
type DescribeRow struct {
	Name, Type, Key, Extras, Watermark, Comment string
	Null                                        bool
}

// Describe lists the columns of a table as DESCRIBE prints them. Types are without NOT NULL; time attributes are marked.
func Describe(t *Table, proctime func(Column) bool) []DescribeRow {
	var out []DescribeRow
	for _, c := range t.Columns {
		r := DescribeRow{Name: c.Name, Type: c.Type.WithNull(true).String(), Null: c.Type.Nullable, Comment: c.Comment}
		for _, k := range t.PrimaryKey {
			if k == c.Name {
				r.Key = "PRI(" + strings.Join(t.PrimaryKey, ", ") + ")"
			}
		}
		if t.Watermark != nil && t.Watermark.Column == c.Name {
			r.Watermark = t.Watermark.Expr
			r.Type += " *ROWTIME*"
		}
		switch c.Kind {
		case Computed:
			r.Extras = "AS " + c.Expr
			if proctime(c) {
				r.Type += " *PROCTIME*"
			}
		case Metadata:
			r.Extras = "METADATA"
			if c.Key != c.Name {
				r.Extras += " FROM " + sql.QuoteString(c.Key)
			}
			if c.Virtual {
				r.Extras += " VIRTUAL"
			}
		}
		out = append(out, r)
	}
	return out
}
