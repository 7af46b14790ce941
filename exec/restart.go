package exec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// RestartKind is restart-strategy.type.
type RestartKind uint8

// The strategies.
const (
	RestartNever RestartKind = iota
	RestartFixedDelay
	RestartFailureRate
	RestartExponentialDelay
)

// String is Flink's value of restart-strategy.type.
func (k RestartKind) String() string {
	return [...]string{"none", "fixed-delay", "failure-rate", "exponential-delay"}[k]
}

// RestartStrategy says whether and when a failed job runs again. Its fields are Flink's keys below
// restart-strategy.<type>.
type RestartStrategy struct {
	Kind RestartKind
	// fixed-delay: .attempts, .delay. failure-rate: .delay.
	Attempts int
	Delay    time.Duration
	// failure-rate: .max-failures-per-interval, .failure-rate-interval.
	MaxFailures  int
	RateInterval time.Duration
	// exponential-delay: .initial-backoff, .max-backoff, .backoff-multiplier, .jitter-factor,
	// .reset-backoff-threshold, .attempts-before-reset-backoff (0 = no limit).
	InitialBackoff, MaxBackoff time.Duration
	Multiplier, Jitter         float64
	ResetAfter                 time.Duration
	AttemptsBeforeReset        int
}

// DefaultRestart is a strategy with Flink 2.x's defaults for its kind.
func DefaultRestart(k RestartKind) RestartStrategy {
	return RestartStrategy{
		Kind: k, Attempts: 1, Delay: time.Second, MaxFailures: 1, RateInterval: time.Minute,
		InitialBackoff: time.Second, MaxBackoff: time.Minute, Multiplier: 1.5, Jitter: 0.1, ResetAfter: time.Hour,
	}
}

// restarter applies a strategy to the failures of one job.
type restarter struct {
	s        RestartStrategy
	attempts int
	backoff  time.Duration
	last     time.Time   // of the last failure, plus its delay
	recent   []time.Time // failure-rate: failures within the interval
	rand     func() float64
}

func newRestarter(s RestartStrategy) *restarter { return &restarter{s: s, rand: rand.Float64} }

// failed tells how long to wait before the next attempt, and false when there must be none.
func (r *restarter) failed(now time.Time) (wait time.Duration, again bool) {
	switch r.s.Kind {
	case RestartFixedDelay:
		r.attempts++
		return r.s.Delay, r.attempts <= r.s.Attempts
	case RestartFailureRate:
		keep := r.recent[:0]
		for _, t := range r.recent {
			if now.Sub(t) < r.s.RateInterval {
				keep = append(keep, t)
			}
		}
		r.recent = append(keep, now)
		return r.s.Delay, len(r.recent) <= r.s.MaxFailures
	case RestartExponentialDelay:
		return r.exponential(now)
	}
	return 0, false
}

// spent says why failed told that there must be no other attempt.
func (r *restarter) spent() string {
	const key = "restart-strategy."
	switch r.s.Kind {
	case RestartFixedDelay:
		return fmt.Sprintf("'%sfixed-delay.attempts' = %d: no more restarts", key, r.s.Attempts)
	case RestartFailureRate:
		return fmt.Sprintf("%d failures within %s, '%sfailure-rate.max-failures-per-interval' = %d: no more restarts", len(r.recent), r.s.RateInterval, key, r.s.MaxFailures)
	case RestartExponentialDelay:
		return fmt.Sprintf("'%sexponential-delay.attempts-before-reset-backoff' = %d: no more restarts", key, r.s.AttemptsBeforeReset)
	}
	return "'restart-strategy.type' = none: no restarts"
}

// left is how many more failures in a row are followed by a restart, -1 = any number.
func (r *restarter) left() int {
	switch {
	case r.s.Kind == RestartFixedDelay:
		return max(0, r.s.Attempts-r.attempts)
	case r.s.Kind == RestartFailureRate:
		return max(0, r.s.MaxFailures-len(r.recent))
	case r.s.Kind == RestartExponentialDelay && r.s.AttemptsBeforeReset <= 0:
		return -1
	case r.s.Kind == RestartExponentialDelay:
		return max(0, r.s.AttemptsBeforeReset-r.attempts)
	}
	return 0
}

func (r *restarter) exponential(now time.Time) (time.Duration, bool) {
	if r.backoff == 0 || now.Sub(r.last) >= r.s.ResetAfter {
		r.backoff, r.attempts = r.s.InitialBackoff, 0
	} else {
		next := float64(r.backoff) * r.s.Multiplier
		r.backoff = time.Duration(math.Min(next, float64(r.s.MaxBackoff)))
	}
	r.attempts++
	wait := r.backoff
	if r.s.Jitter > 0 {
		wait += time.Duration((2*r.rand() - 1) * r.s.Jitter * float64(r.backoff))
		wait = max(0, min(wait, r.s.MaxBackoff))
	}
	r.last = now.Add(wait)
	return wait, r.s.AttemptsBeforeReset <= 0 || r.attempts <= r.s.AttemptsBeforeReset
}
