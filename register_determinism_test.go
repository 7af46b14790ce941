package streamsql_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/streamsql/streamsql"
)

// TestNonDeterministic: a function that says so is called for every row, though its argument is constant, and is refused over rows
// that are taken back.
func TestNonDeterministic(t *testing.T) {
	e := must(streamsql.Open("", nil))
	defer e.Close()
	var n atomic.Int64
	next := func(int64) (int64, error) { return n.Add(1), nil }
	for _, f := range []streamsql.Func{streamsql.Func1("TICKET", next).NonDeterministic(), streamsql.Func1("FIXED", next)} {
		if err := e.Register(f); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []string{
		"CREATE TABLE c (id INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'c', 'properties.bootstrap.servers' = 'localhost:1', 'key.format' = 'raw', 'value.format' = 'json')",
		"CREATE TABLE shown (id INT, n BIGINT) WITH ('connector' = 'print')",
		"SET 'table.optimizer.non-deterministic-update.strategy' = 'TRY_RESOLVE'",
		"EXPLAIN INSERT INTO shown SELECT id, FIXED(1) FROM c",
	} {
		if _, err := e.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	before := n.Load()
	res, err := e.Exec(t.Context(), "SELECT TICKET(1), TICKET(1) FROM (VALUES (1), (2)) AS t(x)")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range res.Rows() {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := n.Load() - before; got != 4 {
		t.Errorf("%d calls, want 4", got)
	}
	_, err = e.Exec(t.Context(), "EXPLAIN INSERT INTO shown SELECT id, TICKET(1) FROM c")
	if err == nil || !strings.Contains(err.Error(), "TICKET(1) gives another value when its row is taken back") {
		t.Fatal(err)
	}
}
