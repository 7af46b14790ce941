package connectors

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

var durationUnits = map[string]time.Duration{
	"":  time.Millisecond,
	"d": 24 * time.Hour, "day": 24 * time.Hour, "days": 24 * time.Hour,
	"h": time.Hour, "hour": time.Hour, "hours": time.Hour,
	"m": time.Minute, "min": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"s": time.Second, "sec": time.Second, "secs": time.Second, "second": time.Second, "seconds": time.Second,
	"ms": time.Millisecond, "milli": time.Millisecond, "millis": time.Millisecond, "millisecond": time.Millisecond, "milliseconds": time.Millisecond,
	"µs": time.Microsecond, "us": time.Microsecond, "micro": time.Microsecond, "micros": time.Microsecond, "microsecond": time.Microsecond, "microseconds": time.Microsecond,
	"ns": time.Nanosecond, "nano": time.Nanosecond, "nanos": time.Nanosecond, "nanosecond": time.Nanosecond, "nanoseconds": time.Nanosecond,
}

const durationHelp = "a number with a unit is expected: d, h, min, s, ms, micro or ns, as in '5 s' or '1min'; without a unit it counts milliseconds; ISO-8601 as in 'PT5S' works too"

// ParseDuration reads a duration in Flink's spellings: "5 s", "1min", "100" (milliseconds), or ISO-8601 "PT1M30S".
// Units ignore case. Negative durations are refused. It serves table options and SET keys alike.
func ParseDuration(text string) (time.Duration, error) {
	s := strings.ToLower(strings.TrimSpace(text))
	if strings.HasPrefix(s, "p") {
		return parseISODuration(s)
	}
	num, unit := splitUnit(s)
	if num == "" {
		return 0, errors.New(durationHelp)
	}
	scale, ok := durationUnits[unit]
	if !ok {
		return 0, fmt.Errorf("unknown time unit %q; %s", unit, durationHelp)
	}
	n, err := strconv.ParseInt(num, 10, 64)
	if err != nil || n > math.MaxInt64/int64(scale) {
		return 0, fmt.Errorf("%s%s is too long: the limit is 292 years", num, unit)
	}
	return time.Duration(n) * scale, nil
}

// parseISODuration reads "pNdTnHnMn.nS" in lower case.
func parseISODuration(s string) (time.Duration, error) {
	bad := errors.New("an ISO-8601 duration looks like 'PT5S', 'PT1H30M' or 'P1D'")
	date, clock, hasClock := strings.Cut(s[1:], "t")
	var total float64
	var n int
	read := func(part, units string, scale []time.Duration) bool {
		for part != "" {
			i := strings.IndexAny(part, units)
			if i < 1 {
				return false
			}
			k := strings.IndexByte(units, part[i])
			f, err := strconv.ParseFloat(part[:i], 64)
			if err != nil || !(f >= 0) || (f != math.Trunc(f) && units[k] != 's') {
				return false
			}
			total += f * float64(scale[k])
			units, scale, part = units[k+1:], scale[k+1:], part[i+1:]
			n++
		}
		return true
	}
	if !read(date, "d", []time.Duration{24 * time.Hour}) || (hasClock && clock == "") ||
		!read(clock, "hms", []time.Duration{time.Hour, time.Minute, time.Second}) || n == 0 || total > math.MaxInt64/2 {
		return 0, bad
	}
	return time.Duration(math.Round(total)), nil
}

var memoryUnits = map[string]int{
	"": 0, "b": 0, "bytes": 0, "k": 10, "kb": 10, "kibibytes": 10, "m": 20, "mb": 20, "mebibytes": 20,
	"g": 30, "gb": 30, "gibibytes": 30, "t": 40, "tb": 40, "tebibytes": 40,
}

// ParseMemory reads a size in Flink's spellings into bytes: "128mb", "1 gb", "4096" (bytes). Units are powers of 1024
// and ignore case. It serves table options and SET keys alike.
func ParseMemory(text string) (int64, error) {
	num, unit := splitUnit(strings.ToLower(strings.TrimSpace(text)))
	if num == "" {
		return 0, errors.New("a number with a unit is expected: b, kb, mb, gb or tb, as in '128mb'; without a unit it counts bytes")
	}
	shift, ok := memoryUnits[unit]
	if !ok {
		return 0, fmt.Errorf("unknown size unit %q; use b, kb, mb, gb or tb", unit)
	}
	n, err := strconv.ParseInt(num, 10, 64)
	if err != nil || n > math.MaxInt64>>shift {
		return 0, fmt.Errorf("%s%s is too large", num, unit)
	}
	return n << shift, nil
}

func splitUnit(s string) (num, unit string) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return s[:i], strings.TrimSpace(s[i:])
}
