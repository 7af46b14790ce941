package kafka

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
)

// txnGroup is the transactions shared by a set of writers: every subtask of every Kafka sink of a job on one cluster
// ('sink.transaction-scope' = 'job'), or one subtask ('subtask'). The rows its writers produce between two barriers
// form one transaction, so the outcome of a checkpoint is all or nothing.
type txnGroup struct {
	c        *client
	prefix   string
	subtask  int          // the subtask part of the ids; 0 in scope 'job'
	subtasks int          // subtask parts in use under the prefix
	owned    func() error // JobInfo.Owned
	flight   int          // checkpoints at a time
	log      *slog.Logger

	ready     atomic.Bool // started
	mu        sync.Mutex
	cluster   cluster // set by configure
	timeoutMs int64
	patience  time.Duration
	slots     []*slot
	open      map[checkpoint.ID]*slot   // transactions still written to, by the barrier their rows come after
	full      map[checkpoint.ID][]*slot // those before them where an epoch's rows are split: a writer that has not looked since may still add to one
	turn      int                       // of the newest transaction
	grown     int                       // turn of the last one that was told to have outgrown its size
	members   map[*member]struct{}
	topics    map[string][16]byte // ids of the topics written to, where known
	barrier   checkpoint.ID       // newest barrier any writer pre-committed
	freed     chan struct{}       // closed and replaced when a slot becomes free

	// Below transaction.version 2; see renew.go.
	worn   chan *slot         // slots to initialise again; has room for all
	cancel context.CancelFunc // ends renewAll
	done   chan struct{}      // closed when it has ended
}

// member is a writer's place in its group.
type member struct {
	after checkpoint.ID // the last barrier the writer passed
}

func newTxnGroup(c *client, prefix string, subtask, subtasks int, job connectors.JobInfo, log *slog.Logger) *txnGroup {
	return &txnGroup{c: c, prefix: prefix, subtask: subtask, subtasks: subtasks, owned: job.Owned, flight: max(job.MaxConcurrentCheckpoints, 1), log: log,
		open: map[checkpoint.ID]*slot{}, full: map[checkpoint.ID][]*slot{}, members: map[*member]struct{}{}, topics: map[string][16]byte{}, freed: make(chan struct{})}
}

func txnID(prefix string, subtask, slot int) string {
	return fmt.Sprintf("%s-%d-%d", prefix, subtask, slot)
}

// start initialises the group's ids and keeps their producers. All ids are initialised here, and from transaction.version 2 on never
// again by this group: a later initialisation could abort what a newer incarnation of the job has prepared. Called again
// it does nothing.
func (g *txnGroup) start(ctx context.Context, k cluster, timeoutMs int64, slots int, patience time.Duration) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.slots != nil {
		return nil
	}
	g.cluster, g.timeoutMs, g.patience = k, timeoutMs, patience
	made := make([]*slot, slots)
	errs := make([]error, slots)
	var wg sync.WaitGroup
	for i := range made {
		wg.Go(func() { made[i], errs[i] = g.newSlot(ctx, i) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			for _, s := range made {
				if s != nil {
					s.cl.Close()
				}
			}
			return err
		}
	}
	g.slots = made
	if g.renews() {
		rctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // until stop
		g.worn, g.cancel, g.done = make(chan *slot, slots), cancel, make(chan struct{})
		go g.renewAll(rctx, g.done)
	}
	g.ready.Store(true)
	return nil
}

func (g *txnGroup) newSlot(ctx context.Context, i int) (*slot, error) {
	return openSlot(ctx, g.c, txnID(g.prefix, g.subtask, i), g.timeoutMs)
}

// openSlot initialises id, which aborts what is open on it and fences who wrote that, and keeps its producer.
func openSlot(ctx context.Context, c *client, id string, timeoutMs int64) (*slot, error) {
	cl, err := kgo.NewClient(c.opts(c.producer, []kgo.Opt{kgo.TransactionalID(id), kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.TransactionTimeout(time.Duration(timeoutMs) * time.Millisecond)})...)
	if err != nil {
		return nil, diag.New(diag.Config, diag.Pos{}, "kafka producer cannot be made").Wrap(err)
	}
	pid, epoch, err := cl.ProducerID(ctx)
	if err != nil {
		cl.Close()
		return nil, explainInit(err, id, timeoutMs)
	}
	return &slot{id: id, cl: cl, pid: pid, epoch: epoch}, nil
}

// join adds a writer. One that joins after others passed a barrier gets a transaction of its own for its first epoch.
func (g *txnGroup) join(m *member, topics map[string][16]byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.members[m] = struct{}{}
	for t, id := range topics {
		g.topics[t] = id
	}
}

// leave takes a closed writer out; the transaction it wrote to is completed by the others. The last one stops the
// group.
func (g *txnGroup) leave(m *member) {
	g.mu.Lock()
	_, was := g.members[m]
	delete(g.members, m)
	last := was && len(g.members) == 0
	g.mu.Unlock()
	if last {
		g.stop()
	}
}

// acquire returns the transaction for the rows that follow barrier m.after, beginning it if no writer has yet. It
// waits for a free slot: that is the backpressure of commits that do not progress.
func (g *txnGroup) acquire(ctx context.Context, m *member) (*slot, error) {
	var timeout <-chan time.Time
	for {
		g.mu.Lock()
		if s := g.open[m.after]; s != nil {
			g.mu.Unlock()
			return s, nil
		}
		usable := 0
		for _, s := range g.slots {
			if s.state == slotBurned {
				continue
			}
			usable++
			if s.state == slotFree {
				err := g.begin(ctx, s, m.after)
				g.mu.Unlock()
				return s, err
			}
		}
		freed, total := g.freed, len(g.slots)
		g.mu.Unlock()
		if usable < minSlots {
			return nil, diag.New(diag.External, diag.Pos{}, "kafka sink has too few usable transactional ids").
				WithDetail("%d of %d are left of %s-%d-*; the others met errors while committing and may be initialised again only by a restart", usable, total, g.prefix, g.subtask)
		}
		if timeout == nil {
			t := time.NewTimer(g.patience)
			defer t.Stop()
			timeout = t.C
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-freed:
		case <-timeout:
			return nil, diag.New(diag.External, diag.Pos{}, "kafka sink waited %s for a free transactional id", g.patience).
				WithDetail("all %d ids of %s-%d-* hold transactions of checkpoints that are not published or not committed yet: %s", total, g.prefix, g.subtask, g.states()).
				WithHint("find out why checkpoints do not complete, or raise 'sink.transactional-id-slots'")
		}
	}
}

// begin opens a transaction on s for the rows behind barrier after. The caller holds the lock.
func (g *txnGroup) begin(ctx context.Context, s *slot, after checkpoint.ID) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	g.turn++
	s.after, s.turn = after, g.turn
	g.open[after] = s
	return nil
}

func (g *txnGroup) states() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []string
	for _, s := range g.slots {
		out = append(out, fmt.Sprintf("%s %s(%d)", s.id, s.state, s.ref.ckpt))
	}
	return fmt.Sprint(out)
}

// preCommit moves m behind barrier id. The last writer to pass a barrier flushes the transactions before it and gets
// their committables: usually one, more when the barrier of an earlier checkpoint was given up before it reached every
// writer.
func (g *txnGroup) preCommit(ctx context.Context, m *member, id checkpoint.ID) ([]txnRef, error) {
	g.mu.Lock()
	m.after = id
	g.barrier = max(g.barrier, id)
	oldest := g.oldestMember()
	var done []*slot
	for e, s := range g.written() {
		if e < oldest {
			// Prepared from here on: stopping the group must not abort what is about to be listed.
			s.state, s.listed, s.ref = slotPrepared, maxID, txnRef{ckpt: maxID}
			done = append(done, s)
		}
	}
	maps.DeleteFunc(g.open, func(e checkpoint.ID, _ *slot) bool { return e < oldest })
	maps.DeleteFunc(g.full, func(e checkpoint.ID, _ []*slot) bool { return e < oldest })
	g.mu.Unlock()
	slices.SortFunc(done, func(a, b *slot) int { return cmp.Or(cmp.Compare(a.after, b.after), cmp.Compare(a.turn, b.turn)) })
	for _, s := range done {
		if err := s.flush(ctx); err != nil {
			return nil, err
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []txnRef
	for _, s := range done {
		if s.acked == 0 {
			s.state = slotFree // nothing reached the broker: there is no transaction
			continue
		}
		s.witness.topicID = g.topics[s.witness.topic]
		s.ref = txnRef{id: s.id, pid: s.pid, epoch: s.epoch, tv: g.cluster.tv, ckpt: id, startMs: s.startMs, timeoutMs: g.timeoutMs,
			records: s.acked, witness: s.witness, clusterID: g.cluster.id, bootstrap: g.c.servers[0], subtasks: g.subtasks, slots: len(g.slots)}
		out = append(out, s.ref)
	}
	return out, nil
}

const maxID = ^checkpoint.ID(0)

func (g *txnGroup) oldestMember() checkpoint.ID {
	oldest := g.barrier
	for m := range g.members {
		oldest = min(oldest, m.after)
	}
	return oldest
}

// settle tells the producer of t, if this group holds it, that t is committed, so that it can begin another one. The
// commit itself never goes through the producer: kgo's EndTransaction returns nil without sending anything when it
// takes the transaction for empty, and may even send an abort; the crash test caught it doing so with acknowledged
// records. After the commit neither can do harm: the repeated EndTxn is idempotent, and an error ends the producer's
// use, because recovering it would initialise the id. A producer that is replaced before the next transaction need not know.
func (g *txnGroup) settle(ctx context.Context, t *txnRef) {
	g.mu.Lock()
	var s *slot
	for _, x := range g.slots {
		if x.state == slotPrepared && x.ref == *t {
			s = x
		}
	}
	if s == nil {
		g.mu.Unlock()
		return
	}
	if g.renews() {
		s.state = slotCommitted
		g.mu.Unlock()
		return
	}
	s.state = slotCommitting
	g.mu.Unlock()
	err := s.cl.EndTransaction(context.WithoutCancel(ctx), kgo.TryCommit)
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.state = slotCommitted; err != nil {
		g.log.Warn("kafka: producer cannot go on after a commit", "id", s.id, "error", err)
		s.state = slotBurned
		s.cl.Close()
	}
}

// committed tells that the manifest of checkpoint id is durable and all it lists is committed. A manifest that lists a
// transaction of it was made before now, so its barrier passed some writer already: a slot is free when a manifest
// newer than every barrier of now is durable. Transactions that were committed by another hand are ended here once
// more for the producer's own bookkeeping.
func (g *txnGroup) committed(ctx context.Context, id checkpoint.ID) error {
	g.mu.Lock()
	var behind []txnRef
	for e, s := range g.written() {
		if e < id {
			g.mu.Unlock()
			return diag.New(diag.Internal, diag.Pos{}, "kafka sink: checkpoint %d was published without transaction %s, which holds rows of it", id, s.id).
				WithDetail("a writer was closed or left out before it passed the barrier")
		}
	}
	for _, s := range g.slots {
		if s.state == slotPrepared && s.ref.ckpt <= id {
			behind = append(behind, s.ref)
		}
	}
	g.mu.Unlock()
	for i := range behind {
		g.settle(ctx, &behind[i])
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.slots {
		switch {
		case s.state != slotCommitted || s.ref.ckpt > id:
		case s.listed == maxID:
			s.listed = g.barrier
		case s.listed < id && g.renews():
			s.state = slotRenewing
			g.worn <- s // at most once per slot, so there is room
		case s.listed < id:
			s.state = slotFree
			g.wake()
		}
	}
	return nil
}

// wake lets those look again who wait for a free slot. The caller holds the lock.
func (g *txnGroup) wake() {
	close(g.freed)
	g.freed = make(chan struct{})
}

// undecided are the transactions that are not known to be committed or aborted.
func (g *txnGroup) undecided() (out []connectors.OpenTransaction) {
	if !g.ready.Load() { // the ids are being initialised, under the lock
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.slots {
		if s.state == slotOpen || s.state == slotPrepared || s.state == slotCommitting {
			out = append(out, connectors.OpenTransaction{ID: s.id, Begun: time.UnixMilli(s.startMs), PreCommitted: s.state != slotOpen})
		}
	}
	return out
}

// stop closes the producers. Open transactions are aborted, prepared ones are left as they are.
func (g *txnGroup) stop() {
	g.endRenewals()
	g.mu.Lock()
	slots := g.slots
	g.slots, g.open, g.full = nil, map[checkpoint.ID]*slot{}, map[checkpoint.ID][]*slot{}
	g.members, g.barrier = map[*member]struct{}{}, 0
	g.mu.Unlock()
	var wg sync.WaitGroup
	for _, s := range slots {
		wg.Go(s.close)
	}
	wg.Wait()
}
