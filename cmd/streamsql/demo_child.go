package main

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
)

// orderCommand is the argument of "streamsql demo" that makes it one of the demo's own children.
const orderCommand = "order"

const orderSQL = `
SET 'pipeline.name' = '%[1]s';
SET 'parallelism.default' = '1';
-- The program takes the checkpoints, one after every five events; the interval is too long to matter.
SET 'execution.checkpointing.interval' = '5 min';
SET 'execution.checkpointing.timeout' = '1 min';
SET 'restart-strategy.type' = 'none';
CREATE TABLE events (id INT) WITH ('connector' = 'kafka', 'topic' = '%[1]s', 'format' = 'json',
  'scan.startup.mode' = 'earliest-offset');
CREATE TABLE seen (id INT) WITH ('connector' = 'kafka', 'topic' = '%[1]s_out', 'format' = 'json',
  'sink.delivery-guarantee' = '%[2]s');
INSERT INTO seen SELECT id FROM events;
`

// runOrder is the child of the demo's second part: a program that embeds the engine and takes its checkpoints itself. It
// loads events up to the next step, waits until the job has written them, and takes a checkpoint after every fifth; a
// failpoint in its environment kills it on the way. Started again it goes on from the newest checkpoint.
func runOrder(args []string, out, errs io.Writer) int {
	f := newFlags("demo "+orderCommand, "NAME", "A child process of the demo: one job that crashes.", errs)
	f.engineFlags()
	pos, code, ok := f.parse(args, out)
	if !ok {
		return code
	}
	if len(pos) != 1 {
		fmt.Fprintln(errs, "streamsql demo order: the name of one crash order is missing")
		return exitUsage
	}
	if err := driveOrder(context.Background(), pos[0], f); err != nil {
		return fail(errs, err, source{})
	}
	return exitOK
}

func driveOrder(ctx context.Context, order string, f *flags) error {
	guarantee := "exactly-once"
	if order == "at-least-once" {
		guarantee = order
	}
	w := &watched{early: order == "early-commit"}
	conns := streamsql.DefaultConnectors(io.Discard)
	for i := range conns {
		if conns[i].Name == "kafka" {
			conns[i] = w.connector(conns[i])
		}
	}
	eng, err := streamsql.Open(f.stateDir, &streamsql.Options{Connectors: conns, EmbeddedAddr: f.kafkaAddr, Redefine: true})
	if err != nil {
		return err
	}
	defer eng.Close() // the job is stopped before
	kafka, err := newObserver(f.kafkaAddr)
	if err != nil {
		return err
	}
	defer kafka.close()
	topic := orderTopic(order)
	var job *streamsql.Job
	script := eng.Script(fmt.Sprintf(orderSQL, topic, guarantee))
	for job == nil {
		res, err := script.Next(ctx)
		if err != nil {
			return err
		}
		job = res.Job
	}
	for _, step := range []int64{orderBatch, orderCrash, 2 * orderBatch, 3 * orderBatch, orderEvents} {
		if done, err := kafka.end(ctx, topic); err != nil || done > step || done == step && step%orderBatch != 0 {
			if err != nil {
				return err
			}
			continue // before the crash
		}
		if err := loadTo(ctx, kafka, topic, step); err != nil {
			return err
		}
		if err := w.wait(ctx, job, kafka, topic+"_out", step); err != nil {
			return err
		}
		if step == orderCrash {
			if err := checkpoint.Failpoint("demo.event7"); err != nil {
				return err
			}
			continue
		}
		if _, err := job.Checkpoint(ctx); err != nil {
			return err
		}
	}
	return job.Stop(ctx, streamsql.StopOptions{})
}

// loadTo produces the events after the topic's end up to number n.
func loadTo(ctx context.Context, kafka *observer, topic string, n int64) error {
	end, err := kafka.end(ctx, topic)
	if err != nil {
		return err
	}
	var loaded atomic.Int64
	for id := end + 1; id <= n; id++ {
		kafka.load(ctx, topic, 0, fmt.Appendf(nil, `{"id":%d}`, id), &loaded)
	}
	if err := kafka.cl.Flush(ctx); err != nil {
		return err
	}
	if loaded.Load() != max(0, n-end) {
		return fmt.Errorf("%d of %d events were loaded into %s", loaded.Load(), n-end, topic)
	}
	return nil
}

// watched is what the child knows of the rows its job wrote. early makes the mistake of the fourth order: it commits in
// the pre-commit, before the checkpoint that lists the transaction is durable.
type watched struct {
	early bool
	rows  atomic.Int64 // written since the process started
	last  atomic.Int64 // highest event number among them
}

// wait returns when the job has written event n and the broker has every row written.
func (w *watched) wait(ctx context.Context, job *streamsql.Job, kafka *observer, out string, n int64) error {
	for {
		end, err := kafka.end(ctx, out)
		if err != nil {
			return err
		}
		if (w.last.Load() >= n || n <= restoredEvents(job)) && end >= w.rows.Load() {
			return nil
		}
		select {
		case <-job.Done():
			return fmt.Errorf("the job ended early: %w", job.Wait(ctx))
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// restoredEvents is the number of events that the checkpoint the job resumed from covers.
func restoredEvents(job *streamsql.Job) int64 {
	return orderBatch * int64(job.Status().Checkpoint.Restored)
}

// connector is the Kafka connector with its sink watched.
func (w *watched) connector(c connectors.Connector) connectors.Connector {
	open := c.NewSink
	c.NewSink = func(ctx context.Context, spec connectors.SinkSpec) (connectors.Sink, error) {
		s, err := open(ctx, spec)
		if err != nil {
			return nil, err
		}
		return watchedSink{s, w}, nil
	}
	return c
}

type watchedSink struct {
	connectors.Sink
	w *watched
}

// Open implements connectors.Sink.
func (s watchedSink) Open(ctx context.Context, subtask int) (connectors.Writer, error) {
	wr, err := s.Sink.Open(ctx, subtask)
	if err != nil {
		return nil, err
	}
	return watchedWriter{wr, s}, nil
}

type watchedWriter struct {
	connectors.Writer
	s watchedSink
}

// Write implements connectors.Writer.
func (wr watchedWriter) Write(ctx context.Context, b *batch.Batch) error {
	if err := wr.Writer.Write(ctx, b); err != nil {
		return err
	}
	for i := range b.Len() {
		wr.s.w.last.Store(max(wr.s.w.last.Load(), b.Cols[0].Datum(b.Row(i)).I64))
	}
	wr.s.w.rows.Add(int64(b.Len()))
	return nil
}

// PreCommit implements connectors.Writer.
func (wr watchedWriter) PreCommit(ctx context.Context, id checkpoint.ID) ([]checkpoint.Committable, error) {
	cs, err := wr.Writer.PreCommit(ctx, id)
	if err != nil || !wr.s.w.early || len(cs) == 0 {
		return cs, err
	}
	c, err := wr.s.Sink.Committer(ctx)
	if err != nil {
		return nil, err
	}
	return cs, c.Commit(ctx, cs)
}
