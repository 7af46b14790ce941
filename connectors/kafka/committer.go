package kafka

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/diag"
)

// committer finishes transactions. All it knows is in the committables; a producer of this process that still holds
// one is told afterwards, so that it can go on with its id.
type committer struct {
	s     *sink
	adm   admins
	ahead *aheadCommitter
}

func newCommitter(s *sink, adm admins) *committer {
	c := &committer{s: s, adm: adm}
	c.ahead = &aheadCommitter{c: c, logs: map[string]*markerLog{}, keep: markerKeep}
	return c
}

// Classify implements checkpoint.Committer.
func (c *committer) Classify(ctx context.Context, cs []checkpoint.Committable) ([]checkpoint.Outcome, error) {
	out := make([]checkpoint.Outcome, len(cs))
	if err := c.classifyAhead(ctx, cs, out); err != nil {
		return nil, err
	}
	for i := range cs {
		if isAhead(cs[i].Payload) {
			continue
		}
		t, err := c.decode(ctx, &cs[i])
		if err != nil {
			return nil, err
		}
		text, _ := DescribeCommittable(cs[i].Payload, time.Now())
		o, why, err := probe(ctx, c.s.c, &t)
		if err != nil {
			return nil, c.s.at(diag.New(diag.External, diag.Pos{}, "kafka: the outcome of %s cannot be read", t.String()).Wrap(err))
		}
		if o == checkpoint.OutcomeAborted && c.ignoreLost() {
			o = checkpoint.OutcomeGivenUp // the restore goes on without the rows when nothing else helps, and keeps a record of it
		}
		c.tell(ctx, text, o, why)
		out[i] = o
	}
	return out, nil
}

func (c *committer) tell(ctx context.Context, text string, o checkpoint.Outcome, why string) {
	level := slog.LevelInfo
	if o != checkpoint.OutcomeOpen && o != checkpoint.OutcomeCommitted {
		level = slog.LevelWarn
	}
	c.s.log.Log(ctx, level, "kafka: transaction of the restored checkpoint", "table", c.s.spec.Table.Name, "transaction", text, "outcome", o.String(), "reason", why)
}

// classifyAhead fills in the outcomes of what the checkpoint keeps itself.
func (c *committer) classifyAhead(ctx context.Context, cs []checkpoint.Committable, out []checkpoint.Outcome) error {
	var list []checkpoint.Committable
	var at []int
	for i := range cs {
		if isAhead(cs[i].Payload) {
			list, at = append(list, cs[i]), append(at, i)
		}
	}
	if len(list) == 0 {
		return nil
	}
	got, why, err := c.ahead.classify(ctx, list)
	if err != nil {
		return err
	}
	for j, i := range at {
		out[i] = got[j]
		text, _ := DescribeCommittable(cs[i].Payload, time.Now())
		c.tell(ctx, text, got[j], why[j])
	}
	return nil
}

func (c *committer) ignoreLost() bool {
	return c.s.x != nil && c.s.x.v.Enum("sink.recovery.on-lost-transaction") == "ignore"
}

// decode reads a committable and refuses one of another cluster: its ids would mean nothing here.
func (c *committer) decode(ctx context.Context, cs *checkpoint.Committable) (txnRef, error) {
	t, err := decodeTxnRef(cs.Payload)
	if err != nil {
		return t, err
	}
	return t, c.sameCluster(ctx, t.clusterID, t.bootstrap, t.String())
}

func (c *committer) sameCluster(ctx context.Context, id, bootstrap, what string) error {
	k, err := c.s.configure(ctx)
	if err != nil {
		return err
	}
	if id != "" && k.id != "" && id != k.id {
		return diag.New(diag.Lost, c.s.spec.Table.Options.Pos("properties.bootstrap.servers"),
			"table %s: %s belongs to another kafka cluster", c.s.spec.Table.Name, what).
			WithDetail("it was written to cluster %s at %s, the table now points to cluster %s at %s", id, bootstrap, k.id, c.s.c.servers[0]).
			WithHint("restore with the old servers once, stop with a savepoint, then change them")
	}
	return nil
}

// Commit implements checkpoint.Committer.
func (c *committer) Commit(ctx context.Context, cs []checkpoint.Committable) error {
	if err := checkpoint.Failpoint("kafka.commit.before"); err != nil {
		return err
	}
	for len(cs) > 0 {
		n, err := c.commitNext(ctx, cs)
		if err != nil {
			return err
		}
		cs = cs[n:]
		if err := checkpoint.Failpoint("kafka.commit.during"); err != nil {
			return err
		}
	}
	return checkpoint.Failpoint("kafka.commit.after")
}

// commitNext commits the first of cs: one transaction, or all records kept in checkpoints up to the next transaction.
func (c *committer) commitNext(ctx context.Context, cs []checkpoint.Committable) (n int, err error) {
	for n < len(cs) && isAhead(cs[n].Payload) {
		n++
	}
	if n > 0 {
		return n, c.ahead.commit(ctx, cs[:n])
	}
	t, err := c.decode(ctx, &cs[0])
	if err != nil {
		return 0, err
	}
	if err := c.commitOne(ctx, &t); err != nil {
		return 0, err
	}
	c.s.owner.settle(ctx, &t)
	return 1, nil
}

// commitOne drives t to committed with the stored identity. It never initialises an id. Codes that say "not yours" are
// settled by the log.
func (c *committer) commitOne(ctx context.Context, t *txnRef) error {
	adm, err := c.adm.get(t.tv)
	if err != nil {
		return err
	}
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		answer := endTxn(ctx, adm, t, true)
		switch {
		case answer == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case undecided(answer):
			o, why, err := probe(ctx, c.s.c, t)
			if err != nil {
				return c.s.at(diag.New(diag.External, diag.Pos{}, "kafka: the outcome of %s cannot be read", t.String()).Wrap(err))
			}
			if o == checkpoint.OutcomeCommitted {
				return nil
			}
			if o != checkpoint.OutcomeOpen {
				return c.lost(t, o, why, answer)
			}
		case errors.Is(answer, kerr.TransactionalIDAuthorizationFailed):
			return c.s.at(explainInit(answer, t.id, t.timeoutMs))
		default:
			// CONCURRENT_TRANSACTIONS: the decision is logged and the markers are on their way. A coordinator that
			// moves or a broker that is down: the same request again is harmless.
			c.s.log.Warn("kafka: commit is not confirmed yet", "table", c.s.spec.Table.Name, "transaction", t.id, "error", answer)
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// undecided are answers that come both after a commit that succeeded and after an abort.
func undecided(err error) bool {
	for _, e := range []error{kerr.ProducerFenced, kerr.InvalidProducerEpoch, kerr.InvalidTxnState, kerr.InvalidProducerIDMapping, kerr.UnknownProducerID} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (c *committer) lost(t *txnRef, o checkpoint.Outcome, why string, answer error) error {
	now := time.Now()
	e := diag.New(diag.Lost, c.s.spec.Table.Options.Pos("connector"), "table %s: %s is %s and cannot be committed", c.s.spec.Table.Name, t.String(), o)
	if o == checkpoint.OutcomeAborted {
		e.WithDetail("its %d rows are not in the topic; it began %s ago and its timeout is %s; the coordinator answered: %v",
			t.records, now.Sub(time.UnixMilli(t.startMs)).Round(time.Second), time.Duration(t.timeoutMs)*time.Millisecond, answer)
	} else {
		e.WithDetail("%s; the coordinator answered: %v", why, answer)
	}
	return e.WithHint("restart the job: it rewinds to the checkpoint before when that is provably exact; " +
		"to avoid this, raise transaction.max.timeout.ms on the broker and 'properties.transaction.timeout.ms', or checkpoint more often; " +
		"'sink.recovery.on-lost-transaction' = 'ignore' accepts the loss")
}

// Abort implements checkpoint.Committer: it initialises every transactional id this sink and its earlier runs can have
// used, which aborts what is open and fences its writers.
func (c *committer) Abort(ctx context.Context, keep []checkpoint.Committable) error {
	k, err := c.s.configure(ctx)
	if err != nil {
		return err
	}
	o := c.s.owner
	if err := o.acquireLease(ctx, c.s.log); err != nil {
		return err
	}
	if owned := c.s.spec.Job.Owned; owned != nil { // taking the lease may have waited for long
		if err := owned(); err != nil {
			return err
		}
	}
	for _, g := range o.all() {
		g.stop() // producers of an earlier attempt in this process
	}
	adm, err := c.adm.get(k.tv)
	if err != nil {
		return err
	}
	ids, err := c.idsToFence(ctx, adm, keep)
	if err != nil {
		return err
	}
	timeout := c.s.timeout(k)
	err = inParallel(ctx, ids, func(ctx context.Context, id string) error {
		_, err := initProducer(ctx, adm, id, timeout)
		return err
	})
	if err != nil {
		return c.s.at(err)
	}
	c.ahead.swept, c.ahead.kept = true, map[markerID]bool{}
	for i := range keep {
		c.ahead.kept[markerOf(&keep[i])] = true
	}
	return nil
}

// idsToFence are the ids of the present layout, of the layouts the kept committables came from, and those the
// coordinators know under the prefix.
func (c *committer) idsToFence(ctx context.Context, adm *kgo.Client, keep []checkpoint.Committable) ([]string, error) {
	prefixes := map[string]bool{c.s.owner.prefix: true}
	spared := map[string]bool{}
	subtasks, slots := 1, c.s.slots
	if c.s.owner.scope != "job" {
		subtasks = max(1, c.s.spec.Parallel)
	}
	for i := range keep {
		if isAhead(keep[i].Payload) { // initialising an id takes nothing from it
			a, err := decodeAhead(keep[i].Payload)
			if err != nil {
				return nil, err
			}
			prefixes[prefixOf(a.id)], subtasks = true, max(subtasks, a.subtasks)
			continue
		}
		t, err := c.decode(ctx, &keep[i])
		if err != nil {
			return nil, err
		}
		o, _, err := probe(ctx, c.s.c, &t)
		if err != nil {
			return nil, err
		}
		if o == checkpoint.OutcomeOpen {
			// Not committed yet, or committed with its marker still on the way: initialising the id could abort it.
			// Whoever asked commits it next and aborts once more.
			spared[t.id] = true
		}
		prefixes[prefixOf(t.id)] = true
		subtasks, slots = max(subtasks, t.subtasks), max(slots, t.slots)
	}
	ids := map[string]bool{}
	for p := range prefixes {
		for st := range subtasks {
			for sl := range slots {
				ids[txnID(p, st, sl)] = true
			}
		}
		known, err := listIDs(ctx, adm, p)
		if err != nil {
			// An old broker or no permission to list: look at the ids beyond the layout one subtask after the other.
			c.s.log.Warn("kafka: transactions cannot be listed, probing ids instead", "table", c.s.spec.Table.Name, "error", err)
			if err := c.fenceBeyond(ctx, adm, p, subtasks, slots); err != nil {
				return nil, err
			}
		}
		for _, id := range known {
			ids[id] = true
		}
	}
	out := make([]string, 0, len(ids))
	for id := range ids {
		if !spared[id] {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out, nil
}

// listIDs are the ids under a prefix that the coordinators know, in any state. A coordinator that does not answer is
// an error, because what it holds would be missed.
func listIDs(ctx context.Context, adm *kgo.Client, prefix string) ([]string, error) {
	lctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	pattern := "^" + regexp.QuoteMeta(prefix) + `-[0-9]+-[0-9]+$`
	match := regexp.MustCompile(pattern)
	listed, err := kadm.NewClient(adm).ListTransactions(lctx, nil, nil)
	if err != nil {
		return nil, err
	}
	var out []string
	for id := range listed {
		if match.MatchString(id) {
			out = append(out, id)
		}
	}
	return out, nil
}

// fenceBeyond initialises ids of subtasks from st on until a whole subtask was never used (epoch 0).
func (c *committer) fenceBeyond(ctx context.Context, adm *kgo.Client, prefix string, st, slots int) error {
	k, err := c.s.configure(ctx)
	if err != nil {
		return err
	}
	for ; ; st++ {
		ids := make([]string, slots)
		for sl := range ids {
			ids[sl] = txnID(prefix, st, sl)
		}
		var used atomic.Bool
		err := inParallel(ctx, ids, func(ctx context.Context, id string) error {
			epoch, err := initProducer(ctx, adm, id, c.s.timeout(k))
			if epoch > 0 {
				used.Store(true)
			}
			return err
		})
		if err != nil || !used.Load() {
			return err
		}
	}
}

// inParallel calls f for every id, a few at a time, and returns the first error after all calls ended.
func inParallel(ctx context.Context, ids []string, f func(ctx context.Context, id string) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	places := make(chan struct{}, 16)
	var wg sync.WaitGroup
	for _, id := range ids {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			if ctx.Err() != nil {
				return
			}
			if err := f(ctx, id); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// Close implements checkpoint.Committer.
func (c *committer) Close() error {
	c.ahead.close()
	c.adm.close()
	return nil
}
