package planner

import (
	"strings"
	"testing"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/sql/expr"
)

// What one process created another one plans: typed columns, LIKE without its base, views in any state.
func TestLoad(t *testing.T) {
	dir := t.TempDir()
	open := func() *harness {
		h := newHarness(t)
		cat, err := catalog.New(dir)
		if err != nil {
			t.Fatal(err)
		}
		h.p = New(cat, testConnectors(), expr.NewRegistry())
		h.standIns()
		if err := h.p.Load(h.conf); err != nil {
			t.Fatal(err)
		}
		return h
	}
	h := open()
	_, err := h.run("ddl", `
		CREATE TABLE base (id INT, ts TIMESTAMP(3), up AS id + 1, p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND, PRIMARY KEY (id) NOT ENFORCED)
		WITH ('connector' = 'kafka', 'topic' = 'b', 'format' = 'debezium-json', 'x.password' = 'geheim');
		CREATE TABLE derived (extra AS CAST(id AS STRING)) WITH ('topic' = 'd') LIKE base;
		CREATE VIEW good AS SELECT extra, up FROM derived;
		CREATE VIEW broken AS SELECT id FROM base;
		CREATE TEMPORARY TABLE tmp (x INT) WITH ('connector' = 'print');
		CREATE VIEW onto_tmp AS SELECT id FROM base WHERE id > 0;
		DROP TABLE base;`)
	if err != nil {
		t.Fatal(err)
	}
	before, err := h.run("describe", "DESCRIBE derived; DESCRIBE good")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := h.run("plan", "SELECT * FROM good WHERE up > 1")
	if err != nil {
		t.Fatal(err)
	}
	again := open()
	if after, err := again.run("describe", "DESCRIBE derived; DESCRIBE good"); err != nil || after != before {
		t.Errorf("%v\n%s\nwas\n%s", err, after, before)
	}
	if after, err := again.run("plan", "SELECT * FROM good WHERE up > 1"); err != nil || after != plan {
		t.Errorf("%v\n%s\nwas\n%s", err, after, plan)
	}
	if _, err := again.run("plan", "SELECT * FROM broken"); err == nil || !strings.Contains(err.Error(), "base does not exist") {
		t.Errorf("got %v", err)
	}
	if _, err := again.run("plan", "SELECT * FROM tmp"); err == nil {
		t.Error("a temporary table came back")
	}
	o, err := again.p.Catalog().Table(pathOf("derived"))
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := o.Options.Get("x.password"); v != "geheim" {
		t.Errorf("the password is %q after a reload", v)
	}
}
