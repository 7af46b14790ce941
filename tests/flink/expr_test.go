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
	failed, accepted := map[string]string{}, map[string]string{}
	total, unrecorded := map[string]int{}, map[string]int{}
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
			name := area + " " + e.context + expr
			switch why, more := e.judge(expr, want); {
			case more:
				accepted[name] = why
			case why != "":
				failed[name] = why
			}
		}
		e.eng.Close()
	}
	for _, area := range sorted(unrecorded) {
		t.Logf("%s: %d expressions have no answer of Flink yet: make test-flink", area, unrecorded[area])
	}
	settleAccepted(t, accepted)
	settleExplained(t, failed)
	settle(t, "expr/", failed, total)
}

// settleAccepted holds what is computed here and an error in Flink against the list: more may not come in unseen.
func settleAccepted(t *testing.T, accepted map[string]string) {
	t.Helper()
	if *rewriteMisses {
		rewrite(t, acceptsFile, "expr/", accepted)
		return
	}
	known := listed(t, acceptsFile, "expr/")
	for _, name := range sorted(accepted) {
		if !known[name] {
			t.Errorf("%s: %s", name, accepted[name])
		}
		delete(known, name)
	}
	for _, name := range sorted(known) {
		t.Errorf("%s: it is in %s, but is an error here or no longer one of Flink", name, acceptsFile)
	}
	t.Logf("%d expressions are accepted here and an error in Flink", len(accepted))
}

// settleExplained takes out of failed what is different on purpose.
func settleExplained(t *testing.T, failed map[string]string) {
	t.Helper()
	all := explanations(t)
	n := 0
	for _, name := range sorted(failed) {
		for _, e := range all {
			if e.what.MatchString(name) {
				e.used = true
				n++
				t.Logf("on purpose (%s): %s: %s", e.why, name, failed[name])
				delete(failed, name)
				break
			}
		}
	}
	for _, e := range all {
		if !e.used {
			t.Errorf("%s explains %s, which does not differ", explainedFile, e.what)
		}
	}
	t.Logf("%d expressions differ on purpose", n)
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

// judge evaluates an expression and says how it differs from Flink's answer; more when Flink has an error and this engine a value.
func (e *evaluating) judge(expr, want string) (why string, more bool) {
	got, err := e.eval(expr)
	wantError, fails := strings.CutPrefix(want, "!! ")
	switch {
	case err != nil && fails:
		return "", false
	case err != nil:
		if refused(err) {
			return "refused: " + err.Error() + "\n      Flink: " + want, false
		}
		return "fails: " + err.Error() + "\n      Flink: " + want, false
	case fails:
		return "gives " + got + " where Flink says: " + wantError, true
	case sameType(got) != sameType(want):
		return "another answer\n      Flink: " + want + "\n      here:  " + got, false
	}
	return "", false
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
