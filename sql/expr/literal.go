package expr

import (
	"encoding/hex"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// NewNullLiteral is NULL without a type; the constructors give it one.
func NewNullLiteral() *Literal {
	return &Literal{Value: types.NullDatum, T: types.Type{Kind: types.Null, Nullable: true}}
}

// NewBoolLiteral is TRUE or FALSE.
func NewBoolLiteral(v bool) *Literal {
	return &Literal{Value: types.BoolDatum(v), T: types.BoolType.NotNull()}
}

// NewIntLiteral is a literal of digits: INT, BIGINT or DECIMAL(n,0), the first that holds it.
func NewIntLiteral(text string) (Expr, error) {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		digits := len(strings.TrimLeft(text, "0"))
		d, ok := types.ParseDecimal(text, types.MaxDecimalPrecision, 0)
		if !ok || digits > types.MaxDecimalPrecision {
			return nil, badLiteral("number", text, "numbers have at most 38 digits")
		}
		return decimalLiteral(d, digits, 0), nil
	}
	t := types.IntType
	if int64(int32(v)) != v {
		t = types.BigIntType
	}
	return &Literal{Value: types.IntDatum(v), T: t.NotNull()}, nil
}

// NewDecimalLiteral is a literal with a decimal point: DECIMAL(p,s) with p and s as written.
func NewDecimalLiteral(text string) (Expr, error) {
	whole, frac, _ := strings.Cut(text, ".")
	if frac == "" {
		return NewIntLiteral(whole)
	}
	p, s := len(whole)+len(frac), len(frac)
	if p > types.MaxDecimalPrecision {
		p = max(len(strings.TrimLeft(whole, "0"))+s, s)
	}
	if p > types.MaxDecimalPrecision {
		return nil, badLiteral("number", text, "numbers have at most 38 digits")
	}
	v, ok := types.ParseDecimal(text, p, s)
	if !ok {
		return nil, badLiteral("number", text, "")
	}
	return decimalLiteral(v, p, s), nil
}

func decimalLiteral(v types.Int128, p, s int) *Literal {
	return &Literal{Value: decimalDatum(v, p), T: types.DecimalOf(p, s).NotNull()}
}

// decimalDatum stores an unscaled value as DECIMAL(p,…) does.
func decimalDatum(v types.Int128, p int) types.Datum {
	if p <= 18 {
		return types.IntDatum(v.Int64())
	}
	return types.I128Datum(v)
}

// NewApproxLiteral is a literal with an exponent: DOUBLE.
func NewApproxLiteral(text string) (Expr, error) {
	v, ok := types.ParseFloat(text, 64)
	if !ok {
		return nil, badLiteral("number", text, "")
	}
	return &Literal{Value: types.FloatDatum(v), T: types.DoubleType.NotNull()}, nil
}

// NewStringLiteral is 'text': CHAR(n) with n in code points.
func NewStringLiteral(text string) *Literal {
	return &Literal{Value: types.StrDatum(text), T: types.Lengthed(types.Char, utf8.RuneCountInString(text)).NotNull()}
}

// NewBinaryLiteral is X'digits': BINARY(n).
func NewBinaryLiteral(digits string) (Expr, error) {
	b, err := hex.DecodeString(digits)
	if err != nil {
		return nil, badLiteral("binary", digits, "it needs an even number of hexadecimal digits")
	}
	return &Literal{Value: types.StrDatum(string(b)), T: types.Lengthed(types.Binary, len(b)).NotNull()}, nil
}

// NewDateLiteral is DATE 'yyyy-MM-dd'.
func NewDateLiteral(text string) (Expr, error) {
	v, ok := types.ParseDate(text)
	if !ok || strings.Count(text, "-") != 2 || strings.Contains(text, " ") {
		return nil, badLiteral("DATE", text, "write DATE 'yyyy-MM-dd' with a day of the calendar")
	}
	return &Literal{Value: types.IntDatum(v), T: types.DateType.NotNull()}, nil
}

// NewTimeLiteral is TIME 'HH:mm:ss[.f]': TIME(p) with p the digits of the fraction, of which three count.
func NewTimeLiteral(text string) (Expr, error) {
	whole, frac, _ := strings.Cut(text, ".")
	v, ok := types.ParseTime(whole)
	if f, fok := types.ParseTime("0:0:0." + (frac + "000")[:3]); fok {
		v += f
	} else {
		ok = false
	}
	if !ok || strings.Count(text, ":") != 2 || len(frac) > 9 {
		return nil, badLiteral("TIME", text, "write TIME 'HH:mm:ss' or TIME 'HH:mm:ss.SSS'")
	}
	t := types.Of(types.Time)
	t.Precision = len(frac)
	return &Literal{Value: types.IntDatum(v), T: t.NotNull()}, nil
}

// NewTimestampLiteral is TIMESTAMP 'yyyy-MM-dd HH:mm:ss[.f]': TIMESTAMP(p) with p the digits of the fraction.
func NewTimestampLiteral(text string) (Expr, error) {
	date, clock, timed := strings.Cut(text, " ")
	if !timed {
		clock, text = "00:00:00", text+" 00:00:00"
	}
	_, frac, _ := strings.Cut(clock, ".")
	_, dateOK := types.ParseDate(date)
	sec, nanos, ok := types.ParseTimestamp(text)
	if !ok || !dateOK || clock == "" || strings.HasPrefix(clock, "24") {
		return nil, badLiteral("TIMESTAMP", text, "write TIMESTAMP 'yyyy-MM-dd HH:mm:ss[.fraction]' with a day of the calendar")
	}
	p := len(frac)
	return &Literal{Value: types.JoinTimestamp(sec, nanos, p), T: types.TimestampOf(types.Timestamp, p).NotNull()}, nil
}

// NewIntervalLiteral is an interval of type t: v months or milliseconds.
func NewIntervalLiteral(t types.Type, v int64) *Literal {
	return &Literal{Value: types.IntDatum(v), T: t.NotNull()}
}

func badLiteral(kind, text, hint string) error {
	err := diag.New(diag.Semantic, diag.Pos{}, "invalid %s literal '%s'", kind, text)
	if hint != "" {
		err.WithHint("%s", hint)
	}
	return err
}

// Text is d, a value of type t, as CAST(d AS STRING) renders it in the session's time zone.
func Text(d types.Datum, t types.Type, s Session) string {
	return string(types.AppendText(nil, d, t, s.zone()))
}

func (s Session) zone() *time.Location {
	if s.Zone == nil {
		return time.UTC
	}
	return s.Zone
}

// intervalSQL is n units as an interval literal, in the largest unit that holds it whole: how many of the unit before make
// the next one stands in front of its name.
func intervalSQL(n int64, unit string, larger ...any) string {
	for i := 0; i+1 < len(larger) && n != 0 && n%int64(larger[i].(int)) == 0; i += 2 {
		n /= int64(larger[i].(int))
		unit = larger[i+1].(string)
	}
	return "INTERVAL '" + strconv.FormatInt(n, 10) + "' " + unit
}

// literalSQL prints a literal as SQL.
func literalSQL(l *Literal) string {
	if l.Value.IsNull {
		if l.T.Kind == types.Null {
			return "NULL"
		}
		return "CAST(NULL AS " + l.T.WithNull(true).String() + ")"
	}
	text := string(types.AppendDisplay(nil, l.Value, l.T, time.UTC))
	switch l.T.Kind {
	case types.Char, types.Varchar:
		return "'" + strings.ReplaceAll(text, "'", "''") + "'"
	case types.Date, types.Time, types.Timestamp:
		return l.T.Kind.String() + " '" + text + "'"
	case types.TimestampLTZ:
		return "TIMESTAMP_LTZ '" + text + " UTC'"
	case types.IntervalYearMonth:
		return intervalSQL(l.Value.I64, "MONTH", 12, "YEAR")
	case types.IntervalDayTime:
		if l.Value.I64%1000 == 0 {
			return intervalSQL(l.Value.I64/1000, "SECOND", 60, "MINUTE", 60, "HOUR", 24, "DAY")
		}
		return "INTERVAL '" + strings.TrimPrefix(text, "+") + "' DAY TO SECOND"
	}
	return text
}
