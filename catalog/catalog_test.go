package catalog_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
)

// parse returns the only statement of text.
func parse(t *testing.T, text string) sql.Statement {
	t.Helper()
	st, err := sql.ParseScript(text)
	if err != nil || len(st) != 1 {
		t.Fatalf("%s: %v", text, err)
	}
	return st[0]
}

// create runs CREATE TABLE and VIEW without a planner: no computed column is typed.
func create(t *testing.T, c *catalog.Catalog, text string) error {
	t.Helper()
	s := parse(t, text)
	return createStatement(c, s)
}

func createStatement(c *catalog.Catalog, s sql.Statement) error {
	switch st := s.Stmt.(type) {
	case *sql.CreateTable:
		var base *catalog.Table
		if st.Like != nil {
			var err error
			if base, err = c.Table(st.Like.Table); err != nil {
				return err
			}
		}
		tab, err := catalog.Define(st, base, s.Text)
		if err != nil {
			return err
		}
		_, err = c.Create(tab, st.IfNotExists, st.Path.Position())
		return err
	case *sql.CreateView:
		_, err := c.Create(&catalog.View{Name: st.Path.Last(), Temporary: st.Temporary, Query: st.QueryText, Text: s.Text}, st.IfNotExists, st.Path.Position())
		return err
	case *sql.Drop:
		return c.Drop(st)
	}
	return errors.New("no DDL")
}

func open(t *testing.T, dir string) *catalog.Catalog {
	t.Helper()
	c, err := catalog.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	err = c.Load(func(script string) error {
		st, err := sql.ParseScript(script)
		if err != nil {
			return err
		}
		for _, s := range st {
			if err := createStatement(c, s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func names(c *catalog.Catalog) string {
	var out []string
	for _, o := range c.List() {
		out = append(out, o.Kind()+" "+o.ObjectName())
	}
	return strings.Join(out, ", ")
}

// What is created comes back after a restart, as it was written; temporary objects and dropped ones do not.
func TestPersistence(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	for _, s := range []string{
		"CREATE TABLE b (x INT) WITH ('connector' = 'print') -- a remark",
		"CREATE TABLE a (y STRING COMMENT 'it''s; here') WITH ('k' = 'v;')",
		"CREATE TEMPORARY TABLE tmp (x INT) WITH ('connector' = 'print')",
		"CREATE VIEW v AS SELECT * FROM a",
		"CREATE TABLE gone (x INT) WITH ('connector' = 'print')",
		"DROP TABLE gone",
	} {
		if err := create(t, c, s); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := names(c), "table a, table b, table tmp, view v"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	before, err := os.ReadFile(filepath.Join(dir, catalog.FileName))
	if err != nil {
		t.Fatal(err)
	}
	d := open(t, dir)
	if got, want := names(d), "table a, table b, view v"; got != want {
		t.Errorf("after reload got %s, want %s", got, want)
	}
	tab, err := d.Table(sql.PathOf("a"))
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := tab.Options.Get("k"); v != "v;" || tab.Columns[0].Comment != "it's; here" {
		t.Errorf("table a came back as %+v", tab)
	}
	// A reload followed by a write changes nothing but the new object.
	if err := create(t, d, "CREATE TABLE z (x INT) WITH ('connector' = 'print')"); err != nil {
		t.Fatal(err)
	}
	after, _ := os.ReadFile(filepath.Join(dir, catalog.FileName))
	if !strings.HasPrefix(string(after), string(before)) {
		t.Errorf("the file changed from\n%s\nto\n%s", before, after)
	}
	if _, err := os.Stat(filepath.Join(dir, catalog.FileName+".tmp")); !os.IsNotExist(err) {
		t.Errorf("a temporary file is left: %v", err)
	}
}

// A catalog that cannot be written keeps its state: the object does not exist afterwards.
func TestWriteFailure(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	if err := create(t, c, "CREATE TABLE a (x INT) WITH ('connector' = 'print')"); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	err := create(t, c, "CREATE TABLE b (x INT) WITH ('connector' = 'print')")
	if diag.CodeOf(err) != diag.External {
		t.Fatalf("got %v", err)
	}
	if err := create(t, c, "DROP TABLE a"); diag.CodeOf(err) != diag.External {
		t.Fatalf("got %v", err)
	}
	if got := names(c); got != "table a" {
		t.Errorf("got %s", got)
	}
}

// Temporary objects shadow permanent ones; a shadowed permanent table can only be dropped after the temporary one.
func TestTemporary(t *testing.T) {
	c := open(t, "")
	steps := []struct{ stmt, wantErr string }{
		{"CREATE TABLE t (permanent INT) WITH ('connector' = 'print')", ""},
		{"CREATE TABLE t (again INT) WITH ('connector' = 'print')", "table t exists already"},
		{"CREATE TABLE IF NOT EXISTS t (again INT) WITH ('connector' = 'print')", ""},
		{"CREATE TEMPORARY TABLE t (temporary INT) WITH ('connector' = 'print')", ""},
		{"CREATE TEMPORARY TABLE t (again INT) WITH ('connector' = 'print')", "temporary table t exists already"},
		{"DROP TABLE t", "a temporary table t exists and hides the permanent one"},
		{"DROP TEMPORARY VIEW t", "temporary view t does not exist: t is a table"},
		{"DROP TEMPORARY TABLE t", ""},
		{"DROP TEMPORARY TABLE t", "temporary table t does not exist"},
		{"DROP TEMPORARY TABLE IF EXISTS t", ""},
		{"DROP VIEW t", "view t does not exist: t is a table"},
		{"DROP TABLE t", ""},
		{"DROP TABLE t", "table t does not exist"},
		{"DROP TABLE IF EXISTS t", ""},
	}
	for i, s := range steps {
		err := create(t, c, s.stmt)
		if got := text(err); !strings.Contains(got, s.wantErr) || s.wantErr == "" && err != nil {
			t.Errorf("step %d, %s: got %q, want %q", i, s.stmt, got, s.wantErr)
		}
		if i == 3 {
			if tab, _ := c.Table(sql.PathOf("t")); tab.Columns[0].Name != "temporary" {
				t.Errorf("the permanent table is seen through the temporary one")
			}
		}
		if i == 7 {
			if tab, _ := c.Table(sql.PathOf("t")); tab.Columns[0].Name != "permanent" {
				t.Errorf("IF NOT EXISTS replaced the table, or the permanent one is gone")
			}
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Names have one to three parts, of one catalog and database; an unknown one suggests the nearest.
func TestNames(t *testing.T) {
	c := open(t, "")
	if err := create(t, c, "CREATE TABLE orders (x INT) WITH ('connector' = 'print')"); err != nil {
		t.Fatal(err)
	}
	for _, p := range []sql.Path{sql.PathOf("orders"), sql.PathOf("default_database", "orders"), sql.PathOf("default_catalog", "default_database", "orders")} {
		if _, err := c.Lookup(p); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
	for _, p := range []sql.Path{sql.PathOf("db", "orders"), sql.PathOf("c", "default_database", "orders"), sql.PathOf("a", "b", "c", "d"), sql.PathOf("Orders")} {
		if _, err := c.Lookup(p); err == nil {
			t.Errorf("%s was found", p)
		}
	}
	_, err := c.Lookup(sql.PathOf("order"))
	var nf *catalog.ErrNotFound
	var e *diag.Error
	if !errors.As(err, &nf) || nf.Name != "order" || !errors.As(err, &e) || e.Hint != "did you mean orders?" {
		t.Errorf("got %#v", err)
	}
}

// The rules of LIKE, feature by feature (Flink's table of merging strategies).
func TestLike(t *testing.T) {
	base := `CREATE TABLE base (
		id INT, name STRING, ts TIMESTAMP(3), up AS UPPER(name), off BIGINT METADATA FROM 'offset' VIRTUAL,
		PRIMARY KEY (id) NOT ENFORCED, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
	) PARTITIONED BY (name) WITH ('connector' = 'kafka', 'topic' = 't')`
	for _, c := range []struct{ stmt, want string }{
		{"(x INT) LIKE base", "id name ts up off x | pk id | wm ts | part name | connector=kafka topic=t"},
		{"(x INT) LIKE base (INCLUDING ALL)", "id name ts up off x | pk id | wm ts | part name | connector=kafka topic=t"},
		{"(x INT) WITH ('topic' = 'u', 'a' = 'b') LIKE base", "id name ts up off x | pk id | wm ts | part name | a=b connector=kafka topic=u"},
		{"(x INT) WITH ('connector' = 'print') LIKE base (EXCLUDING ALL)", "id name ts x | pk  | wm  | part  | connector=print"},
		{"(x INT) WITH ('topic' = 'u') LIKE base (INCLUDING ALL EXCLUDING OPTIONS)", "id name ts up off x | pk id | wm ts | part name | topic=u"},
		{"(x INT) WITH ('topic' = 'u') LIKE base (EXCLUDING ALL OVERWRITING OPTIONS)", "id name ts x | pk  | wm  | part  | connector=kafka topic=u"},
		{"(x INT) WITH ('topic' = 'u') LIKE base (INCLUDING OPTIONS)", "option 'topic' exists in the base table already"},
		{"(id INT) LIKE base", "column id exists in the base table base as a physical column"},
		{"(up AS LOWER(name)) LIKE base", "column up exists in the base table base already"},
		{"(up AS LOWER(name)) LIKE base (OVERWRITING GENERATED)", "id name ts up off | pk id | wm ts | part name | connector=kafka topic=t"},
		{"(up AS LOWER(name)) LIKE base (EXCLUDING GENERATED)", "id name ts off up | pk id | wm ts | part name | connector=kafka topic=t"},
		{"(up STRING METADATA) LIKE base (OVERWRITING GENERATED)", "column up exists in the base table base as a computed column"},
		{"(off BIGINT METADATA FROM 'o2') LIKE base (OVERWRITING METADATA)", "id name ts up off | pk id | wm ts | part name | connector=kafka topic=t"},
		{"(off BIGINT METADATA FROM 'o2') LIKE base", "column off exists in the base table base already"},
		{"(PRIMARY KEY (name) NOT ENFORCED) LIKE base", "the base table base has a primary key already"},
		{"(PRIMARY KEY (name) NOT ENFORCED) LIKE base (EXCLUDING CONSTRAINTS)", "id name ts up off | pk name | wm ts | part name | connector=kafka topic=t"},
		{"(WATERMARK FOR ts AS ts) LIKE base", "the base table base has a watermark already"},
		{"(WATERMARK FOR ts AS ts) LIKE base (OVERWRITING WATERMARKS)", "id name ts up off | pk id | wm ts | part name | connector=kafka topic=t"},
		{"(x INT) PARTITIONED BY (x) LIKE base", "the base table base has partitions already"},
		{"(x INT) PARTITIONED BY (x) LIKE base (EXCLUDING PARTITIONS)", "id name ts up off x | pk id | wm ts | part x | connector=kafka topic=t"},
	} {
		t.Run(c.stmt, func(t *testing.T) {
			cat := open(t, "")
			if err := create(t, cat, base); err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := create(t, cat, "CREATE TABLE derived "+c.stmt); err != nil {
				got = err.Error()
			} else {
				tab, _ := cat.Table(sql.PathOf("derived"))
				got = summary(tab)
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
		})
	}
}

func summary(t *catalog.Table) string {
	var cols, opts []string
	for _, c := range t.Columns {
		cols = append(cols, c.Name)
	}
	for _, k := range t.Options.Keys() {
		v, _ := t.Options.Get(k)
		opts = append(opts, k+"="+v)
	}
	wm := ""
	if t.Watermark != nil {
		wm = t.Watermark.Column
	}
	return strings.Join(cols, " ") + " | pk " + strings.Join(t.PrimaryKey, " ") + " | wm " + wm + " | part " +
		strings.Join(t.Partitions, " ") + " | " + strings.Join(opts, " ")
}

// SHOW CREATE TABLE is a statement that creates the same table, and shows no secret.
func TestShowCreate(t *testing.T) {
	c := open(t, "")
	err := create(t, c, `CREATE TEMPORARY TABLE x (
		id INT NOT NULL COMMENT 'key', r ROW<a STRING, b ARRAY<BYTES NOT NULL>>, l TIMESTAMP_LTZ(3), up AS UPPER(r.a),
		off BIGINT METADATA FROM 'offset' VIRTUAL, PRIMARY KEY (id) NOT ENFORCED, WATERMARK FOR l AS l - INTERVAL '1' SECOND
	) COMMENT 'it''s' PARTITIONED BY (id) WITH ('password' = 'geheim', 'url' = 'postgres://u:p@h:1/db', 'a' = 'b')`)
	if err != nil {
		t.Fatal(err)
	}
	tab, _ := c.Table(sql.PathOf("x"))
	got := catalog.ShowCreate(tab)
	want := "CREATE TEMPORARY TABLE `default_catalog`.`default_database`.`x` (\n" +
		"  `id` INT NOT NULL COMMENT 'key',\n" +
		"  `r` ROW<`a` VARCHAR(2147483647), `b` ARRAY<VARBINARY(2147483647) NOT NULL>>,\n" +
		"  `l` TIMESTAMP(3) WITH LOCAL TIME ZONE,\n" +
		"  `up` AS UPPER(r.a),\n" +
		"  `off` BIGINT METADATA FROM 'offset' VIRTUAL,\n" +
		"  WATERMARK FOR `l` AS l - INTERVAL '1' SECOND,\n" +
		"  CONSTRAINT `PK_id` PRIMARY KEY (`id`) NOT ENFORCED\n" +
		")\nCOMMENT 'it''s'\nPARTITIONED BY (`id`)\nWITH (\n" +
		"  'a' = 'b',\n  'password' = '******',\n  'url' = 'postgres://******@h:1/db'\n)"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	again := open(t, "")
	if err := create(t, again, catalog.Expanded(tab)); err != nil {
		t.Fatal(err)
	}
	tab2, _ := again.Table(sql.PathOf("x"))
	if catalog.Expanded(tab2) != catalog.Expanded(tab) {
		t.Errorf("the expanded statement creates another table:\n%s", catalog.Expanded(tab2))
	}
	if v, _ := tab2.Options.Get("password"); v != "geheim" {
		t.Errorf("the expanded statement lost the password: %q", v)
	}
}
