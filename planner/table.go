package planner

import (
	"strings"
	"time"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// tableInfo is a table as a source: its columns typed and its connector resolved.
type tableInfo struct {
	Table     *catalog.Table
	Connector *connectors.Connector
	Fields    []Field // of Table.Columns
	// Supplied are the metadata columns that the connector has in another type than declared; they are cast when read.
	Supplied map[int]types.Type
	Computed []expr.Expr // per column: over the physical and metadata columns by position; nil for those themselves
	// Rowtime is the position of the watermark column, -1 = none; Watermark is over Fields.
	Rowtime   int
	Watermark expr.Expr
	Mode      types.ChangelogMode
	Bounded   bool
	Batch     bool     // read in batch mode: no watermark before the end
	Pos       diag.Pos // where the statement names the table
	Key       string   // equal for scans that can be shared: table and effective options
	ID        string   // stable name of the scan in operator ids
}

// typeTable types the computed columns and the watermark of t. defs are the columns' expressions as parsed where the
// statement is at hand, by column name; others are parsed from their text.
func (p *Planner) typeTable(t *catalog.Table, defs map[string]sql.Expr, mark sql.Expr, session expr.Session) (*tableInfo, error) {
	info := &tableInfo{Table: t, Rowtime: -1, Fields: make([]Field, len(t.Columns)), Computed: make([]expr.Expr, len(t.Columns))}
	base := &scope{cols: make([]scopeCol, len(t.Columns))}
	for i, c := range t.Columns {
		info.Fields[i] = Field{Name: c.Name, Type: c.Type}
		base.cols[i] = scopeCol{table: t.Name, field: info.Fields[i]}
		if c.Kind == catalog.Computed {
			base.cols[i].refused = "a computed column cannot refer to another computed column"
		}
	}
	b := &binder{p: p, session: session}
	for i, c := range t.Columns {
		if c.Kind != catalog.Computed {
			continue
		}
		ast, err := storedExpr(defs[c.Name], c.Expr)
		if err != nil {
			return nil, storedError(err, t, "column "+c.Name, defs[c.Name] != nil)
		}
		e, err := b.expr(base, ast)
		if err != nil {
			return nil, storedError(err, t, "column "+c.Name, defs[c.Name] != nil)
		}
		info.Computed[i] = e
		info.Fields[i].Type = e.Type()
		if isProctime(e) {
			info.Fields[i].Time = Proctime
		}
	}
	if t.Watermark == nil {
		return info, nil
	}
	return info, p.typeWatermark(info, b, mark)
}

func (p *Planner) typeWatermark(info *tableInfo, b *binder, mark sql.Expr) error {
	t, w := info.Table, info.Table.Watermark
	pos := diag.Pos{}
	if mark != nil {
		pos = mark.Position()
	}
	full := &scope{}
	for i, f := range info.Fields {
		full.cols = append(full.cols, scopeCol{table: t.Name, field: f})
		if f.Name == w.Column {
			info.Rowtime = i
		}
	}
	f := info.Fields[info.Rowtime]
	switch {
	case f.Time == Proctime:
		return diag.New(diag.Semantic, pos, "a watermark on the processing-time column %s is not possible", f.Name).
			WithHint("remove the WATERMARK clause: processing time needs none")
	case !f.Type.IsTimestamp():
		call := "TO_TIMESTAMP_LTZ(%s, 3)"
		if f.Type.IsString() {
			call = "TO_TIMESTAMP(%s)"
		}
		return diag.New(diag.Semantic, pos, "watermark column %s has type %s", f.Name, f.Type).
			WithDetail("a watermark column is TIMESTAMP(3) or TIMESTAMP_LTZ(3)").
			WithHint("add a computed column, e.g. event_time AS "+call+", and use it", f.Name)
	case f.Type.Precision > 3:
		return diag.New(diag.Semantic, pos, "watermark column %s has type %s: its precision is above 3", f.Name, f.Type).
			WithDetail("watermarks count milliseconds; plain TIMESTAMP is TIMESTAMP(6)").
			WithHint("declare the column as %s(3)", f.Type.Kind)
	}
	ast, err := storedExpr(mark, w.Expr)
	if err != nil {
		return storedError(err, t, "watermark", mark != nil)
	}
	e, err := b.expr(full, ast)
	if err != nil {
		return storedError(err, t, "watermark", mark != nil)
	}
	if e.Type().Kind != f.Type.Kind {
		return diag.New(diag.Semantic, pos, "watermark expression has type %s, column %s has %s", e.Type(), f.Name, f.Type).
			WithHint("subtract an interval from the column: %s - INTERVAL '5' SECOND", f.Name)
	}
	info.Watermark = e
	info.Fields[info.Rowtime].Time = Rowtime
	return nil
}

func storedExpr(ast sql.Expr, text string) (sql.Expr, error) {
	if ast != nil {
		return ast, nil
	}
	return sql.ParseExpr(text)
}

// storedError names the table of an expression whose text is not in the statement at hand. Errors of the statement at
// hand stay as they are.
func storedError(err error, t *catalog.Table, what string, here bool) error {
	if here {
		return err
	}
	return elsewhere(err, diag.Pos{}, what+" of table "+t.Name)
}

// elsewhere wraps an error of other text than the statement's: its position would point to the wrong place, so pos, the
// place of the use, takes its place.
func elsewhere(err error, pos diag.Pos, what string) error {
	e := diag.New(diag.CodeOf(err), pos, "%s", what).Wrap(err)
	var inner *diag.Error
	if asDiag(err, &inner) {
		c := *inner
		c.Pos = diag.Pos{}
		e.Detail, e.Hint, e.Err = inner.Detail, inner.Hint, &c
	}
	return e
}

// isProctime reports the PROCTIME() call.
func isProctime(e expr.Expr) bool {
	c, ok := e.(*expr.Call)
	return ok && c.Func.Name == "PROCTIME"
}

// source resolves t for reading.
func (p *Planner) source(t *catalog.Table, pos diag.Pos, batch bool, session expr.Session) (*tableInfo, error) {
	info, err := p.typeTable(t, nil, nil, session)
	if err != nil {
		return nil, err
	}
	c, err := p.connector(t, pos)
	if err != nil {
		return nil, err
	}
	fail := func(err error) error { return tableError("source", t, pos, err) }
	if c.NewSource == nil {
		e := diag.New(diag.Semantic, pos, "connector '%s' cannot be read, only written", c.Name).
			WithHint("read what the table is filled from, or declare it with another connector")
		if c.NewLookup != nil {
			e = diag.New(diag.Semantic, pos, "connector '%s' cannot be read as a whole, only written and looked up by key", c.Name).
				WithHint("join it to a stream with a column proc AS PROCTIME(): FROM s JOIN %s FOR SYSTEM_TIME AS OF s.proc ON …; or export its rows into a file and read that", t.Name)
		}
		return nil, fail(e)
	}
	info.Connector, info.Pos = c, pos
	if c.Check != nil {
		if err := c.Check(t, connectors.UseSource); err != nil {
			return nil, fail(err)
		}
	}
	if err := checkMetadata(t, c, connectors.UseSource); err != nil {
		return nil, fail(err)
	}
	if c.SourceMode != nil {
		if info.Mode, err = c.SourceMode(t); err != nil {
			return nil, fail(err)
		}
	}
	if info.Mode == types.Upsert && len(t.PrimaryKey) == 0 {
		return nil, fail(diag.New(diag.Semantic, pos, "an upsert source needs a primary key").
			WithHint("declare PRIMARY KEY (...) NOT ENFORCED on %s", t.Name))
	}
	if c.Bounded != nil {
		if info.Bounded, err = c.Bounded(t); err != nil {
			return nil, fail(err)
		}
	}
	if batch && !info.Bounded {
		return nil, fail(diag.New(diag.Semantic, pos, "table %s is unbounded and cannot be read in batch mode", t.Name).
			WithHint("bound the table by its options, or SET '%s' = 'streaming'", keyRuntimeMode))
	}
	if batch && info.Mode != types.AppendOnly {
		return nil, fail(diag.New(diag.Unsupported, pos, "table %s is a changelog and cannot be read in batch mode", t.Name).
			WithHint("SET '%s' = 'streaming'", keyRuntimeMode))
	}
	if info.Supplied, err = suppliedTypes(t, c); err != nil {
		return nil, fail(err)
	}
	if err := checkWatermarkOptions(t, info); err != nil {
		return nil, fail(err)
	}
	info.Key, info.ID, info.Batch = scanKey(t), t.Name, batch
	return info, nil
}

// suppliedTypes finds the metadata columns whose declared type is not the connector's.
func suppliedTypes(t *catalog.Table, c *connectors.Connector) (map[int]types.Type, error) {
	out := map[int]types.Type{}
	for i, col := range t.Columns {
		if col.Kind != catalog.Metadata {
			continue
		}
		for _, m := range c.Metadata {
			if m.Key != col.Key || m.Type.SameIgnoringNull(col.Type) {
				continue
			}
			if _, err := expr.NewCast(&expr.Column{Name: col.Key, T: m.Type}, col.Type, false); err != nil {
				return nil, diag.New(diag.Semantic, diag.Pos{}, "column %s cannot take the metadata '%s'", col.Name, col.Key).Wrap(err).
					WithHint("declare %s as %s METADATA", col.Name, m.Type.WithNull(true))
			}
			out[i] = m.Type
		}
	}
	return out, nil
}

// keyMaxFutureSkew is a table's option: rows whose time lies further ahead of the clock do not move event time.
const keyMaxFutureSkew = "scan.watermark.max-future-skew"

// checkWatermarkOptions checks the options by which a table changes how its watermark is made.
func checkWatermarkOptions(t *catalog.Table, info *tableInfo) error {
	for _, k := range t.Options.Keys() {
		if !strings.HasPrefix(k, "scan.watermark.") {
			continue
		}
		v, _ := t.Options.Get(k)
		bad := func(why string) error {
			return diag.New(diag.Config, t.Options.Pos(k), "option '%s': '%s' is not valid", k, v).WithDetail("%s", why).WithHint("correct the value, or remove the option")
		}
		switch {
		case strings.HasPrefix(k, "scan.watermark.alignment."):
			return diag.New(diag.Unsupported, t.Options.Pos(k), "option '%s' is not supported", k).
				WithDetail("sources are not held back for slower ones").WithHint("remove the option; results are the same, only more rows are buffered")
		case k == "scan.watermark.emit.strategy" && !strings.EqualFold(v, "on-event") && !strings.EqualFold(v, "on-periodic"):
			return bad("on-periodic or on-event is expected")
		case k == keyMaxFutureSkew:
			if d, err := connectors.ParseDuration(v); err != nil {
				return bad(err.Error())
			} else if d < time.Millisecond {
				return bad("a duration of at least 1 ms is expected; without the option every row counts")
			}
		case k == "scan.watermark.idle-timeout":
			if _, err := connectors.ParseDuration(v); err != nil {
				return bad(err.Error())
			}
		}
		if info.Rowtime < 0 {
			return diag.New(diag.Config, t.Options.Pos(k), "option '%s' needs a watermark", k).WithHint("declare WATERMARK FOR a column, or remove the option")
		}
	}
	return nil
}

// optionPos is where option key was written when that is the statement at hand (an OPTIONS hint), else the fallback.
func optionPos(t *catalog.Table, key string, fallback diag.Pos) diag.Pos {
	if p := t.Options.Pos(key); p.Known() {
		return p
	}
	return fallback
}

// scanKey is equal for two uses of a table with the same effective options.
func scanKey(t *catalog.Table) string {
	var sb strings.Builder
	sb.WriteString(t.Name)
	for _, k := range t.Options.Keys() {
		v, _ := t.Options.Get(k)
		sb.WriteString("\x00" + k + "\x01" + v)
	}
	return sb.String()
}

// connector finds the connector a table names.
func (p *Planner) connector(t *catalog.Table, pos diag.Pos) (*connectors.Connector, error) {
	var names []string
	for i := range p.conns {
		names = append(names, p.conns[i].Name)
	}
	name := t.Connector()
	if name == "" {
		return nil, diag.New(diag.Config, pos, "table %s has no option 'connector'", t.Name).
			WithHint("add 'connector' = '...' to its WITH clause; known: %s", strings.Join(names, ", "))
	}
	for i := range p.conns {
		if p.conns[i].Name == name {
			return &p.conns[i], nil
		}
	}
	e := diag.New(diag.Config, pos, "table %s names the unknown connector '%s'", t.Name, name).
		WithDetail("known connectors: %s", strings.Join(names, ", "))
	if near := diag.Nearest(name, names); near != "" {
		e.WithHint("did you mean '%s'?", near)
	}
	return nil, e
}

// tableError is Flink's wrapper: which table, with its options, secrets masked.
func tableError(use string, t *catalog.Table, pos diag.Pos, err error) error {
	e := diag.New(diag.CodeOf(err), pos, "cannot use table %s as a %s", t.Name, use).Wrap(err)
	var inner *diag.Error
	if asDiag(err, &inner) {
		c := *inner
		c.Pos = diag.Pos{}
		e.Detail, e.Hint, e.Err = inner.Detail, inner.Hint, &c
		if inner.Pos.Known() {
			e.Pos = inner.Pos
		}
	}
	if e.Detail == "" {
		e.Detail = "its options: " + connectors.Render(t)
	}
	return e
}

// checkMetadata checks metadata columns against what the connector offers.
func checkMetadata(t *catalog.Table, c *connectors.Connector, use connectors.Use) error {
	var keys []string
	for _, m := range c.Metadata {
		keys = append(keys, m.Key)
	}
	for _, col := range t.Columns {
		if col.Kind != catalog.Metadata || use == connectors.UseSink && col.Virtual {
			continue
		}
		i := -1
		for j, m := range c.Metadata {
			if m.Key == col.Key {
				i = j
			}
		}
		if i < 0 {
			if strings.HasPrefix(col.Key, "value.") {
				continue // a format's metadata: the connector's Check knows its format
			}
			e := diag.New(diag.Semantic, diag.Pos{}, "connector '%s' has no metadata '%s' for column %s", c.Name, col.Key, col.Name)
			if len(keys) == 0 {
				return e.WithHint("remove the column: this connector has no metadata")
			}
			e.WithDetail("it has %s", strings.Join(keys, ", ")).WithHint("write METADATA FROM '%s', or another of them", keys[0])
			if near := diag.Nearest(col.Key, keys); near != "" {
				e.WithHint("did you mean METADATA FROM '%s'?", near)
			}
			return e
		}
		if use == connectors.UseSink && !c.Metadata[i].Writable {
			return diag.New(diag.Semantic, diag.Pos{}, "metadata '%s' of column %s cannot be written", col.Key, col.Name).
				WithHint("declare the column METADATA VIRTUAL")
		}
	}
	return nil
}
