package op

import (
	"encoding/binary"
	"math"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
)

// sessionAccs is the aggregate over sessions that hold accumulators. The state is a row per group: the time of its timer,
// and its sessions one after another, oldest first, none touching another. Most groups have one, and most rows fall into it or make it
// longer: they are accumulated a batch and a column at a time.
//
// A session is an accumulator row, whose first word is the session's start, and its end; both on the windows' wall clock, in ms.
// A group has one timer, at or before the moment its first session ends: a session that has grown since is put off when
// the timer comes.
type sessionAccs struct {
	spec  WindowAggSpec
	core  aggCore // for its accumulators; it has no tables
	clock windowClock
	late  *exec.Counter
	now   func() int64

	watermark exec.Watermark
	groups    checkpoint.Table
	timers    timers
	size      int // of a session
	empty     []byte

	times   []int64    // of the batch's rows
	batched *batchKeys // the batch's groups; what follows is of them
	refs    []checkpoint.Ref
	spans   []batchSpan
	opened  [][]byte // the session of all the group's rows; nil when they are handled one by one
	found   []checkpoint.Ref
	rows    [][]byte

	in    batch.Batch
	sel   []int32  // rows not yet accumulated
	accs  [][]byte // and their sessions
	byRow bool     // there are accumulators that need the rows, not only their number
	buf   []byte   // a group's row being made

	due      checkpoint.Keys
	dueTimes []int64
	gone     []checkpoint.Ref
	fired    sessionPageOut
}

// batchSpan is what a batch has of a group: the number of its rows and their least and greatest time.
type batchSpan struct{ first, last, n int64 }

const sessionHead = 8 // bytes before the sessions of a group

// Open implements exec.Operator.
func (w *sessionAccs) Open(s exec.Subtask) (err error) {
	w.clock = newWindowClock(w.spec.Window, w.spec.Input, w.spec.Session)
	w.batched = newBatchKeys(w.spec.Keys, nil)
	w.late, w.now = s.Counter("late-dropped"), s.Now
	w.core.accs, w.core.fixed, _ = layout(w.spec.Aggs)
	w.size = w.core.fixed + 8
	w.empty = make([]byte, w.size)
	for i := range w.core.accs {
		w.byRow = w.byRow || !w.core.accs[i].shared
	}
	w.sel = make([]int32, 0, batch.Size) // not nil even when no row counts: a nil selection is all rows
	w.watermark = restoredWatermark(s.Restored())
	w.fired.open(w)
	format := "session-accs/1"
	for _, a := range w.spec.Aggs {
		format += ";" + a.Text + ":" + a.ArgType.String()
	}
	if w.groups, err = s.Table(checkpoint.TableOptions{Name: "sessions", Format: format}); err != nil {
		return err
	}
	if err := w.timers.open(s, "sessions.timers"); err != nil {
		return err
	}
	var failed error
	err = w.groups.Visit(func(key, row []byte) bool {
		failed = w.timers.addStored(word(row, 0), key)
		return failed == nil
	})
	if err == nil {
		err = failed
	}
	return err
}

// end is when a session ends, start when it began.
func (w *sessionAccs) end(s []byte) int64   { return word(s, w.core.fixed) }
func (w *sessionAccs) start(s []byte) int64 { return word(s, 0) }

// fires is the watermark that ends a session.
func (w *sessionAccs) fires(end int64) int64 { return w.clock.fireTime(end) }

// Process implements exec.Operator.
func (w *sessionAccs) Process(_ int, b *batch.Batch, _ exec.Emitter) error {
	if b.Len() == 0 {
		return nil
	}
	if err := w.findTimes(b); err != nil {
		return err
	}
	w.batched.find(b)
	w.findSpans()
	w.refs = resize(w.refs, len(w.spans))
	if err := w.groups.Probe(&w.batched.keys, w.refs); err != nil {
		return err
	}
	if err := w.create(); err != nil {
		return err
	}
	w.in, w.sel, w.accs = *b, w.sel[:0], w.accs[:0]
	if err := w.openSessions(b); err != nil {
		return err
	}
	if w.byRow {
		for i, g := range w.batched.of {
			if s := w.opened[g]; s != nil {
				w.sel, w.accs = append(w.sel, int32(b.Row(i))), append(w.accs, s)
			}
		}
		if err := w.accumulate(); err != nil {
			return err
		}
	}
	return w.timers.commit()
}

// findSpans finds what the batch has of each group.
func (w *sessionAccs) findSpans() {
	w.spans = resize(w.spans, w.batched.keys.Len())
	for g := range w.spans {
		w.spans[g] = batchSpan{math.MaxInt64, math.MinInt64, 0}
	}
	for i, g := range w.batched.of {
		s, at := &w.spans[g], w.times[i]
		s.first, s.last, s.n = min(s.first, at), max(s.last, at), s.n+1
	}
}

// together reports that the rows of a batch of one group make one session, whatever the group has: none is late by itself, and none
// is too far from the others.
func (w *sessionAccs) together(s batchSpan) bool {
	return s.last-s.first <= w.clock.Size && exec.Watermark(w.fires(s.first+w.clock.Size)) > w.watermark
}

// openSessions puts the batch's rows into sessions: a group at a time, with opened set to the session, or row by row.
func (w *sessionAccs) openSessions(b *batch.Batch) error {
	w.opened = resize(w.opened, len(w.spans))
	apart, k := false, 0
	for g := range w.spans {
		w.opened[g] = nil
		span, row := &w.spans[g], []byte(nil)
		if w.refs[g] != checkpoint.NoRow {
			row = w.rows[k]
			k++
		}
		if !w.together(*span) {
			apart = true
			continue
		}
		s, err := w.session(g, row, span.first, span.last+w.clock.Size)
		if err != nil {
			return err
		}
		setWord(s, rowCount, word(s, rowCount)+span.n)
		w.opened[g] = s
	}
	if apart {
		return w.openApart(b)
	}
	return nil
}

// openApart is openSessions for the groups whose rows are handled one by one, and accumulates them.
func (w *sessionAccs) openApart(b *batch.Batch) error {
	for i, g := range w.batched.of {
		if w.opened[g] != nil {
			continue
		}
		var s []byte
		if ref := w.refs[g]; ref != checkpoint.NoRow {
			var err error
			if s, err = w.session(int(g), w.groups.Mutable(ref), w.times[i], w.times[i]+w.clock.Size); err != nil {
				return err
			}
		}
		if s == nil {
			w.late.Add(1)
			continue
		}
		setWord(s, rowCount, word(s, rowCount)+1)
		w.sel, w.accs = append(w.sel, int32(b.Row(i))), append(w.accs, s)
	}
	return w.accumulate()
}

// findTimes sets times to the rows' times on the wall clock. The rows of a batch arrive together: processing time is read once.
func (w *sessionAccs) findTimes(b *batch.Batch) error {
	w.times = resize(w.times, b.Len())
	if w.clock.Proctime {
		at := w.clock.wall(max(w.now(), int64(w.watermark)+1))
		for i := range w.times {
			w.times[i] = at
		}
		return nil
	}
	var err error
	if w.times, err = rowtimes(w.times, b, w.spec.Input, w.clock.Time); err != nil || w.clock.zone == nil {
		return err
	}
	for i, at := range w.times {
		w.times[i] = w.clock.wall(at)
	}
	return nil
}

// create makes the groups that are missing, without sessions, but for those all of whose rows come too late to begin one. It sets
// found and rows.
func (w *sessionAccs) create() error {
	w.found = w.found[:0]
	for g, ref := range w.refs {
		if ref == checkpoint.NoRow {
			if exec.Watermark(w.fires(w.spans[g].last+w.clock.Size)) <= w.watermark {
				continue
			}
			r, _, err := w.groups.Insert(&w.batched.keys, g, sessionHead+w.size)
			if err != nil {
				return err
			}
			w.refs[g] = r
			row := w.groups.Mutable(r)
			setWord(row, 0, math.MaxInt64)
			setWord(row, sessionHead+rowCount, 0)
		}
		w.found = append(w.found, w.refs[g])
	}
	w.rows = resize(w.rows, len(w.found))
	w.groups.MutableRows(w.found, w.rows)
	return nil
}

// session is the session of a row of group g, or of several with times from at on, which alone would make one that ends at end. row is the
// group's. It may begin, be extended or be made of several. nil: it has ended already.
func (w *sessionAccs) session(g int, row []byte, at, end int64) ([]byte, error) {
	first, n := -1, 0 // sessions that the row touches
	for k, rest := 0, row[sessionHead:]; len(rest) > 0; k, rest = k+1, rest[w.size:] {
		if word(rest, rowCount) == 0 { // of a group just made
			return w.begin(g, row, rest[:w.size], at, end), nil
		}
		if w.start(rest) > end {
			break
		}
		if w.end(rest) >= at {
			if n == 0 {
				first = k
			}
			n++
		}
	}
	if n == 1 {
		s := row[sessionHead+first*w.size:][:w.size]
		if at < w.start(s) {
			setWord(s, 0, at)
		}
		if end > w.end(s) {
			setWord(s, w.core.fixed, end)
		}
		return s, nil
	}
	if n == 0 && exec.Watermark(w.fires(end)) <= w.watermark {
		return nil, nil
	}
	return w.rebuild(g, at, end, first, n)
}

// begin makes s, of group g without sessions, one from at to end.
func (w *sessionAccs) begin(g int, row, s []byte, at, end int64) []byte {
	if exec.Watermark(w.fires(end)) <= w.watermark {
		return nil // the group was made for a later row
	}
	clear(s)
	setWord(s, 0, at)
	setWord(s, w.core.fixed, end)
	w.schedule(row, w.batched.keys.Key(g), w.batched.keys.Hashes[g], end)
	return s
}

// schedule sets the timer of a group for a session ending at end, unless an earlier one is set.
func (w *sessionAccs) schedule(row, key []byte, hash uint64, end int64) {
	if at := w.fires(end); at < word(row, 0) {
		setWord(row, 0, at)
		w.timers.add(at, key, hash)
	}
}

// rebuild makes one session of the n of group g from first on and rows from at to end; n = 0 adds a session.
func (w *sessionAccs) rebuild(g int, at, end int64, first, n int) ([]byte, error) {
	if err := w.accumulate(); err != nil { // their sessions move
		return nil, err
	}
	ref := w.refs[g]
	old := w.groups.Value(ref)
	sessions := old[sessionHead:]
	if n == 0 {
		for first = 0; first*w.size < len(sessions) && w.start(sessions[first*w.size:]) < at; first++ {
		}
	}
	w.buf = append(w.buf[:0], old[:sessionHead+first*w.size]...)
	from := len(w.buf)
	if n == 0 {
		w.buf = append(w.buf, w.empty...)
		setWord(w.buf, from, at)
	} else {
		w.buf = append(w.buf, sessions[first*w.size:][:w.size]...)
	}
	s := w.buf[from:][:w.size]
	for k := 1; k < n; k++ {
		o := sessions[(first+k)*w.size:]
		w.core.merge(s, o[:w.size])
		end = max(end, w.end(o))
	}
	setWord(s, 0, min(at, w.start(s)))
	if n > 0 {
		end = max(end, w.end(s))
	}
	setWord(s, w.core.fixed, end)
	w.buf = append(w.buf, sessions[(first+n)*w.size:]...)
	if n == 0 {
		w.schedule(w.buf, w.batched.keys.Key(g), w.batched.keys.Hashes[g], end)
	}
	w.groups.Set(ref, w.buf)
	return w.groups.Mutable(ref)[from:][:w.size], nil
}

// accumulate folds the rows collected into their sessions.
func (w *sessionAccs) accumulate() error {
	if len(w.sel) == 0 {
		return nil
	}
	w.in.Sel = w.sel
	w.core.masks.begin(&w.in)
	for k := range w.core.accs {
		if err := w.core.column(&w.core.accs[k], &w.in, w.accs); err != nil {
			return err
		}
	}
	w.sel, w.accs = w.sel[:0], w.accs[:0]
	return nil
}

// OnWatermark implements exec.Operator.
func (w *sessionAccs) OnWatermark(wm exec.Watermark, out exec.Emitter) error {
	if w.clock.Proctime {
		return nil
	}
	return w.advance(wm, out)
}

// NextTimer implements exec.ProcessingTimer.
func (w *sessionAccs) NextTimer() (int64, bool) {
	at, ok := w.timers.next()
	if !w.clock.Proctime || !ok {
		return math.MaxInt64, false
	}
	return at + 1, true
}

// OnTimer implements exec.ProcessingTimer.
func (w *sessionAccs) OnTimer(now int64, out exec.Emitter) error {
	return w.advance(exec.Watermark(now-1), out)
}

// advance ends the sessions whose last millisecond is not after wm.
func (w *sessionAccs) advance(wm exec.Watermark, out exec.Emitter) (err error) {
	if wm <= w.watermark {
		return nil
	}
	w.watermark = wm
	for {
		w.due.Reset()
		if w.dueTimes, err = w.timers.take(int64(wm), batch.Size, &w.due, w.dueTimes[:0]); err != nil {
			return err
		}
		if w.due.Len() == 0 {
			return w.timers.commit()
		}
		w.refs = resize(w.refs, w.due.Len())
		if err := w.groups.Probe(&w.due, w.refs); err != nil {
			return err
		}
		w.gone = w.gone[:0]
		for i, ref := range w.refs {
			if ref != checkpoint.NoRow && word(w.groups.Value(ref), 0) == w.dueTimes[i] {
				w.fire(i, ref)
			}
		}
		for _, ref := range w.gone {
			w.groups.Delete(ref)
		}
		if err := w.fired.emit(out); err != nil {
			return err
		}
	}
}

// fire takes the sessions that have ended out of a group, whose key is due key i, and sets its next timer.
func (w *sessionAccs) fire(i int, ref checkpoint.Ref) {
	row := w.groups.Mutable(ref)
	w.buf = append(w.buf[:0], row[:sessionHead]...)
	next := int64(math.MaxInt64)
	for rest := row[sessionHead:]; len(rest) > 0; rest = rest[w.size:] {
		s := rest[:w.size]
		if at := w.fires(w.end(s)); exec.Watermark(at) > w.watermark {
			next = min(next, at)
			w.buf = append(w.buf, s...)
			continue
		}
		w.fired.add(w.due.Key(i), s)
	}
	setWord(w.buf, 0, next)
	setWord(row, 0, next)
	switch {
	case len(w.buf) == sessionHead:
		w.gone = append(w.gone, ref)
		return
	case len(w.buf) < len(row):
		w.groups.Set(ref, w.buf)
	}
	w.timers.add(next, w.due.Key(i), w.due.Hashes[i])
}

// OnBarrier implements exec.Operator.
func (w *sessionAccs) OnBarrier(checkpoint.Barrier, exec.Emitter) ([]byte, error) {
	return binary.BigEndian.AppendUint64(nil, uint64(w.watermark)), nil
}

// Close implements exec.Operator.
func (w *sessionAccs) Close() error { return nil }
