package expr

import (
	"errors"
	"testing"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// TestCheckConstants: a constant that always fails is found before a row is seen; one that may be passed over is not.
func TestCheckConstants(t *testing.T) {
	for _, c := range []struct {
		text  string
		fails bool
	}{
		{"CAST('x' AS INT)", true}, {"1 + CAST('x' AS INT)", true}, {"CAST(CAST('2021-02-30' AS DATE) AS STRING)", true},
		{"CAST(ARRAY['1', 'x'] AS ARRAY<INT>)", true}, {"CAST('1' AS INT)", false}, {"TRY_CAST('x' AS INT)", false},
		{"REPEAT('ab', 2000000000)", true}, {"CASE WHEN CAST('x' AS INT) = 1 THEN 1 END", true}, {"CAST('x' AS INT) = 1 AND RAND() > 2", true},
		{"1 / 0", true}, {"1 / 0e0", true}, {"1.5 % (1 - 1)", true}, {"CAST(NULL AS DOUBLE) / 0", false}, {"CAST(NULL AS INT) / 0", false},
		{"RAND() / 0", false}, {"RAND_INTEGER(5) / 0", true}, {"CASE WHEN FALSE THEN 1 / 0 ELSE 2 END", false}, {"1 = 1 OR 1 / 0 > 1", false},
		{"CASE WHEN RAND() > 2 THEN CAST('x' AS INT) ELSE 1 END", false}, {"RAND() > 2 AND CAST('x' AS INT) = 1", false},
		{"FALSE AND CAST('x' AS INT) = 1", false}, {"COALESCE(1, CAST('x' AS INT))", false}, {"IF(TRUE, 1, CAST('x' AS INT))", false},
	} {
		err := CheckConstants(mustParse(t, c.text, nil), Session{})
		if c.fails != (err != nil) {
			t.Errorf("%s: %v", c.text, err)
		}
	}
}

// TestPlace: the error of a row has the place of the innermost expression that failed, and of the right one.
func TestPlace(t *testing.T) {
	s := &Column{Index: 0, Name: "s", T: types.StringType}
	at := func(col int) diag.Pos { return diag.Pos{Offset: col - 1, Line: 1, Col: col} }
	inner := must(NewCast(s, types.IntType, false))
	Place(inner, at(5))
	sum := must(NewBinary("+", inner, must(NewCast(must(NewBinary("||", s, s)), types.IntType, false))))
	Place(sum, at(3))
	v := batch.NewVec(types.StringType, 2)
	v.Str[0], v.Str[1] = "12", "x"
	p, err := Compile([]Expr{sum}, Session{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Eval(&batch.Batch{N: 2, Cols: []*batch.Vec{v}})
	var re *RowError
	if !errors.As(err, &re) || re.Row != 1 || re.Err.Pos != at(5) || re.Error() != "CAST(s AS INT): cannot cast 'x' to INT" {
		t.Fatalf("got %+v", err)
	}
	if got := sum.With(sum.Children()).(*Binary).Pos; got != at(3) {
		t.Errorf("a copy stands at %v", got)
	}
}
