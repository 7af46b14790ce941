package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// requestTimeout bounds what the helpers here ask of a broker.
const requestTimeout = 3 * time.Minute

// ClientOpts returns what a kgo client needs to reach the broker as a user would: addresses, login, TLS.
func (b *Broker) ClientOpts() []kgo.Opt {
	opts := []kgo.Opt{kgo.SeedBrokers(b.addrs(b.opts.secured())...)}
	if b.certs != nil {
		opts = append(opts, kgo.DialTLSConfig(b.certs.config))
	}
	var m sasl.Mechanism
	switch b.opts.sasl {
	case "PLAIN":
		m = plain.Auth{User: b.opts.user, Pass: b.opts.pass}.AsMechanism()
	case "SCRAM-SHA-256":
		m = scram.Auth{User: b.opts.user, Pass: b.opts.pass}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		m = scram.Auth{User: b.opts.user, Pass: b.opts.pass}.AsSha512Mechanism()
	}
	if m != nil {
		opts = append(opts, kgo.SASL(m))
	}
	return opts
}

// Client returns a client, closed when the test ends.
func (b *Broker) Client(t testing.TB, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	return newClient(t, append(b.ClientOpts(), opts...))
}

// Admin returns an administration client over the plain listener, which no login and no ACL guards. It is closed when
// the test ends.
func (b *Broker) Admin(t testing.TB) *kadm.Client {
	t.Helper()
	return kadm.NewClient(newClient(t, []kgo.Opt{kgo.SeedBrokers(b.addrs(false)...), kgo.MetadataMinAge(10 * time.Millisecond)}))
}

func newClient(t testing.TB, opts []kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatalf("harness: %v", err)
	}
	t.Cleanup(cl.Close)
	return cl
}

var names atomic.Int64

// UniqueName returns a name for a topic, group, transactional id or database that no other test of this binary uses:
// lower-case letters, digits and underscores, starting with a letter, at most 60 long, made from the test's name.
func UniqueName(t testing.TB) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToLower(strings.TrimPrefix(t.Name(), "Test")))
	return fmt.Sprintf("t_%s_%d", clean[:min(len(clean), 45)], names.Add(1))
}

// CreateTopic creates a topic that every broker knows when it returns. configs may be nil.
func (b *Broker) CreateTopic(t testing.TB, name string, partitions int32, configs map[string]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	cs := map[string]*string{}
	for k, v := range configs {
		cs[k] = &v
	}
	adm := b.Admin(t)
	defer adm.Close()
	// -1: the broker's default.replication.factor.
	if _, err := adm.CreateTopic(ctx, partitions, -1, cs, name); err != nil {
		t.Fatalf("harness: create topic %s: %v", name, err)
	}
	if err := b.awaitTopic(ctx, name, int(partitions)); err != nil {
		t.Fatalf("harness: topic %s is created and does not appear: %v", name, err)
	}
}

// awaitTopic waits until every running node knows the topic with a leader for each partition. The answer to the creation
// comes from the controller; brokers apply it when they get to it, and deny the topic until then.
func (b *Broker) awaitTopic(ctx context.Context, name string, partitions int) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.addrs(false)...))
	if err != nil {
		return err
	}
	defer cl.Close()
	for i, seed := range cl.SeedBrokers() {
		for n := b.nodes[i]; n.running(); {
			req := kmsg.NewPtrMetadataRequest()
			topic := kmsg.NewMetadataRequestTopic()
			topic.Topic = kmsg.StringPtr(name)
			req.Topics = []kmsg.MetadataRequestTopic{topic}
			m, err := req.RequestWith(ctx, seed)
			if err == nil && led(m.Topics) == partitions {
				break
			}
			if err := wait(ctx, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// led counts the partitions that have a leader.
func led(topics []kmsg.MetadataResponseTopic) (n int) {
	for _, t := range topics {
		for _, p := range t.Partitions {
			if p.ErrorCode == 0 && p.Leader >= 0 {
				n++
			}
		}
	}
	return n
}

// wait lets a moment pass before something is asked again. It returns why not when ctx is over: last, if there is one.
func wait(ctx context.Context, last error) error {
	select {
	case <-ctx.Done():
		return cmp.Or(last, ctx.Err())
	case <-time.After(20 * time.Millisecond):
		return nil
	}
}

// retriable reports that an error passes by itself: leaders and coordinators move, and load, while a cluster starts.
func retriable(err error) bool {
	var shards *kadm.ShardErrors
	if errors.As(err, &shards) {
		return !slices.ContainsFunc(shards.Errs, func(e kadm.ShardError) bool { return !retriable(e.Err) })
	}
	return kerr.IsRetriable(err)
}

// Topic creates a topic of this test's own and returns its name.
func (b *Broker) Topic(t testing.TB, partitions int32) string {
	t.Helper()
	name := UniqueName(t)
	b.CreateTopic(t, name, partitions, nil)
	return name
}

// Produce writes values to the topic, without transaction, spread over the partitions in turn: value i goes to
// partition i mod n.
func (b *Broker) Produce(t testing.TB, topic string, values ...string) {
	t.Helper()
	cl := b.Client(t, kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	records := make([]*kgo.Record, len(values))
	for i, v := range values {
		records[i] = &kgo.Record{Topic: topic, Value: []byte(v)}
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	if err := cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatalf("harness: produce to %s: %v", topic, err)
	}
	cl.Close()
}

// Isolation says which records a reader sees.
type Isolation bool

// Committed hides records of aborted and open transactions; Uncommitted shows all.
const (
	Committed   Isolation = true
	Uncommitted Isolation = false
)

// Records reads the topic from its start to what is its end now and returns the records, partition by partition in
// offset order. Under Committed the end is the last stable offset: where the oldest open transaction starts; transactions
// that are decided already are waited for. Control records are left out.
func (b *Broker) Records(t testing.TB, topic string, iso Isolation) []*kgo.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	if iso == Committed {
		b.settle(ctx, t)
	}
	rs, err := b.read(ctx, t, topic, iso)
	for err != nil && retriable(err) && wait(ctx, err) == nil {
		rs, err = b.read(ctx, t, topic, iso)
	}
	if err != nil {
		t.Fatalf("harness: read %s: %v", topic, err)
	}
	return rs
}

// Values is Records, the values only.
func (b *Broker) Values(t testing.TB, topic string, iso Isolation) []string {
	t.Helper()
	var vs []string
	for _, r := range b.Records(t, topic, iso) {
		vs = append(vs, string(r.Value))
	}
	return vs
}

// read reads everything and decides by the control records what a read-committed consumer is shown. It does not fetch
// with read-committed isolation: such a fetch delivers nothing, not even a position, for aborted records whose marker lies
// behind the last stable offset, so a reader that knows only the end offset would wait for ever.
func (b *Broker) read(ctx context.Context, t testing.TB, topic string, iso Isolation) ([]*kgo.Record, error) {
	adm := b.Admin(t)
	defer adm.Close()
	// The stable ends come first: what is decided between the two requests must not be shown twice as undecided.
	stable, err := adm.ListCommittedOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	ends, err := adm.ListEndOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	starts, err := adm.ListStartOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(stable.Error(), ends.Error(), starts.Error()); err != nil {
		return nil, err
	}
	from, left := map[int32]kgo.Offset{}, map[int32]int64{}
	ends.Each(func(e kadm.ListedOffset) {
		if s, _ := starts.Lookup(topic, e.Partition); s.Offset < e.Offset {
			from[e.Partition] = kgo.NewOffset().At(s.Offset)
			left[e.Partition] = e.Offset
		}
	})
	if len(left) == 0 {
		return nil, nil
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.addrs(false)...), kgo.KeepControlRecords(),
		kgo.FetchMaxWait(200*time.Millisecond), kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	raw := map[int32][]*kgo.Record{}
	for len(left) > 0 {
		fs := cl.PollFetches(ctx)
		if errs := fs.Errors(); len(errs) > 0 {
			return nil, fmt.Errorf("partition %d: %w", errs[0].Partition, errs[0].Err)
		}
		fs.EachRecord(func(r *kgo.Record) {
			end, reading := left[r.Partition]
			if reading && r.Offset < end {
				raw[r.Partition] = append(raw[r.Partition], r)
			}
			if reading && r.Offset+1 >= end {
				delete(left, r.Partition)
			}
		})
	}
	var all []*kgo.Record
	for _, p := range slices.Sorted(maps.Keys(raw)) {
		lso, _ := stable.Lookup(topic, p)
		for i, visible := range visible(raw[p], iso) {
			if r := raw[p][i]; visible && (iso == Uncommitted || r.Offset < lso.Offset) {
				all = append(all, r)
			}
		}
	}
	return all, nil
}

// visible tells for each record of one partition, in offset order and with control records, whether a reader is shown
// it.
func visible(rs []*kgo.Record, iso Isolation) []bool {
	show := make([]bool, len(rs))
	undecided := map[int64][]int{} // producer id -> indexes of its records since its last marker
	for i, r := range rs {
		switch {
		case r.Attrs.IsControl():
			// Key of a control record: version int16, type int16; type 1 is COMMIT, 0 ABORT (KIP-98).
			if commit := len(r.Key) >= 4 && r.Key[3] == 1; commit {
				for _, j := range undecided[r.ProducerID] {
					show[j] = true
				}
			}
			delete(undecided, r.ProducerID)
		case iso == Uncommitted || !r.Attrs.IsTransactional():
			show[i] = true
		default:
			undecided[r.ProducerID] = append(undecided[r.ProducerID], i)
		}
	}
	return show
}

// OpenTransactions returns the transactional ids with the given prefix that the cluster lists as neither empty nor
// decided, with their state. It waits for decided ones whose markers are still being written.
func (b *Broker) OpenTransactions(t testing.TB, prefix string) map[string]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	open := map[string]string{}
	for id, txn := range b.settle(ctx, t) {
		switch txn.State {
		case "Empty", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead":
		default:
			if strings.HasPrefix(id, prefix) {
				open[id] = txn.State
			}
		}
	}
	return open
}

// HeldBack returns how many records of the topics, control records included, lie behind the last stable offsets: a reader of
// committed records waits for somebody to end a transaction before it sees them. It waits for decided ones whose markers
// are still being written.
func (b *Broker) HeldBack(t testing.TB, topics ...string) (n int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	b.settle(ctx, t)
	n, err := b.heldBack(ctx, t, topics)
	for err != nil && retriable(err) && wait(ctx, err) == nil {
		n, err = b.heldBack(ctx, t, topics)
	}
	if err != nil {
		t.Fatalf("harness: offsets of %v: %v", topics, err)
	}
	return n
}

func (b *Broker) heldBack(ctx context.Context, t testing.TB, topics []string) (n int64, err error) {
	adm := b.Admin(t)
	defer adm.Close()
	// The ends come first: what is written and decided between the two requests must not count.
	ends, err := adm.ListEndOffsets(ctx, topics...)
	if err != nil {
		return 0, err
	}
	stable, err := adm.ListCommittedOffsets(ctx, topics...)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(ends.Error(), stable.Error()); err != nil {
		return 0, err
	}
	ends.Each(func(e kadm.ListedOffset) {
		s, _ := stable.Lookup(e.Topic, e.Partition)
		n += max(0, e.Offset-s.Offset)
	})
	return n, nil
}

// settle lists all transactions once those that were decided at its call have their markers in the log: a broker answers a
// commit before that, and readers see the records only then. A broker that has just started lists none of the transactions
// that it has not loaded yet, so those it loads are waited for, too.
func (b *Broker) settle(ctx context.Context, t testing.TB) kadm.ListedTransactions {
	t.Helper()
	adm := b.Admin(t)
	defer adm.Close()
	var pending map[string]bool // nil before the first list
	for {
		err := transactionsLoaded(ctx, adm)
		var txns kadm.ListedTransactions
		if err == nil {
			txns, err = adm.ListTransactions(ctx, nil, nil)
		}
		switch {
		case err == nil:
			now := map[string]bool{}
			for id, txn := range txns {
				if strings.HasPrefix(txn.State, "Prepare") && (pending == nil || pending[id]) {
					now[id] = true
				}
			}
			if pending = now; len(pending) == 0 {
				return txns
			}
			err = fmt.Errorf("decided and without markers: %v", slices.Collect(maps.Keys(pending)))
		case !retriable(err):
			t.Fatalf("harness: list transactions: %v", err)
		}
		if err := wait(ctx, err); err != nil {
			t.Fatalf("harness: transactions do not settle: %v", err)
		}
	}
}

// transactionsLoaded returns a retriable error while a partition of the transaction log has no coordinator that has read it.
func transactionsLoaded(ctx context.Context, adm *kadm.Client) error {
	const log = "__transaction_state"
	topics, err := adm.ListTopicsWithInternal(ctx)
	if err != nil || !topics.Has(log) { // asking for a coordinator would create it
		return err
	}
	described, err := adm.DescribeTransactions(ctx, oneIDEach(len(topics[log].Partitions))...)
	if err != nil {
		return err
	}
	for _, d := range described {
		if d.Err != nil && !errors.Is(d.Err, kerr.TransactionalIDNotFound) {
			return d.Err
		}
	}
	return nil
}

// oneIDEach returns a transactional id for each partition of the transaction log: the hash of a Java string, modulo their
// number, is an id's partition.
func oneIDEach(partitions int) []string {
	ids := map[int32]string{}
	for i := 0; len(ids) < partitions; i++ {
		id, hash := fmt.Sprintf("harness-%d", i), int32(0)
		for _, c := range []byte(id) {
			hash = 31*hash + int32(c)
		}
		if hash == math.MinInt32 {
			hash = 0
		}
		ids[max(hash, -hash)%int32(partitions)] = id
	}
	return slices.Collect(maps.Values(ids))
}

// TransactionVersion returns the finalized level of the transaction.version feature, 0 when the cluster has none.
func (b *Broker) TransactionVersion(t testing.TB) int16 {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	cl := newClient(t, []kgo.Opt{kgo.SeedBrokers(b.addrs(false)...)})
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "streamsql-test", "1"
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		t.Fatalf("harness: ask for the broker's features: %v", err)
	}
	for _, f := range resp.FinalizedFeatures {
		if f.Name == "transaction.version" {
			return f.MaxVersionLevel
		}
	}
	return 0
}
