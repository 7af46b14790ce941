package kafka

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/diag"
)

type slotState uint8

const (
	slotFree slotState = iota
	slotOpen
	slotPrepared
	slotCommitting
	slotCommitted
	slotRenewing // below transaction.version 2: the id is being initialised for its next transaction
	slotBurned   // its producer met an error and must not be used again
)

func (s slotState) String() string {
	return [...]string{"free", "open", "prepared", "committing", "committed", "renewing", "burned"}[s]
}

// minSlots: one transaction is written, one prepared, one committed but still listed in the newest manifest.
const minSlots = 3

// slot is one transactional id with its producer.
type slot struct {
	id      string
	cl      *kgo.Client
	state   slotState     // under the group's lock, like after, ref and listed
	after   checkpoint.ID // the barrier the rows of the open transaction follow
	ref     txnRef        // of the last prepared transaction
	listed  checkpoint.ID // newest manifest that may list ref, maxID while that is open
	pid     int64
	epoch   int16
	startMs int64
	turn    int // counts the transactions of the group

	bytes atomic.Int64 // of keys and values handed over, where transactions are split

	// Written by the producer's promise goroutine, read after Flush.
	acked   int64
	witness witness
	failed  atomic.Pointer[produceError]
}

type produceError struct {
	err       error
	topic     string
	partition int32
}

// begin opens a transaction on a free slot and notes the identity it runs under.
func (s *slot) begin(ctx context.Context) error {
	if err := s.cl.BeginTransaction(); err != nil {
		return s.broken("cannot begin a transaction", err)
	}
	pid, epoch, err := s.cl.ProducerID(ctx)
	if err != nil {
		return s.broken("has no producer id", err)
	}
	s.pid, s.epoch, s.startMs = pid, epoch, time.Now().UnixMilli()
	s.acked, s.witness = 0, witness{}
	s.bytes.Store(0)
	s.failed.Store(nil)
	s.state = slotOpen
	return nil
}

func (s *slot) broken(what string, err error) error {
	return diag.New(diag.External, diag.Pos{}, "kafka sink: transactional id %s %s", s.id, what).Wrap(err).
		WithDetail("another program or another run of this job may use the same ids; the job restarts from its last checkpoint")
}

// delivered is called for every record, by one goroutine per producer.
func (s *slot) delivered(r *kgo.Record, err error) {
	if err != nil {
		if s.failed.Load() == nil {
			s.failed.Store(&produceError{err: err, topic: r.Topic, partition: r.Partition})
		}
		return
	}
	s.acked++
	s.witness.topic, s.witness.partition, s.witness.offset = r.Topic, r.Partition, r.Offset
}

// failure is the first delivery error, nil when there is none so far.
func (s *slot) failure() error {
	f := s.failed.Load()
	if f == nil {
		return nil
	}
	return explainProduce(f.err, f.topic, f.partition)
}

func explainProduce(err error, topic string, partition int32) error {
	where := topic
	if partition >= 0 {
		where = fmt.Sprintf("%s, partition %d", topic, partition)
	}
	return diag.New(diag.External, diag.Pos{}, "kafka did not take a record for topic %s", where).Wrap(err).
		WithDetail("a record that is not acknowledged fails the checkpoint; the job restarts from the last one").
		WithHint("for a record that is too large, raise the topic's max.message.bytes and 'properties.max.request.size'")
}

// flush waits until every record is acknowledged and refuses the transaction if one was not, or if its identity moved.
func (s *slot) flush(ctx context.Context) error {
	if err := s.cl.Flush(ctx); err != nil {
		return fmt.Errorf("kafka sink: flushing transaction %s: %w", s.id, err)
	}
	if err := s.failure(); err != nil {
		return err
	}
	if s.acked == 0 {
		// Nothing was sent, so ending sends nothing either.
		return s.cl.EndTransaction(ctx, kgo.TryAbort)
	}
	pid, epoch, err := s.cl.ProducerID(ctx)
	if err != nil {
		return s.broken("lost its producer id", err)
	}
	if pid != s.pid || epoch != s.epoch {
		return s.broken("changed its producer id inside a transaction",
			fmt.Errorf("it was producer %d epoch %d and is %d epoch %d", s.pid, s.epoch, pid, epoch))
	}
	return nil
}

const closeTimeout = 5 * time.Second

// close releases the producer. What is open is aborted, so that it does not hold readers back until its timeout; what
// is prepared belongs to a checkpoint and is left alone.
func (s *slot) close() {
	if s.state == slotBurned {
		return
	}
	if s.state == slotOpen {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if s.cl.AbortBufferedRecords(ctx) == nil {
			_ = s.cl.EndTransaction(ctx, kgo.TryAbort) // best effort: the next start aborts it otherwise
		}
	}
	s.cl.Close()
}
