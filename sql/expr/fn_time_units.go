package expr

import (
	"slices"
	"strings"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// EXTRACT, FLOOR and CEIL TO a unit, TIMESTAMPADD and TIMESTAMPDIFF.
func timeUnitFuncs() []*Func {
	temporal := func(name, usage, doc string, bind func(*CallSite) (Bound, error), aliases ...string) *Func {
		return &Func{Name: name, Aliases: aliases, Category: "temporal", Usage: usage, Doc: doc, Bind: bind}
	}
	out := []*Func{
		temporal("EXTRACT", "EXTRACT(unit FROM time)",
			"A field of a DATE, TIME, TIMESTAMP, TIMESTAMP_LTZ or interval: YEAR, QUARTER, MONTH, WEEK (ISO), DAY, DOW (1 is Sunday), ISODOW (1 is Monday), DOY, ISOYEAR, DECADE, CENTURY, MILLENNIUM, EPOCH, HOUR, MINUTE, SECOND, MILLISECOND, MICROSECOND, NANOSECOND.",
			func(c *CallSite) (Bound, error) { return bindExtract(c, "EXTRACT(unit FROM time)", c.Options.Unit) }),
		temporal("TIMESTAMPADD", "TIMESTAMPADD(unit, n, time)",
			"time plus n units; a month's last day stays within the month. A DATE plus hours or less is a TIMESTAMP.", bindTimestampAdd),
		temporal("TIMESTAMPDIFF", "TIMESTAMPDIFF(unit, from, to)", "The number of complete units between two times, an INT.", bindTimestampDiff),
		temporal("FLOOR", "FLOOR(number) or FLOOR(time TO unit)",
			"The greatest integer not above a number, or the start of the unit a time lies in; weeks start on Sunday.", bindFloor(true)),
		temporal("CEIL", "CEIL(number) or CEIL(time TO unit)",
			"The smallest integer not below a number, or the start of the next unit of a time.", bindFloor(false), "CEILING"),
	}
	for _, f := range []struct{ name, unit, doc string }{
		{"YEAR", "YEAR", "The year."}, {"QUARTER", "QUARTER", "The quarter, 1 to 4."}, {"MONTH", "MONTH", "The month, 1 to 12."},
		{"WEEK", "WEEK", "The ISO week, 1 to 53."}, {"DAYOFYEAR", "DOY", "The day of the year, 1 to 366."},
		{"DAYOFMONTH", "DAY", "The day of the month."}, {"DAYOFWEEK", "DOW", "The day of the week, 1 is Sunday."},
		{"HOUR", "HOUR", "The hour, 0 to 23."}, {"MINUTE", "MINUTE", "The minute."}, {"SECOND", "SECOND", "The second."},
	} {
		usage, unit := f.name+"(time)", f.unit
		out = append(out, temporal(f.name, usage, f.doc, func(c *CallSite) (Bound, error) { return bindExtract(c, usage, unit) }))
	}
	return out
}

// localTime reads argument i as seconds of the local clock since 1970-01-01 and nanoseconds of the second.
func localTime(t types.Type, s Session, i int) func(x row) (sec, nanos int64) {
	zone := s.zone()
	switch {
	case t.Kind == types.Date:
		return func(x row) (int64, int64) { return x.i64(i) * 86400, 0 }
	case t.Kind == types.Time:
		return func(x row) (int64, int64) { return x.i64(i) / 1000, x.i64(i) % 1000 * 1e6 }
	case t.Precision > 6:
		return func(x row) (int64, int64) {
			sec, nanos := types.SplitNanos(x.args[i].I128[x.args[i].Idx(x.r)])
			if t.Kind == types.TimestampLTZ {
				sec = types.InstantToLocal(sec, zone)
			}
			return sec, nanos
		}
	}
	return func(x row) (int64, int64) {
		us := x.i64(i)
		sec := types.FloorDiv(us, 1e6)
		nanos := (us - sec*1e6) * 1000
		if t.Kind == types.TimestampLTZ {
			sec = types.InstantToLocal(sec, zone)
		}
		return sec, nanos
	}
}

// storeTime writes local seconds and nanoseconds as a value of type t.
func storeTime(out *batch.Vec, r int32, sec, nanos int64, s Session) {
	t := out.Type
	switch {
	case t.Kind == types.Date:
		out.I64[r] = types.FloorDiv(sec, 86400)
		return
	case t.Kind == types.Time:
		out.I64[r] = truncTime(types.FloorMod(sec, 86400)*1000+nanos/1e6, t.Precision)
		return
	case t.Kind == types.TimestampLTZ:
		sec = types.LocalToInstant(sec, s.zone())
	}
	d := types.JoinTimestamp(sec, nanos, t.Precision)
	if t.Phys() == types.PhysI128 {
		out.I128[r] = d.I128()
	} else {
		out.I64[r] = d.I64
	}
}

var (
	clockUnits = []string{"HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND", "NANOSECOND"}
	dateUnits  = []string{"YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DOW", "ISODOW", "DOY", "ISOYEAR", "DECADE", "CENTURY", "MILLENNIUM"}
)

func bindExtract(c *CallSite, usage, unit string) (Bound, error) {
	if len(c.Args) == 1 && c.Args[0].Type().Kind == types.Null {
		return Bound{Rewrite: &Literal{Value: types.NullDatum, T: types.BigIntType}}, nil
	}
	if len(c.Args) != 1 || unit == "" {
		return Bound{}, wrongArgs(c, usage)
	}
	t := c.Args[0].Type()
	if t.IsInterval() {
		return bindExtractInterval(c, usage, unit)
	}
	if !isTemporal(t) {
		return Bound{}, wrongArgs(c, usage)
	}
	switch {
	case t.Kind == types.Time && slices.Contains(dateUnits, unit),
		t.Kind == types.Date && slices.Contains([]string{"MILLISECOND", "MICROSECOND", "NANOSECOND"}, unit):
		return Bound{}, badCall(c, "a %s has no %s", t.Kind, unit)
	}
	return fn(usage, spec{params: "x", ret: types.BigIntType, eval: func(b *site) func(Session) Eval {
		return func(s Session) Eval { return extractEval(unit, t, s) }
	}})(c)
}

func extractEval(unit string, t types.Type, s Session) Eval {
	at := localTime(t, s, 0)
	instant := at
	if t.Kind == types.TimestampLTZ { // EPOCH counts from the instant
		instant = localTime(types.TimestampOf(types.Timestamp, t.Precision), s, 0)
	}
	if unit == "EPOCH" {
		return perRow(vecI64, func(x row) (int64, *diag.Error) {
			sec, _ := instant(x)
			return sec, nil
		})
	}
	field := fieldOf(unit)
	return perRow(vecI64, func(x row) (int64, *diag.Error) {
		sec, nanos := at(x)
		return field(sec, nanos), nil
	})
}

func hourOf(sec int64) int64   { return types.FloorMod(sec, 86400) / 3600 }
func minuteOf(sec int64) int64 { return types.FloorMod(sec, 3600) / 60 }
func secondOf(sec int64) int64 { return types.FloorMod(sec, 60) }

// fieldOf is the function that takes a field from a local time.
func fieldOf(unit string) func(sec, nanos int64) int64 {
	switch unit {
	case "HOUR":
		return func(sec, _ int64) int64 { return hourOf(sec) }
	case "MINUTE":
		return func(sec, _ int64) int64 { return minuteOf(sec) }
	case "SECOND":
		return func(sec, _ int64) int64 { return secondOf(sec) }
	case "MILLISECOND":
		return func(_, nanos int64) int64 { return nanos / 1e6 }
	case "MICROSECOND":
		return func(_, nanos int64) int64 { return nanos / 1e3 }
	case "NANOSECOND":
		return func(_, nanos int64) int64 { return nanos }
	}
	return func(sec, _ int64) int64 { return dateField(unit, types.FloorDiv(sec, 86400)) }
}

func dateField(unit string, days int64) int64 {
	switch unit {
	case "DOW":
		return types.FloorMod(days+4, 7) + 1
	case "ISODOW":
		return isoWeekday(days)
	case "WEEK":
		_, w := isoWeek(days)
		return w
	case "ISOYEAR":
		y, _ := isoWeek(days)
		return y
	}
	year, m, d := types.CivilFromDays(days)
	y := int64(year)
	switch unit {
	case "YEAR":
		return y
	case "QUARTER":
		return int64(m-1)/3 + 1
	case "MONTH":
		return int64(m)
	case "DAY":
		return int64(d)
	case "DOY":
		return days - types.DaysFromCivil(year, 1, 1) + 1
	case "DECADE":
		return types.FloorDiv(y, 10)
	case "CENTURY":
		return types.FloorDiv(y+99, 100)
	case "MILLENNIUM":
		return types.FloorDiv(y+999, 1000)
	}
	return 0
}

func isoWeekday(days int64) int64 { return types.FloorMod(days+3, 7) + 1 }

// isoWeek is the ISO year and week: those of the Thursday of the same week.
func isoWeek(days int64) (year, week int64) {
	thursday := days - isoWeekday(days) + 4
	y, _, _ := types.CivilFromDays(thursday)
	return int64(y), (thursday-types.DaysFromCivil(y, 1, 1))/7 + 1
}

func bindExtractInterval(c *CallSite, usage, unit string) (Bound, error) {
	months := c.Args[0].Type().Kind == types.IntervalYearMonth
	units := map[string][2]int64{"DAY": {dayMillis, 1 << 62}, "HOUR": {3600000, 24}, "MINUTE": {60000, 60}, "SECOND": {1000, 60},
		"MILLISECOND": {1, 1000}, "EPOCH": {1000, 1 << 62}}
	if months {
		units = map[string][2]int64{"YEAR": {12, 1 << 62}, "QUARTER": {3, 4}, "MONTH": {1, 12}}
	}
	u, ok := units[unit]
	if !ok {
		return Bound{}, badCall(c, "a value of type %s has no %s", c.Args[0].Type().WithNull(true), unit)
	}
	return fn(usage, spec{params: "x", ret: types.BigIntType, eval: ints(func(x row) (int64, *diag.Error) {
		if unit == "QUARTER" {
			return x.i64(0)%12/3 + 1, nil
		}
		return x.i64(0) / u[0] % u[1], nil
	})})(c)
}

func bindFloor(floor bool) func(*CallSite) (Bound, error) {
	usage := "CEIL(number) or CEIL(time TO unit)"
	if floor {
		usage = "FLOOR(number) or FLOOR(time TO unit)"
	}
	return func(c *CallSite) (Bound, error) {
		switch {
		case len(c.Args) != 1:
			return Bound{}, wrongArgs(c, usage)
		case c.Options.Unit == "":
			return fn(usage, spec{params: "n", retOf: floorType, nullable: false, eval: floorNumber(floor)})(c)
		}
		return bindFloorTime(c, usage, floor)
	}
}

func bindFloorTime(c *CallSite, usage string, floor bool) (Bound, error) {
	unit := c.Options.Unit
	t := c.Args[0].Type()
	if t.Kind == types.Null {
		c.Args[0] = convert(c.Args[0], types.TimestampMs)
		t = types.TimestampMs
	}
	if !isTemporal(t) {
		return Bound{}, wrongArgs(c, usage)
	}
	isClock := slices.Contains(clockUnits, unit)
	switch {
	case slices.Contains([]string{"DOW", "DOY", "ISODOW", "ISOYEAR", "EPOCH", "MICROSECOND", "NANOSECOND"}, unit):
		return Bound{}, badCall(c, "times cannot be rounded to %s", unit).
			WithHint("use MILLISECOND, SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, QUARTER, YEAR, DECADE, CENTURY or MILLENNIUM")
	case t.Kind == types.Time && !isClock:
		return Bound{}, badCall(c, "a TIME has no %s", unit)
	}
	return fn(usage, spec{params: "x", retOf: argType(0), eval: func(b *site) func(Session) Eval {
		return func(s Session) Eval {
			at, round := localTime(t, s, 0), rounder(unit, floor)
			switch {
			case t.Kind == types.Date && isClock:
				round = func(sec, _ int64) (int64, int64) { return sec, 0 }
			case t.Kind == types.Date && unit == "DAY" && !floor: // as Flink: a DATE counts as being within its day
				round = func(sec, _ int64) (int64, int64) { return sec + 86400, 0 }
			}
			return func(args []*batch.Vec, rows []int32, _ int, out *batch.Vec, _ func(int32, *diag.Error)) {
				for _, r := range rows {
					sec, nanos := at(row{args, int(r)})
					sec, nanos = round(sec, nanos)
					storeTime(out, r, sec, nanos, s)
				}
			}
		}
	}})(c)
}

var unitSeconds = map[string]int64{"DAY": 86400, "HOUR": 3600, "MINUTE": 60, "SECOND": 1}

// rounder is the function that rounds a local time. Units above DAY look at the date only, as in Flink: a time within
// the first day of a unit is not rounded up.
func rounder(unit string, floor bool) func(sec, nanos int64) (int64, int64) {
	if unit == "MILLISECOND" {
		return func(sec, nanos int64) (int64, int64) {
			rest := nanos % 1e6
			if nanos -= rest; rest > 0 && !floor {
				if nanos += 1e6; nanos == 1e9 {
					sec, nanos = sec+1, 0
				}
			}
			return sec, nanos
		}
	}
	if u, ok := unitSeconds[unit]; ok {
		return func(sec, nanos int64) (int64, int64) {
			down := sec - types.FloorMod(sec, u)
			if !floor && (down != sec || nanos > 0) {
				down += u
			}
			return down, 0
		}
	}
	return func(sec, _ int64) (int64, int64) {
		return roundDate(unit, types.FloorDiv(sec, 86400), floor) * 86400, 0
	}
}

func roundDate(unit string, days int64, floor bool) int64 {
	if unit == "WEEK" { // starts on Sunday
		into := types.FloorMod(days+4, 7)
		if into > 0 && !floor {
			return days - into + 7
		}
		return days - into
	}
	y, m, d := types.CivilFromDays(days)
	up := 0
	if !floor {
		up = 1
	}
	within := m > 1 || d > 1 // not the first day of the year
	switch unit {
	case "MONTH":
		if d > 1 {
			return types.AddMonths(types.DaysFromCivil(y, m, 1), int64(up))
		}
		return days
	case "QUARTER":
		first := types.DaysFromCivil(y, (m-1)/3*3+1, 1)
		if within {
			return types.AddMonths(first, int64(3*up))
		}
		return first
	case "YEAR":
		if within {
			y += up
		}
		return types.DaysFromCivil(y, 1, 1)
	}
	span, first := 10, 0 // a decade starts in the year 0 of ten, centuries and millennia in the year 1
	switch unit {
	case "CENTURY":
		span, first = 100, 1
	case "MILLENNIUM":
		span, first = 1000, 1
	}
	start := int(types.FloorDiv(int64(y-first), int64(span)))*span + first
	if up > 0 && (within || y != start) {
		start += span
	}
	return types.DaysFromCivil(start, 1, 1)
}

// unitMonths and unitMillis are the sizes of the units of TIMESTAMPADD and TIMESTAMPDIFF.
var (
	unitMonths = map[string]int64{"YEAR": 12, "QUARTER": 3, "MONTH": 1}
	unitMillis = map[string]int64{"WEEK": 7 * dayMillis, "DAY": dayMillis, "HOUR": 3600000, "MINUTE": 60000, "SECOND": 1000, "MILLISECOND": 1}
)

func checkUnit(c *CallSite) error {
	if unitMonths[c.Options.Unit] == 0 && unitMillis[c.Options.Unit] == 0 {
		return badCall(c, "unit %s is not possible", c.Options.Unit).
			WithHint("use MILLISECOND, SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, QUARTER or YEAR")
	}
	return nil
}

func bindTimestampAdd(c *CallSite) (Bound, error) {
	const usage = "TIMESTAMPADD(unit, n, time)"
	if err := checkUnit(c); err != nil {
		return Bound{}, err
	}
	unit := c.Options.Unit
	months, millis := unitMonths[unit], unitMillis[unit]
	return fn(usage, spec{params: "Ix", retOf: func(b *site) (types.Type, error) {
		t := b.args[1].Type()
		if t.Kind == types.Null {
			b.args[1] = convert(b.args[1], types.TimestampMs)
			return types.TimestampMs, nil
		}
		if !isTemporal(t) {
			return t, wrongArgs(c, usage)
		}
		if t.Kind == types.Date && millis > 0 && millis < dayMillis {
			return types.TimestampOf(types.Timestamp, 6), nil
		}
		if unit == "MILLISECOND" && t.IsTimestamp() {
			return types.TimestampOf(t.Kind, max(t.Precision, 3)), nil
		}
		return t, nil
	}, eval: func(b *site) func(Session) Eval {
		// TIMESTAMP_LTZ is added to on UTC fields, as Flink does.
		from, utc := b.args[1].Type(), Session{}
		return func(Session) Eval {
			at := localTime(from, utc, 1)
			return func(args []*batch.Vec, rows []int32, _ int, out *batch.Vec, _ func(int32, *diag.Error)) {
				for _, r := range rows {
					x := row{args, int(r)}
					sec, nanos := at(x)
					sec, nanos = addUnits(sec, nanos, x.i64(0), months, millis, from.Kind == types.Time)
					storeTime(out, r, sec, nanos, utc)
				}
			}
		}
	}})(c)
}

func addUnits(sec, nanos, n, months, millis int64, clock bool) (int64, int64) {
	if months > 0 {
		if clock {
			return sec, nanos
		}
		day := types.FloorDiv(sec, 86400)
		return types.AddMonths(day, n*months)*86400 + sec - day*86400, nanos
	}
	if millis >= 1000 {
		return sec + n*(millis/1000), nanos
	}
	nanos += types.FloorMod(n, 1000) * 1e6
	sec += types.FloorDiv(n, 1000)
	return sec + nanos/1e9, nanos % 1e9
}

func bindTimestampDiff(c *CallSite) (Bound, error) {
	const usage = "TIMESTAMPDIFF(unit, from, to)"
	if err := checkUnit(c); err != nil {
		return Bound{}, err
	}
	unit := c.Options.Unit
	return fn(usage, spec{params: "xx", ret: types.IntType, check: func(b *site) error {
		for i, a := range b.args {
			if a.Type().Kind == types.Null {
				b.args[i] = convert(a, types.TimestampMs)
				if o := b.args[1-i].Type(); o.Kind == types.TimestampLTZ {
					b.args[i] = convertNull(nil, o)
				}
			}
		}
		l, r := b.args[0].Type(), b.args[1].Type()
		if !isTemporal(l) || !isTemporal(r) {
			return wrongArgs(c, usage)
		}
		if (l.Kind == types.TimestampLTZ) != (r.Kind == types.TimestampLTZ) {
			return badCall(c, "TIMESTAMP_LTZ is compared with %s", strings.Replace(l.Kind.String()+r.Kind.String(), "TIMESTAMP_LTZ", "", 1)).
				WithHint("CAST one of them to the type of the other")
		}
		return nil
	}, eval: func(b *site) func(Session) Eval {
		from, to := localTime(b.args[0].Type(), Session{}, 0), localTime(b.args[1].Type(), Session{}, 1)
		months, millis := unitMonths[unit], unitMillis[unit]
		return func(Session) Eval {
			return perRow(vecI64, func(x row) (int64, *diag.Error) {
				s0, n0 := from(x)
				s1, n1 := to(x)
				a, b := s0*1000+n0/1e6, s1*1000+n1/1e6
				if months > 0 {
					return int64(int32(monthsBetween(a, b) / months)), nil
				}
				return int64(int32((b - a) / millis)), nil
			})
		}
	}})(c)
}

// monthsBetween is the number of complete months from a to b, in milliseconds.
func monthsBetween(a, b int64) int64 {
	if a > b {
		return -monthsBetween(b, a)
	}
	da, db := types.FloorDiv(a, dayMillis), types.FloorDiv(b, dayMillis)
	ya, ma, _ := types.CivilFromDays(da)
	yb, mb, _ := types.CivilFromDays(db)
	m := int64(yb-ya)*12 + int64(mb-ma)
	end := types.AddMonths(da, m)
	if end > db || end == db && a-da*dayMillis > b-db*dayMillis {
		m--
	}
	return m
}
