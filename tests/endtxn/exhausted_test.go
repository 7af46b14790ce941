package endtxn

// Goal: know what a commit answers, and what its marker says, when the transaction has the last epoch of its producer
// id. Method: use up the epochs with aborts of empty transactions, which transaction.version 2 bumps one by one.

import (
	"testing"
	"time"

	"github.com/streamsql/streamsql/tests/harness"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// lastEpoch is the epoch that Kafka does not increase any more: the next transaction gets a new producer id.
const lastEpoch = 32766

func TestEpochExhausted(t *testing.T) {
	t.Parallel()
	b := harness.SharedKafka(t)
	play(t, b, 2, "testdata/4.3.1-tv2-exhausted.txt", map[string]func(*script){"last-epoch": func(s *script) {
		x := txn{id: s.id, topic: s.topic}
		x.pid, x.epoch = s.fresh()
		for x.epoch < lastEpoch-1 {
			req := kmsg.NewPtrEndTxnRequest()
			req.TransactionalID, req.ProducerID, req.ProducerEpoch = x.id, x.pid, x.epoch
			resp, err := req.RequestWith(t.Context(), s.raw)
			s.check(err)
			if code := resp.ErrorCode; code != 0 && code != 51 { // CONCURRENT_TRANSACTIONS
				t.Fatalf("abort at epoch %d: error code %d", x.epoch, code)
			} else if code == 0 {
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
