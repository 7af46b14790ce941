package exec

import (
	"fmt"
	"testing"
	"time"
)

// TestRestartStrategies is the table of Flink's strategies: failures at given seconds, and what follows.
func TestRestartStrategies(t *testing.T) {
	fixed := DefaultRestart(RestartFixedDelay)
	fixed.Attempts = 2
	rate := DefaultRestart(RestartFailureRate)
	rate.MaxFailures = 2
	exp := DefaultRestart(RestartExponentialDelay)
	exp.Jitter = 0
	limited := exp
	limited.AttemptsBeforeReset = 2
	for _, tc := range []struct {
		s        RestartStrategy
		failures []int // seconds
		want     string
	}{
		{RestartStrategy{}, []int{0}, "[no]"},
		{fixed, []int{0, 1, 2}, "[1s 1s no]"},
		{rate, []int{0, 10, 100, 110, 111}, "[1s 1s 1s 1s no]"},
		{exp, []int{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22}, "[1s 1.5s 2.25s 3.375s 5.0625s 7.59375s 11.390625s 17.0859375s 25.62890625s 38.443359375s 57.665039062s 1m0s]"},
		{exp, []int{0, 2, 4000}, "[1s 1.5s 1s]"},
		{limited, []int{0, 2, 4}, "[1s 1.5s no]"},
	} {
		r := newRestarter(tc.s)
		var got []string
		for _, at := range tc.failures {
			wait, ok := r.failed(time.Unix(int64(at), 0))
			if !ok {
				got = append(got, "no")
				continue
			}
			got = append(got, wait.String())
		}
		if fmt.Sprint(got) != tc.want {
			t.Errorf("%s: %v, want %s", tc.s.Kind, got, tc.want)
		}
	}
	jitter := newRestarter(DefaultRestart(RestartExponentialDelay))
	jitter.rand = func() float64 { return 0.999999 }
	if wait, _ := jitter.failed(time.Unix(0, 0)); wait <= time.Second || wait > 1100*time.Millisecond {
		t.Errorf("jitter gives %s", wait)
	}
}
