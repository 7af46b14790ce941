package streamsql

// Goal: aggregate and table functions of a program compute what their Go code says, in every place a built-in one can
// stand, and refuse what they cannot do. Method: queries through an engine; the rows of table functions also through
// the interface that the planner uses.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

type weighted struct{ Sum, Weight int64 }

func weightedMean() AggregateFunc {
	return Aggregate2("WMEAN", Aggregation[weighted, func(*weighted, int64, int64) error, float64]{
		Add:     func(s *weighted, v, w int64) error { s.Sum, s.Weight = s.Sum+v*w, s.Weight+w; return nil },
		Retract: func(s *weighted, v, w int64) error { s.Sum, s.Weight = s.Sum-v*w, s.Weight-w; return nil },
		Result: func(s *weighted) (float64, bool, error) {
			return float64(s.Sum) / float64(s.Weight), s.Weight != 0, nil
		},
	})
}

// longest keeps a slice, so its state is JSON; it cannot take rows back.
func longest() AggregateFunc {
	return Aggregate1("LONGEST", Aggregation[[]string, func(*[]string, string) error, string]{
		Add: func(s *[]string, v string) error {
			if v == "bad" {
				return errors.New("a bad word")
			}
			if len(*s) == 0 || len(v) > len((*s)[0]) {
				*s = []string{v}
			}
			return nil
		},
		Result: func(s *[]string) (string, bool, error) {
			if len(*s) == 0 {
				return "", false, nil
			}
			return (*s)[0], true, nil
		},
	})
}

type word struct {
	Word   string `sql:"word"`
	Length *int64
	hidden int //nolint:unused // columns are the exported fields
}

func words() TableFunc {
	return TableFunc1("WORDS", func(line string, emit func(word)) error {
		for _, w := range strings.Fields(line) {
			n := int64(len(w))
			switch w {
			case "bad":
				return errors.New("a bad word")
			case "?":
				emit(word{Word: w})
			default:
				emit(word{Word: w, Length: &n})
			}
		}
		return nil
	})
}

func queryRows(e *Engine, sql string) ([]string, error) {
	res, err := e.Exec(context.Background(), sql)
	if err != nil {
		return nil, err
	}
	var out []string
	for row, err := range res.Rows() {
		if err != nil {
			return nil, err
		}
		var cells []string
		for i := range res.Schema.Columns {
			s, null := row.Text(i)
			if null {
				s = "NULL"
			}
			cells = append(cells, s)
		}
		out = append(out, row.Kind.String()+" "+strings.Join(cells, ","))
	}
	return out, nil
}

func userEngine(t *testing.T) *Engine {
	t.Helper()
	e, err := Open("", &Options{Settings: map[string]string{"parallelism.default": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	for _, f := range []Callable{weightedMean(), longest(), words()} {
		if err := e.Register(f); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

const userValues = ` FROM (VALUES ('a', 1, 10, 'x'), ('a', 2, 30, 'yyy'), ('b', 5, 1, CAST(NULL AS STRING)), ('a', 4, 20, 'zz'), ('b', CAST(NULL AS INT), 9, 'w')) AS t(k, v, w, s) `

func TestUserAggregates(t *testing.T) {
	e := userEngine(t)
	for sql, want := range map[string]string{
		`SELECT k, WMEAN(v, w), LONGEST(s)` + userValues + `GROUP BY k ORDER BY k`:                                       "+I a,2.5,yyy; +I b,5.0,w",
		`SELECT k, v, WMEAN(v, w) OVER (PARTITION BY k ORDER BY v DESC ROWS 1 PRECEDING)` + userValues + `ORDER BY 1, 2`: "+I a,1,1.75; +I a,2,2.8; +I a,4,4.0; +I b,NULL,5.0; +I b,5,5.0",
	} {
		got, err := queryRows(e, sql)
		if s := strings.Join(got, "; "); err != nil || s != want {
			t.Errorf("%s:\ngot  %s %v\nwant %s", sql, s, err, want)
		}
	}
	last := func(sql string) string {
		got, err := queryRows(e, sql)
		if err != nil {
			return err.Error()
		}
		if len(got) == 0 {
			return "none"
		}
		return got[len(got)-1]
	}
	for sql, want := range map[string]string{
		`SELECT WMEAN(v, w) FILTER (WHERE v > 1)` + userValues:                                         "+I 2.843137254901961",
		`SELECT LONGEST(s)` + userValues + `WHERE k = 'c'`:                                             "none",
		`SELECT LONGEST(s)` + userValues + `WHERE s IS NULL`:                                           "+I NULL",
		`SELECT WMEAN(n, 1) FROM (SELECT k, COUNT(*) AS n` + userValues + `GROUP BY k)`:                "+I 2.5",
		`SELECT LONGEST(s) FROM (VALUES ('bad')) AS t(s)`:                                              "function LONGEST: a bad word",
		`SELECT LONGEST(CAST(n AS STRING)) FROM (SELECT k, COUNT(*) AS n` + userValues + `GROUP BY k)`: "cannot take back rows",
		`SELECT LONGEST(s) OVER (ORDER BY v ROWS 1 PRECEDING)` + userValues:                            "cannot take back rows",
		`SELECT WMEAN(v)` + userValues:                                                                 "WMEAN takes 2 arguments, not 1",
		`SELECT WMEAN(v, s)` + userValues + `WHERE WMEAN(v, w) > 1`:                                    "aggregate WMEAN cannot be used here",
		`SELECT WMEAN(*)` + userValues:                                                                 "WMEAN takes neither *",
		`SELECT WORDS('a b')`:                                                                          "table function WORDS cannot be used here",
	} {
		if got := last(sql); got != want && !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", sql, got, want)
		}
	}
}

func TestUserTableFunction(t *testing.T) {
	f := words().f
	bound, err := f.Bind(&expr.CallSite{Name: "words", Args: []expr.Expr{&expr.Column{T: types.StringType}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(bound.Columns[0], bound.Columns[1], len(bound.Columns)); got != "{word STRING NOT NULL} {Length BIGINT} 2" {
		t.Errorf("columns %s", got)
	}
	arg := batch.NewVec(types.StringType, 4)
	copy(arg.Str, []string{"to be", "", "? x", "so bad"})
	arg.SetNull(1, 4)
	out := batch.NewBuilder(&types.Schema{Columns: bound.Columns})
	eval := bound.NewEval(expr.Session{})
	var failed []string
	for r := range 4 {
		if err := eval([]*batch.Vec{arg}, r, out); err != nil {
			failed = append(failed, fmt.Sprint(r, " ", err))
		}
	}
	if len(failed) != 1 || !strings.Contains(failed[0], "3 function WORDS: a bad word") {
		t.Errorf("errors %q", failed)
	}
	var rows []string
	for r, b := 0, out.Finish(); r < b.N; r++ {
		rows = append(rows, fmt.Sprint(b.Cols[0].Str[r], ":", b.Cols[1].IsNull(r)))
	}
	if want := []string{"to:false", "be:false", "?:true", "x:false", "so:false"}; !slices.Equal(rows, want) {
		t.Errorf("rows %q, want %q", rows, want)
	}
}

func TestLateralTable(t *testing.T) {
	e := userEngine(t)
	const lines = ` FROM (VALUES (1, 'to be'), (2, ''), (3, '? x'), (4, CAST(NULL AS STRING))) AS t(id, line)`
	for sql, want := range map[string]string{
		`SELECT id, word, n` + lines + `, LATERAL TABLE(WORDS(line)) AS w(word, n) ORDER BY id, word`:                                                               "+I 1,be,2; +I 1,to,2; +I 3,?,NULL; +I 3,x,1",
		`SELECT id, word` + lines + ` LEFT JOIN LATERAL TABLE(words(UPPER(line))) ON TRUE WHERE id > 1 ORDER BY id, word`:                                           "+I 2,NULL; +I 3,?; +I 3,X; +I 4,NULL",
		`SELECT COUNT(*)` + lines + ` CROSS JOIN LATERAL TABLE(WORDS(line))`:                                                                                        "+I 4",
		`SELECT word FROM TABLE(WORDS('a b')) ORDER BY word`:                                                                                                        "+I a; +I b",
		`SELECT id` + lines + `, LATERAL TABLE(WORDS(line)) AS w(word, n) WHERE EXISTS (SELECT 1 FROM TABLE(WORDS('x be')) AS v WHERE v.word = w.word) ORDER BY id`: "+I 1; +I 3",
		`SELECT * FROM TABLE(WORDS('so bad'))`:                                                                                                                      "function WORDS: a bad word",
		`SELECT * FROM TABLE(WORDS(1, 2))`:                                                                                                                          "WORDS takes 1 arguments, not 2",
		`SELECT * FROM TABLE(UPPER('x'))`:                                                                                                                           "UPPER is not a table function",
		`SELECT * FROM TABLE(NOPE('x'))`:                                                                                                                            "unknown table function NOPE",
		`SELECT 1` + lines + ` JOIN LATERAL TABLE(WORDS(line)) AS w(a) ON TRUE`:                                                                                     "names 1 column, it has 2",
	} {
		rows, err := queryRows(e, sql)
		got := strings.Join(rows, "; ")
		if err != nil {
			got = explained(err)
		}
		if got != want && (err == nil || !strings.Contains(got, want)) {
			t.Errorf("%s:\ngot  %s\nwant %s", sql, got, want)
		}
	}
}

// explained is an error with its detail.
func explained(err error) string {
	var d *diag.Error
	if errors.As(err, &d) {
		return d.Error() + " " + d.Detail
	}
	return err.Error()
}

func TestRefusedRegistrations(t *testing.T) {
	e := userEngine(t)
	type secret struct{ n int }
	for want, f := range map[string]Callable{
		"function WORDS already exists":  words(),
		"function SUM already exists":    Aggregate1("sum", Aggregation[int64, func(*int64, int64) error, int64]{Add: func(*int64, int64) error { return nil }, Result: func(s *int64) (int64, bool, error) { return *s, true, nil }}),
		"function UPPER already exists":  TableFunc1("Upper", func(string, func(string)) error { return nil }),
		"function TUMBLE already exists": TableFunc1("TUMBLE", func(string, func(string)) error { return nil }),
		"function WMEAN already exists":  Func1("WMEAN", func(int64) (int64, error) { return 0, nil }),
		"field n of streamsql.secret":    Aggregate1("S", Aggregation[secret, func(*secret, int64) error, int64]{Add: func(*secret, int64) error { return nil }, Result: func(s *secret) (int64, bool, error) { return int64(s.n), true, nil }}),
		"has no Add or no Result":        Aggregate1("N", Aggregation[int64, func(*int64, int64) error, int64]{}),
		"neither a type of Value nor":    TableFunc1("T", func(string, func(int)) error { return nil }),
		"it has no exported fields":      TableFunc1("T", func(string, func(secret)) error { return nil }),
		"field X is a int8":              TableFunc1("T", func(string, func(struct{ X int8 })) error { return nil }),
	} {
		err := e.Register(f)
		if err == nil || !strings.Contains(explained(err), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
