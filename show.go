package streamsql

import (
	"strings"
	"time"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
)

// show answers SHOW; columns are named as Flink's client names them.
func (e *Engine) show(x *sql.Show) (*Result, error) {
	cat := e.planner.Catalog()
	switch x.Kind {
	case sql.ShowTables:
		if err := defaultDatabase(x.Path); err != nil {
			return nil, err
		}
		var names []string
		for _, o := range cat.List() {
			names = append(names, o.ObjectName())
		}
		return listed("table name", names, x), nil
	case sql.ShowViews:
		if err := defaultDatabase(x.Path); err != nil {
			return nil, err
		}
		var names []string
		for _, v := range cat.Views() {
			names = append(names, v.Name)
		}
		return listed("view name", names, x), nil
	case sql.ShowCreateTable, sql.ShowCreateView:
		return e.showCreate(x)
	case sql.ShowFunctions, sql.ShowUserFunctions, sql.ShowBuiltinFunctions:
		if err := defaultDatabase(x.Path); err != nil {
			return nil, err
		}
		return e.showFunctions(x), nil
	case sql.ShowJobs:
		return e.showJobs(), nil
	case sql.ShowCheckpoints:
		return e.showCheckpoints(x)
	case sql.ShowCatalogs:
		return listed("catalog name", []string{catalog.DefaultCatalog}, x), nil
	case sql.ShowDatabases:
		return listed("database name", []string{catalog.DefaultDatabase}, x), nil
	case sql.ShowCurrentCatalog:
		return listed("current catalog name", []string{catalog.DefaultCatalog}, x), nil
	case sql.ShowCurrentDatabase:
		return listed("current database name", []string{catalog.DefaultDatabase}, x), nil
	case sql.ShowColumns:
		return e.describe(&sql.Describe{Place: x.Place, Path: x.Path})
	}
	return nil, diag.New(diag.Unsupported, x.Position(), "SHOW %s is not supported", x.Kind).
		WithHint("SHOW TABLES, VIEWS, CREATE TABLE, CREATE VIEW, COLUMNS, FUNCTIONS, JOBS, CHECKPOINTS, CATALOGS and DATABASES are")
}

func defaultDatabase(p sql.Path) error {
	parts := p.Parts()
	if len(parts) == 0 || parts[len(parts)-1] == catalog.DefaultDatabase {
		return nil
	}
	return diag.New(diag.Semantic, p.Position(), "database %q does not exist", p.Plain()).
		WithDetail("streamsql has one database, %s", catalog.DefaultDatabase).WithHint("write %s, or nothing", catalog.DefaultDatabase)
}

func listed(column string, names []string, x *sql.Show) *Result {
	res := table(column)
	for _, n := range names {
		if !x.HasLike || matches(n, x) {
			res.add(n)
		}
	}
	return res
}

func matches(name string, x *sql.Show) bool {
	p := x.Like
	if x.ILike {
		name, p = strings.ToLower(name), strings.ToLower(p)
	}
	return like([]rune(name), []rune(p)) != x.NotLike
}

// like is SQL's LIKE without an escape.
func like(s, p []rune) bool {
	for i := range p {
		switch {
		case p[i] == '%':
			for k := len(s); k >= 0; k-- {
				if like(s[k:], p[i+1:]) {
					return true
				}
			}
			return false
		case len(s) == 0 || p[i] != '_' && p[i] != s[0]:
			return false
		}
		s = s[1:]
	}
	return len(s) == 0
}

func (e *Engine) showCreate(x *sql.Show) (*Result, error) {
	o, err := e.planner.Catalog().Lookup(x.Path)
	if err != nil {
		return nil, err
	}
	want := "table"
	if x.Kind == sql.ShowCreateView {
		want = "view"
	}
	if o.Kind() != want {
		return nil, diag.New(diag.Semantic, x.Path.Position(), "%q is a %s", x.Path.Plain(), o.Kind()).
			WithHint("SHOW CREATE %s %s", strings.ToUpper(o.Kind()), x.Path.Plain())
	}
	res := table("result")
	res.add(catalog.ShowCreate(o))
	return res, nil
}

func (e *Engine) showJobs() *Result {
	res := table("job id", "job name", "status", "start time")
	for _, j := range e.Jobs() {
		st := j.Status()
		res.add(j.ID(), j.Name(), strings.ToUpper(st.State.String()), st.Started.UTC().Format(time.RFC3339))
	}
	return res
}

func (e *Engine) describe(x *sql.Describe) (*Result, error) {
	if x.Function {
		return e.describeFunction(x)
	}
	if x.Job != "" {
		res := e.showJobs()
		all := res.fixed
		res.fixed = nil
		for _, r := range all {
			if strings.HasPrefix(r[0].Str, x.Job) {
				res.fixed = append(res.fixed, r)
			}
		}
		if len(res.fixed) == 0 {
			return nil, diag.New(diag.Semantic, x.Position(), "there is no job %q", x.Job).WithHint("SHOW JOBS lists them")
		}
		return res, nil
	}
	rows, err := e.planner.Describe(x.Path, e.conf)
	if err != nil {
		return nil, err
	}
	names := []string{"name", "type", "null", "key", "extras", "watermark"}
	comments := false
	for _, r := range rows {
		comments = comments || r.Comment != ""
	}
	if comments {
		names = append(names, "comment")
	}
	res := table(names...)
	for _, r := range rows {
		null := "FALSE"
		if r.Null {
			null = "TRUE"
		}
		cells := []string{r.Name, r.Type, null, r.Key, r.Extras, r.Watermark}
		if comments {
			cells = append(cells, r.Comment)
		}
		res.add(cells...)
	}
	return res, nil
}

// Object is a table or view, for listings.
type Object struct{ Name, Kind string }

// Objects are the tables and views a statement can name, sorted by name.
func (e *Engine) Objects() []Object {
	var out []Object
	for _, o := range e.planner.Catalog().List() {
		out = append(out, Object{o.ObjectName(), o.Kind()})
	}
	return out
}

// Columns are the column names of a table or view, for completion; nil when it does not exist.
func (e *Engine) Columns(name string) []string {
	rows, err := e.planner.Describe(sql.PathOf(name), e.conf)
	if err != nil {
		return nil
	}
	var out []string
	for _, r := range rows {
		out = append(out, r.Name)
	}
	return out
}
