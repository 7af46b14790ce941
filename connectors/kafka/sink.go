package kafka

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
)

// sink is a table being written.
type sink struct {
	spec  connectors.SinkSpec
	x     *table
	c     *client
	log   *slog.Logger
	slots int
	// maxBytes of a transaction, after which the rows go on in another one; 0 = no limit.
	maxBytes int64
	owner    *owner // nil unless exactly-once
	layout   *layout
	slabs    slabList

	mu     sync.Mutex
	k      *cluster // known after configure
	topics map[string][16]byte
	// partitions are how many each topic had when it was found.
	partitions map[string]int
	closed     bool
}

func newSink(spec connectors.SinkSpec, upsert bool) (connectors.Sink, error) {
	x, err := parseTable(spec.Table, upsert)
	if err != nil {
		return nil, err
	}
	log := spec.Job.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c, err := newClient(spec.Table, spec.Embedded, log)
	if err != nil {
		return nil, err
	}
	s := &sink{spec: spec, x: x, c: c, log: log, slots: x.slots(), maxBytes: x.v.Memory(splitOption), topics: map[string][16]byte{}, partitions: map[string]int{}}
	if s.layout, err = newLayout(x, spec.Schema, spec.Rowtime); err != nil {
		return nil, err
	}
	if spec.Mode.Delivery == connectors.TwoPhaseCommit {
		if s.owner, err = claim(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// owner is the use of one transactional prefix by a job: its groups of transactions and its lease. In scope 'job' all
// sinks of the job on a cluster share one.
type owner struct {
	key    ownerKey
	shared *connectors.Shared
	c      *client
	prefix string
	scope  string
	job    connectors.JobInfo

	mu     sync.Mutex
	sinks  map[checkpoint.SinkID]bool
	groups map[int]*txnGroup // by subtask; 0 in scope 'job'
	lease  *lease
}

type ownerKey struct{ cluster, prefix string }

var unsafeInID = regexp.MustCompile(`[^a-zA-Z0-9._]+`)

// defaultPrefix is stable across restarts of a job and different for two jobs, also of equal name: the lineage differs.
func (s *sink) defaultPrefix(scope string) string {
	p := "streamsql-" + unsafeInID.ReplaceAllString(s.spec.Job.Name, "_")
	if scope != "job" || s.spec.Job.Shared == nil {
		p += "-" + unsafeInID.ReplaceAllString(s.spec.Table.Name, "_")
	}
	lineage := s.spec.Job.Lineage
	if lineage == "" {
		lineage = s.spec.Job.ID
	}
	return p + "-" + unsafeInID.ReplaceAllString(lineage, "")
}

// claim finds or makes the owner of the sink's prefix.
func claim(s *sink) (*owner, error) {
	scope := s.x.v.Enum("sink.transaction-scope")
	if s.x.ahead() {
		scope = writeAhead
	}
	prefix := s.x.v.String("sink.transactional-id-prefix")
	if prefix == "" {
		prefix = s.defaultPrefix(scope)
	}
	shared := s.spec.Job.Shared
	if shared == nil {
		shared = &connectors.Shared{}
	}
	key := ownerKey{identity(s.spec.Table, s.spec.Embedded), prefix}
	o := shared.LoadOrStore(key, func() any {
		return &owner{key: key, shared: shared, c: s.c, prefix: prefix, scope: scope, job: s.spec.Job,
			sinks: map[checkpoint.SinkID]bool{}, groups: map[int]*txnGroup{}}
	}).(*owner)
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.sinks) > 0 && !o.sinks[s.spec.ID] && (scope == "subtask" || o.scope != scope) {
		return nil, diag.New(diag.Config, s.spec.Table.Options.Pos("sink.transactional-id-prefix"),
			"table %s: transactional prefix '%s' is used by another sink of this job", s.spec.Table.Name, prefix).
			WithHint("give each table its own 'sink.transactional-id-prefix', or use 'sink.transaction-scope' = 'job' for both")
	}
	o.sinks[s.spec.ID] = true
	return o, nil
}

// group is the transactions of a subtask.
func (o *owner) group(subtask, parallel int, log *slog.Logger) *txnGroup {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.scope == "job" {
		subtask, parallel = 0, 1
	}
	g := o.groups[subtask]
	if g == nil {
		g = newTxnGroup(o.c, o.prefix, subtask, parallel, o.job, log)
		o.groups[subtask] = g
	}
	return g
}

// all are the groups in use.
func (o *owner) all() []*txnGroup {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []*txnGroup
	for _, g := range o.groups {
		out = append(out, g)
	}
	return out
}

// settle tells the producer that wrote t, if it is in this process, that t is committed.
func (o *owner) settle(ctx context.Context, t *txnRef) {
	for _, g := range o.all() {
		g.settle(ctx, t)
	}
}

// release ends a sink's use; the last one closes the producers and gives the lease back.
func (o *owner) release(id checkpoint.SinkID) {
	o.mu.Lock()
	delete(o.sinks, id)
	last := len(o.sinks) == 0
	lease := o.lease
	if last {
		o.lease = nil
	}
	o.mu.Unlock()
	if !last {
		return
	}
	for _, g := range o.all() {
		g.stop()
	}
	if lease != nil {
		lease.release()
	}
	o.shared.Delete(o.key, o)
}

// configure learns the cluster's features and limits, once.
func (s *sink) configure(ctx context.Context) (cluster, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.k != nil {
		return *s.k, nil
	}
	cl, err := connect(ctx, s.c)
	if err != nil {
		return cluster{}, s.at(err)
	}
	defer cl.Close()
	k, err := inspect(ctx, cl)
	if err != nil {
		return cluster{}, s.at(err)
	}
	if err := s.findTopics(ctx, kadm.NewClient(cl)); err != nil {
		return cluster{}, err
	}
	s.k = &k
	return k, nil
}

func (s *sink) findTopics(ctx context.Context, adm *kadm.Client) error {
	details, err := listTopics(ctx, adm, s.x.topics, s.c.servers[0] != s.spec.Embedded)
	if errors.Is(err, kerr.TopicAuthorizationFailed) {
		return explainTopic(err, s.spec.Table, s.x.v.String("topic"))
	}
	if err != nil {
		return s.at(diag.New(diag.External, diag.Pos{}, "kafka does not list topics").Wrap(err))
	}
	for name, d := range details {
		if s.x.pattern != nil && !s.x.pattern.MatchString(name) {
			continue
		}
		if d.Err != nil {
			if errors.Is(d.Err, kerr.UnknownTopicOrPartition) && s.c.servers[0] == s.spec.Embedded {
				continue // made when the sink is opened
			}
			return explainTopic(d.Err, s.spec.Table, name)
		}
		s.topics[name], s.partitions[name] = d.ID, len(d.Partitions)
	}
	return nil
}

// topicPatience is how long a topic may be unknown to the broker asked: one that was made a moment ago, or that a broker
// has not loaded since its start.
const topicPatience = 3 * time.Second

// listTopics is ListTopics; with wait, topics that are unknown are asked for again for a little while.
func listTopics(ctx context.Context, adm *kadm.Client, topics []string, wait bool) (kadm.TopicDetails, error) {
	for deadline := time.Now().Add(topicPatience); ; {
		// Asking for authorized operations goes around kgo's cache, which holds an unknown topic for five seconds.
		details, err := adm.ListTopics(kadm.WithAuthorizedOps(ctx), topics...)
		unknown := false
		for _, d := range details {
			unknown = unknown || errors.Is(d.Err, kerr.UnknownTopicOrPartition)
		}
		if err != nil || !unknown || !wait || time.Now().After(deadline) {
			return details, err
		}
		if err := sleep(ctx, 200*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// createEmbedded makes the sink's topics on the embedded broker, where a table is enough to have one.
func (s *sink) createEmbedded(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spec.Embedded == "" || s.c.servers[0] != s.spec.Embedded {
		return nil
	}
	for _, topic := range s.x.topics {
		if _, ok := s.topics[topic]; ok {
			continue
		}
		cl, err := kgo.NewClient(s.c.opts()...)
		if err != nil {
			return err
		}
		err = createTopic(ctx, kadm.NewClient(cl), topic)
		cl.Close()
		if err != nil {
			return diag.New(diag.External, s.spec.Table.Options.Pos("topic"), "table %s: topic %s cannot be created on the embedded broker", s.spec.Table.Name, topic).Wrap(err)
		}
		s.topics[topic] = [16]byte{}
	}
	return nil
}

// at puts the table's name and place on an error of the outside.
func (s *sink) at(err error) error {
	var e *diag.Error
	if errors.As(err, &e) && e.Code == diag.External {
		return diag.New(e.Code, s.spec.Table.Options.Pos("connector"), "table %s: %s", s.spec.Table.Name, e.Message).
			Wrap(e.Err).WithDetail("%s", e.Detail).WithHint("%s", e.Hint).WithRule(e.Rule)
	}
	return err
}

// timeout is transaction.timeout.ms: the table's, else the largest the brokers allow, else the default maximum.
func (s *sink) timeout(k cluster) int64 {
	switch {
	case s.c.txnTimeoutMs > 0:
		return s.c.txnTimeoutMs
	case k.maxTimeoutMs > 0:
		return min(k.maxTimeoutMs, maxInt32)
	}
	return defaultTxnTimeoutMs
}

// TransactionTimeout implements connectors.TimedSink.
func (s *sink) TransactionTimeout() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owner == nil || s.k == nil || s.x.ahead() {
		return 0 // write-ahead: what is not committed is in the checkpoint, and no transaction is open
	}
	return time.Duration(s.timeout(*s.k)) * time.Millisecond
}

// OpenTransactions implements connectors.TransactionLister.
func (s *sink) OpenTransactions() (out []connectors.OpenTransaction) {
	if s.owner == nil {
		return nil
	}
	for _, g := range s.owner.all() {
		out = append(out, g.undecided()...)
	}
	return out
}

const (
	defaultTxnTimeoutMs = 900_000 // transaction.max.timeout.ms of an unchanged broker
	slotPatience        = time.Minute
)

// Committer implements connectors.Sink.
func (s *sink) Committer(ctx context.Context) (checkpoint.Committer, error) {
	if s.owner == nil {
		return nil, nil
	}
	return newCommitter(s, admins{c: s.c}), nil
}

// Open implements connectors.Sink.
func (s *sink) Open(ctx context.Context, subtask int) (connectors.Writer, error) {
	k, err := s.configure(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.createEmbedded(ctx); err != nil {
		return nil, err
	}
	w := &writer{s: s, subtask: subtask, log: s.log}
	if err := w.init(); err != nil {
		return nil, err
	}
	if s.owner == nil {
		cl, err := kgo.NewClient(s.c.opts(s.c.producer, s.plainOpts())...)
		if err != nil {
			return nil, s.at(diag.New(diag.Config, diag.Pos{}, "kafka producer cannot be made").Wrap(err))
		}
		w.plain = &slot{cl: cl}
		return w, nil
	}
	if err := s.owner.acquireLease(ctx, s.log); err != nil {
		return nil, err
	}
	if s.x.ahead() {
		w.ahead, err = s.openAhead(ctx, k, subtask)
		return w, err
	}
	g := s.owner.group(subtask, s.spec.Parallel, s.log)
	if err := g.start(ctx, k, s.timeout(k), s.slots, slotPatience); err != nil {
		return nil, s.at(err)
	}
	w.group = g
	g.join(&w.member, s.topics)
	return w, nil
}

// plainOpts are the producer options without transactions.
func (s *sink) plainOpts() []kgo.Opt {
	acks := map[string]kgo.Acks{"all": kgo.AllISRAcks(), "1": kgo.LeaderAck(), "0": kgo.NoAck()}[s.c.acks]
	opts := []kgo.Opt{kgo.RequiredAcks(acks)}
	if s.c.acks != "all" || !s.c.idempotent {
		opts = append(opts, kgo.DisableIdempotentWrite())
	}
	return opts
}

// Close implements connectors.Sink.
func (s *sink) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed && s.owner != nil {
		s.owner.release(s.spec.ID)
	}
	s.closed = true
	return nil
}
