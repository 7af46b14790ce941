package format

// Goal: what is printed reads back. Method: all weeks of ten thousand years.

import (
	"testing"

	"github.com/streamsql/streamsql/sql/types"
)

// Every day of 12 000 years, and the instants around midnight, print and parse to themselves.
func TestTimestampsRoundTrip(t *testing.T) {
	for days := types.DaysFromCivil(0, 1, 1); days <= types.DaysFromCivil(9999, 12, 31); days += 7 {
		s := string(types.AppendISODate(nil, days))
		if got, ok := parseDate(s, false); !ok || got != days {
			t.Fatalf("%d: %s reads as %d", days, s, got)
		}
		for _, p := range []int{3, 6, 9} {
			sec, nanos := (days+1)*daySeconds-1, int64(1e9)-types.Pow10I64(9-p)
			if s2, n2 := types.SplitTimestamp(types.JoinTimestamp(sec, nanos, p), p); s2 != sec || n2 != nanos {
				t.Fatalf("%s precision %d: %d %d", s, p, s2, n2)
			}
			text := string(appendTimestamp(nil, sec, nanos, ' '))
			if s2, n2, ok := parseTimestamp(text, false, false); !ok || s2 != sec || n2 != nanos {
				t.Fatalf("%s reads as %d %d", text, s2, n2)
			}
		}
	}
}
