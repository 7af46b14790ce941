package expr

import (
	"math"
	"testing"

	"github.com/streamsql/streamsql/sql/batch"
)

func TestMathFunctions(t *testing.T) {
	checkText(t, "UTC", [][2]string{
		{"ABS(-5)", "5 :: INT NOT NULL"}, {"ABS(CAST(-2147483648 AS INT))", "-2147483648"}, {"ABS(-1.50)", "1.50"}, {"ABS(CAST(-1 AS DECIMAL(30,2)))", "1.00"}, {"ABS(-0e0)", "0.0"},
		{"SIGN(-1.1)", "-1.0"}, {"SIGN(3.14)", "1.00"}, {"SIGN(0)", "0"}, {"SIGN(-5e0)", "-1.0"}, {"ABS(NULL)", "NULL"}, {"ABS('a')", "plan:ABS cannot be called"},
		{"POWER(2, 3)", "8.0 :: DOUBLE NOT NULL"}, {"POWER(-1, 0.5)", "NaN"}, {"POWER(1, CAST('NaN' AS DOUBLE))", "NaN"}, {"SQRT(2.25)", "1.5"}, {"LOG(-1)", "NaN"},
		{"LOG(10, 100)", "2.0"}, {"LOG(1, 100)", "Infinity"}, {"LN(1)", "0.0"}, {"LOG2(8)", "3.0"}, {"LOG10(1000)", "3.0"}, {"EXP(0)", "1.0"},
		{"SIN(0)", "0.0"}, {"COS(0)", "1.0"}, {"TAN(0)", "0.0"}, {"ROUND(COT(1), 12)", "0.642092615934"}, {"ASIN(2)", "NaN"}, {"ATAN2(0, 1)", "0.0"}, {"PI()", "3.141592653589793"}, {"E()", "2.718281828459045"},
		{"DEGREES(PI())", "180.0"}, {"RADIANS(180)", "3.141592653589793"}, {"SINH(0)", "0.0"}, {"COSH(0)", "1.0"}, {"TANH(0)", "0.0"}, {"ACOS(1)", "0.0"}, {"ATAN(0)", "0.0"},
		{"ROUND(-125.315, 2)", "-125.32"}, {"ROUND(646.646, -3)", "1000"}, {"ROUND(99.99, -1)", "100"}, {"ROUND(12345.12345, 2)", "12345.12 :: DECIMAL(8, 2)"},
		{"ROUND(125, -1)", "130"}, {"ROUND(-125, -1)", "-130"}, {"ROUND(1.005e0, 2)", "1.01"}, {"ROUND(2.5)", "3"}, {"ROUND(1.5, 9)", "1.5"},
		{"ROUND(CAST('NaN' AS DOUBLE))", "error:cannot be rounded"}, {"ROUND(5, -400)", "0"}, {"ROUND(5e0, -400)", "0.0"},
		{"ROUND(CAST('99999999999999999999999999999999999999' AS DECIMAL(38,0)), -1)", "NULL"}, {"ROUND(CAST(NULL AS INT), 1)", "NULL"},
		{"TRUNCATE(42, -1)", "40"}, {"TRUNCATE(123.456, 2)", "123.45 :: DECIMAL(6, 2)"}, {"TRUNCATE(-1.99e0, 1)", "-1.9"}, {"TRUNCATE(42.345)", "42"},
		{"FLOOR(-1231.12)", "-1232"}, {"CEIL(2.5)", "3"}, {"CEILING(-2.5)", "-2"}, {"FLOOR(3)", "3"}, {"FLOOR(-0.5e0)", "-1.0"}, {"CEIL(1.2e0)", "2.0"}, {"FLOOR('a')", "plan:FLOOR cannot be called"},
		{"RAND_INTEGER(0)", "error:must be positive"},
		{"TYPEOF(12)", "INT NOT NULL"}, {"TYPEOF(NULL)", "NULL"}, {"TYPEOF('Hello world')", "CHAR(11) NOT NULL"}, {"TYPEOF(1, TRUE)", "INT NOT NULL"}, {"TYPEOF(1, 2)", "plan:TYPEOF cannot be called"},
	})
}

// TestRandom: the generators of java.util.Random, one sequence for a constant seed, one number per value of a column.
func TestRandom(t *testing.T) {
	b := &batch.Batch{N: 3}
	for _, c := range []struct {
		text string
		want []string
	}{
		{"RAND(1)", []string{"0.7308781907032909", "0.41008081149220166", "0.20771484130971707"}},
		{"RAND_INTEGER(3, 99)", []string{"50", "", ""}},
	} {
		p, err := Compile([]Expr{mustParse(t, c.text, nil)}, Session{})
		if err != nil {
			t.Fatal(err)
		}
		v, err := p.Eval(b)
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range c.want {
			if got := Text(v[0].Datum(i), v[0].Type, Session{}); w != "" && got != w {
				t.Errorf("%s row %d: %s, want %s", c.text, i, got, w)
			}
		}
	}
	p, _ := Compile([]Expr{mustParse(t, "UUID()", nil), mustParse(t, "RAND()", nil)}, Session{})
	v, _ := p.Eval(b)
	if a, c := v[0].Str[0], v[0].Str[1]; len(a) != 36 || a == c || a[14] != '4' {
		t.Errorf("UUIDs %s %s", a, c)
	}
	if f := v[1].F64; f[0] == f[1] || f[0] < 0 || f[0] >= 1 || math.IsNaN(f[0]) {
		t.Errorf("RAND() gives %v", f)
	}
}
