package exec

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
)

// sourceReader is the head of a source task: it reads splits, computes columns, makes watermarks, and starts barriers
// between two batches.
type sourceReader struct {
	t      *task
	m      *member
	node   *SourceNode
	src    connectors.Source
	reader connectors.Reader // nil until the subtask has a split
	splits []*split
	byName map[checkpoint.Split]*split

	in    *batch.Builder
	out   batch.Batch
	rows  *expr.Program // computed columns, nil = none
	marks *watermarker  // nil = the table has no watermark

	emitted   Watermark
	idle      bool
	injected  checkpoint.ID // the newest barrier started here
	exhausted bool          // no rows will ever come
	stopped   bool          // told to read no more
}

// run reads until the job says exit.
func (s *sourceReader) run(ctx context.Context) error {
	defer func() {
		if s.reader != nil {
			defer s.m.leave(s.m.enter())
			_ = s.reader.Close() // nothing a checkpoint lists depends on a reader
		}
	}()
	if err := s.t.at.waitOpened(); err != nil {
		return err
	}
	if err := s.start(ctx); err != nil {
		return s.m.wrap(err)
	}
	for !s.t.exited {
		if err := s.t.housekeeping(); err != nil || s.t.exited {
			return err
		}
		if s.stopped || s.exhausted || s.reader == nil {
			s.t.head.flush()
			if err := s.t.wait(); err != nil {
				return err
			}
			continue
		}
		if err := s.read(ctx); err != nil {
			return s.m.wrap(err)
		}
	}
	return nil
}

// start opens the reader at the restored positions and repeats the restored watermark, so that rows that were late
// before the restart are late after it.
func (s *sourceReader) start(ctx context.Context) error {
	s.emitted = NoWatermark
	if err := s.emit(s.reached()); err != nil {
		return err
	}
	now := s.t.at.nowMs()
	var open, late []checkpoint.Position
	for _, sp := range s.splits {
		sp.lastRow = now
		p := checkpoint.Position{Split: sp.name, Next: sp.next}
		switch {
		case sp.done:
		case sp.late:
			late = append(late, p)
		default:
			open = append(open, p)
		}
	}
	if len(open)+len(late) == 0 {
		if s.src.DiscoveryInterval() <= 0 {
			return s.exhaust()
		}
		return s.advance()
	}
	var err error
	before := s.m.enter()
	s.reader, err = s.src.Open(ctx, open)
	s.m.leave(before)
	if err != nil {
		return err
	}
	for _, p := range late {
		if err := s.reader.Add(ctx, p); err != nil {
			return err
		}
	}
	s.noteStart()
	return s.advance()
}

// reached is the event time that the operators chained to the source had come to before a restart. The splits alone do not tell: one that was
// idle while the others went on is behind it. Operators behind an exchange have it from their gate. Of an event time that had ended nothing
// is repeated: there may be more input now.
func (s *sourceReader) reached() Watermark {
	w := NoWatermark
	for _, c := range s.m.out.chained {
		w = max(w, c.restore.watermark(c.id.Index, c.node.Parallelism))
	}
	if s.marks == nil || w == MaxWatermark {
		return NoWatermark
	}
	return w
}

// noteStart takes over the positions a reader resolved when it was opened or got a split, so that a checkpoint taken
// before the first row holds them.
func (s *sourceReader) noteStart() {
	r, ok := s.reader.(connectors.Positioner)
	if !ok {
		return
	}
	for _, p := range r.Positions() {
		if sp := s.byName[p.Split]; sp != nil && sp.next == nil {
			sp.next = p.Next
		}
	}
}

// read takes one step of the reader: rows of one split.
func (s *sourceReader) read(ctx context.Context) error {
	if err := checkpoint.Failpoint("source.poll"); err != nil {
		return err
	}
	s.in.Reset()
	before := s.m.enter()
	p, err := s.reader.Next(ctx, s.in)
	s.m.leave(before)
	end := errors.Is(err, io.EOF)
	if err != nil && !end {
		if ctx.Err() != nil {
			return errStopping
		}
		return s.at(p.Split, err)
	}
	sp := s.byName[p.Split]
	if sp != nil {
		sp.pass(int64(p.Records))
	}
	if n := s.in.Len(); n > 0 {
		if sp == nil {
			return unknownSplit(p.Split)
		}
		if err := s.push(sp); err != nil {
			return s.at(p.Split, err)
		}
	}
	if sp != nil {
		if p.Position != nil {
			sp.next = append([]byte(nil), p.Position...)
		}
		sp.done = sp.done || p.Done
		sp.meter.lag.Set(p.Lag)
		sp.meter.records.Add(int64(p.Records))
		sp.meter.bytes.Add(p.Bytes)
		if p.Skipped > 0 {
			s.t.at.job.counters.counter(s.m.id, CounterSkipped).Add(int64(p.Skipped))
		}
	}
	if end {
		return s.ended()
	}
	return s.afterRead()
}

// afterRead emits due watermarks and what waited long enough at the exchanges.
func (s *sourceReader) afterRead() error {
	if s.marks != nil {
		if err := s.periodic(); err != nil {
			return err
		}
	}
	if s.in.Len() == 0 {
		s.m.flush()
	} else {
		s.m.flushOlder(time.Now().Add(-s.t.at.job.o.Linger))
	}
	return nil
}

// push sends the rows in s.in down the chain.
func (s *sourceReader) push(sp *split) error {
	b := s.in.Finish()
	if s.rows != nil {
		cols, err := s.rows.Eval(b)
		if err != nil {
			return err
		}
		s.out = batch.Batch{N: b.N, Sel: b.Sel, Kinds: b.Kinds, Cols: cols}
		b = &s.out
	}
	begin := s.t.at.nowMs()
	sp.lastRow = begin
	if sp.idle {
		sp.idle = false
		sp.meter.idle.Set(0)
		if err := s.setIdle(false); err != nil {
			return err
		}
	}
	var err error
	if s.marks != nil {
		err = s.pushMarked(sp, b)
	} else {
		err = s.m.out.Emit(b)
	}
	if waited := s.t.at.nowMs() - begin; waited > 0 {
		for _, o := range s.splits {
			o.lastRow += waited
		}
	}
	return err
}

// ended acts on the end of all splits: for a source that still discovers splits it is only a pause.
func (s *sourceReader) ended() error {
	for _, sp := range s.splits {
		sp.done = true
	}
	if s.src.DiscoveryInterval() > 0 {
		err := s.reader.Close()
		s.reader = nil
		return errors.Join(err, s.advance())
	}
	return s.exhaust()
}

func (s *sourceReader) exhaust() error {
	s.exhausted = true
	if err := s.emit(MaxWatermark); err != nil {
		return err
	}
	s.t.at.exhausted(s.m.id)
	s.m.flush()
	return nil
}

// command carries out what the job asks between two batches.
func (s *sourceReader) command(c command) error {
	switch c.kind {
	case cmdInject:
		return s.inject(c)
	case cmdAddSplit:
		return s.m.wrap(s.add(c.split))
	}
	return nil
}

// inject starts a checkpoint at this source.
func (s *sourceReader) inject(c command) error {
	s.stopped = s.stopped || c.last
	s.t.at.walk.aligned(c.barrier.ID, s.t)
	defer func() { s.injected = c.barrier.ID }() // until it is sent, it may need the overdraft
	if c.drain {
		if err := s.emit(MaxWatermark); err != nil {
			return err
		}
	}
	if err := checkpoint.Failpoint("barrier.inject"); err != nil {
		return s.m.wrap(err)
	}
	if s.t.at.abandoned(c.barrier.ID) {
		s.t.decline(c.barrier.ID)
		return s.m.barrier(c.barrier, nil)
	}
	sn := checkpoint.Snapshot{Subtask: s.m.id, State: encodeSplits(s.splits)}
	for _, sp := range s.splits {
		sn.Positions = append(sn.Positions, checkpoint.Position{Split: sp.name, Next: sp.next})
	}
	s.t.at.job.reread.mark(c.barrier.ID, s.m.id.Operator, s.splits)
	cut := &cut{id: c.barrier.ID, parts: []cutPart{{snapshot: sn}}}
	if err := s.m.barrier(c.barrier, cut); err != nil {
		return err
	}
	return s.t.submit(cut)
}

// add starts to read a split that was discovered while the job runs.
func (s *sourceReader) add(p checkpoint.Position) error {
	if s.byName[p.Split] != nil || s.stopped {
		return nil
	}
	sp := &split{name: p.Split, next: p.Next, wm: NoWatermark, lastRow: s.t.at.nowMs(), late: true}
	s.adopt(sp)
	ctx := s.t.at.ctx
	if s.reader == nil {
		r, err := s.src.Open(ctx, nil)
		if err != nil {
			return err
		}
		s.reader = r
	}
	if err := s.reader.Add(ctx, p); err != nil {
		return err
	}
	s.noteStart()
	return s.setIdle(false)
}

func (s *sourceReader) adopt(sp *split) {
	sp.meter = s.t.at.job.splitMeter(s.m.id.Operator, sp.name)
	sp.meter.watermark.Set(int64(sp.wm))
	s.splits = append(s.splits, sp)
	s.byName[sp.name] = sp
}

// at attributes err to a split.
func (s *sourceReader) at(split checkpoint.Split, err error) error {
	err = s.m.wrap(err)
	var te *TaskError
	if errors.As(err, &te) && te.Split == "" && te.Subtask == s.m.id {
		te.Split = split
	}
	return err
}
