package op

import (
	"container/heap"
	"math"

	"github.com/streamsql/streamsql/checkpoint"
)

// timers are the times (ms) at which keys are due, in memory. They are no state of their own: an operator adds them
// again from its rows when it opens. A key may be added twice for one time.
type timers struct {
	times timeHeap
	at    map[int64]*checkpoint.Keys
	free  []*checkpoint.Keys
}

type timeHeap []int64

func (h timeHeap) Len() int           { return len(h) }
func (h timeHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h timeHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *timeHeap) Push(x any)        { *h = append(*h, x.(int64)) }
func (h *timeHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

func (t *timers) add(at int64, key []byte, hash uint64) {
	k := t.at[at]
	if k == nil {
		if t.at == nil {
			t.at = map[int64]*checkpoint.Keys{}
		}
		if n := len(t.free); n > 0 {
			k, t.free = t.free[n-1], t.free[:n-1]
		} else {
			k = &checkpoint.Keys{}
		}
		t.at[at] = k
		heap.Push(&t.times, at)
	} else if n := k.Len(); n > 0 && k.Hashes[n-1] == hash && string(k.Key(n-1)) == string(key) {
		return
	}
	appendKey(k, key, hash)
}

// next is the earliest time.
func (t *timers) next() (at int64, ok bool) {
	if len(t.times) == 0 {
		return math.MaxInt64, false
	}
	return t.times[0], true
}

// take moves the keys due at or before upTo to due, in order of time, and their times to times, until there are n of
// them or a few more: the keys of one time stay together.
func (t *timers) take(upTo int64, n int, due *checkpoint.Keys, times []int64) []int64 {
	for len(t.times) > 0 && t.times[0] <= upTo && due.Len() < n {
		at := heap.Pop(&t.times).(int64)
		k := t.at[at]
		delete(t.at, at)
		for i := range k.Ends {
			appendKey(due, k.Key(i), k.Hashes[i])
			times = append(times, at)
		}
		k.Reset()
		if len(t.free) < 1024 {
			t.free = append(t.free, k)
		}
	}
	return times
}

// appendKey adds a key to k.
func appendKey(k *checkpoint.Keys, key []byte, hash uint64) {
	k.Buf = append(k.Buf, key...)
	k.Ends = append(k.Ends, int32(len(k.Buf)))
	k.Hashes = append(k.Hashes, hash)
}
