package planner

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/types"
)

// TestFunctionExamples runs every example of docs/sql/functions.md and DESCRIBE FUNCTION.
func TestFunctionExamples(t *testing.T) {
	n := 0
	for _, e := range newHarness(t).p.Functions().Reference() {
		for _, x := range e.Examples {
			n++
			got, err := evalExample(t, x.SQL)
			if err != nil {
				got = "error: " + err.Error()
			}
			if got != x.Result {
				t.Errorf("%s: %s is %s, not %s", e.Name, x.SQL, got, x.Result)
			}
		}
	}
	t.Logf("%d examples", n)
	if n < 250 {
		t.Errorf("there are only %d examples", n)
	}
}

// evalExample is the value of an expression, or of the last row of a query, as results show it.
func evalExample(t *testing.T, text string) (string, error) {
	h := newHarness(t)
	if !strings.HasPrefix(text, "SELECT ") {
		text = "SELECT " + text
	}
	stmts, err := sql.ParseScript(text)
	if err != nil {
		return "", err
	}
	res := &collector{keep: true}
	plan, err := h.p.Plan(stmts[0].Stmt, h.conf, Options{Collect: res.connector()})
	if err != nil {
		return "", err
	}
	job, err := exec.NewJob(plan.Graph, exec.JobOptions{Name: plan.Name})
	if err != nil {
		return "", err
	}
	if err := job.Run(context.Background()); err != nil {
		return "", err
	}
	if len(res.data) == 0 || len(res.data[0]) != 1 {
		return "", fmt.Errorf("%d rows", len(res.data))
	}
	last := res.data[len(res.data)-1]
	return string(types.AppendDisplay(nil, last[0], plan.Schema.Columns[0].Type, time.UTC)), nil
}
