package endtxn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql/tests/harness"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// txn is what a checkpoint would remember of a transaction: whose it is, and the offset of its last record as a witness.
type txn struct {
	id      string
	pid     int64
	epoch   int16
	topic   string
	witness int64
}

// script runs one scenario on a broker and writes down what it sees. Producer ids and epochs are written relative to the
// transaction under test, so that the text is the same on every run.
type script struct {
	t      *testing.T
	b      *harness.Broker
	tv     int16
	raw    *kgo.Client // EndTxn at the version that belongs to tv
	id     string
	topic  string
	out    strings.Builder
	client *kgo.Client // the last one writer made
}

// step bounds a request: a loaded machine is slow, a hang is for ever.
const step = 3 * time.Minute

func newScript(t *testing.T, b *harness.Broker, tv int16) *script {
	s := &script{t: t, b: b, tv: tv, id: harness.UniqueName(t), topic: b.Topic(t, 1)}
	s.raw = s.capped(-1)
	if tv < 2 {
		s.raw = s.capped(4)
	}
	return s
}

// capped returns a client that speaks EndTxn up to the given version, -1 for the broker's newest.
func (s *script) capped(version int16) *kgo.Client {
	if version < 0 {
		return s.b.Client(s.t)
	}
	v := kversion.Stable()
	v.SetMaxKeyVersion(int16(kmsg.EndTxn), version)
	return s.b.Client(s.t, kgo.MaxVersions(v))
}

func (s *script) ctx() context.Context {
	ctx, cancel := context.WithTimeout(s.t.Context(), step)
	s.t.Cleanup(cancel)
	return ctx
}

func (s *script) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *script) say(format string, args ...any) { fmt.Fprintf(&s.out, format+"\n", args...) }

// writer returns a transactional client, not capped: kgo itself follows the cluster's transaction.version.
func (s *script) writer(timeout time.Duration) *kgo.Client {
	s.client = s.b.Client(s.t, kgo.TransactionalID(s.id), kgo.TransactionTimeout(timeout))
	return s.client
}

// begin starts a transaction and writes n records.
func (s *script) begin(cl *kgo.Client, n int) txn {
	s.t.Helper()
	s.check(cl.BeginTransaction())
	pid, epoch, err := cl.ProducerID(s.ctx())
	s.check(err)
	x := txn{id: s.id, pid: pid, epoch: epoch, topic: s.topic, witness: -1}
	for range n {
		r := &kgo.Record{Topic: s.topic, Value: []byte("v")}
		s.check(cl.ProduceSync(s.ctx(), r).FirstErr())
		x.witness = r.Offset
	}
	p2, e2, err := cl.ProducerID(s.ctx())
	s.check(err)
	if p2 != pid || e2 != epoch {
		s.t.Fatalf("producer id and epoch moved within the transaction: (%d, %d) to (%d, %d)", pid, epoch, p2, e2)
	}
	return x
}

// open is begin on a fresh client with three records and a timeout that does not matter.
func (s *script) open() txn { s.t.Helper(); return s.begin(s.writer(time.Minute), 3) }

// end sends one EndTxn through s.raw and returns its answer, (P, epoch) told relative to x.
func (s *script) end(x txn, commit bool) string { return s.endWith(s.raw, x, commit) }

func (s *script) commit(x txn) string { return s.end(x, true) }

func (s *script) endWith(cl *kgo.Client, x txn, commit bool) string {
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = x.id, x.pid, x.epoch, commit
	resp, err := req.RequestWith(s.ctx(), cl)
	if err != nil {
		return code(err)
	}
	answer := code(kerr.ErrorForCode(resp.ErrorCode))
	if resp.ErrorCode == 0 && resp.Version >= 5 {
		answer += " " + identity(x, resp.ProducerID, resp.ProducerEpoch)
	}
	return fmt.Sprintf("v%d %s", resp.Version, answer)
}

// identity writes a producer id and epoch relative to those of x.
func identity(x txn, pid int64, epoch int16) string {
	p := "P"
	if pid != x.pid {
		p = "other"
	}
	switch d := epoch - x.epoch; {
	case pid != x.pid:
		return fmt.Sprintf("(%s, %d)", p, epoch)
	case d == 0:
		return fmt.Sprintf("(%s, E)", p)
	default:
		return fmt.Sprintf("(%s, E%+d)", p, d)
	}
}

func code(err error) string {
	var ke *kerr.Error
	switch {
	case err == nil:
		return "NONE"
	case errors.As(err, &ke):
		return ke.Message
	}
	return err.Error()
}

// initOnce sends one InitProducerId and returns its answer.
func (s *script) initOnce(x txn) (string, error) {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis = kmsg.StringPtr(x.id), 60000
	resp, err := req.RequestWith(s.ctx(), s.raw)
	if err != nil {
		return code(err), err
	}
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return code(err), err
	}
	return "NONE " + identity(x, resp.ProducerID, resp.ProducerEpoch), nil
}

// init repeats InitProducerId until it is no longer told that a transaction is still being ended.
func (s *script) init(x txn) string {
	for {
		answer, err := s.initOnce(x)
		if !errors.Is(err, kerr.ConcurrentTransactions) {
			return answer
		}
	}
}

// state returns what DescribeTransactions says of the id.
func (s *script) state(x txn) string {
	var got kadm.DescribedTransaction
	for ctx := s.ctx(); ; {
		d, err := kadm.NewClient(s.raw).DescribeTransactions(ctx, x.id)
		s.check(err)
		// A coordinator that has just started loads its transactions first.
		if got = d[x.id]; !kerr.IsRetriable(got.Err) || ctx.Err() != nil {
			break
		}
	}
	if got.Err != nil {
		return code(got.Err)
	}
	return got.State + " " + identity(x, got.ProducerID, got.ProducerEpoch)
}

// until waits for the id to be in a state whose text starts with want, and returns the text.
func (s *script) until(x txn, want string) string {
	s.t.Helper()
	for ctx := s.ctx(); ; {
		got := s.state(x)
		if strings.HasPrefix(got, want) {
			return got
		}
		select {
		case <-ctx.Done():
			s.t.Fatalf("%s is %s and does not become %s", x.id, got, want)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// marker reads the topic from the witness on, as recovery does, up to the first control record of the transaction's
// producer id, and returns the outcome it tells: COMMITTED or ABORTED with the marker's identity, OPEN when there is
// none yet.
func (s *script) marker(x txn) string {
	s.t.Helper()
	var end kadm.ListedOffset
	for ctx := s.ctx(); ; {
		ends, err := s.b.Admin(s.t).ListEndOffsets(ctx, x.topic)
		s.check(err)
		// A partition has no leader for a moment after its broker started.
		if end, _ = ends.Lookup(x.topic, 0); !kerr.IsRetriable(end.Err) || ctx.Err() != nil {
			break
		}
	}
	s.check(end.Err)
	cl := s.b.Client(s.t, kgo.KeepControlRecords(), kgo.FetchMaxWait(100*time.Millisecond), kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{x.topic: {0: kgo.NewOffset().At(x.witness)}}))
	defer cl.Close()
	for ctx := s.ctx(); ; {
		fs := cl.PollFetches(ctx)
		s.check(fs.Err())
		for it := fs.RecordIter(); !it.Done(); {
			r := it.Next()
			switch {
			case r.Offset == x.witness && (r.ProducerID != x.pid || r.ProducerEpoch != x.epoch):
				return "the witness belongs to " + identity(x, r.ProducerID, r.ProducerEpoch)
			case r.Offset > x.witness && r.ProducerID == x.pid && r.Attrs.IsControl():
				outcome := "ABORTED"
				if r.Key[3] == 1 {
					outcome = "COMMITTED"
				}
				return outcome + " by " + identity(x, r.ProducerID, r.ProducerEpoch)
			case r.Offset+1 >= end.Offset:
				return "OPEN"
			}
		}
	}
}

// decided is marker, repeated while the answer is OPEN: markers are written after EndTxn has answered.
func (s *script) decided(x txn) string {
	s.t.Helper()
	for ctx := s.ctx(); ; {
		got := s.marker(x)
		if got != "OPEN" {
			return got
		}
		if ctx.Err() != nil {
			s.t.Fatalf("%s stays open", x.id)
		}
	}
}

// visible returns how many records a read-committed consumer sees.
func (s *script) visible() int { return len(s.b.Records(s.t, s.topic, harness.Committed)) }
