package sql

import (
	"fmt"
	"strings"
)

// word writes s and a space when on.
func (f *formatter) word(on bool, s string) {
	if on {
		f.w(s, " ")
	}
}

func (f *formatter) stmt(s Stmt) {
	switch x := s.(type) {
	case *QueryStmt:
		f.query(x.Query)
	case *Insert:
		f.insert(x)
	case *StatementSet:
		f.w("EXECUTE STATEMENT SET BEGIN ")
		for _, i := range x.Inserts {
			f.insert(i)
			f.w("; ")
		}
		f.w("END")
	case *Explain:
		f.w("EXPLAIN ")
		f.list(len(x.Details), func(i int) { f.w(string(x.Details[i])) })
		f.word(len(x.Details) > 0, "")
		f.stmt(x.Stmt)
	case *CreateTable:
		f.createTable(x)
	case *CreateView:
		f.w("CREATE ")
		f.word(x.Temporary, "TEMPORARY")
		f.w("VIEW ")
		f.word(x.IfNotExists, "IF NOT EXISTS")
		f.w(x.Path.String())
		if x.Columns != nil {
			f.w(" ")
			f.names(x.Columns)
		}
		f.comment(x.Comment)
		f.w(" AS ")
		f.query(x.Query)
	case *CreateFunction, *CreateDatabase, *Drop, *AlterTable, *AlterView, *AlterDatabase:
		f.definition(s)
	default:
		f.command(s)
	}
}

func (f *formatter) insert(x *Insert) {
	f.w("INSERT ", map[bool]string{true: "OVERWRITE ", false: "INTO "}[x.Overwrite], x.Target.String(), " ")
	if x.Hints != nil {
		f.hints(x.Hints)
		f.w(" ")
	}
	if x.Partition != nil {
		f.w("PARTITION (")
		f.list(len(x.Partition), func(i int) {
			f.w(QuoteIdent(x.Partition[i].Column.Text))
			if v := x.Partition[i].Value; v != nil {
				f.w(" = ")
				f.literal(v)
			}
		})
		f.w(") ")
	}
	if x.Columns != nil {
		f.w("(")
		f.list(len(x.Columns), func(i int) { f.w(x.Columns[i].String()) })
		f.w(") ")
	}
	f.query(x.Query)
	if x.Deduplicate {
		f.w(" ON CONFLICT DO DEDUPLICATE")
	}
}

func (f *formatter) comment(s string) {
	if s != "" {
		f.w(" COMMENT ", QuoteString(s))
	}
}

func (f *formatter) with(l []Option) {
	if l != nil {
		f.w(" WITH (")
		f.options(l, " = ")
		f.w(")")
	}
}

func (f *formatter) createTable(t *CreateTable) {
	f.w("CREATE ")
	f.word(t.Temporary, "TEMPORARY")
	f.w("TABLE ")
	f.word(t.IfNotExists, "IF NOT EXISTS")
	f.w(t.Path.String())
	switch {
	case t.Names != nil:
		f.w(" ")
		f.names(t.Names)
	case t.Columns != nil || t.PrimaryKey != nil || t.Watermark != nil:
		f.w(" (")
		f.elements(t.Columns, t.PrimaryKey, t.Watermark, nil)
		f.w(")")
	}
	f.comment(t.Comment)
	if t.Distribution != nil {
		f.w(" DISTRIBUTED ")
		f.distribution(t.Distribution)
	}
	if t.PartitionBy != nil {
		f.w(" PARTITIONED BY ")
		f.names(t.PartitionBy)
	}
	f.with(t.Options)
	if t.Like != nil {
		f.w(" LIKE ", t.Like.Table.String())
		if t.Like.Options != nil {
			f.w(" (")
			for i, o := range t.Like.Options {
				f.word(i > 0, "")
				f.w(o.Strategy, " ", o.Feature)
			}
			f.w(")")
		}
	}
	if t.As != nil {
		f.w(" AS ")
		f.query(t.As)
	}
}

func (f *formatter) elements(cols []ColumnDef, key *PrimaryKey, wm *WatermarkDef, dist *Distribution) {
	var parts []func()
	for i := range cols {
		parts = append(parts, func() { f.column(&cols[i]) })
	}
	if wm != nil {
		parts = append(parts, func() {
			f.w("WATERMARK FOR ", wm.Column.String(), " AS ")
			f.expr(wm.Expr, levelLowest)
		})
	}
	if key != nil {
		parts = append(parts, func() {
			if key.Name != nil {
				f.w("CONSTRAINT ", QuoteIdent(key.Name.Text), " ")
			}
			f.w("PRIMARY KEY ")
			f.names(key.Columns)
			f.w(" NOT ENFORCED")
		})
	}
	if dist != nil {
		parts = append(parts, func() {
			f.w("DISTRIBUTION ")
			f.distribution(dist)
		})
	}
	f.list(len(parts), func(i int) { parts[i]() })
}

func (f *formatter) column(c *ColumnDef) {
	f.w(QuoteIdent(c.Name.Text), " ")
	if c.Kind == ComputedColumn {
		f.w("AS ")
		f.expr(c.Expr, levelLowest)
	} else {
		f.w(FormatType(c.Type))
		if c.NullSet {
			f.w(" NULL")
		}
	}
	if c.Kind == MetadataColumn {
		f.w(" METADATA")
		if c.MetadataKey != "" {
			f.w(" FROM ", QuoteString(c.MetadataKey))
		}
		if c.Virtual {
			f.w(" VIRTUAL")
		}
	}
	f.comment(c.Comment)
	if c.First {
		f.w(" FIRST")
	}
	if c.After != nil {
		f.w(" AFTER ", QuoteIdent(c.After.Text))
	}
}

func (f *formatter) distribution(d *Distribution) {
	sep := ""
	if d.Columns != nil {
		f.w("BY ", d.Kind)
		f.names(d.Columns)
		sep = " "
	}
	if d.Buckets != "" {
		f.w(sep, "INTO ", d.Buckets, " BUCKETS")
	}
}

// definition writes the statements about catalog objects other than CREATE TABLE and VIEW.
func (f *formatter) definition(s Stmt) {
	switch x := s.(type) {
	case *CreateFunction:
		f.w("CREATE ")
		f.word(x.Temporary, "TEMPORARY")
		f.word(x.System, "SYSTEM")
		f.w("FUNCTION ")
		f.word(x.IfNotExists, "IF NOT EXISTS")
		f.w(x.Path.String(), " AS ", QuoteString(x.Class))
		if x.Language != "" {
			f.w(" LANGUAGE ", x.Language)
		}
		if x.Jars != nil {
			f.w(" USING ")
			f.list(len(x.Jars), func(i int) { f.w("JAR ", QuoteString(x.Jars[i])) })
		}
	case *CreateDatabase:
		f.w("CREATE DATABASE ")
		f.word(x.IfNotExists, "IF NOT EXISTS")
		f.w(x.Path.String())
		f.comment(x.Comment)
		f.with(x.Options)
	case *Drop:
		f.w("DROP ")
		f.word(x.Temporary, "TEMPORARY")
		f.word(x.System, "SYSTEM")
		f.w(x.Kind.String(), " ")
		f.word(x.IfExists, "IF EXISTS")
		f.w(x.Path.String())
		if x.Cascade {
			f.w(" CASCADE")
		}
	case *AlterTable:
		f.w("ALTER TABLE ")
		f.word(x.IfExists, "IF EXISTS")
		f.w(x.Path.String(), " ")
		f.alterAction(x.Action)
	case *AlterView:
		f.w("ALTER VIEW ", x.Path.String())
		if x.NewName != nil {
			f.w(" RENAME TO ", x.NewName.String())
			return
		}
		f.w(" AS ")
		f.query(x.Query)
	case *AlterDatabase:
		f.w("ALTER DATABASE ", x.Path.String(), " SET (")
		f.options(x.Options, " = ")
		f.w(")")
	}
}

func (f *formatter) alterAction(a AlterAction) {
	switch x := a.(type) {
	case *RenameTable:
		f.w("RENAME TO ", x.NewName.String())
	case *RenameColumn:
		f.w("RENAME ", x.From.String(), " TO ", QuoteIdent(x.To.Text))
	case *AddElements:
		f.w(map[bool]string{true: "MODIFY (", false: "ADD ("}[x.Modify])
		f.elements(x.Columns, x.PrimaryKey, x.Watermark, x.Distribution)
		f.w(")")
	case *DropColumns:
		f.w("DROP (")
		f.list(len(x.Columns), func(i int) { f.w(x.Columns[i].String()) })
		f.w(")")
	case *DropPrimaryKey:
		if x.Name != nil {
			f.w("DROP CONSTRAINT ", QuoteIdent(x.Name.Text))
		} else {
			f.w("DROP PRIMARY KEY")
		}
	case *DropWatermark:
		f.w("DROP WATERMARK")
	case *SetOptions:
		f.w("SET (")
		f.options(x.Options, " = ")
		f.w(")")
	case *ResetOptions:
		f.w("RESET (")
		f.list(len(x.Options), func(i int) { f.w(QuoteString(x.Options[i].Key)) })
		f.w(")")
	default:
		panic(fmt.Sprintf("sql: Format of %T", a))
	}
}

// command writes the statements that ask and set.
func (f *formatter) command(s Stmt) {
	switch x := s.(type) {
	case *Show:
		f.show(x)
	case *Describe:
		f.w("DESCRIBE ")
		if x.Path == nil {
			f.w("JOB ", QuoteString(x.Job))
			return
		}
		f.word(x.Function, "FUNCTION")
		f.word(x.Extended, "EXTENDED")
		f.w(x.Path.String())
	case *Use:
		f.w("USE ")
		f.word(x.Catalog, "CATALOG")
		f.w(x.Path.String())
	case *Set:
		f.w("SET")
		if x.Option != nil {
			f.w(" ")
			f.options([]Option{*x.Option}, " = ")
		}
	case *Reset:
		f.w("RESET")
		if x.Key != "" {
			f.w(" ", QuoteString(x.Key))
		}
	case *StopJob:
		f.w("STOP JOB ", QuoteString(x.ID))
		if x.Savepoint {
			f.w(" WITH SAVEPOINT")
		}
		if x.Drain {
			f.w(" WITH DRAIN")
		}
	case *ClientCommand:
		f.w(x.Word)
	default:
		panic(fmt.Sprintf("sql: Format of %T", s))
	}
}

func (f *formatter) show(x *Show) {
	f.w("SHOW ", x.Kind.String())
	switch x.Kind {
	case ShowCreateTable, ShowCreateView, ShowPartitions:
		f.w(" ", x.Path.String())
	default:
		if x.Path != nil {
			f.w(" FROM ", x.Path.String())
		}
	}
	if x.Job != "" {
		f.w(" FOR JOB ", QuoteString(x.Job))
	}
	if x.HasLike {
		f.w(strings.TrimRight(" "+not(x.NotLike), " "))
		f.w(map[bool]string{true: " ILIKE ", false: " LIKE "}[x.ILike], QuoteString(x.Like))
	}
}
