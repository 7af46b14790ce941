package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
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
	if strings.Contains(text, "APPROX_") { // in batch mode only
		if _, err := h.conf.Set(keyRuntimeMode, "batch", diag.Pos{}); err != nil {
			return "", err
		}
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

// seesNull are the functions for which a NULL argument is not simply NULL, with what the examples give for each argument
// replaced by NULL: "-" where it is NULL all the same.
var seesNull = map[string][]string{
	"ARRAY_APPEND":   {"-", "[1, 2, NULL]"},
	"ARRAY_PREPEND":  {"-", "[NULL, 2, 3]"},
	"ARRAY_CONTAINS": {"-", "FALSE"},
	"ARRAY_REMOVE":   {"-", "[1, 2, 1]"},
	"CONCAT_WS":      {"-", "BB~~CC", "AA~BB~~CC", "AA~~CC", "AA~BB~CC", "AA~BB~"},
	"ELT":            {"-", "b", "-"},
	"IS_ALPHA":       {"FALSE"}, "IS_DECIMAL": {"FALSE"}, "IS_DIGIT": {"FALSE"},
	"JSON_ARRAY":  {`["2",[3]]`, "[1,[3]]", `[1,"2"]`},
	"JSON_OBJECT": {`{"a":"x","b":1}`, `{"a":"x","b":null}`, `{"a":"x","b":1}`, `{"a":null,"b":1}`}, // keys are constants, read before
	"JSON_VALUE":  {"-", "-", "-"},
	"PRINTF":      {"-", " null|x", "00042|null"},
	"TRANSLATE":   {"-", "www.apache.org", "www.ph.org"},
	"RAND":        {"-"},
}

// TestFunctionsOfNull replaces every argument of every call in the examples by NULL.
func TestFunctionsOfNull(t *testing.T) {
	calls := 0
	for _, e := range newHarness(t).p.Functions().Reference() {
		if e.Kind != expr.ScalarEntry || len(e.Examples) == 0 {
			continue
		}
		call, ok := bindExample(t, e.Examples[0].SQL).(*expr.Call)
		if !ok || call.Func.Name != e.Name {
			continue
		}
		calls++
		for i, a := range call.Bound.Args {
			args := slices.Clone(call.Bound.Args)
			args[i] = &expr.Literal{Value: types.NullDatum, T: a.Type().WithNull(true)}
			want := "NULL"
			if l := seesNull[e.Name]; i < len(l) && l[i] != "-" {
				want = l[i]
			}
			if got := evalConstant(call.With(args)); got != want {
				t.Errorf("%s with NULL for argument %d is %s, want %s", e.Examples[0].SQL, i+1, got, want)
			}
		}
	}
	if calls < 130 {
		t.Errorf("only %d calls", calls)
	}
}

func bindExample(t *testing.T, text string) expr.Expr {
	stmts, err := sql.ParseScript("SELECT " + text)
	if err != nil {
		t.Fatal(err)
	}
	h := newHarness(t)
	b := &binder{p: h.p, conf: h.conf, session: expr.Session{Zone: time.UTC}}
	x, err := b.expr(&scope{}, stmts[0].Stmt.(*sql.QueryStmt).Query.(*sql.Select).Items[0].X)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return x
}

func evalConstant(x expr.Expr) string {
	p, err := expr.Compile([]expr.Expr{x}, expr.Session{Zone: time.UTC})
	if err != nil {
		return "error: " + err.Error()
	}
	out, err := p.Eval(&batch.Batch{N: 1})
	if err != nil {
		return "error: " + err.Error()
	}
	return string(types.AppendDisplay(nil, out[0].Datum(0), x.Type(), time.UTC))
}
