package sql

import (
	"math"
	"strconv"
	"strings"

	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// timeUnits maps every spelling of a unit to its singular.
var timeUnits = map[string]string{
	"YEAR": "YEAR", "YEARS": "YEAR", "QUARTER": "QUARTER", "QUARTERS": "QUARTER", "MONTH": "MONTH", "MONTHS": "MONTH",
	"WEEK": "WEEK", "WEEKS": "WEEK", "DAY": "DAY", "DAYS": "DAY", "HOUR": "HOUR", "HOURS": "HOUR",
	"MINUTE": "MINUTE", "MINUTES": "MINUTE", "SECOND": "SECOND", "SECONDS": "SECOND",
}

// fieldUnits are the units that EXTRACT, CEIL, FLOOR and TIMESTAMPDIFF take besides timeUnits.
var fieldUnits = wordSet(`MILLISECOND MICROSECOND NANOSECOND DOW DOY ISODOW ISOYEAR EPOCH DECADE CENTURY MILLENNIUM`)

// fieldUnit reads the unit of a function.
func (p *parser) fieldUnit() string {
	t := p.cur()
	u := timeUnits[t.up]
	if fieldUnits[t.up] {
		u = t.up
	}
	if strings.HasPrefix(t.up, "SQL_TSI_") {
		u = timeUnits[strings.TrimPrefix(t.up, "SQL_TSI_")]
	}
	if u == "" {
		p.failUnit()
	}
	p.i++
	return u
}

// unitNames are the candidates of "did you mean", in a fixed order so that ties are decided alike.
var unitNames = []string{"SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR", "MILLISECOND",
	"MICROSECOND", "NANOSECOND"}

func (p *parser) failUnit() {
	t := p.cur()
	if t.kind == tokIdent {
		if n := diag.Nearest(t.text, unitNames); n != "" && !reserved[t.up] {
			p.failHint(t.pos, "did you mean "+n+"?", "expected a time unit, found %s", t.text)
		}
	}
	p.failTok("a time unit such as SECOND, MINUTE, HOUR or DAY")
}

// qualifier is the unit range of an interval: From(lead, frac) TO To(frac). -1 is an absent precision.
type qualifier struct {
	from, to   string
	lead, frac int
	pos        diag.Pos
}

var unitOrder = map[string]int{"YEAR": 0, "QUARTER": 1, "MONTH": 1, "WEEK": 2, "DAY": 2, "HOUR": 3, "MINUTE": 4, "SECOND": 5}

func (p *parser) intervalRange() qualifier {
	q := qualifier{lead: -1, frac: -1, pos: p.pos()}
	unit := func() string {
		u := timeUnits[p.cur().up]
		if u == "" {
			p.failUnit()
		}
		p.i++
		return u
	}
	q.from = unit()
	if p.acceptOp("(") {
		q.lead = p.number("a precision", 1, 10)
		if q.from == "SECOND" && p.acceptOp(",") {
			q.frac = p.number("a fraction precision", 0, 9)
		}
		p.wantOp(")")
	}
	if !p.accept("TO") {
		return q
	}
	to := p.pos()
	q.to = unit()
	if (unitOrder[q.from] < 2) != (unitOrder[q.to] < 2) || unitOrder[q.from] >= unitOrder[q.to] ||
		q.from == "WEEK" || q.from == "QUARTER" || q.to == "QUARTER" {
		p.failHint(to, "write YEAR TO MONTH, or two units of DAY, HOUR, MINUTE, SECOND in this order", "interval cannot go from %s to %s", q.from, q.to)
	}
	if q.to == "SECOND" && p.acceptOp("(") {
		q.frac = p.number("a fraction precision", 0, 9)
		p.wantOp(")")
	}
	return q
}

// intervalType is the type of q. A week counts as DAY and a quarter as MONTH.
func (p *parser) intervalType(q qualifier) types.Type {
	from := map[string]string{"WEEK": "DAY", "QUARTER": "MONTH"}[q.from]
	if from == "" {
		from = q.from
	}
	t := types.Type{Kind: types.IntervalDayTime, Nullable: true, Precision: 2, Scale: 6, Unit: from}
	if unitOrder[q.from] < 2 {
		t.Kind, t.Scale = types.IntervalYearMonth, 0
	}
	if q.to != "" {
		t.Unit += " TO " + q.to
	}
	if q.lead >= 0 {
		t.Precision = q.lead
	}
	if q.frac >= 0 {
		t.Scale = q.frac
	}
	return t
}

// interval parses INTERVAL [+|-] 'text' unit [TO unit].
func (p *parser) interval() *Interval {
	iv := &Interval{Place: p.here()}
	p.i++
	if p.acceptOp("-") {
		iv.Negative = true
	} else {
		p.acceptOp("+")
	}
	t := p.cur()
	if t.kind != tokString {
		if t.kind == tokInt {
			p.failHint(t.pos, "write INTERVAL "+QuoteString(t.text)+" "+p.peek(1).up, "the value of an interval is a string in single quotes, found %s", t.text)
		}
		p.failTok("the value of the interval in single quotes")
	}
	p.i++
	iv.Text = t.text
	q := p.intervalRange()
	iv.From, iv.To, iv.Type = q.from, q.to, p.intervalType(q)
	iv.Value = p.intervalValue(t, q, iv.Type)
	if iv.Negative {
		iv.Value = -iv.Value
	}
	iv.Type.Nullable = false
	return iv
}

// unitSize is one unit in months or milliseconds.
var unitSize = map[string]int64{"YEAR": 12, "QUARTER": 3, "MONTH": 1, "WEEK": 7 * 86400000, "DAY": 86400000,
	"HOUR": 3600000, "MINUTE": 60000, "SECOND": 1000}

// intervalFields are the fields between two units with the separator that precedes each and the limit of a trailing one.
var intervalFields = []struct {
	unit, sep string
	limit     int64
}{{"YEAR", "", 0}, {"MONTH", "-", 11}, {"DAY", "", 0}, {"HOUR", " ", 23}, {"MINUTE", ":", 59}, {"SECOND", ":", 59}}

// intervalValue is the text of the literal t in months or milliseconds. Digits below a millisecond are lost, as in Flink.
func (p *parser) intervalValue(t *token, q qualifier, typ types.Type) int64 {
	rest := strings.TrimSpace(t.text)
	sign := int64(1)
	if s, ok := strings.CutPrefix(rest, "-"); ok {
		rest, sign = s, -1
	} else {
		rest = strings.TrimPrefix(rest, "+")
	}
	value, ok := q.leading(&rest, typ, func(digits int) {
		p.failHint(t.pos, "write "+q.from+"("+strconv.Itoa(digits)+") for the unit", "interval %s has more than %d digits before the first separator", t.text, typ.Precision)
	})
	inside := false
	for _, f := range intervalFields {
		if inside && ok {
			value, ok = addField(value, &rest, f.sep, f.unit, f.limit)
		}
		if f.unit == q.from && q.to != "" {
			inside = true
		}
		if f.unit == q.to {
			break
		}
	}
	if ok && (q.to == "SECOND" || q.from == "SECOND") {
		value, ok = addFraction(value, &rest, typ.Scale)
	}
	if !ok || rest != "" {
		p.failHint(t.pos, "write e.g. '1' DAY, '1 02:03:04.5' DAY TO SECOND, '2-3' YEAR TO MONTH", "%s is not an interval of %s", QuoteString(t.text), typ.Unit)
	}
	return sign * value
}

// leading reads the first field. tooLong is called when it has more digits than the precision.
func (q qualifier) leading(rest *string, typ types.Type, tooLong func(digits int)) (int64, bool) {
	n := digitsEnd(*rest, 0)
	v, err := strconv.ParseInt((*rest)[:n], 10, 64)
	if err != nil {
		return 0, false
	}
	if d := len(strconv.FormatInt(v, 10)); d > typ.Precision {
		tooLong(d)
	}
	*rest = (*rest)[n:]
	size := unitSize[q.from]
	if v > math.MaxInt64/size-size {
		return 0, false
	}
	return v * size, true
}

func addField(value int64, rest *string, sep, unit string, limit int64) (int64, bool) {
	s, ok := strings.CutPrefix(*rest, sep)
	n := digitsEnd(s, 0)
	if !ok || n == 0 || n > 2 {
		return 0, false
	}
	v, _ := strconv.ParseInt(s[:n], 10, 64)
	*rest = s[n:]
	return value + v*unitSize[unit], v <= limit
}

func addFraction(value int64, rest *string, scale int) (int64, bool) {
	s, ok := strings.CutPrefix(*rest, ".")
	if !ok {
		return value, true
	}
	n := digitsEnd(s, 0)
	if n > max(scale, 9) {
		return 0, false
	}
	ms, _ := strconv.ParseInt((s[:n] + "000")[:3], 10, 64)
	*rest = s[n:]
	return value + ms, n > 0
}
