package flink

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/connectors/memory"
)

// arrow stands between an expression and Flink's answer.
const arrow = "  --> "

func TestExpressions(t *testing.T) {
	files, err := filepath.Glob("testdata/expr/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no expressions: %v", err)
	}
	failed, total, unrecorded := map[string]string{}, map[string]int{}, map[string]int{}
	for _, f := range files {
		area := strings.TrimSuffix(strings.TrimPrefix(f, "testdata/"), ".txt")
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		e := &evaluating{t: t}
		e.open()
		for _, l := range strings.Split(string(text), "\n") {
			if l == "" || strings.HasPrefix(l, "--") {
				e.directive(l)
				continue
			}
			expr, want, ok := strings.Cut(l, arrow)
			total[area]++
			if !ok {
				total[area]--
				unrecorded[area]++
				continue
			}
			if why := e.judge(expr, want); why != "" {
				failed[area+" "+e.context+expr] = why
			}
		}
		e.eng.Close()
	}
	for _, area := range sorted(unrecorded) {
		t.Logf("%s: %d expressions have no answer of Flink yet: make test-flink", area, unrecorded[area])
	}
	settle(t, "expr/", failed, total)
}

// evaluating is a file of expressions being run.
type evaluating struct {
	t       *testing.T
	eng     *streamsql.Engine
	from    string
	context string // what tells the same expression apart: the settings before it
}

func (e *evaluating) open() {
	eng, err := session(memory.NewBus(), nil, single)
	if err != nil {
		e.t.Fatal(err)
	}
	e.eng = eng
}

func (e *evaluating) directive(l string) {
	stmt := ""
	if kv, ok := strings.CutPrefix(l, "-- set "); ok {
		k, v, _ := strings.Cut(kv, "=")
		stmt = "SET '" + strings.TrimSpace(k) + "' = '" + strings.TrimSpace(v) + "'"
		e.context = "[" + strings.TrimSpace(v) + "] "
	} else if s, ok := strings.CutPrefix(l, "-- run "); ok {
		stmt = s
	} else if s, ok := strings.CutPrefix(l, "-- from "); ok {
		e.from = " FROM " + strings.TrimSpace(s)
		e.context = "[" + strings.TrimSpace(s) + "] "
	}
	if stmt == "" {
		return
	}
	if _, err := e.eng.Exec(context.Background(), stmt); err != nil {
		e.t.Fatalf("%s: %v", stmt, err)
	}
}

// judge evaluates an expression and says how it differs from Flink's answer.
func (e *evaluating) judge(expr, want string) string {
	got, err := e.eval(expr)
	wantError, fails := strings.CutPrefix(want, "!! ")
	switch {
	case err != nil && fails:
		return ""
	case err != nil:
		if refused(err) {
			return "refused: " + err.Error() + "\n      Flink: " + want
		}
		return "fails: " + err.Error() + "\n      Flink: " + want
	case fails:
		return "gives " + got + " where Flink says: " + wantError
	case sameType(got) != sameType(want):
		return "another answer\n      Flink: " + want + "\n      here:  " + got
	}
	return ""
}

func (e *evaluating) eval(expr string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), stuck)
	defer cancel()
	res, err := e.eng.Exec(ctx, "SELECT "+expr+" AS x"+e.from)
	if err != nil {
		return "", err
	}
	typ := res.Schema.Columns[0].Type
	var values []string
	for c, err := range res.Rows() {
		if err != nil {
			return "", err
		}
		values = append(values, value(c.Datum(0), typ))
	}
	return strings.Join(values, " | ") + " :: " + typ.String(), nil
}
