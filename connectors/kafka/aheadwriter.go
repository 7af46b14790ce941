package kafka

import (
	"context"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/diag"
)

// aheadWriter keeps the records of a subtask until its barrier takes them into the checkpoint.
type aheadWriter struct {
	enc    aheadEncoder
	ref    aheadRef // what is the same in every payload
	limit  int64    // bytes of a checkpoint
	record int      // bytes of a record that the brokers take
}

// recordOverhead is more than a batch of one record needs beside key, value and headers.
const recordOverhead = 128

// openAhead prepares a subtask: its commits need the marker topic.
func (s *sink) openAhead(ctx context.Context, k cluster, subtask int) (*aheadWriter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, err := s.ensureMarkers(ctx)
	if err != nil {
		return nil, err
	}
	record, err := s.recordLimit(ctx)
	if err != nil {
		return nil, err
	}
	return &aheadWriter{limit: s.x.v.Memory(maxBytesOption), record: record,
		ref: aheadRef{id: txnID(s.owner.prefix, subtask, 0), markers: s.x.v.String(markerTopicOption), markersID: id,
			clusterID: k.id, bootstrap: s.c.servers[0], subtasks: s.spec.Parallel}}, nil
}

// recordLimit is the size of the largest record that the producer and every topic take. One that is refused in a commit,
// when its checkpoint is durable, would block the job until the topic is changed.
func (s *sink) recordLimit(ctx context.Context) (int, error) {
	limit := s.c.batchBytes
	var names []string
	for n := range s.topics {
		names = append(names, n)
	}
	if len(names) == 0 {
		return limit, nil // asked for none, kadm describes all
	}
	cl, err := connect(ctx, s.c)
	if err != nil {
		return 0, s.at(err)
	}
	defer cl.Close()
	configs, err := kadm.NewClient(cl).DescribeTopicConfigs(ctx, names...)
	if err != nil {
		return limit, nil // not allowed to read settings
	}
	for _, rc := range configs {
		for _, c := range rc.Configs {
			if c.Key != "max.message.bytes" || c.Value == nil {
				continue
			}
			if n, err := strconv.Atoi(*c.Value); err == nil {
				limit = min(limit, n)
			}
		}
	}
	return limit, nil
}

// keep takes the slab's records in and gives the slab back.
func (w *writer) keep(sl *slab) error {
	a := w.ahead
	now := time.Now()
	for i := range sl.recs {
		r := &sl.recs[i]
		if r.Timestamp.IsZero() {
			r.Timestamp = now
		}
		if n := recordSize(r); n > a.record {
			return diag.New(diag.Data, diag.Pos{}, "table %s: a row makes a record of %d bytes, which kafka does not take", w.s.x.t.Name, n).
				WithDetail("topic %s takes records up to %d bytes", r.Topic, a.record).
				WithHint("raise the topic's max.message.bytes and 'properties.max.request.size'")
		}
		a.enc.add(r)
	}
	sl.left.Store(1)
	sl.release(1)
	if n := int64(len(a.enc.data)); n > a.limit {
		return diag.New(diag.Config, w.s.x.t.Options.Pos(maxBytesOption), "table %s: one subtask wrote more than %d bytes in one checkpoint", w.s.x.t.Name, a.limit).
			WithDetail("'sink.commit-protocol' = 'write-ahead' keeps the rows of a checkpoint in it; %d rows are held", a.enc.rows).
			WithHint("shorten execution.checkpointing.interval, raise '%s', or use 'sink.commit-protocol' = 'transaction'", maxBytesOption)
	}
	return nil
}

func recordSize(r *kgo.Record) int {
	n := recordOverhead + len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += len(h.Key) + len(h.Value) + 10
	}
	return n
}

func (w *writer) preCommitAhead(id checkpoint.ID) ([]checkpoint.Committable, error) {
	a := w.ahead
	if a.enc.rows == 0 {
		return nil, nil
	}
	ref := a.ref
	ref.data, ref.rows = a.enc.take()
	out := []checkpoint.Committable{{Sink: w.s.spec.ID, Checkpoint: id, Subtask: w.subtask, Lineage: w.s.spec.Job.Lineage,
		Payload: ref.encode(), CreatedAt: time.Now()}}
	return out, checkpoint.Failpoint("kafka.precommit.after")
}
