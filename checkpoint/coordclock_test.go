package checkpoint

import (
	"math/rand"
	"testing"
	"time"
)

// TestCoordinatorClockJumps: whatever the clock does, a coordinator that was told the time wants to be told again only later,
// or it would be asked all the time; and what it waits for by the clock is never farther away than its settings say, or a
// clock that was set back would stop the checkpoints.
func TestCoordinatorClockJumps(t *testing.T) {
	cfg := CoordinatorConfig{Interval: 10 * time.Second, Timeout: time.Minute, MinPause: 3 * time.Second, MaxConcurrent: 2, TolerableFailed: -1}
	rnd := rand.New(rand.NewSource(1))
	injected, expired := 0, 0
	for range 50 {
		l := newLife(cfg)
		for range 200 {
			switch rnd.Intn(8) {
			case 0:
				l.now = l.now.Add(time.Duration(rnd.Intn(100)) * time.Hour)
			case 1:
				l.now = l.now.Add(-time.Duration(rnd.Intn(100)) * time.Hour)
			default:
				l.now = l.now.Add(time.Duration(rnd.Intn(20)) * time.Second)
			}
			for _, a := range l.c.Step(Tick{Now: l.now}) {
				switch a := a.(type) {
				case Inject:
					injected++
					if rnd.Intn(2) == 0 { // answered at once, else it expires
						for _, s := range []string{"src/0", "out/0"} {
							l.c.Step(ack(a.Barrier.ID, s)(l.now))
						}
						l.c.Step(published(a.Barrier.ID)(l.now))
						l.c.Step(CommitDone{ID: a.Barrier.ID, Now: l.now})
						l.c.Step(Confirmed{ID: a.Barrier.ID, Now: l.now})
					}
				case Abort:
					expired++
				case Fail:
					t.Fatal(a.Err)
				}
			}
			l.c.Step(Tick{Now: l.now}) // what the answers made possible
			at, ok := l.c.NextWake()
			if ok && !at.After(l.now) {
				t.Fatalf("told %s, it wants to be told at %s", l.now, at)
			}
			if ok && at.After(l.now.Add(cfg.Timeout)) {
				t.Fatalf("told %s, it waits until %s", l.now, at)
			}
		}
	}
	if injected < 1000 || expired < 500 {
		t.Errorf("%d checkpoints, %d of them expired: the test does not reach what it is about", injected, expired)
	}
}
