package op

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
)

// timerSet is a set of (time, key) pairs in state: an operator asks to see a key again once a clock reaches the time.
// Pairs are kept by slices of time and key group, so that a clock that moves reads what is due and little more, however
// many keys there are, and so that timers move with their keys when the job is rescaled. In memory are only the slices.
type timerSet struct {
	m       *multimap
	step    int64 // ms per slice
	slices  map[int64]*timerSlice
	earlier []int64 // scratch: slices that are due

	adds    checkpoint.Keys // slice and key group of each pending addition
	subs    []byte          // their time and key
	subEnds []int32

	probe  checkpoint.Keys
	groups []int
	fired  checkpoint.Keys
	gone   []byte // time and key of fired timers, removed after the walk
	ends   []int32
	last   []byte
}

// timerSlice says which key groups have timers in a slice of time, and a lower bound of their times.
type timerSlice struct {
	groups [checkpoint.KeyGroups / 64]uint64
	first  int64
}

const timerFormat = "timers/1"

// openTimers opens the set named name with slices of step ms.
func openTimers(s exec.Subtask, name string, step int64) (*timerSet, error) {
	m, err := openMultimap(s, name, timerFormat, 0)
	if err != nil {
		return nil, err
	}
	t := &timerSet{m: m, step: max(step, 1), slices: map[int64]*timerSlice{}}
	err = m.scan(func(key, sub, _ []byte) bool {
		t.note(fromOrderedTime(key), int(key[8]), fromOrderedTime(sub))
		return true
	})
	return t, err
}

// orderedTime appends ms so that bytes compare as times do.
func orderedTime(dst []byte, ms int64) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(ms)^1<<63)
}

func fromOrderedTime(b []byte) int64 { return int64(binary.BigEndian.Uint64(b) ^ 1<<63) }

// slice is the number of the slice of time that holds at.
func (t *timerSet) slice(at int64) int64 {
	n := at / t.step
	if at%t.step < 0 {
		n--
	}
	return n
}

func (t *timerSet) note(slice int64, group int, at int64) {
	s := t.slices[slice]
	if s == nil {
		s = &timerSlice{first: math.MaxInt64}
		t.slices[slice] = s
	}
	s.groups[group>>6] |= 1 << (group & 63)
	s.first = min(s.first, at)
}

// add sets a timer for the key with its hash. It is pending until commit; a timer that is set already stays one.
func (t *timerSet) add(at int64, key []byte, hash uint64) {
	appendTimerKey(&t.adds, t.slice(at), checkpoint.KeyGroup(hash))
	t.subs = append(orderedTime(t.subs, at), key...)
	t.subEnds = append(t.subEnds, int32(len(t.subs)))
}

func appendTimerKey(k *checkpoint.Keys, slice int64, group int) {
	start := len(k.Buf)
	k.Buf = append(orderedTime(k.Buf, slice), byte(group))
	k.Ends = append(k.Ends, int32(len(k.Buf)))
	k.Hashes = append(k.Hashes, subHash(uint64(group)<<57, k.Buf[start:]))
}

// commit writes what add collected.
func (t *timerSet) commit() error {
	if t.adds.Len() == 0 {
		return nil
	}
	if err := t.m.probe(&t.adds); err != nil {
		return err
	}
	start := int32(0)
	for i, end := range t.subEnds {
		sub, key := t.subs[start:end], t.adds.Key(i)
		if err := t.m.at(i).put(sub, nil); err != nil {
			return err
		}
		t.note(fromOrderedTime(key), int(key[8]), fromOrderedTime(sub))
		start = end
	}
	err := t.m.done()
	t.adds.Reset()
	t.subs, t.subEnds = t.subs[:0], t.subEnds[:0]
	return err
}

// next is a lower bound of the earliest timer; ok is false when there is none.
func (t *timerSet) next() (at int64, ok bool) {
	at = math.MaxInt64
	for _, s := range t.slices {
		at, ok = min(at, s.first), true
	}
	return at, ok
}

// earliest is next, the end of time when there is none.
func (t *timerSet) earliest() int64 {
	at, _ := t.next()
	return at
}

// takeEarliest takes some of the earliest timers out of the set and calls f with them, in any order: those left are not
// earlier than those taken, but may have the last one's time. There are n or bytes many of them at most, where a few for
// each key group always count.
func (t *timerSet) takeEarliest(n, bytes int, f func(at int64, key []byte)) error {
	slice, some := int64(math.MaxInt64), false
	for i := range t.slices {
		slice, some = min(slice, i), true
	}
	if !some {
		return nil
	}
	s, err := t.probeSlice(slice)
	if err != nil {
		return err
	}
	n, bytes = max(n/len(t.groups), 8), bytes/len(t.groups)
	t.gone, t.ends = t.gone[:0], t.ends[:0]
	until := int64(math.MaxInt64) // of no group are there unread ones before
	var groupEnds []int
	for i := range t.groups {
		left, size := n, bytes
		err := t.m.at(i).ascend(nil, func(sub, _ []byte) bool {
			t.gone = append(t.gone, sub...)
			t.ends = append(t.ends, int32(len(t.gone)))
			left--
			if size -= len(sub); left > 0 && size > 0 {
				return true
			}
			until = min(until, fromOrderedTime(sub))
			return false
		})
		if err != nil {
			return err
		}
		groupEnds = append(groupEnds, len(t.ends))
	}
	start, k := int32(0), 0
	for i, end := range groupEnds {
		var last []byte
		for ; k < end; k++ {
			sub := t.gone[start:t.ends[k]]
			start = t.ends[k]
			if at := fromOrderedTime(sub); at <= until {
				f(at, sub[8:])
				last = sub
			}
		}
		if last != nil {
			t.last = append(append(t.last[:0], last...), 0)
			if err := t.m.at(i).removeBelow(t.last); err != nil {
				return err
			}
		}
	}
	s.first = math.MaxInt64
	for i := range t.groups {
		if err := t.settle(s, i); err != nil {
			return err
		}
	}
	return t.endSlice(slice, s)
}

// fire takes the timers with times up to now out of the set and calls f with their keys, some at a time: a key can be
// among them more than once. f may add timers later than now, and must not keep the keys.
func (t *timerSet) fire(now int64, f func(keys *checkpoint.Keys) error) error {
	t.earlier = t.earlier[:0]
	for n, s := range t.slices {
		if s.first <= now {
			t.earlier = append(t.earlier, n)
		}
	}
	slices.Sort(t.earlier)
	for _, n := range t.earlier {
		if err := t.fireSlice(n, now, f); err != nil {
			return err
		}
	}
	return t.commit()
}

func (t *timerSet) fireSlice(n, now int64, f func(keys *checkpoint.Keys) error) error {
	s, err := t.probeSlice(n)
	if err != nil {
		return err
	}
	s.first = math.MaxInt64
	for i := range t.groups {
		if err := t.fireBucket(t.m.at(i), now, f); err != nil {
			return err
		}
		if err := t.settle(s, i); err != nil {
			return err
		}
	}
	return t.endSlice(n, s)
}

// probeSlice looks up the key groups of slice n, which are then in groups.
func (t *timerSet) probeSlice(n int64) (*timerSlice, error) {
	s := t.slices[n]
	t.probe.Reset()
	t.groups = t.groups[:0]
	for g := range checkpoint.KeyGroups {
		if s.groups[g>>6]&(1<<(g&63)) != 0 {
			appendTimerKey(&t.probe, n, g)
			t.groups = append(t.groups, g)
		}
	}
	return s, t.m.probe(&t.probe)
}

// settle notes what is left of the group probed as i.
func (t *timerSet) settle(s *timerSlice, i int) error {
	sub, _, ok, err := t.m.at(i).first()
	if err != nil {
		return err
	}
	if ok {
		s.first = min(s.first, fromOrderedTime(sub))
	} else {
		g := t.groups[i]
		s.groups[g>>6] &^= 1 << (g & 63)
	}
	return nil
}

func (t *timerSet) endSlice(n int64, s *timerSlice) error {
	if s.first == math.MaxInt64 {
		delete(t.slices, n)
	}
	return t.m.done()
}

// firePass bounds the keys given to one call.
const firePass = 2048

func (t *timerSet) fireBucket(b bucket, now int64, f func(keys *checkpoint.Keys) error) error {
	for more := true; more; {
		more = false
		t.fired.Reset()
		t.gone, t.ends = t.gone[:0], t.ends[:0]
		err := b.ascend(nil, func(sub, _ []byte) bool {
			if fromOrderedTime(sub) > now {
				return false
			}
			if more = t.fired.Len() == firePass; more {
				return false
			}
			t.gone = append(t.gone, sub...)
			t.ends = append(t.ends, int32(len(t.gone)))
			t.appendFired(sub[8:])
			return true
		})
		if err != nil {
			return err
		}
		start := int32(0)
		for _, end := range t.ends {
			if _, err := b.remove(t.gone[start:end]); err != nil {
				return err
			}
			start = end
		}
		if t.fired.Len() > 0 {
			if err := f(&t.fired); err != nil {
				return err
			}
		}
	}
	return nil
}

// appendFired adds key to the keys fired, unless it is the one added last.
func (t *timerSet) appendFired(key []byte) {
	if n := t.fired.Len(); n > 0 && bytes.Equal(t.fired.Key(n-1), key) {
		return
	}
	appendKey(&t.fired, key, checkpoint.HashKey(key))
}
