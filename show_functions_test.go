package streamsql

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// listing executes a statement that answers with rows of strings and joins their cells.
func listing(t *testing.T, e *Engine, text string) []string {
	t.Helper()
	res, err := e.Exec(context.Background(), text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var out []string
	for _, r := range res.fixed {
		var cells []string
		for _, d := range r {
			cells = append(cells, d.Str)
		}
		out = append(out, strings.Join(cells, " | "))
	}
	return out
}

func TestShowFunctions(t *testing.T) {
	e, err := Open("", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := e.Register(Func1("twice", func(x int64) (int64, error) { return 2 * x, nil })); err != nil {
		t.Fatal(err)
	}
	all := listing(t, e, "SHOW FUNCTIONS")
	if len(all) < 170 || !slices.IsSorted(all) {
		t.Errorf("%d functions: %v", len(all), all)
	}
	for _, c := range [][2]string{
		{"SHOW FUNCTIONS LIKE 'TRI_'", "TRIM"},
		{"SHOW FUNCTIONS ILIKE '%ceil%'", "CEIL, CEILING"},
		{"SHOW FUNCTIONS FROM default_database LIKE 'SU%'", "SUBSTR, SUBSTRING, SUM"},
		{"SHOW USER FUNCTIONS", "TWICE"},
		{"SHOW BUILTIN FUNCTIONS LIKE 'T%E'", "TO_DATE, TRANSLATE, TRUNCATE"},
		{"DESCRIBE FUNCTION abs", "is system function | true, is temporary | false, signature | ABS(number), description | The absolute value, in the type of the argument; that of the smallest integer is itself., example | ABS(-3.5) → 3.5"},
		{"DESC FUNCTION Twice", "is system function | false, is temporary | true, function language | GO, signature | TWICE(BIGINT), description | Registered by the program."},
		{"DESCRIBE FUNCTION EXTENDED ceiling", "is system function | true, is temporary | false, kind | SCALAR, requirements | [], is deterministic | true, " +
			"supports constant folding | true, signature | CEIL(number) or CEIL(time TO unit), " +
			"description | The smallest integer not below a number, or the start of the next unit of a time., example | CEIL(2.1) → 3, " +
			"example | CEIL(TIME '12:44:31' TO MINUTE) → 12:45:00"},
		{"DESCRIBE FUNCTION EXTENDED default_catalog.default_database.`SUM`", "is system function | true, is temporary | false, kind | AGGREGATE, requirements | [], " +
			"is deterministic | true, supports constant folding | false, signature | SUM([DISTINCT] number), " +
			"description | The sum, in the type of the argument: integers wrap around. Of DECIMAL(p, s) it is DECIMAL(38, s)., " +
			"example | SELECT SUM(x) FROM (VALUES (1.5), (2)) AS t(x) → 3.5"},
	} {
		if got := strings.Join(listing(t, e, c[0]), ", "); got != c[1] {
			t.Errorf("%s:\ngot  %s\nwant %s", c[0], got, c[1])
		}
	}
	for _, c := range [][2]string{
		{"DESCRIBE FUNCTION uper", "1:19: function \"uper\" does not exist"},
		{"SHOW FUNCTIONS FROM other", "1:21: database \"other\" does not exist"},
	} {
		if _, err := e.Exec(context.Background(), c[0]); err == nil || err.Error() != c[1] {
			t.Errorf("%s: got %v, want %s", c[0], err, c[1])
		}
	}
}
