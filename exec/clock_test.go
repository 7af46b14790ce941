package exec

import (
	"testing"
	"time"
)

// TestSteadyClock: the clock of a job follows jumps forward, never steps back, and never stands still: after a step back it
// runs at half speed until the wall clock is there again. An hour is lost in two.
func TestSteadyClock(t *testing.T) {
	const m = time.Minute
	var s steady
	for i, tc := range []struct{ wall, mono, want time.Duration }{
		{1000 * m, 1, 1000 * m},
		{1001 * m, 1*m + 1, 1001 * m},
		{1001 * m, 1*m + 1, 1001 * m},
		{1100 * m, 2*m + 1, 1100 * m},  // forward
		{1040 * m, 2*m + 1, 1100 * m},  // back by an hour
		{1060 * m, 22*m + 1, 1110 * m}, // half as fast
		{1050 * m, 12*m + 1, 1110 * m}, // read before the last, told after it
		{1062 * m, 24*m + 1, 1111 * m},
		{1110 * m, 72*m + 1, 1135 * m},
		{1158 * m, 120*m + 1, 1158 * m}, // there again, or nearly
		{1161 * m, 123*m + 1, 1161 * m},
		{1162 * m, 124*m + 1, 1162 * m},
	} {
		if got := s.tell(tc.wall, tc.mono); got != tc.want {
			t.Fatalf("%d: wall %s, %s later: %s, want %s", i, tc.wall, tc.mono, got, tc.want)
		}
	}
	clock := steadyClock()
	for last, i := clock(), 0; i < 1000; i++ {
		now := clock()
		if now.Before(last) {
			t.Fatalf("%s after %s", now, last)
		}
		last = now
	}
}
