package exec

import (
	"context"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
)

// sinkOperator writes a subtask's rows through a connector's Writer.
type sinkOperator struct {
	ctx     context.Context // of the attempt
	id      checkpoint.SubtaskID
	sink    connectors.Sink
	spec    connectors.SinkSpec
	now     func() time.Time
	writer  connectors.Writer
	pending []checkpoint.Committable // of the last PreCommit, until taken into the snapshot
	final   bool                     // the job's last barrier has passed
	meter   *sinkMeter
	wrote   bool // rows, since the last barrier
}

// Open implements Operator. The job opens it after restore committed and aborted what it had to.
func (s *sinkOperator) Open(Subtask) (err error) {
	s.writer, err = s.sink.Open(s.ctx, s.id.Index)
	return err
}

// Process implements Operator.
func (s *sinkOperator) Process(_ int, b *batch.Batch, _ Emitter) error {
	if s.final && b.Len() > 0 {
		// No checkpoint would commit them: better to fail than to lose them without a word.
		return diag.New(diag.Internal, diag.Pos{}, "%d rows came behind the job's last barrier", b.Len()).
			WithDetail("no checkpoint holds them, so that they may be missing in the output").
			WithHint("this is a fault in streamsql: please report it with the job, and run the job afresh (--restore none)")
	}
	if !s.wrote && b.Len() > 0 {
		s.wrote = true
		s.meter.writes(s.id.Index, s.now())
	}
	return s.writer.Write(s.ctx, b)
}

// OnWatermark implements Operator: sinks do not use event time.
func (s *sinkOperator) OnWatermark(Watermark, Emitter) error { return nil }

// OnBarrier implements Operator: it pre-commits the rows of the checkpoint.
func (s *sinkOperator) OnBarrier(b checkpoint.Barrier, _ Emitter) ([]byte, error) {
	if err := checkpoint.Failpoint("precommit.before"); err != nil {
		return nil, err
	}
	begin := s.now()
	cs, err := s.writer.PreCommit(s.ctx, b.ID)
	if err != nil {
		return nil, err
	}
	s.wrote = false
	s.meter.preCommitted(s.id.Index, b.ID, len(cs) > 0, s.now().Sub(begin))
	for i := range cs {
		c := &cs[i]
		c.Sink, c.Checkpoint, c.Subtask, c.Lineage = s.spec.ID, b.ID, s.id.Index, s.spec.Job.Lineage
		if c.CreatedAt.IsZero() {
			c.CreatedAt = s.now()
		}
	}
	s.pending = append(s.pending, cs...)
	s.final = b.Final
	return nil, checkpoint.Failpoint("precommit.after")
}

// take hands over the committables of the last OnBarrier.
func (s *sinkOperator) take() []checkpoint.Committable {
	cs := s.pending
	s.pending = nil
	return cs
}

// Close implements Operator.
func (s *sinkOperator) Close() error {
	if s.writer == nil {
		return nil
	}
	w := s.writer
	s.writer = nil
	return w.Close()
}
