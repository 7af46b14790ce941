package types

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestCalendarAgainstTime compares every day of the years 0 to 9999 with package time.
func TestCalendarAgainstTime(t *testing.T) {
	at := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	for day := at.Unix() / 86400; at.Year() < 10000; day++ {
		y, m, d := CivilFromDays(day)
		if ty, tm, td := at.Date(); y != ty || m != int(tm) || d != td || DaysFromCivil(y, m, d) != day {
			t.Fatalf("day %d: %d-%d-%d, want %s", day, y, m, d, at)
		}
		at = at.AddDate(0, 0, 1)
	}
}

// TestLocalToInstant inverts InstantToLocal everywhere but in gaps and overlaps, which have Java's rule.
func TestLocalToInstant(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, name := range []string{"UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Africa/Casablanca"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < 20000; i++ {
			sec := r.Int64N(4e9) - 2e9
			local := InstantToLocal(sec, zone)
			back := LocalToInstant(local, zone)
			// An overlap shows one local time twice: then the earlier instant must come back.
			if back != sec && !(back < sec && InstantToLocal(back, zone) == local) {
				t.Fatalf("%s: %d is local %d, which is %d", name, sec, local, back)
			}
		}
	}
}

func TestTimestampParts(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for i := 0; i < 20000; i++ {
		sec, nanos := r.Int64N(600e9)-300e9, r.Int64N(1e9)
		for p := 0; p <= 9; p++ {
			s, n := SplitTimestamp(JoinTimestamp(sec, nanos, p), p)
			if s != sec || n != nanos-nanos%nanoUnit[p] {
				t.Fatalf("%d.%09d at %d: %d.%09d", sec, nanos, p, s, n)
			}
		}
	}
}

// TestFloatText: the text reads back as the same number and has Java's layout.
func TestFloatText(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for i := 0; i < 50000; i++ {
		f := math.Float64frombits(r.Uint64())
		if i%2 == 0 {
			f = float64(r.IntN(1e6)) / math.Pow10(r.IntN(12))
		}
		text := string(AppendFloat(nil, f, 64))
		back, ok := ParseFloat(text, 64)
		if !ok || back != f && f == f {
			t.Fatalf("%v prints %s, reads %v %t", f, text, back, ok)
		}
		if f != f || math.IsInf(f, 0) {
			continue
		}
		mantissa, exp, sci := strings.Cut(text, "E")
		if whole, frac, point := strings.Cut(strings.TrimPrefix(mantissa, "-"), "."); !point || whole == "" || frac == "" || sci && len(whole) != 1 {
			t.Fatalf("%v prints %s", f, text)
		}
		if _, err := strconv.Atoi(exp); sci && err != nil {
			t.Fatalf("%v prints %s", f, text)
		}
		if a := math.Abs(f); sci == (a == 0 || a >= 1e-3 && a < 1e7) {
			t.Fatalf("%v prints %s", f, text)
		}
	}
}

// FuzzParsers: no text makes a parser panic, and what a parser accepts prints to text it reads back.
func FuzzParsers(f *testing.F) {
	for _, s := range []string{"2021-09-27 12:34:56.789", "2021-09-27", "12:34:56.7", "1", "-128", "1.5e3", "0x1p3", "NaN", "true", "24:00:00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if v, ok := ParseInt(s, 64); ok {
			if back, ok := ParseInt(strconv.FormatInt(v, 10), 64); !ok || back != v {
				t.Fatalf("%q: %d", s, v)
			}
		}
		if d, ok := ParseDate(s); ok {
			if back, ok := ParseDate(string(AppendDate(nil, d))); !ok || back != d {
				t.Fatalf("%q: %d", s, d)
			}
		}
		if ms, ok := ParseTime(s); ok && ms < 86400000 {
			if back, ok := ParseTime(string(AppendTime(nil, ms, 3))); !ok || back != ms {
				t.Fatalf("%q: %d", s, ms)
			}
		}
		if sec, nanos, ok := ParseTimestamp(s); ok && sec < 253402300800 {
			if s2, n2, ok := ParseTimestamp(string(AppendTimestamp(nil, sec, nanos, 9))); !ok || s2 != sec || n2 != nanos {
				t.Fatalf("%q: %d %d", s, sec, nanos)
			}
		}
		ParseFloat(s, 32)
		ParseBool(s)
	})
}
