package expr

import (
	"testing"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

func TestCastFromString(t *testing.T) {
	checkText(t, "UTC", [][2]string{
		{"CAST('123' AS INT)", "123"}, {"CAST('  -123  ' AS INT)", "-123"}, {"CAST('+5' AS INT)", "5"}, {"CAST('1.234' AS INT)", "1"},
		{"CAST('-1.9' AS INT)", "-1"}, {"CAST('1.' AS INT)", "1"}, {"CAST('.5' AS INT)", "0"}, {"CAST('.' AS INT)", "error:cannot cast '.' to INT"},
		{"CAST('1e3' AS INT)", "error:cannot cast"}, {"CAST('' AS INT)", "error:cannot cast"}, {"CAST('1_0' AS INT)", "error:cannot cast"},
		{"CAST('0x1' AS INT)", "error:cannot cast"}, {"CAST('-130' AS TINYINT)", "error:cannot cast"}, {"CAST('-128' AS TINYINT)", "-128"},
		{"CAST('128' AS TINYINT)", "error:"}, {"CAST('127' AS TINYINT)", "127"}, {"CAST('32768' AS SMALLINT)", "error:"},
		{"CAST('-32768' AS SMALLINT)", "-32768"}, {"CAST('2147483648' AS INT)", "error:"}, {"CAST('-2147483648' AS INT)", "-2147483648"},
		{"CAST('9223372036854775807' AS BIGINT)", "9223372036854775807"}, {"CAST('9223372036854775808' AS BIGINT)", "error:"},
		{"CAST('-9223372036854775808' AS BIGINT)", "-9223372036854775808"}, {"CAST('-9223372036854775809' AS BIGINT)", "error:"},
		{"CAST('99999999999999999999' AS BIGINT)", "error:"}, {"CAST('1.2a' AS INT)", "error:"}, {"CAST('\t1' AS INT)", "error:"},
		{"CAST('-' AS INT)", "error:"}, {"CAST('+-1' AS INT)", "error:"},
		{"CAST('NaN' AS DOUBLE)", "NaN"}, {"CAST('Infinity' AS DOUBLE)", "Infinity"}, {"CAST('-Infinity' AS DOUBLE)", "-Infinity"},
		{"CAST('inf' AS DOUBLE)", "error:"}, {"CAST('nan' AS DOUBLE)", "error:"}, {"CAST('1e5' AS DOUBLE)", "100000.0"}, {"CAST('1d' AS DOUBLE)", "1.0"},
		{"CAST('1f' AS DOUBLE)", "1.0"}, {"CAST('0x1p3' AS DOUBLE)", "8.0"}, {"CAST('1e400' AS DOUBLE)", "Infinity"}, {"CAST(' 1.5 ' AS DOUBLE)", "1.5"},
		{"CAST('1_0' AS DOUBLE)", "error:"}, {"CAST('' AS DOUBLE)", "error:"}, {"CAST('-3276913443134' AS FLOAT)", "-3.2769135E12"},
		{"CAST('1e40' AS FLOAT)", "Infinity"}, {"CAST('d' AS DOUBLE)", "error:"}, {"CAST('.5' AS DOUBLE)", "0.5"}, {"CAST('1dd' AS DOUBLE)", "error:"},
		{"CAST('12345.6789' AS DECIMAL(8,4))", "error:"}, {"CAST('1234.56785' AS DECIMAL(8,4))", "1234.5679"}, {"CAST('1e2' AS DECIMAL(5,1))", "100.0"},
		{"CAST(' \t1.5\n' AS DECIMAL(5,1))", "1.5"}, {"CAST('12x' AS DECIMAL(5,1))", "error:"}, {"CAST('x' AS DECIMAL(5,1))", "error:"},
		{"CAST('1e' AS DECIMAL(5,1))", "error:"}, {"CAST('00012' AS DECIMAL(5,3))", "12.000"}, {"CAST('9.9996' AS DECIMAL(4,3))", "error:"},
		{"CAST('-0.5' AS DECIMAL(2,0))", "-1"}, {"CAST('0.4999' AS DECIMAL(2,0))", "0"}, {"CAST('1e-50' AS DECIMAL(38,38))", "0.00000000000000000000000000000000000000"},
		{"CAST('12345678901234567890123456789012345678' AS DECIMAL(38,0))", "12345678901234567890123456789012345678"},
		{"CAST('123456789012345678901234567890123456789' AS DECIMAL(38,0))", "error:"}, {"CAST('1e999999999' AS DECIMAL(38,0))", "error:"},
		{"CAST('0e999999999' AS DECIMAL(38,0))", "0"}, {"CAST('1..2' AS DECIMAL(5,2))", "error:"}, {"CAST('' AS DECIMAL(5,2))", "error:"},
		{"CAST('true' AS BOOLEAN)", "TRUE"}, {"CAST('FalsE' AS BOOLEAN)", "FALSE"}, {"CAST('t' AS BOOLEAN)", "TRUE"}, {"CAST('y' AS BOOLEAN)", "TRUE"},
		{"CAST('1' AS BOOLEAN)", "TRUE"}, {"CAST('no' AS BOOLEAN)", "FALSE"}, {"CAST('0' AS BOOLEAN)", "FALSE"}, {"CAST(' true' AS BOOLEAN)", "error:"},
		{"CAST('' AS BOOLEAN)", "error:"}, {"CAST('foo' AS BOOLEAN)", "error:cannot cast 'foo' to BOOLEAN"},
		{"CAST('123' AS DATE)", "0123-01-01"}, {"CAST('2021-09-27' AS DATE)", "2021-09-27"}, {"CAST('2021-9-7' AS DATE)", "2021-09-07"},
		{"CAST('2021-09' AS DATE)", "2021-09-01"}, {"CAST('2021-09-27 12:34:56.1' AS DATE)", "2021-09-27"}, {"CAST('2021/09/27' AS DATE)", "error:"},
		{"CAST('2021-02-30' AS DATE)", "error:"}, {"CAST('2021-09-27T12:00:00' AS DATE)", "error:"}, {"CAST('-2021-01-01' AS DATE)", "error:"},
		{"CAST('10000-01-01' AS DATE)", "error:"}, {"CAST('2020-02-29' AS DATE)", "2020-02-29"}, {"CAST('1900-02-29' AS DATE)", "error:"},
		{"CAST('0000-01-01' AS DATE)", "0000-01-01"}, {"CAST('2021-13-01' AS DATE)", "error:"}, {"CAST('2021-01-01-01' AS DATE)", "error:"},
		{"CAST('23' AS TIME)", "23:00:00"}, {"CAST('1:30' AS TIME)", "01:30:00"}, {"CAST('1:30:00' AS TIME)", "01:30:00"}, {"CAST('123' AS TIME)", "error:"},
		{"CAST('2021-09-27 12:34:56' AS TIME)", "error:"}, {"CAST('12:34:56.1239' AS TIME(3))", "12:34:56.124"}, {"CAST('12:34:56.9' AS TIME)", "12:34:56"},
		{"CAST('12:34:56.129' AS TIME(2))", "12:34:56.12"}, {"CAST('24:00:00' AS TIME)", "error:"}, {"CAST('12:60:00' AS TIME)", "error:"},
		{"CAST('12:34:56' AS TIME(3))", "12:34:56.0"},
		{"CAST('2021-09-27 12:34:56.123456789' AS TIMESTAMP(9))", "2021-09-27 12:34:56.123456789"},
		{"CAST('2021-09-27 12:34:56.123456789' AS TIMESTAMP)", "2021-09-27 12:34:56.123456"},
		{"CAST('2021-09-27 12:34:56.1' AS TIMESTAMP(3))", "2021-09-27 12:34:56.100"}, {"CAST('2021-09-27' AS TIMESTAMP(3))", "2021-09-27 00:00:00.000"},
		{"CAST('2021-09-27T12:00:00' AS TIMESTAMP)", "error:"}, {"CAST('2021-02-30 00:00:00' AS TIMESTAMP(0))", "2021-02-28 00:00:00"},
		{"CAST('2021-02-32 00:00:00' AS TIMESTAMP(0))", "error:"}, {"CAST('2021-09-27 12:34' AS TIMESTAMP)", "error:"},
		{"CAST('2021-09-27 24:00:00' AS TIMESTAMP(0))", "2021-09-28 00:00:00"}, {"CAST('2021-09-27 24:00:01' AS TIMESTAMP(0))", "error:"},
		{"CAST('1999-9-10 05:20:10.123456' AS TIMESTAMP)", "1999-09-10 05:20:10.123456"}, {"CAST('1999-9-1 5:2:1' AS TIMESTAMP(0))", "1999-09-01 05:02:01"},
		{"CAST('2021-09-27  12:34:56' AS TIMESTAMP)", "error:"}, {"CAST(' 2021-09-27' AS TIMESTAMP)", "error:"}, {"CAST('2021-09-27 12:34:56 ' AS TIMESTAMP)", "error:"},
		{"CAST('2021-09-27 12:34:56Z' AS TIMESTAMP)", "error:"}, {"CAST('12021-09-27 12:34:56' AS TIMESTAMP)", "error:"},
		{"CAST('2021-09-27 12:34:56.1234567890' AS TIMESTAMP)", "error:"},
		{"CAST('abc' AS ARRAY<INT>)", "plan:cannot cast CHAR(3) to ARRAY<INT>"}, {"CAST('1' AS INTERVAL DAY)", "plan:cannot cast"},
		{"TRY_CAST('x' AS INT)", "NULL :: INT"}, {"TRY_CAST('7' AS INT)", "7 :: INT"}, {"CAST(TRY_CAST('x' AS INT) AS STRING)", "NULL"},
		{"CAST(NULL AS INT)", "NULL :: INT"},
	})
}

func TestCastNumeric(t *testing.T) {
	checkText(t, "UTC", [][2]string{
		{"CAST(12345 AS TINYINT)", "57"}, {"CAST(12345678901 AS INT)", "-539222987"}, {"CAST(70000 AS SMALLINT)", "4464"},
		{"CAST(CAST(9123.87 AS DECIMAL(10,2)) AS TINYINT)", "-93"}, {"CAST(CAST(3276913443134.87 AS DECIMAL(15,2)) AS INT)", "-146603714"},
		{"CAST(-1.9 AS INT)", "-1"}, {"CAST(12345678901234567890123.9 AS BIGINT)", "4807115922877859019"},
		{"CAST(9234567891.12e0 AS INT)", "2147483647"}, {"CAST(-9e30 AS BIGINT)", "-9223372036854775808"}, {"CAST(CAST('NaN' AS DOUBLE) AS INT)", "0"},
		{"CAST(123456.78e0 AS SMALLINT)", "-7616"}, {"CAST(1e10 AS TINYINT)", "-1"}, {"CAST(1e10 AS SMALLINT)", "-1"}, {"CAST(-1.9e0 AS INT)", "-1"},
		{"CAST(1e300 AS FLOAT)", "Infinity"}, {"CAST(CAST(123.456e0 AS FLOAT) AS DOUBLE)", "123.45600128173828"},
		{"CAST(CAST(123456789.123456789123456789 AS DECIMAL(30,20)) AS DOUBLE)", "1.2345678912345679E8"},
		{"CAST(0.1 AS DOUBLE)", "0.1"}, {"CAST(16777217 AS FLOAT)", "1.6777216E7"}, {"CAST(9007199254740993 AS DOUBLE)", "9.007199254740992E15"},
		{"CAST(12345 AS DECIMAL(8,4))", "NULL"}, {"CAST(1234 AS DECIMAL(8,4))", "1234.0000"}, {"CAST(3.123456e0 AS DECIMAL(8,4))", "3.1235"},
		{"CAST(3.123456 AS DECIMAL(8,4))", "3.1235"}, {"CAST(-2.5 AS DECIMAL(8,0))", "-3"}, {"CAST(99.99 AS DECIMAL(3,1))", "NULL"},
		{"CAST(CAST('NaN' AS DOUBLE) AS DECIMAL(8,4))", "error:"}, {"TRY_CAST(CAST('NaN' AS DOUBLE) AS DECIMAL(8,4))", "NULL"},
		{"CAST(1.005e0 AS DECIMAL(8,2))", "1.01"}, {"CAST(CAST(0.1e0 AS FLOAT) AS DECIMAL(20,18))", "0.100000001490116120"}, {"CAST(1e40 AS DECIMAL(38,0))", "NULL"},
		{"CAST(TRUE AS INT)", "1"}, {"CAST(FALSE AS DOUBLE)", "0.0"}, {"CAST(TRUE AS DECIMAL(5,2))", "1.00"}, {"CAST(TRUE AS DECIMAL(25,2))", "1.00"},
		{"CAST(TRUE AS DECIMAL(2,2))", "NULL"}, {"CAST(5 AS BOOLEAN)", "TRUE"}, {"CAST(0 AS BOOLEAN)", "FALSE"}, {"CAST(0.0 AS BOOLEAN)", "FALSE"},
		{"CAST(0.5e0 AS BOOLEAN)", "TRUE"}, {"CAST(100000000000000000000 AS BOOLEAN)", "TRUE"},
		{"CAST(0 AS TIMESTAMP)", "plan:cannot cast INT to TIMESTAMP(6)"}, {"CAST(0 AS DATE)", "plan:cannot cast"}, {"CAST(0 AS BYTES)", "plan:cannot cast"},
		{"CAST(TIMESTAMP '2020-01-01 00:00:00' AS BIGINT)", "plan:cannot cast"}, {"CAST(TRUE AS DATE)", "plan:cannot cast"},
		{"CAST(5 AS INTERVAL DAY)", "+5 00:00:00.000"}, {"CAST(5 AS INTERVAL MONTH)", "+0-05"}, {"CAST(INTERVAL '3' DAY AS BIGINT)", "3"},
		{"CAST(INTERVAL '2-03' YEAR AS INT)", "plan:cannot cast"}, {"CAST(1.5 AS DECIMAL(20,1))", "1.5"}, {"CAST(CAST(1.5 AS DECIMAL(30,1)) AS DECIMAL(5,3))", "1.500"},
	})
}

func TestCastToString(t *testing.T) {
	checkText(t, "Europe/Berlin", [][2]string{
		{"CAST(TRUE AS STRING)", "TRUE"}, {"CAST(-5 AS STRING)", "-5"}, {"CAST(9.87 AS STRING)", "9.87"}, {"CAST(CAST(9.87 AS DECIMAL(5,3)) AS STRING)", "9.870"},
		{"CAST(CAST(1 AS DECIMAL(10,5)) AS STRING)", "1.00000"}, {"CAST(-0.00 AS STRING)", "0.00"}, {"CAST(-0.05 AS STRING)", "-0.05"},
		{"CAST(CAST(-0.05 AS DECIMAL(38,20)) AS STRING)", "-0.05000000000000000000"}, {"CAST(123456789012345678901234567890.12 AS STRING)", "123456789012345678901234567890.12"},
		{"CAST(1e10 AS STRING)", "1.0E10"}, {"CAST(100e0 AS STRING)", "100.0"}, {"CAST(2e0 AS STRING)", "2.0"}, {"CAST(0.001e0 AS STRING)", "0.001"},
		{"CAST(9999999e0 AS STRING)", "9999999.0"}, {"CAST(1e7 AS STRING)", "1.0E7"}, {"CAST(1e-4 AS STRING)", "1.0E-4"}, {"CAST(123456789e0 AS STRING)", "1.23456789E8"},
		{"CAST(4.9E-324 AS STRING)", "4.9E-324"}, {"CAST(9.9E-324 AS STRING)", "9.9E-324"}, {"CAST(-1.5e0 AS STRING)", "-1.5"}, {"CAST(0e0 AS STRING)", "0.0"},
		{"CAST(CAST(3.4028235E38 AS FLOAT) AS STRING)", "3.4028235E38"}, {"CAST(CAST(1.4E-45 AS FLOAT) AS STRING)", "1.4E-45"}, {"CAST(1.7976931348623157E308 AS STRING)", "1.7976931348623157E308"},
		{"CAST(0.00123e0 AS STRING)", "0.00123"}, {"CAST(1234.5e0 AS STRING)", "1234.5"}, {"CAST(2e23 AS STRING)", "2.0E23"},
		{"CAST(DATE '2021-09-27' AS STRING)", "2021-09-27"}, {"CAST(DATE '2021-09-27' AS CHAR(3))", "202"}, {"CAST(TIME '12:34:56.10' AS STRING)", "12:34:56.1"},
		{"CAST(TIMESTAMP '2021-09-27 12:34:56.1' AS STRING)", "2021-09-27 12:34:56.1"}, {"CAST(TIMESTAMP '2021-09-27 12:34:56' AS STRING)", "2021-09-27 12:34:56"},
		{"CAST(CAST(TIMESTAMP '2021-09-27 12:34:56.1' AS TIMESTAMP_LTZ(3)) AS STRING)", "2021-09-27 12:34:56.100"},
		{"CAST(INTERVAL '7' YEAR AS STRING)", "+7-00"}, {"CAST(INTERVAL '5' MONTH AS STRING)", "+0-05"}, {"CAST(INTERVAL '-123' MONTH AS STRING)", "-10-03"},
		{"CAST(INTERVAL '12334' MONTH AS STRING)", "+1027-10"}, {"CAST(INTERVAL '0.010' SECOND AS STRING)", "+0 00:00:00.010"},
		{"CAST(INTERVAL '123436.789' SECOND AS STRING)", "+1 10:17:16.789"},
		{"CAST(MAP['a', INTERVAL '-123' MONTH] AS STRING)", "{a=-10-03}"}, {"CAST(ARRAY[NULL, 456] AS STRING)", "[NULL, 456]"},
		{"CAST(ROW(1, 'abc', TRUE) AS STRING)", "(1, abc, TRUE)"}, {"CAST(ARRAY[1.5e0] AS VARCHAR(3))", "[1."},
		{"CAST('foo' AS CHAR(5))", "foo   :: CHAR(5) NOT NULL"}, {"CAST('foobar' AS CHAR(3))", "foo"}, {"CAST('foobar' AS VARCHAR(3))", "foo"}, {"CAST('äöü' AS VARCHAR(2))", "äö"},
		{"CAST('äö' AS CHAR(4))", "äö  "}, {"CAST('foo' AS VARCHAR(5))", "foo"}, {"CAST(12345 AS VARCHAR(3))", "123"}, {"CAST(1 AS CHAR(3))", "1  "},
		{"CAST(x'466c' AS STRING)", "Fl"}, {"CAST(x'80' AS STRING)", "error:cannot cast 'x'80'' to STRING"}, {"TRY_CAST(x'80' AS STRING)", "NULL"},
		{"CAST(CAST('foobar' AS BINARY(2)) AS STRING)", "fo"}, {"CAST(x'41' AS BINARY(3))", "A\x00\x00"}, {"CAST(x'414243' AS VARBINARY(2))", "AB"},
		{"CAST('foo' AS BYTES)", "foo"}, {"CAST(x'41' AS INT)", "plan:cannot cast"}, {"CAST(1 AS BYTES)", "plan:cannot cast"},
	})
}

func TestCastTemporal(t *testing.T) {
	checkText(t, "UTC", [][2]string{
		{"CAST(TIMESTAMP '2021-09-24 12:34:56.1234567' AS TIME)", "12:34:56"}, {"CAST(TIMESTAMP '2021-09-24 12:34:56.1234567' AS TIME(3))", "12:34:56.123"},
		{"CAST(TIMESTAMP '2021-09-24 12:34:56.1234567' AS TIMESTAMP(4))", "2021-09-24 12:34:56.1234"}, {"CAST(TIMESTAMP '2021-09-24 12:34:56.1234567' AS DATE)", "2021-09-24"},
		{"CAST(TIMESTAMP '1969-12-31 12:00:00.5' AS DATE)", "1969-12-31"}, {"CAST(TIMESTAMP '1969-12-31 12:00:00.5' AS TIME)", "12:00:00"},
		{"CAST(TIMESTAMP '1969-12-31 23:59:59.999999' AS TIMESTAMP(3))", "1969-12-31 23:59:59.999"},
		{"CAST(TIME '10:20:45' AS TIMESTAMP(3))", "1970-01-01 10:20:45.000"}, {"CAST(DATE '2020-02-29' AS TIMESTAMP(3))", "2020-02-29 00:00:00.000"},
		{"CAST(DATE '2020-02-29' AS TIME)", "plan:cannot cast DATE to TIME(0)"}, {"CAST(TIME '10:20:45' AS DATE)", "plan:cannot cast"},
		{"CAST(TIME '10:20:45.678' AS TIME(1))", "10:20:45.6"}, {"CAST(TIMESTAMP '2021-09-24 12:34:56' AS TIMESTAMP(9))", "2021-09-24 12:34:56.000000000"},
		{"CAST(TIMESTAMP '2021-09-24 12:34:56.000000123' AS TIMESTAMP(7)) = TIMESTAMP '2021-09-24 12:34:56.0000001'", "TRUE"},
	})
	checkText(t, "Europe/Berlin", [][2]string{
		{"CAST(TIMESTAMP '2021-03-28 02:30:00' AS TIMESTAMP_LTZ(0))", "2021-03-28 03:30:00"},
		{"CAST(CAST(TIMESTAMP '2021-03-28 02:30:00' AS TIMESTAMP_LTZ(0)) AS TIMESTAMP(0))", "2021-03-28 03:30:00"},
		{"CAST(TIMESTAMP '2021-10-31 02:30:00' AS TIMESTAMP_LTZ(0)) + INTERVAL '1' HOUR", "2021-10-31 02:30:00"},
		{"CAST(TIMESTAMP '2021-10-31 02:30:00' AS TIMESTAMP_LTZ(0)) + INTERVAL '2' HOUR", "2021-10-31 03:30:00"},
		{"CAST('2021-03-28 02:30:00' AS TIMESTAMP_LTZ(0))", "2021-03-28 03:30:00"}, {"CAST(DATE '2021-07-01' AS TIMESTAMP_LTZ(0))", "2021-07-01 00:00:00"},
		{"CAST(CAST(TIMESTAMP '2021-07-01 00:30:00' AS TIMESTAMP_LTZ(0)) AS DATE)", "2021-07-01"}, {"CAST(CAST(TIMESTAMP '2021-07-01 00:30:00' AS TIMESTAMP_LTZ(0)) AS TIME)", "00:30:00"},
		{"CAST(TIME '00:30:00' AS TIMESTAMP_LTZ(0))", "1970-01-01 00:30:00"}, {"CAST(TIMESTAMP '2021-07-01 00:30:00' AS TIMESTAMP_LTZ(9)) = TIMESTAMP '2021-07-01 00:30:00'", "TRUE"},
		{"CAST(TIMESTAMP '0000-01-01 00:00:00' AS TIMESTAMP_LTZ(9))", "0000-01-01 00:00:00.000000000"},
	})
	checkText(t, "Asia/Tokyo", [][2]string{
		{"CAST(TIMESTAMP '2020-01-01 09:00:00' AS TIMESTAMP_LTZ(0)) IN (CAST('2020-01-01 09:00:00' AS TIMESTAMP_LTZ(0)), CAST('2020-01-01 00:00:00' AS TIMESTAMP_LTZ(0)))", "TRUE"},
		{"CAST(TIMESTAMP '2020-01-01 09:00:00' AS TIMESTAMP_LTZ(3)) = TIMESTAMP '2020-01-01 09:00:00'", "TRUE"},
		{"CAST(TIMESTAMP '2020-01-01 09:00:00' AS TIMESTAMP_LTZ(3)) = '2020-01-01 09:00:00'", "TRUE"},
	})
	checkText(t, "Pacific/Apia", [][2]string{{"CAST(TIMESTAMP '2011-12-30 12:00:00' AS TIMESTAMP_LTZ(0))", "2011-12-31 12:00:00"}})
}

func TestCastNested(t *testing.T) {
	checkText(t, "UTC", [][2]string{
		{"CAST(ROW(10, NULL, TIME '12:34:56', ARRAY['a']) AS ROW<a BIGINT, b BIGINT, c STRING, d ARRAY<STRING>>)", "(10, NULL, 12:34:56, [a])"},
		{"CAST(ARRAY['1', NULL] AS ARRAY<INT>)", "[1, NULL]"}, {"CAST(ARRAY['a'] AS ARRAY<INT>)", "error:cannot cast '[a]' to ARRAY<INT>"},
		{"TRY_CAST(ARRAY['a'] AS ARRAY<INT>)", "NULL"}, {"TRY_CAST(ROW('1', 'x') AS ROW<a INT, b INT>)", "NULL"},
		{"CAST(MAP['1', '2'] AS MAP<INT, DOUBLE>)", "{1=2.0}"}, {"CAST(1 AS ARRAY<INT>)", "plan:cannot cast"}, {"CAST(ARRAY[1] AS MAP<INT, INT>)", "plan:cannot cast"},
		{"CAST(ROW(1, 2) AS ROW<a INT>)", "plan:cannot cast"}, {"CAST(ARRAY[TRUE] AS ARRAY<DATE>)", "plan:cannot cast"}, {"CAST(ARRAY[1, 2] AS ARRAY<BIGINT>)", "[1, 2]"},
		{"CAST(ARRAY[12345] AS ARRAY<DECIMAL(8,4)>)", "[NULL]"}, {"CAST(ARRAY['abc'] AS ARRAY<VARCHAR(2)>)", "[ab]"},
	})
}

// TestImplicit checks which pairs convert silently: §1.4 of Flink's rules for arguments and INSERT.
func TestImplicit(t *testing.T) {
	cases := []struct {
		from, to string
		ok       bool
	}{
		{"INT", "BIGINT", true}, {"BIGINT", "INT", false}, {"INT", "STRING", false}, {"STRING", "INT", false}, {"STRING", "DATE", false},
		{"VARCHAR(3)", "CHAR(3)", false}, {"CHAR(3)", "STRING", true}, {"CHAR(5)", "CHAR(3)", true}, {"STRING", "VARCHAR(3)", true}, {"DOUBLE", "FLOAT", false},
		{"FLOAT", "DOUBLE", true}, {"DECIMAL(5,2)", "FLOAT", true}, {"BIGINT", "FLOAT", true}, {"DOUBLE", "DECIMAL(10,2)", true}, {"DECIMAL(10,2)", "DECIMAL(5,2)", true},
		{"DECIMAL(10,2)", "INT", false}, {"TIMESTAMP(3)", "DATE", true}, {"TIMESTAMP(3)", "TIME", true}, {"DATE", "TIMESTAMP(3)", false}, {"TIMESTAMP(3)", "TIMESTAMP_LTZ(3)", true},
		{"TIMESTAMP_LTZ(3)", "TIMESTAMP(9)", true}, {"BINARY(3)", "BYTES", true}, {"BYTES", "BINARY(3)", false}, {"BYTES", "STRING", false}, {"BOOLEAN", "INT", false},
		{"ARRAY<INT>", "ARRAY<BIGINT>", true}, {"ARRAY<BIGINT>", "ARRAY<INT>", false}, {"ROW<a INT, b STRING>", "ROW<x BIGINT, y STRING>", true}, {"MAP<INT, INT>", "MAP<INT, STRING>", false},
		{"INT", "SMALLINT", false}, {"INT", "INT", true},
	}
	for _, c := range cases {
		x := &Column{Name: "x", T: parseType(t, c.from)}
		to := parseType(t, c.to)
		for _, f := range []func(Expr, types.Type) (Expr, error){ImplicitCast, SinkCast} {
			e, err := f(x, to)
			if (err == nil) != c.ok {
				t.Errorf("%s to %s: %v, want ok %t", c.from, c.to, err, c.ok)
			}
			if err == nil && !e.Type().SameIgnoringNull(to) {
				t.Errorf("%s to %s gives %s", c.from, c.to, e.Type())
			}
		}
	}
}

// TestSinkKeepsLongStrings: INSERT leaves strings that are too long alone; CAST does not.
func TestSinkKeepsLongStrings(t *testing.T) {
	e, err := SinkCast(&Column{Name: "s", T: types.StringType}, types.Lengthed(types.Varchar, 3))
	if err != nil {
		t.Fatal(err)
	}
	p, err := Compile([]Expr{e}, Session{})
	if err != nil {
		t.Fatal(err)
	}
	v := batch.NewVec(types.StringType, 1)
	v.Str[0] = "abcdef"
	out, err := p.Eval(&batch.Batch{N: 1, Cols: []*batch.Vec{v}})
	if err != nil || out[0].Str[0] != "abcdef" || out[0].Type.Precision != 3 {
		t.Fatal(out, err)
	}
}

func TestCommonType(t *testing.T) {
	cases := []struct{ in, want string }{
		{"INT|BIGINT", "BIGINT"}, {"DECIMAL(2,2)|INT|BIGINT", "DECIMAL(21, 2)"}, {"FLOAT|DECIMAL(5,2)", "DOUBLE"}, {"FLOAT|BIGINT", "FLOAT"}, {"FLOAT|DOUBLE", "DOUBLE"},
		{"CHAR(3)|CHAR(3)", "CHAR(3)"}, {"CHAR(3)|CHAR(5)", "VARCHAR(5)"}, {"CHAR(3)|VARCHAR(2)", "VARCHAR(3)"}, {"BINARY(3)|BINARY(5)", "VARBINARY(5)"},
		{"INT|STRING", ""}, {"BYTES|STRING", ""}, {"BOOLEAN|INT", ""}, {"DATE|TIME", ""}, {"DATE|TIMESTAMP(3)", ""}, {"TIME|TIME(3)", "TIME(3)"},
		{"TIMESTAMP(3)|TIMESTAMP(6)", "TIMESTAMP(6)"}, {"TIMESTAMP(6)|TIMESTAMP_LTZ(3)", "TIMESTAMP_LTZ(6)"}, {"ARRAY<INT>|ARRAY<BIGINT>", "ARRAY<BIGINT>"},
		{"ROW<a INT, b INT>|ROW<c BIGINT, d INT>", "ROW<`a` BIGINT, `b` INT>"}, {"ROW<a INT>|ROW<a INT, b INT>", ""}, {"DECIMAL(38,10)|DECIMAL(38,0)", "DECIMAL(38, 0)"},
		{"MAP<INT, INT>|MAP<INT, BIGINT>", "MAP<INT, BIGINT>"},
	}
	for _, c := range cases {
		var ts []types.Type
		for _, s := range splitBar(c.in) {
			ts = append(ts, parseType(t, s))
		}
		got, err := CommonType(ts)
		if (err != nil) != (c.want == "") || err == nil && got.String() != c.want {
			t.Errorf("%s: %s, %v; want %q", c.in, got, err, c.want)
		}
	}
}

func splitBar(s string) []string {
	var out []string
	start := 0
	for i := range s {
		if s[i] == '|' {
			out = append(out, s[start:i])
			start = i + 1
		}
	}
	return append(out, s[start:])
}

func TestAggType(t *testing.T) {
	cases := []struct {
		kind      AggKind
		arg, want string
	}{
		{AggCount, "INT", "BIGINT NOT NULL"}, {AggSum, "INT", "INT"}, {AggSum, "TINYINT", "TINYINT"}, {AggSum, "DECIMAL(10,2)", "DECIMAL(38, 2)"}, {AggSum, "FLOAT", "FLOAT"},
		{AggAvg, "INT", "INT"}, {AggAvg, "DECIMAL(10,2)", "DECIMAL(38, 6)"}, {AggAvg, "DECIMAL(10,8)", "DECIMAL(38, 8)"}, {AggAvg, "DOUBLE", "DOUBLE"},
		{AggMin, "STRING", "STRING"}, {AggMax, "TIMESTAMP(3)", "TIMESTAMP(3)"}, {AggMax, "BOOLEAN", "BOOLEAN"}, {AggMax, "ARRAY<INT>", ""}, {AggSum, "STRING", ""}, {AggAvg, "DATE", ""},
	}
	for _, c := range cases {
		got, err := AggType(c.kind, parseType(t, c.arg))
		if (err != nil) != (c.want == "") || err == nil && got.String() != c.want {
			t.Errorf("%s(%s): %s, %v; want %q", c.kind, c.arg, got, err, c.want)
		}
	}
	if k, ok := LookupAgg("sum"); !ok || k != AggSum {
		t.Error("sum not found")
	}
}
