package expr

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// checkText evaluates SQL expressions in every form a kernel can meet (folded, columns, Const columns, columns against
// Const columns, a sparse selection) and compares the rendered value, or the error, with want.
// want "error:text" is a run-time error, "plan:text" an error of the constructor, "want :: TYPE" also checks the type.
func checkText(t *testing.T, zone string, cases [][2]string) {
	t.Helper()
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	s := Session{Zone: loc}
	for _, c := range cases {
		text, want := c[0], c[1]
		e, err := parseExpr(text, nil)
		if msg, ok := strings.CutPrefix(want, "plan:"); ok {
			if err == nil || !strings.Contains(err.Error(), msg) {
				t.Errorf("%s: got %v, %v; want error %q", text, e, err, msg)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		want, typ, hasType := strings.Cut(want, " :: ")
		if hasType && e.Type().String() != typ {
			t.Errorf("%s: type %s, want %s", text, e.Type(), typ)
		}
		for form := 0; form < 4; form++ {
			if got := evalForm(t, e, s, form); !sameOutcome(got, want) {
				t.Errorf("%s: form %d: got %q, want %q", text, form, got, want)
			}
		}
	}
}

func sameOutcome(got, want string) bool {
	if msg, ok := strings.CutPrefix(want, "error:"); ok {
		return strings.HasPrefix(got, "error:") && strings.Contains(got, msg)
	}
	return got == want
}

// evalForm renders the value of e. Form 0 folds; 1 turns literals into columns; 2 into Const columns; 3 alternates and
// evaluates two rows of many, the others being garbage.
func evalForm(t *testing.T, e Expr, s Session, form int) string {
	t.Helper()
	const n = 70
	b := &batch.Batch{N: n}
	sel := []int32{1, 66}
	if form == 0 {
		b.N = 1
	} else {
		e = literalsToColumns(e, b, sel, form)
		if form == 3 {
			b.Sel = sel
		}
	}
	p, err := Compile([]Expr{e}, s)
	if err != nil {
		t.Fatalf("%s: %v", e, err)
	}
	out, err := p.Eval(b)
	if err != nil {
		var re *RowError
		if !errors.As(err, &re) || re.Err.Code != diag.Data && re.Err.Code != diag.Semantic {
			t.Errorf("%s: error %T %v", e, err, err)
		}
		if form == 3 && re.Row != 1 {
			t.Errorf("%s: error at row %d, want 1", e, re.Row)
		}
		return "error:" + err.Error()
	}
	row := 0
	if form == 3 {
		row = 66
	}
	return Text(out[0].Datum(row), out[0].Type, s)
}

func literalsToColumns(e Expr, b *batch.Batch, sel []int32, form int) Expr {
	return Rewrite(e, func(x Expr) Expr {
		l, ok := x.(*Literal)
		if !ok || l.T.Kind == types.Null {
			return x
		}
		var v *batch.Vec
		if form == 2 || form == 3 && len(b.Cols)%2 == 1 {
			v = batch.NewConst(l.T, l.Value)
		} else {
			v = batch.NewVec(l.T, b.N)
			rows := sel
			if form == 1 {
				rows = nil
				for i := 0; i < b.N; i++ {
					rows = append(rows, int32(i))
				}
			}
			for _, r := range rows {
				if l.Value.IsNull {
					v.SetNull(int(r), b.N)
				} else {
					v.Set(int(r), l.Value)
				}
			}
			if form == 3 && l.T.IsNested() {
				for i := range v.Str {
					if v.Str[i] == "" {
						v.SetNull(i, b.N)
					}
				}
			}
		}
		b.Cols = append(b.Cols, v)
		return &Column{Index: len(b.Cols) - 1, Name: "c", T: l.T}
	})
}

func TestLiterals(t *testing.T) {
	checkText(t, "UTC", [][2]string{
		{"1", "1 :: INT NOT NULL"},
		{"2147483647", "2147483647 :: INT NOT NULL"},
		{"2147483648", "2147483648 :: BIGINT NOT NULL"},
		{"-2147483648", "-2147483648 :: INT NOT NULL"},
		{"9223372036854775808", "9223372036854775808 :: DECIMAL(19, 0) NOT NULL"},
		{"99999999999999999999999999999999999999", "99999999999999999999999999999999999999 :: DECIMAL(38, 0) NOT NULL"},
		{"100000000000000000000000000000000000000", "plan:invalid number literal"},
		{"1.5", "1.5 :: DECIMAL(2, 1) NOT NULL"},
		{"0.01", "0.01 :: DECIMAL(3, 2) NOT NULL"},
		{".5", "0.5 :: DECIMAL(1, 1) NOT NULL"},
		{"1.50", "1.50 :: DECIMAL(3, 2) NOT NULL"},
		{"12.", "12 :: INT NOT NULL"},
		{"1e3", "1000.0 :: DOUBLE NOT NULL"},
		{"1.5E0", "1.5 :: DOUBLE NOT NULL"},
		{"'Hello world'", "Hello world :: CHAR(11) NOT NULL"},
		{"'it''s'", "it's :: CHAR(4) NOT NULL"},
		{"''", " :: CHAR(0) NOT NULL"},
		{"TRUE", "TRUE :: BOOLEAN NOT NULL"},
		{"NULL", "NULL :: NULL"},
		{"x'466c'", "Fl :: BINARY(2) NOT NULL"},
		{"x'4'", "plan:invalid binary literal"},
		{"DATE '2024-02-29'", "2024-02-29 :: DATE NOT NULL"},
		{"DATE '2023-02-29'", "plan:invalid DATE literal"},
		{"DATE '2023'", "plan:invalid DATE literal"},
		{"TIME '12:34:56'", "12:34:56 :: TIME(0) NOT NULL"},
		{"TIME '12:34:56.120'", "12:34:56.12 :: TIME(3) NOT NULL"},
		{"TIME '12:34:56.123456'", "12:34:56.123 :: TIME(6) NOT NULL"},
		{"TIME '25:00:00'", "plan:invalid TIME literal"},
		{"TIMESTAMP '1970-01-01 00:00:01'", "1970-01-01 00:00:01 :: TIMESTAMP(0) NOT NULL"},
		{"TIMESTAMP '1970-01-01 00:00:01.001'", "1970-01-01 00:00:01.001 :: TIMESTAMP(3) NOT NULL"},
		{"TIMESTAMP '1970-01-01 00:00:01.123456789'", "1970-01-01 00:00:01.123456789 :: TIMESTAMP(9) NOT NULL"},
		{"TIMESTAMP '1969-12-31 23:59:59.999999999'", "1969-12-31 23:59:59.999999999"},
		{"TIMESTAMP '9999-12-31 23:59:59.999999999'", "9999-12-31 23:59:59.999999999"},
		{"TIMESTAMP '0000-01-01 00:00:00.000000001'", "0000-01-01 00:00:00.000000001"},
		{"TIMESTAMP '2021-02-30 00:00:00'", "plan:invalid TIMESTAMP literal"},
		{"TIMESTAMP '2021-02-28'", "2021-02-28 00:00:00 :: TIMESTAMP(0) NOT NULL"},
		{"INTERVAL '10' DAY", "+10 00:00:00.000"},
		{"INTERVAL '2-10' YEAR", "+2-10"},
		{"INTERVAL '-30' DAY", "-30 00:00:00.000"},
		{"-INTERVAL '2' YEAR", "-2-00"},
		{"INTERVAL '0.003' SECOND", "+0 00:00:00.003"},
	})
}

func TestArithmetic(t *testing.T) {
	checkText(t, "UTC", [][2]string{
		{"1 + 2", "3 :: INT NOT NULL"},
		{"CAST(100 AS TINYINT) + CAST(100 AS TINYINT)", "-56 :: TINYINT NOT NULL"},
		{"CAST(30000 AS SMALLINT) + CAST(30000 AS TINYINT)", "30048 :: SMALLINT NOT NULL"},
		{"2147483647 + 1", "-2147483648 :: INT NOT NULL"},
		{"2147483647 * 2147483647", "1 :: INT NOT NULL"},
		{"9223372036854775807 + 1", "-9223372036854775808 :: BIGINT NOT NULL"},
		{"5 / 2", "2"},
		{"-7 / 2", "-3"},
		{"7 / -2", "-3"},
		{"CAST(-128 AS TINYINT) / CAST(-1 AS TINYINT)", "-128"},
		{"(-9223372036854775807 - 1) / CAST(-1 AS BIGINT)", "-9223372036854775808"},
		{"-26 % 5", "-1"},
		{"MOD(-26, 5)", "-1"},
		{"MOD(CAST(44 AS BIGINT), 3)", "2 :: INT NOT NULL"},
		{"MOD(CAST(44 AS DECIMAL(19, 0)), 6)", "2 :: INT NOT NULL"},
		{"MOD(44, CAST(6 AS DECIMAL(19, 0)))", "2 :: DECIMAL(19, 0) NOT NULL"},
		{"3 % -5", "3"},
		{"3.0 % -5.0", "3.0"},
		{"1 / 0", "error:division by zero"},
		{"1 / 0.0e0", "Infinity"},
		{"1 / 0.00", "error:division by zero"},
		{"1 % (1 - 1)", "error:division by zero"},
		{"1 + NULL", "NULL"},
		{"NULL + NULL", "NULL"},
		{"-5.5e0 % 2", "-1.5"},
		{"1e0 / 3", "0.3333333333333333 :: DOUBLE NOT NULL"},
		{"CAST(1 AS FLOAT) / 3", "0.33333334 :: FLOAT NOT NULL"},
		{"CAST(16777217 AS FLOAT) + 1", "1.6777216E7 :: FLOAT NOT NULL"},
		{"CAST(1 AS FLOAT) + 1.5", "2.5 :: DOUBLE NOT NULL"},
		{"-CAST(0 AS DOUBLE)", "-0.0"},
		{"-1.50", "-1.50 :: DECIMAL(3, 2) NOT NULL"},
		{"+5", "5"},
		{"-(-2147483647 - 1)", "-2147483648 :: INT NOT NULL"},
		{"1.0/8.0", "0.125000"},
		{"2.0/(-3)", "-0.666666666667"},
		{"1.0/100000000000", "0.000000000010000000000"},
		{"CAST(7 AS DECIMAL(30,0)) / CAST(7 AS DECIMAL(30,0))", "1.00000000 :: DECIMAL(38, 8) NOT NULL"},
		{"CAST(123.45 AS DECIMAL(7,2)) + 42", "165.45 :: DECIMAL(13, 2) NOT NULL"},
		{"CAST(1.00 AS DECIMAL(10,2)) / 2", "0.5000000000000"},
		{"2 / CAST(1.00 AS DECIMAL(10,2))", "2.00000000000"},
		{"CAST(0.0000006 AS DECIMAL(38,10)) * CAST(1.0 AS DECIMAL(38,10))", "0.000001 :: DECIMAL(38, 6) NOT NULL"},
		{"CAST(0.01 AS DECIMAL(30,20)) * CAST(0.01 AS DECIMAL(30,20))", "0.00010000000000000"},
		{"CAST(1e19 AS DECIMAL(38,0)) * CAST(1e19 AS DECIMAL(38,0))", "NULL"},
		{"CAST(5e37 AS DECIMAL(38,0)) + CAST(5e37 AS DECIMAL(38,0))", "NULL"},
		{"CAST(5e37 AS DECIMAL(38,0)) - CAST(-5e37 AS DECIMAL(38,0))", "NULL"},
		{"CAST(1.00 AS DECIMAL(20,2)) / CAST(3 AS DECIMAL(4,3))", "0.3333333"},
		{"CAST(1.00 AS DECIMAL(20,2)) / CAST(3 AS DECIMAL(20,10))", "0.3333333333"},
		{"CAST(1e20 AS DECIMAL(30,0)) / CAST(1e-15 AS DECIMAL(30,20))", "NULL"},
		{"CAST(252392720000 AS DECIMAL(19,0)) * CAST(1 AS DECIMAL(19,0))", "252392720000 :: DECIMAL(38, 0) NOT NULL"},
		{"CAST(1514356320000 AS DECIMAL(19,0)) / 6", "252392720000.00000000000 :: DECIMAL(30, 11) NOT NULL"},
		{"CAST(1 AS DECIMAL(38,10)) + CAST(1 AS DECIMAL(38,28))", "2.000000000 :: DECIMAL(38, 9) NOT NULL"},
		{"CAST(2 AS DECIMAL(30,6)) * CAST(2 AS DECIMAL(30,6))", "4.000000 :: DECIMAL(38, 6) NOT NULL"},
		{"0.908 * CAST(1000 AS BIGINT)", "908.000 :: DECIMAL(24, 3) NOT NULL"},
		{"1.5 + 2.25", "3.75"},
		{"1.5 - 2.25", "-0.75"},
		{"2.5 * 0.4", "1.00"},
		{"5 % 1.3", "1.1"},
		{"1 + 'a'", "plan:operator + cannot be applied to INT and CHAR(1)"},
		{"TRUE + 1", "plan:operator + cannot be applied"},
		{"-'a'", "plan:operator - cannot be applied"},
		{"'a' || 'bc'", "abc :: CHAR(3) NOT NULL"},
		{"'a' || CAST('bc' AS STRING)", "abc :: STRING NOT NULL"},
		{"'a' || CAST(NULL AS STRING)", "NULL"},
		{"x'01' || x'02'", "\x01\x02"},
		{"'a' || 1", "plan:operator || cannot be applied"},
	})
}

func TestTemporalArithmetic(t *testing.T) {
	checkText(t, "Asia/Shanghai", [][2]string{
		{"TIMESTAMP '2016-01-31 00:00:00' + INTERVAL '5' MONTH", "2016-06-30 00:00:00"},
		{"TIMESTAMP '2016-03-31 01:02:03.123' - INTERVAL '1' MONTH", "2016-02-29 01:02:03.123"},
		{"TIMESTAMP '2016-03-31 01:02:03.123456789' - INTERVAL '1' MONTH", "2016-02-29 01:02:03.123456789"},
		{"TIMESTAMP '1969-12-31 23:59:59.123456789' + INTERVAL '1' SECOND", "1970-01-01 00:00:00.123456789"},
		{"TIMESTAMP '1960-03-31 12:00:00' - INTERVAL '1' MONTH", "1960-02-29 12:00:00"},
		{"INTERVAL '1' DAY + TIMESTAMP '2016-02-28 12:00:00'", "2016-02-29 12:00:00"},
		{"DATE '1990-10-14' + INTERVAL '2' DAY", "1990-10-16 :: DATE NOT NULL"},
		{"DATE '1990-10-14' + INTERVAL '1' MONTH - INTERVAL '2' DAY", "1990-11-12"},
		{"DATE '1990-10-14' + INTERVAL '23' HOUR", "1990-10-14"},
		{"DATE '2017-11-29' + INTERVAL '1' QUARTER", "2018-02-28"},
		{"DATE '2016-02-29' + INTERVAL '1' YEAR", "2017-02-28"},
		{"TIME '23:59:59' + INTERVAL '1' SECOND", "00:00:00"},
		{"TIME '00:00:00' - INTERVAL '1' SECOND", "23:59:59"},
		{"TIME '10:00:00' + INTERVAL '5' MONTH", "10:00:00"},
		{"TIMESTAMP '2020-01-01 00:00:00' - TIMESTAMP '2019-01-01 00:00:00'", "plan:operator - cannot be applied"},
		{"INTERVAL '8' YEAR + INTERVAL '10' MONTH", "+8-10"},
		{"-INTERVAL '10' SECOND", "-0 00:00:10.000"},
		{"INTERVAL '2' SECOND * 3", "+0 00:00:06.000"},
		{"3 * INTERVAL '2' SECOND", "+0 00:00:06.000"},
		{"INTERVAL '2' SECOND / 3", "plan:operator / cannot be applied"},
		{"INTERVAL '2' SECOND + INTERVAL '3' MONTH", "plan:operator + cannot be applied"},
		{"CAST(TIMESTAMP '2020-01-31 20:00:00' AS TIMESTAMP_LTZ(3)) + INTERVAL '1' MONTH", "2020-02-29 20:00:00.000"},
		{"CAST(TIMESTAMP '2020-02-01 05:00:00' AS TIMESTAMP_LTZ(3)) + INTERVAL '1' MONTH", "2020-03-01 05:00:00.000"},
		{"INTERVAL '1' DAY > INTERVAL '23' HOUR", "TRUE"},
	})
}

func TestComparison(t *testing.T) {
	checkText(t, "UTC", [][2]string{
		{"1 = 1.0", "TRUE"}, {"1 < 2", "TRUE"}, {"2 <= 1", "FALSE"}, {"1 <> 1", "FALSE"}, {"2 > 1", "TRUE"}, {"1 >= 2", "FALSE"},
		{"NULL = 1", "NULL"}, {"NULL = NULL", "NULL"}, {"1 = CAST(NULL AS INT)", "NULL"},
		{"'a' = 'a '", "FALSE"}, {"'a' < 'b'", "TRUE"}, {"'B' < 'a'", "TRUE"}, {"'a' < 'aa'", "TRUE"},
		{"TRUE > FALSE", "TRUE"}, {"TRUE = FALSE", "FALSE"}, {"FALSE <= FALSE", "TRUE"},
		{"x'80' > x'7f'", "TRUE"}, {"x'01' < x'0100'", "TRUE"},
		{"CAST('NaN' AS DOUBLE) = CAST('NaN' AS DOUBLE)", "FALSE"},
		{"CAST('NaN' AS DOUBLE) <> CAST('NaN' AS DOUBLE)", "TRUE"},
		{"CAST('NaN' AS DOUBLE) > 1e0", "FALSE"},
		{"CAST('NaN' AS DOUBLE) > 1.0", "TRUE"},
		{"1.0 < CAST('NaN' AS DOUBLE)", "TRUE"},
		{"0.0 = -CAST(0 AS DOUBLE)", "FALSE"},
		{"0e0 = -CAST(0 AS DOUBLE)", "TRUE"},
		{"9007199254740993 = 9007199254740992e0", "TRUE"},
		{"CAST(0.1e0 AS FLOAT) = 0.1e0", "FALSE"},
		{"0.1 = 0.1e0", "TRUE"},
		{"1.10 = 1.1", "TRUE"}, {"1.10 < 1.2", "TRUE"},
		{"CAST(1 AS DECIMAL(38,0)) < CAST(1.5 AS DECIMAL(38,37))", "TRUE"},
		{"CAST(1e37 AS DECIMAL(38,0)) > CAST(1.5 AS DECIMAL(38,37))", "TRUE"},
		{"CAST(1 AS DECIMAL(20,0)) = 1", "TRUE"},
		{"10000000000000000000 > 9223372036854775807", "TRUE"},
		{"'1' = 1", "plan:cannot compare CHAR(1) with INT"},
		{"DATE '1996-11-10' = '1996-11-10'", "TRUE"},
		{"'1996-11-10' <> DATE '1996-11-10'", "FALSE"},
		{"DATE '1996-11-10' = 'nonsense'", "error:cannot cast 'nonsense' to DATE"},
		{"DATE '1996-11-10' > '1996-11-10'", "FALSE"},
		{"TIMESTAMP '1996-11-10 01:02:03' = '1996-11-10 01:02:03'", "TRUE"},
		{"TIME '01:02:03' = '1:2:3'", "TRUE"},
		{"TIMESTAMP '1996-11-10 01:02:03' = TIMESTAMP '1996-11-10 01:02:03.000000000'", "TRUE"},
		{"TIMESTAMP '1996-11-10 01:02:03' < TIMESTAMP '1996-11-10 01:02:03.000000001'", "TRUE"},
		{"DATE '1996-11-10' = TIMESTAMP '1996-11-10 00:00:00'", "plan:cannot compare DATE with TIMESTAMP(0)"},
		{"DATE '1996-11-10' < DATE '1996-11-11'", "TRUE"},
		{"12 BETWEEN NULL AND 10", "FALSE"}, {"12 BETWEEN 10 AND NULL", "NULL"}, {"12 BETWEEN 15 AND 12", "FALSE"},
		{"12 BETWEEN SYMMETRIC 15 AND 12", "TRUE"}, {"12 NOT BETWEEN 10 AND 12", "FALSE"},
		{"4 IN (1, 2, 3)", "FALSE"}, {"4 NOT IN (1, 2, NULL)", "NULL"}, {"1 IN (1, NULL)", "TRUE"}, {"NULL IN (1, 2)", "NULL"},
		{"CAST(NULL AS INT) IN (1, 2)", "NULL"}, {"1 NOT IN (1, NULL)", "FALSE"}, {"'a' IN ('a', 'bc')", "TRUE"},
		{"'ab' IN ('a', 'bc')", "FALSE"}, {"1.0 IN (1, 2)", "TRUE"}, {"1e0 IN (1, 2)", "TRUE"}, {"1 IN ('a', 'b')", "plan:cannot compare"}, {"1 IN ('1', '2')", "TRUE"}, {"1.5 IN ('1', 2)", "FALSE"},
		{"20000000000000000000 IN (1, 20000000000000000000)", "TRUE"}, {"TRUE IN (FALSE, TRUE)", "TRUE"},
		{"DATE '2020-01-01' IN ('2020-01-01', '2020-01-02')", "TRUE"},
		{"5 IN (1,2,3,4,5,6,7,8,9,10)", "TRUE"}, {"11 IN (1,2,3,4,5,6,7,8,9,10)", "FALSE"},
		{"1 IS DISTINCT FROM NULL", "TRUE"}, {"NULL IS NOT DISTINCT FROM NULL", "TRUE"}, {"1 IS DISTINCT FROM 1", "FALSE"},
		{"CAST(NULL AS INT) IS DISTINCT FROM 1", "TRUE"}, {"1 IS NOT DISTINCT FROM 1.0", "TRUE"},
		{"CAST('NaN' AS DOUBLE) IS DISTINCT FROM CAST('NaN' AS DOUBLE)", "TRUE"},
		{"ARRAY[1, NULL] = ARRAY[1, NULL]", "TRUE"}, {"ARRAY[1] = ARRAY[1, 2]", "FALSE"},
		{"ARRAY[1] = ARRAY[CAST(1 AS BIGINT)]", "TRUE"},
		{"MAP['a', 1, 'b', 2] = MAP['b', 2, 'a', 1]", "TRUE"}, {"MAP['a', 1] <> MAP['a', 2]", "TRUE"},
		{"ARRAY[MAP['a', 1, 'b', 2]] = ARRAY[MAP['b', 2, 'a', 1]]", "TRUE"}, {"ROW(1, MAP['a', 1]) = ROW(1, MAP['a', 2])", "FALSE"},
		{"MAP['a', 1] IS DISTINCT FROM MAP['a', 1]", "FALSE"}, {"MAP['a', 1] = CAST(NULL AS MAP<STRING, INT>)", "NULL"},
		{"ROW(1, 'a') = ROW(1, 'a')", "TRUE"}, {"ROW(1, 'a') <> ROW(1, 'b')", "TRUE"},
		{"ARRAY[1] < ARRAY[2]", "plan:cannot compare"},
	})
}

func TestLogic(t *testing.T) {
	checkText(t, "UTC", [][2]string{
		{"FALSE AND UNKNOWN", "FALSE"}, {"UNKNOWN AND FALSE", "FALSE"}, {"TRUE AND UNKNOWN", "NULL"}, {"UNKNOWN AND UNKNOWN", "NULL"},
		{"TRUE OR UNKNOWN", "TRUE"}, {"UNKNOWN OR TRUE", "TRUE"}, {"FALSE OR UNKNOWN", "NULL"}, {"UNKNOWN OR UNKNOWN", "NULL"},
		{"TRUE AND TRUE", "TRUE"}, {"TRUE AND FALSE", "FALSE"}, {"FALSE OR FALSE", "FALSE"}, {"FALSE OR TRUE", "TRUE"},
		{"NOT UNKNOWN", "NULL"}, {"NOT TRUE", "FALSE"}, {"NOT FALSE", "TRUE"}, {"NOT 1", "plan:NOT needs a BOOLEAN"},
		{"UNKNOWN IS NULL", "TRUE"}, {"UNKNOWN IS UNKNOWN", "TRUE"}, {"TRUE IS NOT UNKNOWN", "TRUE"}, {"UNKNOWN IS TRUE", "FALSE"},
		{"UNKNOWN IS NOT TRUE", "TRUE"}, {"FALSE IS FALSE", "TRUE"}, {"UNKNOWN IS FALSE", "FALSE"}, {"FALSE IS NOT FALSE", "FALSE"},
		{"1 IS NOT NULL", "TRUE"}, {"CAST(NULL AS INT) IS NULL", "TRUE"}, {"1 IS TRUE", "plan:needs a BOOLEAN"},
		{"FALSE AND CAST('x' AS INT) = 1", "FALSE"},
		{"TRUE OR CAST('x' AS INT) = 1", "TRUE"},
		{"TRUE AND CAST('x' AS INT) = 1", "error:cannot cast 'x' to INT"},
		{"CASE WHEN TRUE THEN 1 ELSE CAST('x' AS INT) END", "1"},
		{"CASE WHEN FALSE THEN CAST('x' AS INT) ELSE 2 END", "2"},
		{"CASE WHEN FALSE THEN 1 ELSE CAST('x' AS INT) END", "error:cannot cast"},
		{"CASE WHEN UNKNOWN THEN 1 ELSE 2 END", "2"},
		{"CASE WHEN FALSE THEN 1 END", "NULL"},
		{"CASE 2 WHEN 1 THEN 'one' WHEN 2 THEN 'two' ELSE 'many' END", "two :: VARCHAR(4) NOT NULL"},
		{"CASE NULL WHEN NULL THEN 1 ELSE 2 END", "2"},
		{"CASE 1 WHEN 0 THEN CAST(1 AS DECIMAL(8,4)) ELSE CAST(0.01 AS DECIMAL(10,2)) END", "0.0100 :: DECIMAL(12, 4) NOT NULL"},
		{"CASE WHEN TRUE THEN 1 ELSE 'a' END", "plan:have no common type"},
		{"CASE WHEN TRUE THEN NULL ELSE NULL END", "plan:type of NULL cannot be derived"},
		{"COALESCE(NULL, 1)", "1 :: INT NOT NULL"}, {"COALESCE(1, CAST('x' AS INT))", "1"},
		{"COALESCE(CAST(NULL AS INT), CAST('x' AS INT))", "error:cannot cast"}, {"COALESCE(CAST(NULL AS INT), NULL)", "NULL"},
		{"IFNULL(CAST(NULL AS INT), CAST(1.5 AS DECIMAL(5,2)))", "1.50 :: DECIMAL(12, 2) NOT NULL"},
		{"NULLIF(1, 1)", "NULL :: INT"}, {"NULLIF(1, 2)", "1"}, {"NULLIF(1, NULL)", "1"}, {"1 / NULLIF(2, 2)", "NULL"},
		{"IF(UNKNOWN, 1, 2)", "2"}, {"IF(TRUE, 1, 2.5)", "1.0"},
		{"GREATEST(1, NULL)", "NULL"}, {"GREATEST(1, 3, 2)", "3"}, {"LEAST(3, 1, 2)", "1"}, {"GREATEST(1, 'a')", "plan:no common type"},
		{"GREATEST('a', 'b')", "b"}, {"LEAST(1.5, 1)", "1.0"}, {"GREATEST(5)", "5"},
		{"FOO(1)", "plan:unknown function FOO"}, {"SUM(1)", "plan:cannot be used here"}, {"OBJECT_UPDATE(1)", "plan:not supported"},
		{"NULLIF(1)", "plan:cannot be called with (INT)"},
	})
}

func TestLike(t *testing.T) {
	checkText(t, "UTC", [][2]string{
		{"'TEST' LIKE 'TEST'", "TRUE"}, {"'TEST' LIKE 'T%'", "TRUE"}, {"'TEST' LIKE '%T'", "TRUE"}, {"'TEST' LIKE '%ES%'", "TRUE"},
		{"'TEST' LIKE 'T_ST'", "TRUE"}, {"'TEST' LIKE '_EST'", "TRUE"}, {"'TEST' LIKE 'TES'", "FALSE"}, {"'TEST' NOT LIKE 'X%'", "TRUE"},
		{"'' LIKE ''", "TRUE"}, {"'' LIKE '%'", "TRUE"}, {"'' LIKE '_'", "FALSE"}, {"'é' LIKE '_'", "TRUE"},
		{"'TE_ST' LIKE '%E\\_S%'", "FALSE"}, {"'TE_ST' LIKE '%E&_S%' ESCAPE '&'", "TRUE"}, {"'TEXST' LIKE '%E&_S%' ESCAPE '&'", "FALSE"},
		{"'a%b' LIKE 'a&%b' ESCAPE '&'", "TRUE"}, {"'a&b' LIKE 'a&&b' ESCAPE '&'", "TRUE"}, {"'a' LIKE 'a' ESCAPE ''", "TRUE"},
		{"'a' LIKE '&a' ESCAPE '&'", "plan:invalid escape sequence"}, {"'a' LIKE 'a' ESCAPE 'ab'", "plan:invalid escape character"},
		{"'abcabd' LIKE '%ab%d'", "TRUE"}, {"'abcabd' LIKE '%a_d'", "TRUE"}, {"'aXbXc' LIKE 'a%b%c'", "TRUE"}, {"'aaa' LIKE '%a%a%a%a%'", "FALSE"},
		{"'mississippi' LIKE 'm%iss%ip_i'", "TRUE"}, {"'a\nb' LIKE 'a%b'", "TRUE"}, {"'a\nb' LIKE 'a_b'", "FALSE"},
		{"CAST(NULL AS STRING) LIKE 'a'", "NULL"}, {"'a' LIKE NULL", "NULL"}, {"1 LIKE 'a'", "plan:LIKE needs strings"},
		{"'TEST' SIMILAR TO '.EST'", "TRUE"}, {"'TEST' SIMILAR TO '(TEST|REST)'", "TRUE"}, {"'TEST' SIMILAR TO 'T%'", "TRUE"},
		{"'TEST' SIMILAR TO 'ES'", "FALSE"}, {"'TEST' SIMILAR TO '[A-Z]{4}'", "TRUE"}, {"'12a' SIMILAR TO '[[:DIGIT:]]+[[:ALPHA:]]'", "TRUE"},
		{"'a$' SIMILAR TO 'a$'", "TRUE"}, {"'a.b' SIMILAR TO 'a_b'", "TRUE"}, {"'a%' SIMILAR TO 'a&%' ESCAPE '&'", "TRUE"},
		{"'a' NOT SIMILAR TO 'b'", "TRUE"}, {"'a' SIMILAR TO '(a'", "plan:invalid SIMILAR TO pattern"},
	})
}

func TestNested(t *testing.T) {
	checkText(t, "UTC", [][2]string{
		{"ARRAY[1, 2, NULL]", "[1, 2, NULL] :: ARRAY<INT> NOT NULL"}, {"ARRAY[1, 2][1]", "1 :: INT"}, {"ARRAY[1, 2][3]", "NULL"},
		{"ARRAY[1, 2][0]", "plan:array index 0 is out of range"}, {"ARRAY['a', 'bcd'][2]", "bcd"}, {"ARRAY[ARRAY[1], ARRAY[2, 3]][2][1]", "2"},
		{"ARRAY[]", "plan:ARRAY needs at least one element"}, {"ARRAY[1, 'a']", "plan:no common type"}, {"ARRAY[1, 2.5]", "[1.0, 2.5]"},
		{"MAP['a', 1, 'b', 2]", "{a=1, b=2} :: MAP<CHAR(1) NOT NULL, INT NOT NULL> NOT NULL"}, {"MAP[1, 1, 1, 2]", "{1=2}"},
		{"MAP['a', 1, 'bb', 2]['bb']", "2"}, {"MAP['a', 1]['x']", "NULL"}, {"MAP['a', 1][1]", "plan:is of type INT where"},
		{"MAP['a', NULL, 'b', 2]", "{a=NULL, b=2}"}, {"MAP['a']", "plan:MAP needs pairs"},
		{"ROW(1, 'abc')", "(1, abc)"}, {"ROW(NULL, 'abc')", "(NULL, abc)"}, {"ROW()", "()"}, {"ROW(1, ROW(2, x'41'))", "(1, (2, A))"},
		{"CAST(ROW(1, 'abc') AS ROW<a BIGINT, b STRING>).b", "abc"}, {"CAST(ROW(1, 'abc') AS ROW<a BIGINT, b STRING>).c", "plan:has no field"},
		{"CAST(ROW(1, ROW(2, 3)) AS ROW<a INT, b ROW<c INT, d INT>>).b.d", "3"},
		{"1 [1]", "plan:has no elements"},
	})
}
