package catalog

import (
	"slices"
	"strings"
	"sync"

	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
)

// The one catalog and database every object lives in, with Flink's names.
const (
	DefaultCatalog  = "default_catalog"
	DefaultDatabase = "default_database"
)

// Object is a *Table or a *View.
type Object interface {
	// ObjectName is the unqualified name.
	ObjectName() string
	// IsTemporary reports an object of this session only.
	IsTemporary() bool
	// Kind is "table" or "view".
	Kind() string
	// SQL is the CREATE statement.
	SQL() string
}

// ObjectName implements Object.
func (t *Table) ObjectName() string { return t.Name }

// IsTemporary implements Object.
func (t *Table) IsTemporary() bool { return t.Temporary }

// Kind implements Object.
func (t *Table) Kind() string { return "table" }

// SQL implements Object.
func (t *Table) SQL() string { return t.Text }

// ObjectName implements Object.
func (v *View) ObjectName() string { return v.Name }

// IsTemporary implements Object.
func (v *View) IsTemporary() bool { return v.Temporary }

// Kind implements Object.
func (v *View) Kind() string { return "view" }

// SQL implements Object.
func (v *View) SQL() string { return v.Text }

// Catalog is the set of tables and views. It is safe for concurrent use; the objects in it are immutable.
type Catalog struct {
	mu        sync.RWMutex
	file      string // "" = in memory
	permanent map[string]Object
	temporary map[string]Object
	order     []string // permanent names in creation order: a view follows what it reads
	loading   bool     // Load is replaying the file: nothing is written back
}

// ErrNotFound is the class of "no such object" errors; see IsNotFound.
type ErrNotFound struct {
	Name string
	err  *diag.Error
}

// Error is the user's message.
func (e *ErrNotFound) Error() string { return e.err.Error() }

// Unwrap returns the *diag.Error with position and hint.
func (e *ErrNotFound) Unwrap() error { return e.err }

// FullName is name with the default catalog and database, as Flink prints it.
func FullName(name string) string { return DefaultCatalog + "." + DefaultDatabase + "." + name }

// Resolve checks the catalog and database parts of a path and returns the object's name.
func Resolve(p sql.Path) (string, error) {
	switch len(p) {
	case 1:
		return p[0].Text, nil
	case 2:
		if p[0].Text != DefaultDatabase {
			if fileEndings[strings.ToLower(p[1].Text)] {
				return "", sql.FileError(p.Plain(), p[0].Pos)
			}
			return "", unknownNamespace("database", p[0], DefaultDatabase)
		}
		return p[1].Text, nil
	case 3:
		if p[0].Text != DefaultCatalog {
			return "", unknownNamespace("catalog", p[0], DefaultCatalog)
		}
		if p[1].Text != DefaultDatabase {
			return "", unknownNamespace("database", p[1], DefaultDatabase)
		}
		return p[2].Text, nil
	}
	return "", diag.New(diag.Semantic, p.Position(), "%s is not the name of a table or view", p.Plain()).
		WithDetail("a name has at most three parts: catalog.database.object").
		WithHint("write the name alone, or %s", FullName("name"))
}

// fileEndings end names of files that users write where a table is needed, as other databases allow.
var fileEndings = map[string]bool{"csv": true, "tsv": true, "json": true, "jsonl": true, "ndjson": true, "parquet": true, "orc": true, "avro": true}

func unknownNamespace(kind string, n sql.Name, have string) error {
	return diag.New(diag.Semantic, n.Pos, "%s %s does not exist", kind, n.Text).
		WithDetail("streamsql has one %s, %s", kind, have).
		WithHint("write the name alone, or %s", FullName("name"))
}

// Lookup finds the table or view that a path names; temporary objects shadow permanent ones.
func (c *Catalog) Lookup(p sql.Path) (Object, error) {
	name, err := Resolve(p)
	if err != nil {
		return nil, err
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if o := c.get(name); o != nil {
		return o, nil
	}
	return nil, c.notFound("table or view", name, p.Position(), "")
}

func (c *Catalog) get(name string) Object {
	if o, ok := c.temporary[name]; ok {
		return o
	}
	if o, ok := c.permanent[name]; ok {
		return o
	}
	return nil
}

// notFound builds the error for a missing object. kind narrows the candidates of "did you mean"; "" or "table or view"
// takes all.
func (c *Catalog) notFound(kind, name string, pos diag.Pos, only string) error {
	var have []string
	for _, o := range c.list() {
		if only == "" || o.Kind() == only {
			have = append(have, o.ObjectName())
		}
	}
	e := diag.New(diag.Semantic, pos, "%s %s does not exist", kind, name)
	switch near := diag.Nearest(name, have); {
	case strings.EqualFold(name, "dual"):
		e.WithHint("leave FROM %s out: SELECT 1 needs no table", name)
	case near != "":
		e.WithHint("did you mean %s?", near)
	case len(have) == 0:
		e.WithHint("the catalog is empty: create it with CREATE TABLE %s (...) WITH (...)", name)
	default:
		e.WithHint("known: %s", strings.Join(have, ", "))
	}
	return &ErrNotFound{Name: name, err: e}
}

// Table finds a table; a view is an error.
func (c *Catalog) Table(p sql.Path) (*Table, error) {
	o, err := c.Lookup(p)
	if err != nil {
		return nil, err
	}
	t, ok := o.(*Table)
	if !ok {
		return nil, diag.New(diag.Semantic, p.Position(), "%s is a view, not a table", p.Plain()).
			WithHint("name the table the view reads; SHOW CREATE VIEW %s prints its query", p.Plain())
	}
	return t, nil
}

// list is every visible object by name; temporary ones hide permanent ones.
func (c *Catalog) list() []Object {
	all := map[string]Object{}
	for n, o := range c.permanent {
		all[n] = o
	}
	for n, o := range c.temporary {
		all[n] = o
	}
	out := make([]Object, 0, len(all))
	for _, n := range sortedKeys(all) {
		out = append(out, all[n])
	}
	return out
}

// List is every visible table and view in name order, as SHOW TABLES prints them.
func (c *Catalog) List() []Object {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.list()
}

// Views are the visible views in name order.
func (c *Catalog) Views() []*View {
	var out []*View
	for _, o := range c.List() {
		if v, ok := o.(*View); ok {
			out = append(out, v)
		}
	}
	return out
}

// Exists tells whether creating name would clash: with a temporary object for temporary ones, else with a permanent one.
func (c *Catalog) Exists(name string, temporary bool) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.clash(name, temporary) != nil
}

func (c *Catalog) clash(name string, temporary bool) Object {
	if temporary {
		return c.temporary[name]
	}
	return c.permanent[name]
}

// Create adds a table or view and persists it unless it is temporary. created is false when an object of that name
// exists and ifNotExists was given. pos is the place of the name.
func (c *Catalog) Create(o Object, ifNotExists bool, pos diag.Pos) (created bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := o.ObjectName()
	if old := c.clash(name, o.IsTemporary()); old != nil {
		if ifNotExists {
			return false, nil
		}
		temp := ""
		if o.IsTemporary() {
			temp = "temporary "
		}
		return false, diag.New(diag.Semantic, pos, "%s%s %s exists already", temp, old.Kind(), name).
			WithHint("drop it first, choose another name, or write CREATE %s%s IF NOT EXISTS", strings.ToUpper(temp), strings.ToUpper(o.Kind()))
	}
	if t, ok := o.(*Table); ok {
		// Places in this statement mean nothing to the statements that will use the table.
		stored := *t
		stored.Options = t.Options.Clone()
		clear(stored.Options.pos)
		o = &stored
	}
	if o.IsTemporary() {
		c.temporary[name] = o
		return true, nil
	}
	c.permanent[name] = o
	c.order = append(c.order, name)
	if err := c.save(); err != nil {
		delete(c.permanent, name)
		c.order = c.order[:len(c.order)-1]
		return false, err
	}
	return true, nil
}

// Drop removes what d names. DROP TABLE of a permanent table that a temporary one shadows is refused, as in Flink.
func (c *Catalog) Drop(d *sql.Drop) error {
	if d.Kind != sql.TableObject && d.Kind != sql.ViewObject {
		return diag.New(diag.Unsupported, d.Pos, "DROP %s is not supported", d.Kind).
			WithHint("tables and views can be dropped; functions belong to the embedding program")
	}
	name, err := Resolve(d.Path)
	if err != nil {
		return err
	}
	kind := strings.ToLower(d.Kind.String())
	c.mu.Lock()
	defer c.mu.Unlock()
	set, other, word := c.permanent, c.temporary, ""
	if d.Temporary {
		set, other, word = c.temporary, c.permanent, "temporary "
	}
	o, ok := set[name]
	shadow, shadowed := other[name]
	switch {
	case !d.Temporary && shadowed && shadow.Kind() == kind:
		return diag.New(diag.Semantic, d.Path.Position(), "a temporary %s %s exists and hides the permanent one", kind, name).
			WithHint("drop the temporary one first: DROP TEMPORARY %s %s", d.Kind, sql.QuoteIdent(name))
	case !ok && d.IfExists:
		return nil
	case !ok:
		return c.notFound(word+kind, name, d.Path.Position(), kind)
	case o.Kind() != kind && d.IfExists:
		return nil
	case o.Kind() != kind:
		return diag.New(diag.Semantic, d.Path.Position(), "%s%s %s does not exist: %s is a %s", word, kind, name, name, o.Kind()).
			WithHint("write DROP %s%s %s", strings.ToUpper(word), strings.ToUpper(o.Kind()), sql.QuoteIdent(name))
	}
	if d.Temporary {
		delete(set, name)
		return nil
	}
	return c.remove(name)
}

func (c *Catalog) remove(name string) error {
	o, order := c.permanent[name], c.order
	delete(c.permanent, name)
	c.order = slices.DeleteFunc(slices.Clone(order), func(n string) bool { return n == name })
	if err := c.save(); err != nil {
		c.permanent[name], c.order = o, order
		return err
	}
	return nil
}
