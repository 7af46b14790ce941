package expr

import (
	"math"
	"math/big"
	"strings"
	"time"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// Conversions between times and text, and the functions of the current time.
func timeFuncs() []*Func {
	temporal := func(name, usage, doc string, sp spec, aliases ...string) *Func {
		return &Func{Name: name, Aliases: aliases, Category: "temporal", Usage: usage, Doc: doc, Bind: fn(usage, sp)}
	}
	ltz3 := types.TimestampOf(types.TimestampLTZ, 3)
	return []*Func{
		clockFunc("CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP", "The current instant: per batch of rows in streaming mode, that of the start in batch mode.", ltz3, false),
		clockFunc("NOW", "NOW()", "The same as CURRENT_TIMESTAMP.", ltz3, false),
		clockFunc("CURRENT_ROW_TIMESTAMP", "CURRENT_ROW_TIMESTAMP()", "The instant at which the row is processed.", ltz3, true),
		clockFunc("PROCTIME", "PROCTIME()", "The instant at which the row is processed; in a table definition a processing-time attribute.", ltz3, true),
		clockFunc("CURRENT_DATE", "CURRENT_DATE", "The current date in the session's time zone.", types.DateType, false),
		clockFunc("CURRENT_TIME", "CURRENT_TIME", "The current time of day in the session's time zone.", types.Of(types.Time), false, "LOCALTIME"),
		clockFunc("LOCALTIMESTAMP", "LOCALTIMESTAMP", "The current date and time in the session's time zone.", types.TimestampMs, false),
		temporal("CURRENT_WATERMARK", "CURRENT_WATERMARK(rowtime)",
			"The watermark that the operator has seen, with the type of the event-time column given; NULL before the first one. In SELECT and WHERE only.",
			spec{params: "x", retOf: watermarkType, nullable: true, sees: true, dynamic: true, eval: watermarkEval}),
		temporal("DATE_FORMAT", "DATE_FORMAT(time, format)",
			"A TIMESTAMP in a format of java.time such as 'yyyy-MM-dd HH:mm:ss.SSS'. A string is read as 'yyyy-MM-dd HH:mm:ss' first and formatted as SimpleDateFormat does; NULL if it cannot be read.",
			spec{params: "xs", ret: types.StringType, nullable: true, check: dateFormatCheck, eval: dateFormatEval}),
		temporal("TO_DATE", "TO_DATE(string [, format])", "The date a string holds (default format 'yyyy-MM-dd'), NULL for other text.",
			spec{params: "s|s", ret: types.DateType, nullable: true, check: patternArg(1, true), eval: toDateEval}),
		temporal("TO_TIMESTAMP", "TO_TIMESTAMP(string [, format])",
			"The TIMESTAMP(3) a string holds (default format 'yyyy-MM-dd HH:mm:ss'), without regard to time zones; NULL for other text.",
			spec{params: "s|s", ret: types.TimestampMs, nullable: true, check: patternArg(1, false), eval: func(*site) func(Session) Eval {
				return func(Session) Eval {
					c := &patternCache{}
					return func(args []*batch.Vec, rows []int32, n int, out *batch.Vec, fail func(int32, *diag.Error)) {
						for _, r := range rows {
							sec, nanos, ok := parseStamp(row{args, int(r)}, c)
							if !ok {
								out.SetNull(int(r), n)
								continue
							}
							storeTime(out, r, sec, nanos, Session{})
						}
					}
				}
			}}),
		temporal("TO_TIMESTAMP_LTZ", "TO_TIMESTAMP_LTZ(number [, precision]) or TO_TIMESTAMP_LTZ(string [, format [, zone]])",
			"The instant of a number of 10^-precision seconds since 1970 (default 3: milliseconds), or of a string in a zone (default UTC). NULL outside the years 0 to 9999 and for text of another form.",
			spec{params: "x|xs", retOf: toLTZType, nullable: true, check: toLTZCheck, eval: toLTZEval}),
		temporal("FROM_UNIXTIME", "FROM_UNIXTIME(seconds [, format])", "Seconds since 1970 as text in the session's time zone (default format 'yyyy-MM-dd HH:mm:ss').",
			spec{params: "l|s", ret: types.StringType, nullable: true, check: patternArg(1, true), eval: fromUnixtimeEval}),
		temporal("UNIX_TIMESTAMP", "UNIX_TIMESTAMP([string [, format]])",
			"The current seconds since 1970, or those of a string in the session's time zone; -9223372036854775808 for text of another form.",
			spec{params: "|ss", ret: types.BigIntType, clock: true, check: patternArg(1, true), eval: unixTimestampEval}),
		temporal("CONVERT_TZ", "CONVERT_TZ(string, from, to)", "'yyyy-MM-dd HH:mm:ss' of one time zone in another; NULL for other text and unknown zones.",
			spec{params: "sss", ret: types.StringType, nullable: true, check: convertTZCheck, eval: convertTZEval}),
	}
}

// clockFunc is a function of the current time.
func clockFunc(name, usage, doc string, t types.Type, perRecord bool, aliases ...string) *Func {
	return &Func{Name: name, Aliases: aliases, Category: "temporal", Usage: usage, Doc: doc,
		Bind: fn(usage, spec{ret: t, notNull: true, dynamic: true, eval: func(*site) func(Session) Eval {
			return func(s Session) Eval {
				return func(_ []*batch.Vec, rows []int32, _ int, out *batch.Vec, _ func(int32, *diag.Error)) {
					now := s.Instant()
					if perRecord {
						now = time.Now()
					}
					ms := now.UnixMilli()
					sec := types.FloorDiv(ms, 1000)
					local := types.InstantToLocal(sec, s.zone())
					if t.Kind == types.TimestampLTZ {
						for _, r := range rows {
							out.I64[r] = ms * 1000
						}
						return
					}
					for _, r := range rows {
						storeTime(out, r, local, types.FloorMod(ms, 1000)*1e6, s)
					}
				}
			}
		}})}
}

// watermarkType is TIMESTAMP(3) or TIMESTAMP_LTZ(3), as the event time given. That it is event time is for the planner to
// check (IsWatermark).
func watermarkType(b *site) (types.Type, error) {
	t := b.args[0].Type()
	if t.Kind != types.Timestamp && t.Kind != types.TimestampLTZ {
		return t, badCall(b.CallSite, "it takes a column of event time, not %s", t).WithHint("write CURRENT_WATERMARK(ts) with a column that has a WATERMARK")
	}
	return types.TimestampOf(t.Kind, 3), nil
}

// watermarkEval shows the watermark of the Calc that computes the call.
func watermarkEval(*site) func(Session) Eval {
	return func(s Session) Eval {
		return func(_ []*batch.Vec, rows []int32, n int, out *batch.Vec, fail func(int32, *diag.Error)) {
			for _, r := range rows {
				switch {
				case s.clock == nil || !s.clock.marked:
					fail(r, diag.New(diag.Unsupported, diag.Pos{}, "CURRENT_WATERMARK cannot be used here").
						WithHint("compute it in the SELECT list or the WHERE of a subquery"))
				case s.clock.mark == math.MinInt64:
					out.SetNull(int(r), n)
				default:
					out.I64[r] = s.clock.mark * 1000
				}
			}
		}
	}
}

// IsWatermark reports a call of CURRENT_WATERMARK.
func IsWatermark(e Expr) bool {
	c, ok := e.(*Call)
	return ok && c.Func.Name == "CURRENT_WATERMARK"
}

// patternCache holds the compiled patterns of one call in one Program.
type patternCache struct {
	simple bool
	last   string
	p      *timePattern
	err    error
	all    map[string]*timePattern
	bad    map[string]error
}

func (c *patternCache) get(src string) (*timePattern, error) {
	if c.all != nil && src == c.last {
		return c.p, c.err
	}
	if c.all == nil || len(c.all)+len(c.bad) > maxCachedRegex {
		c.all, c.bad = map[string]*timePattern{}, map[string]error{}
	}
	src = strings.Clone(src)
	p, ok := c.all[src]
	err, failed := c.bad[src]
	if !ok && !failed {
		if p, err = compilePattern(src, c.simple); err != nil {
			c.bad[src] = err
		} else {
			c.all[src] = p
		}
	}
	c.last, c.p, c.err = src, p, err
	return p, err
}

func badPattern(name, src string, err error) *diag.Error {
	return badValue(name, "'%s' is no date and time pattern", src).WithDetail("%s", err).
		WithHint("for example 'yyyy-MM-dd HH:mm:ss'; put text in single quotes inside the pattern")
}

// patternArg checks a constant pattern.
func patternArg(i int, simple bool) func(*site) error {
	return func(b *site) error {
		d, ok := b.literal(i)
		if !ok {
			return nil
		}
		if _, err := compilePattern(d.Str, simple); err != nil {
			e := badPattern(strings.ToUpper(b.Name), d.Str, err)
			e.Code = diag.Semantic
			return e
		}
		return nil
	}
}

func dateFormatCheck(b *site) error {
	t := b.args[0].Type()
	switch {
	case t.Kind == types.Null:
		b.args[0] = convert(b.args[0], types.TimestampMs)
	case t.Kind == types.Date:
		b.args[0] = convert(b.args[0], types.TimestampMs)
	case !t.IsString() && !t.IsTimestamp():
		return wrongArgs(b.CallSite, "DATE_FORMAT(time or string, format)")
	}
	return patternArg(1, t.IsString())(b)
}

const isoPattern = "yyyy-MM-dd HH:mm:ss"

var isoSimple, _ = compilePattern(isoPattern, true)

func toDateEval(*site) func(Session) Eval {
	return func(Session) Eval {
		c := &patternCache{simple: true}
		return perRow(vecI64, func(x row) (int64, *diag.Error) {
			if !x.has(1) {
				d, ok := types.ParseDate(x.str(0))
				if !ok {
					return 0, isNull
				}
				return d, nil
			}
			p, err := c.get(x.str(1))
			if err != nil {
				return 0, isNull
			}
			ms, ok := p.parseLenient(x.str(0), time.UTC)
			if !ok {
				return 0, isNull
			}
			return types.FloorDiv(ms, dayMillis), nil
		})
	}
}

// parseStamp is TO_TIMESTAMP of a string and, if there is one, a pattern in arguments 0 and 1.
func parseStamp(x row, c *patternCache) (sec, nanos int64, ok bool) {
	if !x.has(1) {
		return types.ParseTimestamp(x.str(0))
	}
	p, err := c.get(x.str(1))
	if err != nil {
		return 0, 0, false
	}
	if sec, nanos, ok = p.parseModern(x.str(0)); !ok {
		sec, nanos, ok = parseSQLTimestamp(x.str(0))
	}
	return sec, nanos, ok && inYears(sec)
}

// The seconds of the years 0 to 9999.
const minSecond, maxSecond = -62167219200, 253402300799

func inYears(sec int64) bool { return sec >= minSecond && sec <= maxSecond }

// parseSQLTimestamp is java.sql.Timestamp.valueOf or java.sql.Date.valueOf of trimmed text: what does not match a
// pattern is tried in this form. Days beyond the month and hours beyond the day roll over.
func parseSQLTimestamp(s string) (sec, nanos int64, ok bool) {
	s = strings.Trim(s, " \t\r\n")
	date, clock, timed := strings.Cut(s, " ")
	parts := strings.Split(date, "-")
	if len(parts) != 3 || len(parts[0]) != 4 || len(parts[1]) > 2 || len(parts[2]) > 2 {
		return 0, 0, false
	}
	var n [6]int64
	for i, p := range parts {
		v, rest, ok := digits(p, 1, 4, 0)
		if !ok || rest != "" {
			return 0, 0, false
		}
		n[i] = v
	}
	if n[1] < 1 || n[1] > 12 || n[2] < 1 || n[2] > 31 {
		return 0, 0, false
	}
	if timed {
		clock, frac, hasFrac := strings.Cut(strings.Trim(clock, " "), ".")
		hms := strings.Split(clock, ":")
		if len(hms) != 3 || hasFrac && (frac == "" || len(frac) > 9) {
			return 0, 0, false
		}
		for i, p := range hms {
			v, rest, ok := digits(p, 1, 9, 0)
			if !ok || rest != "" {
				return 0, 0, false
			}
			n[3+i] = v
		}
		if hasFrac {
			v, rest, ok := digits((frac + "000000000")[:9], 9, 9, 0)
			if !ok || rest != "" {
				return 0, 0, false
			}
			nanos = v
		}
	}
	days := types.DaysFromCivil(int(n[0]), int(n[1]), 1) + n[2] - 1
	return days*86400 + n[3]*3600 + n[4]*60 + n[5], nanos, true
}

// toLTZType: numbers give LTZ(3) for a constant precision up to 3, LTZ(p) above; strings the longest run of S in a
// constant format, 3 at least.
func toLTZType(b *site) (types.Type, error) {
	t := b.args[0].Type()
	p := 3
	if len(b.args) > 1 {
		if d, ok := b.literal(1); ok {
			if t.IsString() && b.args[1].Type().IsString() {
				if pat, err := compilePattern(d.Str, false); err == nil {
					p = max(3, pat.fraction())
				}
			} else if t.IsNumeric() && d.I64 > 3 && d.I64 <= 9 {
				p = int(d.I64)
			}
		}
	}
	return types.TimestampOf(types.TimestampLTZ, p), nil
}

func toLTZCheck(b *site) error {
	usage := "TO_TIMESTAMP_LTZ(number [, precision]) or TO_TIMESTAMP_LTZ(string [, format [, zone]])"
	for i, a := range b.args {
		if a.Type().Kind == types.Null {
			to := types.StringType
			if i == 0 && len(b.args) == 2 && b.args[1].Type().IsInteger() || i == 1 && b.args[0].Type().IsNumeric() {
				to = types.IntType
			}
			b.args[i] = convert(a, to)
		}
	}
	t := b.args[0].Type()
	switch {
	case t.IsNumeric():
		if len(b.args) == 3 || len(b.args) == 2 && !b.args[1].Type().IsInteger() {
			return wrongArgs(b.CallSite, usage)
		}
		if d, ok := b.literal(1); ok && (d.I64 < 0 || d.I64 > 9) {
			return badCall(b.CallSite, "precision %d is not possible", d.I64).WithHint("use 0 for seconds, 3 for milliseconds, 6 for microseconds, 9 for nanoseconds")
		}
		return nil
	case !t.IsString() || len(b.args) > 1 && !b.args[1].Type().IsString():
		return wrongArgs(b.CallSite, usage)
	}
	if err := patternArg(1, false)(b); err != nil {
		return err
	}
	return zoneArg(b, 2)
}

// zoneArg checks a constant time zone.
func zoneArg(b *site, i int) error {
	if d, ok := b.literal(i); ok {
		if _, ok := loadZone(d.Str); !ok {
			return badCall(b.CallSite, "unknown time zone '%s'", d.Str).WithHint("write a name such as 'Europe/Berlin', or 'GMT+02:00'")
		}
	}
	return nil
}

func convertTZCheck(b *site) error {
	if err := zoneArg(b, 1); err != nil {
		return err
	}
	return zoneArg(b, 2)
}

// loadZone finds a time zone by the names Java knows: regions, UTC, GMT, Z, and offsets with or without GMT or UTC.
func loadZone(name string) (*time.Location, bool) {
	switch name {
	case "":
		return nil, false
	case "Z", "UTC", "GMT", "UT":
		return time.UTC, true
	case "Local": // a name of Go, not of Java
		return nil, false
	}
	off := name
	for _, p := range []string{"GMT", "UTC", "UT"} {
		if rest, ok := strings.CutPrefix(name, p); ok {
			off = rest
			break
		}
	}
	if off != "" && (off[0] == '+' || off[0] == '-') {
		if i := strings.IndexByte(off, ':'); i == 2 || i < 0 && len(off) == 2 {
			off = off[:1] + "0" + off[1:]
		}
		sec, rest, ok := parseOffset(off)
		if ok && rest == "" {
			return time.FixedZone(name, int(sec)), true
		}
		return nil, false
	}
	z, err := time.LoadLocation(name)
	return z, err == nil
}

// zoneCache holds the zones of one call.
type zoneCache map[string]*time.Location

func (c zoneCache) get(name string) (*time.Location, bool) {
	z, ok := c[name]
	if !ok {
		if len(c) > maxCachedRegex {
			clear(c)
		}
		z, _ = loadZone(name)
		c[strings.Clone(name)] = z
	}
	return z, z != nil
}

func toLTZEval(b *site) func(Session) Eval {
	t := b.args[0].Type()
	if t.IsNumeric() {
		return numberToLTZ(b)
	}
	return func(Session) Eval {
		c, zones := &patternCache{}, zoneCache{}
		return func(args []*batch.Vec, rows []int32, n int, out *batch.Vec, _ func(int32, *diag.Error)) {
			for _, r := range rows {
				x := row{args, int(r)}
				sec, nanos, ok := parseStamp(x, c)
				zone := time.UTC
				if ok && x.has(2) {
					zone, ok = zones.get(x.str(2))
				}
				if !ok {
					out.SetNull(int(r), n)
					continue
				}
				storeTime(out, r, sec, nanos, Session{Zone: zone})
			}
		}
	}
}

func numberToLTZ(b *site) func(Session) Eval {
	t := b.args[0].Type()
	return func(Session) Eval {
		return func(args []*batch.Vec, rows []int32, n int, out *batch.Vec, fail func(int32, *diag.Error)) {
			for _, r := range rows {
				x := row{args, int(r)}
				p := int64(3)
				if x.has(1) {
					p = x.i64(1)
				}
				if p < 0 || p > 9 {
					fail(r, badValue("TO_TIMESTAMP_LTZ", "precision %d is not between 0 and 9", p))
					continue
				}
				sec, nanos, ok := splitNumber(x, t, int(p))
				if !ok || !inYears(sec) {
					out.SetNull(int(r), n)
					continue
				}
				storeTime(out, r, sec, nanos, Session{})
			}
		}
	}
}

// splitNumber is argument 0, in units of 10^-p seconds, as seconds and nanoseconds. DOUBLE keeps its fraction, rounded
// down to milliseconds; DECIMAL is cut to whole units.
func splitNumber(x row, t types.Type, p int) (sec, nanos int64, ok bool) {
	unit := types.Pow10I64(p)
	var v int64
	switch {
	case t.Phys() == types.PhysF64:
		f := x.f64(0) / math.Pow10(p)
		if math.IsNaN(f) || f < minSecond || f > maxSecond+1 {
			return 0, 0, false
		}
		r, _ := new(big.Float).SetPrec(120).SetFloat64(x.f64(0)).Int64()
		frac := x.f64(0) - float64(r)
		sec, nanos = types.FloorDiv(r, unit), types.FloorMod(r, unit)*(1e9/unit)
		nanos += int64(math.Floor(frac * float64(1e9/unit)))
		return sec + types.FloorDiv(nanos, 1e9), types.FloorMod(nanos, 1e9), true
	case t.Kind == types.Decimal:
		v = types.RescaleTrunc(wide(x.args[0], x.args[0].Idx(x.r)), t.Scale)
	default:
		v = x.i64(0)
	}
	return types.FloorDiv(v, unit), types.FloorMod(v, unit) * (1e9 / unit), true
}

func fromUnixtimeEval(*site) func(Session) Eval {
	return func(s Session) Eval {
		c := &patternCache{simple: true}
		return textEval(func(dst []byte, x row) ([]byte, *diag.Error) {
			p := isoSimple
			if x.has(1) {
				var err error
				if p, err = c.get(x.str(1)); err != nil {
					return dst, badPattern("FROM_UNIXTIME", x.str(1), err)
				}
			}
			out, _ := p.format(dst, types.InstantToLocal(x.i64(0), s.zone()), 0, s.zone())
			return out, nil
		})
	}
}

func unixTimestampEval(*site) func(Session) Eval {
	return func(s Session) Eval {
		c := &patternCache{simple: true}
		return perRow(vecI64, func(x row) (int64, *diag.Error) {
			p := isoSimple
			switch len(x.args) {
			case 0:
				return s.Instant().Unix(), nil
			case 2:
				var err error
				if p, err = c.get(x.str(1)); err != nil {
					return 0, badPattern("UNIX_TIMESTAMP", x.str(1), err)
				}
			}
			ms, ok := p.parseLenient(x.str(0), s.zone())
			if !ok {
				return math.MinInt64, nil
			}
			return ms / 1000, nil
		})
	}
}

func convertTZEval(*site) func(Session) Eval {
	return func(Session) Eval {
		zones := zoneCache{}
		return textEval(func(dst []byte, x row) ([]byte, *diag.Error) {
			from, ok1 := zones.get(x.str(1))
			to, ok2 := zones.get(x.str(2))
			if !ok1 || !ok2 {
				return dst, isNull
			}
			ms, ok := isoSimple.parseLenient(x.str(0), from)
			if !ok {
				return dst, isNull
			}
			out, _ := isoSimple.format(dst, types.InstantToLocal(types.FloorDiv(ms, 1000), to), 0, to)
			return out, nil
		})
	}
}
