package planner

import (
	"fmt"
	"strings"
	"testing"
)

// A chain of joins is planned in time that grows with its length, not with a power of it.
func TestManyJoins(t *testing.T) {
	h := newHarness(t)
	h.standIns()
	if out, err := h.run("ddl", "CREATE TABLE t (k INT, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'kafka', 'topic' = 't')"); err != nil {
		t.Fatal(out, err)
	}
	q := "SELECT t0.v FROM t AS t0"
	for i := 1; i < 60; i++ {
		q += fmt.Sprintf(" JOIN t AS t%d ON t%d.k = t%d.k", i, i, i-1)
	}
	out, err := h.run("plan", q)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out, "Join(joinType=[InnerJoin]"); n != 59 {
		t.Errorf("%d joins in the plan", n)
	}
}
