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
//
// In memory they lie by second, in the order in which they were added; a second is sorted when it comes.
type timers struct {
	seconds timeHeap
	at      map[int64]*timerSecond
	recent  *timerSecond // that was added to last
	free    []*timerSecond
	counts  []int32
	sorted  []int32
	keys    int // in memory
	bytes   int // of them and of their seconds, about
	most    int // keys in memory

	far  *timerSet
	from int64 // those in memory are not later, those in far not earlier
}

// timerSecond are the timers of a second.
type timerSecond struct {
	second  int64
	first   int64 // the earliest time of those that are left
	keys    checkpoint.Keys
	times   []int64
	order   []int32 // places in keys by time, then as they were added; the newest are not in it yet
	ordered int     // keys that are, or were, in order
	taken   int     // of order
}

const (
	timersMax    = 128 << 10 // keys in memory, and a batch more
	timersBytes  = 6 << 20   // and their bytes
	timersStep   = 60_000    // ms of a slice of far
	timerMillis  = 1000      // of a timerSecond
	timersSecond = 320       // bytes that a timerSecond takes beside its keys
	timersEach   = 24        // bytes that a key takes beside itself
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
	t.at, t.most = map[int64]*timerSecond{}, timersMax
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
	s := t.recent
	if n := floorDiv(at, timerMillis); s == nil || s.second != n {
		s = t.second(n)
	}
	if n := len(s.times); n > s.ordered && s.times[n-1] == at && s.keys.Hashes[n-1] == hash && string(s.keys.Key(n-1)) == string(key) {
		return
	}
	s.add(at, key, hash)
	t.keys++
	t.bytes += timersEach + len(key)
}

// second is the one with that number.
func (t *timers) second(n int64) *timerSecond {
	s := t.at[n]
	if s == nil {
		if k := len(t.free); k > 0 {
			s, t.free = t.free[k-1], t.free[:k-1]
		} else {
			s = &timerSecond{}
		}
		s.second, s.first = n, math.MaxInt64
		t.at[n] = s
		t.bytes += timersSecond
		t.seconds.push(n)
	}
	t.recent = s
	return s
}

func (s *timerSecond) add(at int64, key []byte, hash uint64) {
	appendKey(&s.keys, key, hash)
	s.times = append(s.times, at)
	s.first = min(s.first, at)
}

func (s *timerSecond) reset() {
	s.keys.Reset()
	s.times, s.order, s.ordered, s.taken = s.times[:0], s.order[:0], 0, 0
}

// addStored is add while an operator opens and adds many.
func (t *timers) addStored(at int64, key []byte) error {
	t.add(at, key, checkpoint.HashKey(key))
	if t.keys < 2*t.most && t.bytes < 2*timersBytes && t.far.adds.Len() < timersMax/8 {
		return nil
	}
	return t.commit()
}

// sort brings the newest timers of s into its order.
func (t *timers) sort(s *timerSecond) {
	fresh := len(s.times) - s.ordered
	if fresh == 0 {
		return
	}
	if gone := s.ordered - len(s.order) + s.taken; gone > 4096 && gone > len(s.times)/2 {
		s.compact()
		fresh = len(s.times)
	}
	s.order = s.order[:copy(s.order, s.order[s.taken:])]
	left := len(s.order)
	for i := s.ordered; i < len(s.times); i++ {
		s.order = append(s.order, int32(i))
	}
	s.ordered = len(s.times)
	s.taken = 0
	if fresh <= 4 {
		for i := left; i < len(s.order); i++ {
			for k := i; k > 0 && s.times[s.order[k]] < s.times[s.order[k-1]]; k-- {
				s.order[k], s.order[k-1] = s.order[k-1], s.order[k]
			}
		}
		return
	}
	t.counts, t.sorted = resize(t.counts, timerMillis+1), resize(t.sorted, len(s.order))
	clear(t.counts)
	base := s.second * timerMillis
	for _, i := range s.order {
		t.counts[s.times[i]-base+1]++
	}
	for i := range timerMillis {
		t.counts[i+1] += t.counts[i]
	}
	for _, i := range s.order {
		at := &t.counts[s.times[i]-base]
		t.sorted[*at] = i
		*at++
	}
	copy(s.order, t.sorted)
}

// commit moves what is too much for memory to state.
func (t *timers) commit() error {
	if t.keys <= t.most && t.bytes <= timersBytes {
		return t.far.commit()
	}
	slices.Sort(t.seconds) // is a heap too
	for t.keys > t.most/2 || t.bytes > timersBytes/2 {
		last := len(t.seconds) - 1
		s := t.at[t.seconds[last]]
		t.sort(s)
		n := len(s.order)
		for ; n > s.taken && (t.keys > t.most/2 || t.bytes > timersBytes/2); n-- {
			i := int(s.order[n-1])
			key := s.keys.Key(i)
			t.from = s.times[i]
			t.far.add(t.from, key, s.keys.Hashes[i])
			t.keys--
			t.bytes -= timersEach + len(key)
		}
		if s.order = s.order[:n]; n > s.taken {
			s.compact()
			break
		}
		t.seconds = t.seconds[:last]
		t.release(s)
	}
	return t.far.commit()
}

// compact forgets those that are gone.
func (s *timerSecond) compact() {
	rest := timerSecond{second: s.second, first: math.MaxInt64}
	for _, i := range s.order[s.taken:] {
		rest.add(s.times[i], s.keys.Key(int(i)), s.keys.Hashes[i])
	}
	for i := s.ordered; i < len(s.times); i++ {
		rest.add(s.times[i], s.keys.Key(i), s.keys.Hashes[i])
	}
	*s = rest
}

// release forgets a second whose timers are gone.
func (t *timers) release(s *timerSecond) {
	delete(t.at, s.second)
	if t.recent == s {
		t.recent = nil
	}
	t.bytes -= timersSecond
	s.reset()
	if len(t.free) < 64 && cap(s.keys.Buf) < 1<<18 {
		t.free = append(t.free, s)
	}
}

// next is the earliest time, or a little earlier than that.
func (t *timers) next() (at int64, ok bool) {
	if len(t.seconds) > 0 {
		return t.at[t.seconds[0]].first, true
	}
	return t.from, t.from < math.MaxInt64
}

// take moves keys due at or before upTo to due, in order of time, and their times to times, until there are n of them.
func (t *timers) take(upTo int64, n int, due *checkpoint.Keys, times []int64) ([]int64, error) {
	if err := t.commit(); err != nil {
		return times, err
	}
	for due.Len() < n {
		if len(t.seconds) == 0 && t.from < math.MaxInt64 && t.from <= upTo {
			if err := t.refill(); err != nil {
				return times, err
			}
			continue
		}
		if len(t.seconds) == 0 || t.at[t.seconds[0]].first > upTo {
			break
		}
		s := t.at[t.seconds[0]]
		t.sort(s)
		for s.taken < len(s.order) && due.Len() < n && s.times[s.order[s.taken]] <= upTo {
			i := int(s.order[s.taken])
			key := s.keys.Key(i)
			appendKey(due, key, s.keys.Hashes[i])
			times = append(times, s.times[i])
			s.taken++
			t.keys--
			t.bytes -= timersEach + len(key)
		}
		if s.taken < len(s.order) {
			s.first = s.times[s.order[s.taken]]
			break
		}
		t.seconds.pop()
		t.release(s)
	}
	return times, nil
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
