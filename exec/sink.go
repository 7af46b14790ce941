package exec

import (
	"context"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
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
}

// Open implements Operator. The job opens it after restore committed and aborted what it had to.
func (s *sinkOperator) Open(Subtask) (err error) {
	s.writer, err = s.sink.Open(s.ctx, s.id.Index)
	return err
}

// Process implements Operator.
func (s *sinkOperator) Process(_ int, b *batch.Batch, _ Emitter) error {
	return s.writer.Write(s.ctx, b)
}

// OnWatermark implements Operator: sinks do not use event time.
func (s *sinkOperator) OnWatermark(Watermark, Emitter) error { return nil }

// OnBarrier implements Operator: it pre-commits the rows of the checkpoint.
func (s *sinkOperator) OnBarrier(b checkpoint.Barrier, _ Emitter) ([]byte, error) {
	if err := checkpoint.Failpoint("precommit.before"); err != nil {
		return nil, err
	}
	cs, err := s.writer.PreCommit(s.ctx, b.ID)
	if err != nil {
		return nil, err
	}
	for i := range cs {
		c := &cs[i]
		c.Sink, c.Checkpoint, c.Subtask, c.Lineage = s.spec.ID, b.ID, s.id.Index, s.spec.Job.Lineage
		if c.CreatedAt.IsZero() {
			c.CreatedAt = s.now()
		}
	}
	s.pending = append(s.pending, cs...)
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
