package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/checkpoint"
)

// probe tells the outcome of a transaction without changing anything; why explains OutcomeUnknown. It reads the
// witness partition forward from the witness record, uncommitted data and control records included,
// to the first control record of the transaction's producer id: that marker is the outcome, whatever happened to the
// id since. It needs only READ on the sink topic. The coordinator is not asked: before KIP-890 part 2 a later transaction
// of the id runs under the same epoch, so "ongoing" need not mean this one.
func probe(ctx context.Context, c *client, t *txnRef) (checkpoint.Outcome, string, error) {
	w := t.witness
	start := kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{w.topic: {w.partition: kgo.NewOffset().At(w.offset)}})
	// The later options win over the table's own fetch settings.
	cl, err := kgo.NewClient(c.opts(c.consumer, []kgo.Opt{start, kgo.FetchIsolationLevel(kgo.ReadUncommitted()),
		kgo.KeepControlRecords(), kgo.FetchMaxWait(200 * time.Millisecond), kgo.FetchMinBytes(1)})...)
	if err != nil {
		return checkpoint.OutcomeUnknown, "", err
	}
	defer cl.Close()
	end, why, err := witnessLog(ctx, kadm.NewClient(cl), w)
	if err != nil || why != "" {
		return checkpoint.OutcomeUnknown, why, err
	}
	return scanMarkers(ctx, cl, t, end)
}

// witnessLog checks that the log is the one the witness was written to and still holds it, and returns its end.
func witnessLog(ctx context.Context, adm *kadm.Client, w witness) (end int64, why string, err error) {
	topics, err := adm.ListTopics(ctx, w.topic)
	if err != nil {
		return 0, "", err
	}
	td := topics[w.topic]
	if errors.Is(td.Err, kerr.UnknownTopicOrPartition) {
		return 0, fmt.Sprintf("topic %s does not exist", w.topic), nil
	}
	if td.Err != nil {
		return 0, "", fmt.Errorf("topic %s: %w", w.topic, td.Err)
	}
	if w.topicID != [16]byte{} && [16]byte(td.ID) != [16]byte{} && [16]byte(td.ID) != w.topicID {
		return 0, fmt.Sprintf("topic %s was deleted and created again", w.topic), nil
	}
	ends, err := adm.ListEndOffsets(ctx, w.topic)
	if err != nil {
		return 0, "", err
	}
	starts, err := adm.ListStartOffsets(ctx, w.topic)
	if err != nil {
		return 0, "", err
	}
	e, ok := ends.Lookup(w.topic, w.partition)
	s, ok2 := starts.Lookup(w.topic, w.partition)
	switch {
	case !ok || !ok2:
		return 0, fmt.Sprintf("topic %s has no partition %d", w.topic, w.partition), nil
	case e.Err != nil:
		return 0, "", e.Err
	case s.Err != nil:
		return 0, "", s.Err
	case s.Offset > w.offset:
		return 0, fmt.Sprintf("record %s was deleted by retention: the log starts at %d", w, s.Offset), nil
	case e.Offset <= w.offset:
		return 0, fmt.Sprintf("record %s is missing: the log ends at %d (lost by an unclean leader election?)", w, e.Offset), nil
	}
	return e.Offset, "", nil
}

// scanMarkers reads to the first control record of the producer, or to end. A compacted topic may have dropped the
// witness record itself; its producer's next marker still decides, as no id is reused while it can be asked for.
func scanMarkers(ctx context.Context, cl *kgo.Client, t *txnRef, end int64) (checkpoint.Outcome, string, error) {
	for {
		fs := cl.PollFetches(ctx)
		if err := fs.Err0(); err != nil {
			return checkpoint.OutcomeUnknown, "", err
		}
		for _, fe := range fs.Errors() {
			return checkpoint.OutcomeUnknown, "", fmt.Errorf("reading %s-%d: %w", fe.Topic, fe.Partition, fe.Err)
		}
		last := int64(-1)
		for it := fs.RecordIter(); !it.Done(); {
			r := it.Next()
			last = r.Offset
			if r.Offset == t.witness.offset && (r.ProducerID != t.pid || r.ProducerEpoch != t.epoch) {
				return checkpoint.OutcomeUnknown, fmt.Sprintf("record %s was written by producer %d epoch %d", t.witness, r.ProducerID, r.ProducerEpoch), nil
			}
			if r.Offset <= t.witness.offset || r.ProducerID != t.pid || !r.Attrs.IsControl() || len(r.Key) < 4 {
				continue
			}
			switch binary.BigEndian.Uint16(r.Key[2:4]) {
			case 0:
				return checkpoint.OutcomeAborted, "", nil
			case 1:
				return checkpoint.OutcomeCommitted, "", nil
			}
		}
		if last+1 >= end {
			return checkpoint.OutcomeOpen, "", nil
		}
	}
}
