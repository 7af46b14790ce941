package exec

import (
	"sync"
	"time"
)

// steady is a clock that follows the wall clock and never steps back: a processing-time timer must not fire twice. When the
// wall clock is set back it does not stand still either, or nothing that waits for a time would happen for as long as it was
// set back: it runs at half speed until the wall clock is there again.
type steady struct {
	mu   sync.Mutex
	mono time.Duration // read last
	last time.Duration // told last; what the wall clock said but after steps back
}

// tell is the time for a reading of the wall clock, as time since 1970, and of one that nobody sets.
func (s *steady) tell(wall, mono time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mono == 0 {
		s.last = wall
	} else if wall > s.last {
		s.last = wall
	} else if passed := mono - s.mono; passed > 0 {
		s.last += passed / 2
	}
	s.mono = max(s.mono, mono)
	return s.last
}

// steadyClock is the clock of a job that was given none.
func steadyClock() func() time.Time { return SteadyClock(time.Now) }

// SteadyClock is the clock a job makes of a wall clock that may be set while it runs: it never steps back. The result may be
// called by several goroutines when wall may.
func SteadyClock(wall func() time.Time) func() time.Time {
	var s steady
	begun := time.Now().Add(-1) // mono is never 0
	return func() time.Time {
		mono := time.Since(begun)
		return time.Unix(0, int64(s.tell(time.Duration(wall().UnixNano()), mono)))
	}
}
