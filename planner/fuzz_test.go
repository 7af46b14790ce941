package planner

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
)

// FuzzPlan plans arbitrary statements over the tables of the goldens: no panic, every error is a *diag.Error with a
// message and is no internal one, and every plan is one that the executor accepts. Seeds are the goldens' statements.
func FuzzPlan(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.test"))
	if err != nil || len(files) == 0 {
		f.Fatal("no goldens")
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, block := range strings.Split(string(text), "\n\n") {
			cmd, rest, _ := strings.Cut(block, "\n")
			input, _, ok := strings.Cut(rest, "\n----")
			if ok && (cmd == "plan" || cmd == "steps" || cmd == "graph") {
				f.Add(input)
			}
		}
	}
	for _, q := range []string{"SELECT CASE WHEN k > 1 THEN s END, COALESCE(v, 1) FROM src", "SELECT k IN (1, 2), s LIKE 'a%', v BETWEEN 1 AND 2 FROM src",
		"SELECT r.x, ARRAY[1, 2][1], MAP['a', 1]['a'], CAST(s AS INT), TRY_CAST(s AS DATE) FROM src", "SELECT INTERVAL '1' DAY + ts FROM src"} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, text string) {
		stmts, err := sql.ParseScript(text)
		if err != nil || len(stmts) != 1 {
			return
		}
		h := newHarness(t)
		h.standIns()
		if _, err := h.run("ddl", fuzzTables); err != nil {
			t.Fatal(err)
		}
		st := stmts[0].Stmt
		if e, ok := st.(*sql.Explain); ok {
			st = e.Stmt
		}
		plan, err := h.p.Plan(st, h.conf, Options{})
		if err != nil {
			var e *diag.Error
			if !errors.As(err, &e) || e.Message == "" || diag.CodeOf(err) == diag.Internal {
				t.Fatalf("%s\n%v", text, err)
			}
			return
		}
		if err := checkGraph(plan.Graph); err != nil {
			t.Fatalf("%s\n%v", text, err)
		}
		_ = plan.Explain()
	})
}

const fuzzTables = `
CREATE TABLE src (k INT, v INT, s STRING, r ROW<x INT, y STRING>, ts TIMESTAMP(3), u AS UPPER(s), WATERMARK FOR ts AS ts) WITH ('connector' = 'kafka', 'topic' = 's');
CREATE TABLE orders (id BIGINT, user_id STRING, amount DECIMAL(10, 2), qty INT, ts TIMESTAMP(3), total AS amount * qty, ptime AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'kafka', 'topic' = 'o');
CREATE TABLE done (id BIGINT, name STRING, v INT) WITH ('connector' = 'kafka', 'topic' = 'd', 'scan.bounded.mode' = 'latest-offset');
CREATE TABLE up (a INT, b INT, c STRING, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'upsert-kafka');
CREATE TABLE cdc (a INT, b INT, ts TIMESTAMP(3), PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'kafka', 'topic' = 'c', 'format' = 'debezium-json');
CREATE TABLE pk_k (k INT, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'jdbc');
CREATE TABLE pk_n (k INT, n BIGINT, PRIMARY KEY (n) NOT ENFORCED) WITH ('connector' = 'jdbc');
CREATE TABLE pr (k INT, n BIGINT) WITH ('connector' = 'print');
CREATE TABLE app (k INT, n BIGINT) WITH ('connector' = 'kafka', 'topic' = 'y');
CREATE TABLE up_out (a INT, b INT, c STRING, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'upsert-kafka');
CREATE VIEW big AS SELECT id, user_id, total FROM orders WHERE total > 100;`
