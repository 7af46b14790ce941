package endtxn

// Goal: know what a commit answers, and what its marker says, when the transaction has the last epoch of its producer
// id. Method: the coordinator loads an id whose epoch is near the last, from a record like its own; aborts of empty
// transactions, which transaction.version 2 bumps one by one, use up the rest.

import (
	"flag"
	"testing"
	"time"

	"github.com/streamsql/streamsql/tests/harness"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// lastEpoch is the epoch that Kafka does not increase any more: the next transaction gets a new producer id.
const lastEpoch = 32766

// epochsLeft is how many epochs before the last an id starts. All 32,766 take minutes of round trips.
const epochsLeft = 100

var allEpochs = flag.Bool("allepochs", false, "TestEpochExhausted uses up every epoch, not only the last ones")

func TestEpochExhausted(t *testing.T) {
	t.Parallel()
	b := harness.Kafka(t)
	play(t, b, 2, "testdata/4.3.1-tv2-exhausted.txt", map[string]func(*script){"last-epoch": func(s *script) {
		x := txn{id: s.id, topic: s.topic}
		x.pid, x.epoch = s.fresh()
		if !*allEpochs {
			x = s.moveEpoch(x, lastEpoch-epochsLeft)
		}
		for x.epoch < lastEpoch-1 {
			req := kmsg.NewPtrEndTxnRequest()
			req.TransactionalID, req.ProducerID, req.ProducerEpoch = x.id, x.pid, x.epoch
			resp, err := req.RequestWith(t.Context(), s.raw)
			s.check(err)
			switch code := resp.ErrorCode; {
			case code == 51: // CONCURRENT_TRANSACTIONS
			case code != 0:
				t.Fatalf("abort at epoch %d: error code %d", x.epoch, code)
			case resp.ProducerID != x.pid || resp.ProducerEpoch != x.epoch+1:
				t.Fatalf("abort at (%d, %d) leads to (%d, %d)", x.pid, x.epoch, resp.ProducerID, resp.ProducerEpoch)
			default:
				x.epoch = resp.ProducerEpoch
			}
		}
		y := s.begin(s.writer(time.Minute), 3)
		if y.pid != x.pid || y.epoch != lastEpoch {
			t.Fatalf("the transaction has (%d, %d), want (%d, %d)", y.pid, y.epoch, x.pid, lastEpoch)
		}
		s.say("commit: %s", s.commit(y))
		s.say("state: %s", s.until(y, "CompleteCommit"))
		s.say("marker: %s; visible: %d", s.decided(y), s.visible())
		s.say("commit again: %s", s.commit(y))
		s.say("init: %s", s.init(y))
		s.say("commit after it: %s", s.commit(y))
		s.say("marker: %s", s.marker(y))
	}})
}

// moveEpoch gives the id of x, which has never had a transaction, another epoch: it writes the coordinator's own record of
// the id once more, with that epoch, and restarts the broker, which loads it. Brokers take records of their internal topics
// from a client of this name.
func (s *script) moveEpoch(x txn, epoch int16) txn {
	s.t.Helper()
	r := s.lastState(x.id)
	v := kmsg.NewTxnMetadataValue()
	s.check(v.ReadFrom(r.Value))
	if v.ProducerID != x.pid || v.ProducerEpoch != x.epoch {
		s.t.Fatalf("the coordinator's last record of %s is of (%d, %d), want (%d, %d)", x.id, v.ProducerID, v.ProducerEpoch, x.pid, x.epoch)
	}
	v.ProducerEpoch = epoch
	moved := &kgo.Record{Topic: r.Topic, Partition: r.Partition, Key: r.Key, Value: v.AppendTo(nil)}
	cl := s.b.Client(s.t, kgo.ClientID("__admin_client"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	s.check(cl.ProduceSync(s.ctx(), moved).FirstErr())
	s.b.Stop()
	s.check(s.b.Restart())
	x.epoch = epoch
	s.until(x, "Empty (P, E)")
	return x
}

// lastState returns the last record that the coordinator wrote of a transactional id.
func (s *script) lastState(id string) *kgo.Record {
	s.t.Helper()
	var last *kgo.Record
	for _, r := range s.b.Records(s.t, "__transaction_state", harness.Uncommitted) {
		k := kmsg.NewTxnMetadataKey()
		s.check(k.ReadFrom(r.Key))
		if k.TransactionalID == id {
			last = r
		}
	}
	if last == nil {
		s.t.Fatalf("the coordinator has no record of %s", id)
	}
	return last
}
