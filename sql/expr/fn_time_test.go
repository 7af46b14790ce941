package expr

import (
	"testing"
	"time"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

func TestExtract(t *testing.T) {
	checkText(t, "Asia/Tokyo", [][2]string{
		{"EXTRACT(YEAR FROM DATE '2024-02-29')", "2024 :: BIGINT NOT NULL"}, {"EXTRACT(DOY FROM DATE '2024-12-31')", "366"}, {"EXTRACT(WEEK FROM DATE '1996-11-10')", "45"},
		{"EXTRACT(ISOYEAR FROM DATE '2006-01-01')", "2005"}, {"EXTRACT(WEEK FROM DATE '2021-01-03')", "53"}, {"EXTRACT(DOW FROM DATE '2021-02-28')", "1"}, {"EXTRACT(ISODOW FROM DATE '2021-02-28')", "7"},
		{"EXTRACT(DECADE FROM DATE '1996-11-10')", "199"}, {"EXTRACT(CENTURY FROM DATE '2000-01-01')", "20"}, {"EXTRACT(MILLENNIUM FROM DATE '2001-01-01')", "3"},
		{"EXTRACT(EPOCH FROM DATE '1970-01-02')", "86400"}, {"EXTRACT(QUARTER FROM DATE '2024-05-01')", "2"},
		{"EXTRACT(NANOSECOND FROM TIMESTAMP '2000-01-01 00:00:00.123456789')", "123456789"}, {"EXTRACT(MILLISECOND FROM TIMESTAMP '2000-01-01 00:00:00.1239')", "123"},
		{"EXTRACT(DAY FROM TIMESTAMP '1969-12-31 12:00:00')", "31"}, {"EXTRACT(HOUR FROM TIMESTAMP '1969-12-31 12:00:00.5')", "12"},
		{"EXTRACT(HOUR FROM TIME '13:14:15')", "13"}, {"EXTRACT(YEAR FROM TIME '13:14:15')", "plan:a TIME has no YEAR"}, {"EXTRACT(NANOSECOND FROM DATE '2000-01-01')", "plan:a DATE has no"},
		{"EXTRACT(HOUR FROM TO_TIMESTAMP_LTZ(0, 0))", "9"}, {"EXTRACT(EPOCH FROM TO_TIMESTAMP_LTZ(0, 0))", "0"}, {"EXTRACT(DAY FROM CAST(NULL AS DATE))", "NULL"},
		{"EXTRACT(DAY FROM INTERVAL '9' DAY + INTERVAL '10' HOUR)", "9"}, {"EXTRACT(HOUR FROM INTERVAL '9' DAY + INTERVAL '10' HOUR)", "10"}, {"EXTRACT(MONTH FROM INTERVAL '2-10' YEAR)", "10"}, {"EXTRACT(YEAR FROM INTERVAL '2-10' YEAR)", "2"},
		{"YEAR(DATE '2024-02-29')", "2024"}, {"DAYOFWEEK(DATE '2021-02-28')", "1"}, {"DAYOFMONTH(DATE '2024-02-29')", "29"}, {"DAYOFYEAR(DATE '2024-02-29')", "60"}, {"MINUTE(TIME '13:14:15')", "14"},
		{"SECOND(TIME '13:14:15')", "15"}, {"QUARTER(DATE '2024-12-01')", "4"}, {"MONTH(DATE '2024-12-01')", "12"}, {"WEEK(DATE '2024-01-01')", "1"}, {"HOUR('x')", "plan:HOUR cannot be called"},
	})
}

func TestFloorTime(t *testing.T) {
	checkText(t, "Europe/Berlin", [][2]string{
		{"FLOOR(DATE '2021-03-01' TO WEEK)", "2021-02-28 :: DATE NOT NULL"}, {"CEIL(DATE '2021-02-27' TO DAY)", "2021-02-28"}, {"CEIL(DATE '2021-02-28' TO WEEK)", "2021-02-28"},
		{"CEIL(TIMESTAMP '2018-03-01 21:00:01' TO MONTH)", "2018-03-01 00:00:00"}, {"CEIL(TIMESTAMP '2018-03-02 00:00:00' TO MONTH)", "2018-04-01 00:00:00"},
		{"CEIL(DATE '2018-04-01' TO QUARTER)", "2018-07-01"}, {"CEIL(DATE '2018-01-01' TO QUARTER)", "2018-01-01"}, {"FLOOR(DATE '2018-06-30' TO QUARTER)", "2018-04-01"},
		{"FLOOR(DATE '2018-01-09' TO MILLENNIUM)", "2001-01-01"}, {"FLOOR(DATE '2018-01-09' TO CENTURY)", "2001-01-01"}, {"CEIL(DATE '2018-01-09' TO DECADE)", "2020-01-01"}, {"FLOOR(DATE '2000-05-05' TO CENTURY)", "1901-01-01"},
		{"CEIL(DATE '2020-01-01' TO YEAR)", "2020-01-01"}, {"CEIL(DATE '2020-01-02' TO YEAR)", "2021-01-01"}, {"FLOOR(DATE '2020-02-29' TO HOUR)", "2020-02-29"},
		{"CEIL(TIMESTAMP '2020-02-29 23:59:59.999999' TO MILLISECOND)", "2020-03-01 00:00:00.000000"}, {"FLOOR(TIMESTAMP '1969-12-31 23:59:59.5' TO HOUR)", "1969-12-31 23:00:00.0"},
		{"CEIL(TIME '11:22:33' TO HOUR)", "12:00:00"}, {"FLOOR(TIME '11:22:33' TO DAY)", "plan:a TIME has no DAY"}, {"FLOOR(DATE '2020-01-01' TO DOW)", "plan:cannot be rounded"},
		// The day of Berlin's summer time change has 23 hours.
		{"FLOOR(TO_TIMESTAMP_LTZ('2021-03-28 05:00:00') TO DAY)", "2021-03-28 00:00:00.000"}, {"CEIL(TO_TIMESTAMP_LTZ('2021-03-28 05:00:00') TO DAY)", "2021-03-29 00:00:00.000"},
		{"FLOOR(CAST(NULL AS TIMESTAMP) TO DAY)", "NULL"},
	})
}

func TestTimestampAddDiff(t *testing.T) {
	checkText(t, "UTC", [][2]string{
		{"TIMESTAMPADD(MONTH, 1, DATE '2016-05-31')", "2016-06-30"}, {"TIMESTAMPADD(HOUR, -1, DATE '2016-06-15')", "2016-06-14 23:00:00.000000"}, {"TIMESTAMPADD(QUARTER, 1, DATE '2017-11-29')", "2018-02-28"},
		{"TIMESTAMPADD(YEAR, 1, DATE '2020-02-29')", "2021-02-28"}, {"TIMESTAMPADD(SECOND, 1, TIME '23:59:59')", "00:00:00"}, {"TIMESTAMPADD(MONTH, 1, TIME '23:59:59')", "23:59:59"},
		{"TIMESTAMPADD(WEEK, CAST(2 AS BIGINT), TIMESTAMP '2020-01-01 01:02:03.4')", "2020-01-15 01:02:03.4"}, {"TIMESTAMPADD(MILLISECOND, -1, TIMESTAMP '2020-01-01 00:00:00.0000')", "2019-12-31 23:59:59.9990"},
		{"TIMESTAMPADD(DAY, CAST(NULL AS INT), DATE '2020-01-01')", "NULL"}, {"TIMESTAMPADD(DAY, 1, 'x')", "plan:TIMESTAMPADD cannot be called"},
		{"TIMESTAMPDIFF(MONTH, TIMESTAMP '2016-06-15 11:00:00', TIMESTAMP '2018-05-19 11:00:00')", "23"}, {"TIMESTAMPDIFF(MONTH, DATE '2019-09-01', DATE '2016-08-01')", "-37"},
		{"TIMESTAMPDIFF(MONTH, DATE '2020-01-31', DATE '2020-02-29')", "1"}, {"TIMESTAMPDIFF(YEAR, DATE '2020-02-29', DATE '2021-02-28')", "1"}, {"TIMESTAMPDIFF(WEEK, DATE '2016-08-15', DATE '2016-06-18')", "-8"},
		{"TIMESTAMPDIFF(DAY, TIMESTAMP '2016-06-15 11:00:00', DATE '2016-06-19')", "3"}, {"TIMESTAMPDIFF(MONTH, TIMESTAMP '2021-01-04 00:00:00', TIME '00:00:00')", "-612"},
		{"TIMESTAMPDIFF(SECOND, TIMESTAMP '2020-01-01 00:00:00.5', TIMESTAMP '2020-01-01 00:00:01.4')", "0"}, {"TIMESTAMPDIFF(DAY, DATE '2020-01-01', TO_TIMESTAMP_LTZ(0, 3))", "plan:TIMESTAMP_LTZ is compared with DATE"},
		{"TIMESTAMPDIFF(MONTH, TIMESTAMP '2020-01-15 10:00:00', TIMESTAMP '2020-02-15 09:59:59')", "0"},
	})
}

func TestDateFormat(t *testing.T) {
	checkText(t, "Asia/Tokyo", [][2]string{
		{"DATE_FORMAT(TIMESTAMP '2024-02-29 13:04:05.1234567', 'yyyy-MM-dd HH:mm:ss.SSSSSSS')", "2024-02-29 13:04:05.1234567"}, {"DATE_FORMAT(TIMESTAMP '2024-02-29 13:04:05', 'yy/M/d h:m:s a')", "24/2/29 1:4:5 PM"},
		{"DATE_FORMAT(TIMESTAMP '2024-02-29 00:04:05', 'E EEEE MMM MMMM MMMMM Q QQQ D k K')", "Thu Thursday Feb February F 1 Q1 60 24 0"}, {"DATE_FORMAT(TIMESTAMP '2024-02-29 00:00:00', 'yyyy''T''''Z''')", "2024T'Z"},
		{"DATE_FORMAT(TIMESTAMP '2024-01-01 00:00:00', 'YYYY w e')", "2024 1 2"}, {"DATE_FORMAT(TIMESTAMP '2024-12-29 00:00:00', 'YYYY-ww')", "2025-01"}, {"DATE_FORMAT(TIMESTAMP '2024-02-29 00:00:00', '')", ""},
		{"DATE_FORMAT(TIMESTAMP '2024-02-29 00:00:00', 'yyyy''x')", "plan:is no date and time pattern"}, {"DATE_FORMAT(TIMESTAMP '2024-02-29 00:00:00', 'bbb')", "plan:is no date and time pattern"}, {"DATE_FORMAT(TIMESTAMP '2024-02-29 00:00:00', 'HH XXX')", "error:time zone"},
		{"DATE_FORMAT('2024-2-30 25:00:00', 'yyyy-MM-dd HH S')", "2024-03-02 01 0"}, {"DATE_FORMAT('bad', 'yyyy')", "NULL"}, {"DATE_FORMAT(CAST(NULL AS TIMESTAMP), 'yyyy')", "NULL"},
		{"DATE_FORMAT(TO_TIMESTAMP_LTZ(0, 3), 'yyyy-MM-dd HH')", "1970-01-01 09"}, {"DATE_FORMAT(DATE '2024-02-29', 'dd.MM.')", "29.02."}, {"DATE_FORMAT(1, 'yyyy')", "plan:DATE_FORMAT cannot be called"},
		{"FROM_UNIXTIME(44)", "1970-01-01 09:00:44"}, {"FROM_UNIXTIME(44, 'yyyy/MM/dd')", "1970/01/01"}, {"FROM_UNIXTIME(-1)", "1970-01-01 08:59:59"},
		{"UNIX_TIMESTAMP('1970-01-01 09:00:44')", "44"}, {"UNIX_TIMESTAMP('bad')", "-9223372036854775808"}, {"UNIX_TIMESTAMP('1970/01/01 00:00:01 +0000', 'yyyy/MM/dd HH:mm:ss X')", "1"},
		{"UNIX_TIMESTAMP('1970-01-01 09:00:44.9', 'yyyy-MM-dd HH:mm:ss')", "44"}, {"UNIX_TIMESTAMP('1970-01-01')", "-9223372036854775808"}, {"UNIX_TIMESTAMP('19700102', 'yyyyMMdd')", "54000"},
		{"CONVERT_TZ('1970-01-01 00:00:00', 'UTC', 'America/Los_Angeles')", "1969-12-31 16:00:00"}, {"CONVERT_TZ('2021-03-28 02:30:00', 'Europe/Berlin', 'UTC')", "2021-03-28 01:30:00"},
		{"CONVERT_TZ('x', 'UTC', 'GMT-08:00')", "NULL"}, {"CONVERT_TZ('1970-01-01 00:00:00', 'UTC', 'GMT-8')", "1969-12-31 16:00:00"}, {"CONVERT_TZ('1970-01-01 00:00:00', 'UTC', 'Mars')", "plan:unknown time zone"},
	})
	checkText(t, "MET", [][2]string{{"UNIX_TIMESTAMP('2005-03-27 02:00:00')", "1111885200"}, {"UNIX_TIMESTAMP('2005-03-27 03:00:00')", "1111885200"}})
}

func TestToTimestamp(t *testing.T) {
	checkText(t, "Asia/Tokyo", [][2]string{
		{"TO_DATE('2021-09-27')", "2021-09-27 :: DATE"}, {"TO_DATE('2021-02-30')", "NULL"}, {"TO_DATE('x')", "NULL"}, {"TO_DATE('27.9.2021', 'dd.MM.yyyy')", "2021-09-27"}, {"TO_DATE('30.2.2021', 'dd.MM.yyyy')", "2021-03-02"},
		{"TO_DATE('x', 'dd.MM.yyyy')", "NULL"}, {"TO_DATE('')", "NULL"},
		{"TO_TIMESTAMP('1970-01-01 00:00:00.123456789')", "1970-01-01 00:00:00.123 :: TIMESTAMP(3)"}, {"TO_TIMESTAMP('2021-09-27T12:00:00')", "NULL"}, {"TO_TIMESTAMP('2000020210', 'yyyyMMddHH')", "2000-02-02 10:00:00.000"},
		{"TO_TIMESTAMP('1234567', 'SSSSSSS')", "1970-01-01 00:00:00.123"}, {"TO_TIMESTAMP('2017-09-15 00:00:00.12345', 'yyyy-MM-dd HH:mm:ss.SSS')", "2017-09-15 00:00:00.123"},
		{"TO_TIMESTAMP('2021-02-30', 'yyyy-MM-dd')", "2021-02-28 00:00:00.000"}, {"TO_TIMESTAMP('13/2021', 'MM/yyyy')", "NULL"}, {"TO_TIMESTAMP('12:05 PM', 'hh:mm a')", "1970-01-01 12:05:00.000"},
		{"TO_TIMESTAMP('2024-060', 'yyyy-DDD')", "2024-02-29 00:00:00.000"}, {"TO_TIMESTAMP('Feb 3, 2024', 'MMM d, yyyy')", "2024-02-03 00:00:00.000"}, {"TO_TIMESTAMP('2024-01-01 10', 'yyyy-MM-dd[ HH][:mm]')", "2024-01-01 10:00:00.000"},
		{"TO_TIMESTAMP('2024-01-01', 'yyyy-MM-dd[ HH]')", "2024-01-01 00:00:00.000"}, {"TO_TIMESTAMP('2024-01-01 x', 'yyyy-MM-dd')", "NULL"}, {"TO_TIMESTAMP('20240101123045123', 'yyyyMMddHHmmssSSS')", "2024-01-01 12:30:45.123"},
		{"TO_TIMESTAMP_LTZ(100)", "1970-01-01 09:00:00.100 :: TIMESTAMP_LTZ(3)"}, {"TO_TIMESTAMP_LTZ(-100, 0)", "1970-01-01 08:58:20.000"}, {"TO_TIMESTAMP_LTZ(253402300800000, 3)", "NULL"},
		{"TO_TIMESTAMP_LTZ(1234567, 6)", "1970-01-01 09:00:01.234567 :: TIMESTAMP_LTZ(6)"}, {"TO_TIMESTAMP_LTZ(1, 10)", "plan:precision 10"}, {"TO_TIMESTAMP_LTZ(0.01, 3)", "1970-01-01 09:00:00.000"},
		{"TO_TIMESTAMP_LTZ(CAST('100.01' AS DOUBLE), 0)", "1970-01-01 09:01:40.010"}, {"TO_TIMESTAMP_LTZ(CAST('NaN' AS DOUBLE), 0)", "NULL"}, {"TO_TIMESTAMP_LTZ(-1.5e0, 0)", "1970-01-01 08:59:58.500"},
		{"TO_TIMESTAMP_LTZ('2023-01-01 00:00:00')", "2023-01-01 09:00:00.000"}, {"TO_TIMESTAMP_LTZ('2023-01-01 00:00:00', 'yyyy-MM-dd HH:mm:ss', 'Asia/Tokyo')", "2023-01-01 00:00:00.000"},
		{"TO_TIMESTAMP_LTZ('x')", "NULL"}, {"TO_TIMESTAMP_LTZ('x', 'yyyy', 'UTC')", "NULL"}, {"TO_TIMESTAMP_LTZ('2023', 'yyyy', 'Mars')", "plan:unknown time zone"}, {"TO_TIMESTAMP_LTZ(TRUE)", "plan:TO_TIMESTAMP_LTZ cannot be called"},
	})
}

func TestNowFunctions(t *testing.T) {
	now := time.Date(2024, 2, 29, 23, 30, 1, 5e6, time.UTC)
	zone := time.FixedZone("", 3600)
	s := Session{Zone: zone, Now: now}
	for text, want := range map[string]string{
		"CURRENT_TIMESTAMP()": "2024-03-01 00:30:01.005", "NOW()": "2024-03-01 00:30:01.005", "CURRENT_DATE()": "2024-03-01",
		"CURRENT_TIME()": "00:30:01", "LOCALTIME()": "00:30:01", "LOCALTIMESTAMP()": "2024-03-01 00:30:01.005", "UNIX_TIMESTAMP()": "1709249401",
	} {
		p, err := Compile([]Expr{mustParse(t, text, nil)}, s)
		if err != nil {
			t.Fatal(err)
		}
		v, err := p.Eval(&batch.Batch{N: 2})
		if err != nil {
			t.Fatal(err)
		}
		if got := Text(v[0].Datum(1), v[0].Type, s); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
	e := mustParse(t, "CURRENT_ROW_TIMESTAMP() IS NOT NULL AND PROCTIME() IS NOT NULL", nil)
	if e.Type().Nullable || IsConstant(e) {
		t.Errorf("%s of type %s is constant", e, e.Type())
	}
	if f, _ := Fold(mustParse(t, "NOW()", nil), s); !f.Type().Equal(types.TimestampOf(types.TimestampLTZ, 3).NotNull()) {
		t.Errorf("NOW() is of type %s", f.Type())
	} else if _, folded := f.(*Literal); folded {
		t.Error("NOW() was folded")
	}
}

// FuzzTimePattern: no pattern and no text makes the parsers panic.
func FuzzTimePattern(f *testing.F) {
	for _, s := range []string{"yyyy-MM-dd HH:mm:ss.SSS", "yyyyMMddHH[mm][ss]", "'a''b'E MMM", "YYYY-ww-e", "[[[", "D k K h a z Z X", "uuuu"} {
		f.Add(s, "2024-02-29 12:00:00.5")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		for _, simple := range []bool{false, true} {
			p, err := compilePattern(pattern, simple)
			if err != nil {
				continue
			}
			p.parseModern(text)
			p.parseLenient(text, time.UTC)
			p.format(nil, 1709249401, 5, time.UTC)
		}
		parseSQLTimestamp(text)
		loadZone(text)
	})
}

// The text of the last time is used again only where it is the same. Oracle: every time formatted alone.
func TestFormattedAgain(t *testing.T) {
	used := 0
	for _, src := range []string{"yyyy-MM-dd", "HH:mm", "yyyy w e a", "mm:ss", "HH[:mm]", "k K h H", "D Q E u G", "SSS", "''", "HH:mm:ss.n"} {
		p, err := compilePattern(src, false)
		if err != nil {
			t.Fatal(err)
		}
		var f formatted
		for _, step := range []int64{1, 7, 59, 61, 3599, 40_000, -86_399} {
			for i := range int64(200) {
				sec := step*i - 100_000
				want, _ := p.format(nil, sec, 5_000_000, time.UTC)
				if us := sec * 1e6; f.holds(p, sec) != f.holdsMicros(p, us) || f.holds(p, sec) != f.holdsMicros(p, us+999_999) {
					t.Fatalf("%s at %d: holds %v", src, sec, f.holds(p, sec))
				}
				if f.holds(p, sec) {
					used++
					if f.text != string(want) {
						t.Fatalf("%s at %d: %s, want %s", src, sec, f.text, want)
					}
				}
				f.keep(p, sec, string(want))
			}
		}
	}
	if used < 1000 {
		t.Errorf("used %d times", used)
	}
}
