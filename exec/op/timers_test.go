package op

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/streamsql/streamsql/checkpoint"
)

// Timers come in order of time and all of them, whether in memory or in state, with state on disk; memory keeps its bound.
func TestTimers(t *testing.T) {
	for seed := range uint64(4) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		spread := []int{1, 100, 1_000_000, 100_000_000}[seed]
		var q timers
		if err := q.open(newSubtask(t, 512<<10), "timers"); err != nil {
			t.Fatal(err)
		}
		q.most = 16 << 10
		want := map[string]bool{}
		n, now := 0, int64(0)
		var due checkpoint.Keys
		take := func(upTo int64) {
			last := int64(math.MinInt64)
			for {
				due.Reset()
				times, err := q.take(upTo, 1000, &due, nil)
				if err != nil {
					t.Fatal(err)
				}
				if due.Len() == 0 {
					break
				}
				if due.Len() > 1000 {
					t.Fatalf("%d keys were taken", due.Len())
				}
				for i, at := range times {
					if at < last || at > upTo {
						t.Fatalf("seed %d: %d comes after %d, up to %d", seed, at, last, upTo)
					}
					last = at
					key := fmt.Sprintf("%d/%s", at, due.Key(i))
					if !want[key] {
						t.Fatalf("seed %d: %s was not set, or came before", seed, key)
					}
					delete(want, key)
					if due.Hashes[i] != checkpoint.HashKey(due.Key(i)) {
						t.Fatal("another hash")
					}
				}
			}
			if at, ok := q.next(); ok && at <= upTo {
				t.Fatalf("seed %d: %d is next after %d", seed, at, upTo)
			}
		}
		for range 12 {
			for range 2 + rnd.IntN(5) {
				for range 1024 {
					at := now + 1 + int64(rnd.IntN(spread))
					key := fmt.Appendf(nil, "key %d", n)
					n++
					want[fmt.Sprintf("%d/%s", at, key)] = true
					q.add(at, key, checkpoint.HashKey(key))
				}
				if err := q.commit(); err != nil {
					t.Fatal(err)
				}
				if q.keys > q.most || q.bytes > timersBytes || q.far.adds.Len() > 0 {
					t.Fatalf("%d keys in memory, %d pending", q.keys, q.far.adds.Len())
				}
			}
			if rnd.IntN(4) == 0 {
				now += int64(rnd.IntN(spread/2 + 1))
				take(now)
			}
		}
		if q.from == math.MaxInt64 {
			t.Errorf("seed %d: nothing went to state", seed)
		}
		take(math.MaxInt64 - 1)
		if len(want) > 0 || q.keys != 0 || q.bytes != 0 || len(q.at) != 0 {
			t.Errorf("seed %d: %d timers did not come; %d keys, %d bytes, %d times are left", seed, len(want), q.keys, q.bytes, len(q.at))
		}
	}
}

// Timers of one second that come and go while it lasts take no more memory than those that are there.
func TestTimersOfASecond(t *testing.T) {
	var q timers
	if err := q.open(newSubtask(t, 1<<20), "timers"); err != nil {
		t.Fatal(err)
	}
	var due checkpoint.Keys
	key := []byte("key")
	q.add(999, key, checkpoint.HashKey(key))
	taken := 0
	for now := range int64(900) {
		for i := range 100 {
			key := fmt.Appendf(nil, "%d/%d", now, i)
			q.add(now+1+int64(i%3), key, checkpoint.HashKey(key))
		}
		if err := q.commit(); err != nil {
			t.Fatal(err)
		}
		due.Reset()
		times, err := q.take(now+1, 1000, &due, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range times {
			if at != now+1 {
				t.Fatalf("%d comes at %d", at, now+1)
			}
		}
		taken += len(times)
		if n := len(q.at[0].times); n > 3*4096 {
			t.Fatalf("%d timers are kept, %d are left", n, q.keys)
		}
	}
	if taken+q.keys != 900*100+1 {
		t.Errorf("%d timers came and %d are left", taken, q.keys)
	}
}
