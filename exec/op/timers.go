package op

import (
	"math"
	"slices"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
)

// timers are the times (ms) at which keys are due, taken in order of time. The earliest are in memory, so that those of
// rows that soon leave cost little; the others are in state. What is in memory is no state: when it opens, an operator
// adds all timers again from its rows. A key may be added twice for one time.
type timers struct {
	times timeHeap
	at    map[int64]*checkpoint.Keys
	free  []*checkpoint.Keys
	keys  int // in memory
	bytes int // of them and of their times, about
	most  int // keys in memory

	far  *timerSet
	from int64 // those in memory are not later, those in far not earlier
}

const (
	timersMax   = 64 << 10 // keys in memory, and a batch more
	timersBytes = 4 << 20  // and their bytes
	timersStep  = 60_000   // ms of a slice of far
	timersTime  = 160      // bytes that a time takes in memory
)

// timeHeap has its least time first. container/heap would allocate for every time.
type timeHeap []int64

func (h *timeHeap) push(at int64) {
	x := append(*h, at)
	*h = x
	for i := len(x) - 1; i > 0; {
		up := (i - 1) / 2
		if x[up] <= x[i] {
			return
		}
		x[up], x[i] = x[i], x[up]
		i = up
	}
}

// pop removes the first time.
func (h *timeHeap) pop() {
	x := *h
	last := len(x) - 1
	x[0] = x[last]
	x = x[:last]
	*h = x
	for i := 0; ; {
		least := 2*i + 1
		if least >= last {
			return
		}
		if r := least + 1; r < last && x[r] < x[least] {
			least = r
		}
		if x[i] <= x[least] {
			return
		}
		x[i], x[least] = x[least], x[i]
		i = least
	}
}

// open opens the state named name.
func (t *timers) open(s exec.Subtask, name string) (err error) {
	t.at, t.most = map[int64]*checkpoint.Keys{}, timersMax
	t.far, err = openTimers(s, name, timersStep)
	if err == nil {
		t.from = t.far.earliest()
	}
	return err
}

// add sets a timer. After the additions of a batch comes commit.
func (t *timers) add(at int64, key []byte, hash uint64) {
	if at >= t.from {
		t.far.add(at, key, hash)
		return
	}
	k := t.at[at]
	if k == nil {
		if n := len(t.free); n > 0 {
			k, t.free = t.free[n-1], t.free[:n-1]
		} else {
			k = &checkpoint.Keys{}
		}
		t.at[at] = k
		t.bytes += timersTime
		t.times.push(at)
	} else if n := k.Len(); n > 0 && k.Hashes[n-1] == hash && string(k.Key(n-1)) == string(key) {
		return
	}
	appendKey(k, key, hash)
	t.keys++
	t.bytes += len(key)
}

// addStored is add while an operator opens and adds many.
func (t *timers) addStored(at int64, key []byte) error {
	t.add(at, key, checkpoint.HashKey(key))
	if t.keys < 2*t.most && t.bytes < 2*timersBytes && t.far.adds.Len() < timersMax/4 {
		return nil
	}
	return t.commit()
}

// commit moves what is too much for memory to state.
func (t *timers) commit() error {
	if t.keys <= t.most && t.bytes <= timersBytes {
		return t.far.commit()
	}
	slices.Sort(t.times) // is a heap too
	for t.keys > t.most/2 || t.bytes > timersBytes/2 {
		last := len(t.times) - 1
		at := t.times[last]
		k := t.at[at]
		n := k.Len()
		for ; n > 0 && (t.keys > t.most/2 || t.bytes > timersBytes/2); n-- {
			key := k.Key(n - 1)
			t.far.add(at, key, k.Hashes[n-1])
			t.keys--
			t.bytes -= len(key)
		}
		k.Ends, k.Hashes = k.Ends[:n], k.Hashes[:n]
		t.from = at
		if n > 0 {
			k.Buf = k.Buf[:k.Ends[n-1]]
			break
		}
		t.times = t.times[:last]
		t.release(at, k)
	}
	return t.far.commit()
}

// release forgets a time whose keys are gone.
func (t *timers) release(at int64, k *checkpoint.Keys) {
	delete(t.at, at)
	t.bytes -= timersTime
	k.Reset()
	if len(t.free) < 1024 && cap(k.Buf) < 1<<12 {
		t.free = append(t.free, k)
	}
}

// next is the earliest time, or a little earlier than that.
func (t *timers) next() (at int64, ok bool) {
	if len(t.times) > 0 {
		return t.times[0], true
	}
	return t.from, t.from < math.MaxInt64
}

// take moves keys due at or before upTo to due, in order of time, and their times to times, until there are n of them.
func (t *timers) take(upTo int64, n int, due *checkpoint.Keys, times []int64) ([]int64, error) {
	if err := t.commit(); err != nil {
		return times, err
	}
	for due.Len() < n {
		if len(t.times) == 0 && t.from < math.MaxInt64 && t.from <= upTo {
			if err := t.refill(); err != nil {
				return times, err
			}
			continue
		}
		if len(t.times) == 0 || t.times[0] > upTo {
			break
		}
		at := t.times[0]
		k := t.at[at]
		some := min(n-due.Len(), k.Len())
		for i := range some {
			key := k.Key(i)
			appendKey(due, key, k.Hashes[i])
			times = append(times, at)
			t.bytes -= len(key)
		}
		t.keys -= some
		if some < k.Len() {
			dropKeys(k, some)
			break
		}
		t.times.pop()
		t.release(at, k)
	}
	return times, nil
}

// dropKeys removes the first n keys of k.
func dropKeys(k *checkpoint.Keys, n int) {
	start := k.Ends[n-1]
	k.Buf = k.Buf[:copy(k.Buf, k.Buf[start:])]
	k.Hashes = k.Hashes[:copy(k.Hashes, k.Hashes[n:])]
	k.Ends = k.Ends[:copy(k.Ends, k.Ends[n:])]
	for i := range k.Ends {
		k.Ends[i] -= start
	}
}

// refill brings the earliest timers from state into memory, which has none.
func (t *timers) refill() error {
	t.from = math.MaxInt64 // add takes them all
	err := t.far.takeEarliest(t.most/2, timersBytes/2, func(at int64, key []byte) {
		t.add(at, key, checkpoint.HashKey(key))
	})
	t.from = t.far.earliest()
	return err
}

// appendKey adds a key to k.
func appendKey(k *checkpoint.Keys, key []byte, hash uint64) {
	k.Buf = append(k.Buf, key...)
	k.Ends = append(k.Ends, int32(len(k.Buf)))
	k.Hashes = append(k.Hashes, hash)
}
