package streamsql_test

// Goal: Go functions of two and three arguments get the right values, and NULL and errors do what Func1 says. Method:
// one query per case through an engine.

import (
	"errors"
	"strings"
	"testing"

	"github.com/streamsql/streamsql"
)

func TestFunctionsOfSeveralArguments(t *testing.T) {
	eng := must(streamsql.Open("", &streamsql.Options{Settings: oneSubtask}))
	defer eng.Close()
	repeat := streamsql.Func2("REPEATED", func(s string, n int64) (string, error) {
		if n < 0 {
			return "", errors.New("less than nothing")
		}
		return strings.Repeat(s, int(n)), nil
	})
	pick := streamsql.Func3("PICKED", func(first bool, a, b string) (string, error) {
		if first {
			return a, nil
		}
		return b, nil
	})
	for _, f := range []streamsql.Func{repeat, pick} {
		if err := eng.Register(f); err != nil {
			t.Fatal(err)
		}
	}
	for sql, want := range map[string]string{
		`REPEATED('ab', CAST(2 AS BIGINT))`:       "abab",
		`REPEATED('ab', CAST(NULL AS BIGINT))`:    "NULL",
		`REPEATED('ab', CAST(-1 AS BIGINT))`:      "less than nothing",
		`PICKED(TRUE, 'a', 'b')`:                  "a",
		`PICKED(FALSE, 'a', 'b')`:                 "b",
		`PICKED(FALSE, CAST(NULL AS STRING), '')`: "NULL",
	} {
		res, err := eng.Exec(ctx, "SELECT "+sql)
		got := ""
		if err == nil {
			for row, e := range res.Rows() {
				if err = e; e != nil {
					break
				}
				s, null := row.Text(0)
				if got = s; null {
					got = "NULL"
				}
			}
		}
		if err != nil {
			got = err.Error()
		}
		if got != want && (err == nil || !strings.Contains(got, want)) {
			t.Errorf("%s: %s, want %s", sql, got, want)
		}
	}
}
