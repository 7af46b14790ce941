package op

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// sessionWindow groups the rows of each key into sessions: spans of time in which no gap between rows is longer than the
// window's gap (touching counts as joined). A session ends when the watermark, or the wall clock, passes its last
// millisecond. What a session holds is its payload's business.
//
// State: spans, per key start → end and id; the id names the session's payload and is a time inside the session, so that
// it stays unique while sessions of a key do not touch. timers, per key group end, id, key: when to look at a session.
// A session that has grown since is put off when its timer comes, so that growing does not move timers.
type sessionWindow struct {
	clock     windowClock
	input     *types.Schema
	enc       *exec.KeyEncoder
	payload   sessionPayload
	nullError bool // a NULL rowtime fails, else it is dropped

	late, dropped *exec.Counter
	now           func() int64
	watermark     exec.Watermark
	arrived       int64                       // with Proctime: wall-clock time of the batch's rows
	next          [checkpoint.KeyGroups]int64 // no timer of the key group is earlier; math.MaxInt64 = there is none
	spans, timers *multimap
	keys, one     checkpoint.Keys
	found         []span
	from          []int64
	sub, val      []byte
	due           []sessionTimer
	fired         []firedSession
	dueKeys       checkpoint.Keys
}

// span is a session: wall-clock ms from start to end, exclusive.
type span struct{ start, end, id int64 }

// sessionTimer is a timer that has come: group is the place of the session's key in dueKeys.
type sessionTimer struct {
	end, id int64
	group   int
}

// firedSession is a session that has ended.
type firedSession struct {
	span
	group []byte
	hash  uint64
}

// sessionPayload is what sessions hold. Sessions are named by group and id; hash is the group's.
type sessionPayload interface {
	open(s exec.Subtask) error
	// begin starts a batch, end ends it.
	begin(b *batch.Batch) error
	end() error
	// add puts physical row r of the batch into a session.
	add(r int, group []byte, hash uint64, id int64) error
	// merge moves what the sessions from hold into the session to.
	merge(group []byte, hash uint64, from []int64, to int64) error
	// fire emits and removes ended sessions.
	fire(list []firedSession, out exec.Emitter) error
	// state and restore are for small state of the payload.
	state(dst []byte) []byte
	restore(states [][]byte)
}

const (
	sessionFormat = "sessions/1"
	sessionPage   = batch.Size // sessions fired at once
)

func newSessionWindow(w Window, in *types.Schema, keys []int, s expr.Session, p sessionPayload) *sessionWindow {
	return &sessionWindow{clock: newWindowClock(w, in, s), input: in, enc: exec.NewKeyEncoder(keys), payload: p}
}

// Open implements exec.Operator.
func (w *sessionWindow) Open(s exec.Subtask) error {
	w.late, w.dropped, w.now = s.Counter("late-dropped"), s.Counter("null-rowtime-dropped"), s.Now
	var marks, rest [][]byte
	for _, b := range s.Restored() {
		if len(b) < 8 {
			b = make([]byte, 8) // of a subtask that never saw a barrier
			binary.BigEndian.PutUint64(b, 1<<63)
		}
		marks, rest = append(marks, b[:8]), append(rest, b[8:])
	}
	w.watermark = restoredWatermark(marks)
	w.payload.restore(rest)
	var err error
	if w.spans, err = openMultimap(s, "sessions", sessionFormat, 0); err != nil {
		return err
	}
	if w.timers, err = openMultimap(s, "sessions.timers", sessionFormat, 0); err != nil {
		return err
	}
	for g := range w.next {
		w.next[g] = math.MaxInt64
		if !s.OwnsKeyGroup(g) {
			continue
		}
		if err := w.findNext(g); err != nil {
			return err
		}
	}
	return w.payload.open(s)
}

// groupTimers is the bucket of a key group's timers. It is valid until the next call.
func (w *sessionWindow) groupTimers(g int) (bucket, error) {
	w.one.Reset()
	w.one.Buf = append(w.one.Buf, byte(g))
	w.one.Ends = append(w.one.Ends, 1)
	w.one.Hashes = append(w.one.Hashes, subHash(uint64(g)<<57, w.one.Buf))
	err := w.timers.probe(&w.one)
	return w.timers.at(0), err
}

func (w *sessionWindow) findNext(g int) error {
	b, err := w.groupTimers(g)
	if err != nil {
		return err
	}
	sub, _, ok, err := b.first()
	w.next[g] = math.MaxInt64
	if ok {
		w.next[g] = windowEnd(sub)
	}
	return err
}

func (w *sessionWindow) addTimer(end, id int64, group []byte, hash uint64) error {
	g := checkpoint.KeyGroup(hash)
	b, err := w.groupTimers(g)
	if err != nil {
		return err
	}
	w.next[g] = min(w.next[g], end)
	w.sub = binary.BigEndian.AppendUint64(w.sub[:0], uint64(end)^1<<63)
	w.sub = binary.BigEndian.AppendUint64(w.sub, uint64(id)^1<<63)
	w.sub = append(w.sub, group...)
	return b.put(w.sub, nil)
}

// Process implements exec.Operator.
func (w *sessionWindow) Process(_ int, b *batch.Batch, _ exec.Emitter) error {
	if b.Len() == 0 {
		return nil
	}
	w.enc.Encode(b, &w.keys)
	if err := w.spans.probe(&w.keys); err != nil {
		return err
	}
	if err := w.payload.begin(b); err != nil {
		return err
	}
	if w.clock.Proctime { // the rows of a batch arrive together
		w.arrived = w.clock.wall(max(w.now(), int64(w.watermark)+1))
	}
	for i, n := 0, b.Len(); i < n; i++ {
		at, ok, err := w.time(b, b.Row(i))
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		id, ok, err := w.join(i, at)
		if err != nil {
			return err
		}
		if !ok {
			w.late.Add(1)
			continue
		}
		if err := w.payload.add(b.Row(i), w.keys.Key(i), w.keys.Hashes[i], id); err != nil {
			return err
		}
	}
	if err := w.payload.end(); err != nil {
		return err
	}
	return w.spans.done()
}

// time is the wall-clock time of a row; ok is false for one that has none.
func (w *sessionWindow) time(b *batch.Batch, r int) (at int64, ok bool, err error) {
	if w.clock.Proctime {
		return w.arrived, true, nil
	}
	v := b.Cols[w.clock.Time]
	if !v.IsNull(r) {
		return w.clock.wall(millis(v, v.Idx(r))), true, nil
	}
	if w.nullError {
		return 0, false, nullTime(r, w.input.Columns[w.clock.Time].Name)
	}
	w.dropped.Add(1)
	return 0, false, nil
}

// join puts a row of key i at time at into its session, which it may begin, extend or make of several. ok is false when
// the session has ended already.
func (w *sessionWindow) join(i int, at int64) (id int64, ok bool, err error) {
	b := w.spans.at(i)
	s := span{start: at, end: at + w.clock.Size, id: at}
	w.found = w.found[:0]
	err = b.descend(windowKey(s.end+1), func(sub, val []byte) bool {
		f := span{windowEnd(sub), windowEnd(val), windowEnd(val[8:])}
		if f.end < s.start {
			return false
		}
		w.found = append(w.found, f)
		return true
	})
	if err != nil {
		return 0, false, err
	}
	if len(w.found) == 0 {
		if exec.Watermark(w.clock.fireTime(s.end)) <= w.watermark {
			return 0, false, nil
		}
		if err := w.addTimer(s.end, s.id, w.keys.Key(i), w.keys.Hashes[i]); err != nil {
			return 0, false, err
		}
		return s.id, true, w.put(b, s)
	}
	oldest := w.found[len(w.found)-1]
	if len(w.found) == 1 && oldest.start <= s.start && oldest.end >= s.end {
		return oldest.id, true, nil
	}
	s.id = oldest.id
	w.from = w.from[:0]
	for _, f := range w.found {
		s.start, s.end = min(s.start, f.start), max(s.end, f.end)
		if f.id != s.id {
			w.from = append(w.from, f.id)
		}
		if _, err := b.remove(windowKey(f.start)); err != nil {
			return 0, false, err
		}
	}
	if err := w.put(b, s); err != nil {
		return 0, false, err
	}
	if len(w.from) > 0 {
		err = w.payload.merge(w.keys.Key(i), w.keys.Hashes[i], w.from, s.id)
	}
	return s.id, true, err
}

func (w *sessionWindow) put(b bucket, s span) error {
	w.sub = binary.BigEndian.AppendUint64(w.sub[:0], uint64(s.start)^1<<63)
	w.val = binary.BigEndian.AppendUint64(w.val[:0], uint64(s.end)^1<<63)
	w.val = binary.BigEndian.AppendUint64(w.val, uint64(s.id)^1<<63)
	return b.put(w.sub, w.val)
}

// OnWatermark implements exec.Operator.
func (w *sessionWindow) OnWatermark(wm exec.Watermark, out exec.Emitter) error {
	if w.clock.Proctime {
		return nil
	}
	return w.advance(wm, out)
}

// NextTimer implements exec.ProcessingTimer.
func (w *sessionWindow) NextTimer() (int64, bool) {
	first := slices.Min(w.next[:])
	if !w.clock.Proctime || first == math.MaxInt64 {
		return math.MaxInt64, false
	}
	return w.clock.fireTime(first) + 1, true
}

// OnTimer implements exec.ProcessingTimer.
func (w *sessionWindow) OnTimer(now int64, out exec.Emitter) error {
	return w.advance(exec.Watermark(now-1), out)
}

// advance ends the sessions whose last millisecond is not after wm.
func (w *sessionWindow) advance(wm exec.Watermark, out exec.Emitter) error {
	if wm <= w.watermark {
		return nil
	}
	w.watermark = wm
	for {
		more, err := w.collectDue()
		if err != nil {
			return err
		}
		if len(w.due) > 0 {
			if err := w.fireDue(out); err != nil {
				return err
			}
		}
		if !more {
			return w.timers.done()
		}
	}
}

// collectDue takes a page of the timers that have come; more is false when these are all.
func (w *sessionWindow) collectDue() (more bool, err error) {
	w.due = w.due[:0]
	w.dueKeys.Reset()
	for g := range w.next {
		for w.next[g] != math.MaxInt64 && exec.Watermark(w.clock.fireTime(w.next[g])) <= w.watermark {
			if len(w.due) >= sessionPage {
				return true, nil
			}
			if err := w.takeDue(g); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

// takeDue takes timers of one key group that have come, to a page's end.
func (w *sessionWindow) takeDue(g int) error {
	b, err := w.groupTimers(g)
	if err != nil {
		return err
	}
	var taken [][]byte
	err = b.ascend(nil, func(sub, _ []byte) bool {
		if exec.Watermark(w.clock.fireTime(windowEnd(sub))) > w.watermark || len(w.due) >= sessionPage {
			return false
		}
		group := sub[16:]
		w.due = append(w.due, sessionTimer{windowEnd(sub), windowEnd(sub[8:]), w.dueKeys.Len()})
		appendKey(&w.dueKeys, group, checkpoint.HashKey(group))
		taken = append(taken, bytes.Clone(sub))
		return true
	})
	if err != nil {
		return err
	}
	for _, sub := range taken {
		if _, err := b.remove(sub); err != nil {
			return err
		}
	}
	if err := w.timers.done(); err != nil {
		return err
	}
	return w.findNext(g)
}

// fireDue ends the sessions of the collected timers, but for those that have grown.
func (w *sessionWindow) fireDue(out exec.Emitter) error {
	if err := w.spans.probe(&w.dueKeys); err != nil {
		return err
	}
	w.fired = w.fired[:0]
	for _, t := range w.due {
		b := w.spans.at(t.group)
		var s span
		ok := false
		err := b.descend(windowKey(t.id+1), func(sub, val []byte) bool {
			if len(val) == 16 {
				s, ok = span{windowEnd(sub), windowEnd(val), windowEnd(val[8:])}, true
			}
			return false
		})
		if err != nil {
			return err
		}
		if !ok || s.id != t.id {
			continue // it became part of another session
		}
		group, hash := w.dueKeys.Key(t.group), w.dueKeys.Hashes[t.group]
		if exec.Watermark(w.clock.fireTime(s.end)) > w.watermark {
			if err := w.addTimer(s.end, s.id, group, hash); err != nil {
				return err
			}
			continue
		}
		if _, err := b.remove(windowKey(s.start)); err != nil {
			return err
		}
		w.fired = append(w.fired, firedSession{s, group, hash})
	}
	if err := w.spans.done(); err != nil {
		return err
	}
	slices.SortFunc(w.fired, func(a, b firedSession) int {
		if a.end != b.end {
			return compare(a.end, b.end)
		}
		return bytes.Compare(a.group, b.group)
	})
	return w.payload.fire(w.fired, out)
}

// OnBarrier implements exec.Operator.
func (w *sessionWindow) OnBarrier(checkpoint.Barrier, exec.Emitter) ([]byte, error) {
	return w.payload.state(binary.BigEndian.AppendUint64(nil, uint64(w.watermark))), nil
}

// Close implements exec.Operator.
func (w *sessionWindow) Close() error { return nil }
