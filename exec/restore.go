package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/diag"
)

// origin is what the job's first attempt starts from, and, once the job has a lineage, what later attempts start from
// as long as that lineage has no checkpoint.
type origin struct {
	mode    RestoreMode
	from    *checkpoint.Checkpoint
	lineage string
}

// found is what read found. stale is a checkpoint of another lineage whose output still has to be committed: it is
// published, so that its sinks' rows belong to the world, although this job does not go on from it.
type found struct {
	cp      *checkpoint.Checkpoint
	newest  bool // cp is the store's newest checkpoint
	stale   *checkpoint.Checkpoint
	earlier []string // other lineages that may have left output open
}

// read decides what to restore. It changes nothing outside.
func (o *origin) read(ctx context.Context, store checkpoint.Store, fresh string) (f found, err error) {
	latest, confirmed, err := store.Latest(ctx)
	if errors.Is(err, checkpoint.ErrNone) {
		latest, err = nil, nil
	}
	if err != nil {
		return f, err
	}
	open, err := store.Lineages(ctx)
	if err != nil {
		return f, err
	}
	if o.lineage == "" {
		switch {
		case o.mode == RestoreLatest && latest != nil:
			o.lineage = latest.Lineage
		case o.mode == RestoreLatest && len(open) > 0:
			o.lineage = open[len(open)-1] // a run that died before its first checkpoint is gone on with
		case fresh != "":
			o.lineage = fresh
		default:
			o.lineage = checkpoint.NewLineage()
		}
	}
	for _, l := range open {
		if l != o.lineage {
			f.earlier = append(f.earlier, l)
		}
	}
	if latest != nil && latest.Lineage == o.lineage {
		f.cp, f.newest = latest, true
		return f, nil
	}
	if latest != nil && !confirmed {
		f.stale = latest
	}
	if o.mode == RestorePath {
		f.cp = o.from // output of a savepoint was committed, or is the latest checkpoint's to commit
	}
	return f, nil
}

// restore carries out the restore order of the checkpoint package up to the point where writers may open. The store is
// fenced by its owner already.
func (at *attempt) restore(ctx context.Context, f found) (*checkpoint.Checkpoint, error) {
	if err := checkpoint.Failpoint("restore.begin"); err != nil {
		return nil, err
	}
	committers := map[checkpoint.SinkID]checkpoint.Committer{}
	for _, s := range at.sinks {
		if s.committer != nil {
			committers[s.id] = s.committer
		}
	}
	if f.newest {
		return checkpoint.Recover(ctx, at.job.o.Store, committers, checkpoint.RecoverOptions{Log: at.job.o.Log})
	}
	if f.stale != nil {
		if err := at.settleStale(ctx, f.stale); err != nil {
			return nil, err
		}
	}
	if err := checkpoint.Failpoint("restore.committed"); err != nil {
		return nil, err
	}
	if err := abortSinks(ctx, at.sinks, nil); err != nil {
		return nil, err
	}
	return f.cp, checkpoint.Failpoint("restore.aborted")
}

// abortEarlier aborts what runs of other lineages left open, except what a checkpoint that is still to be committed
// lists. It runs before this lineage's own sinks open: a sink may refuse to share its target with another lineage.
func (at *attempt) abortEarlier(ctx context.Context, f found) error {
	for _, lineage := range f.earlier {
		var keep []checkpoint.Committable
		if f.stale != nil {
			keep = f.stale.Pending
		}
		sinks, err := at.makeSinks(ctx, lineage)
		if err == nil {
			err = abortSinks(ctx, sinks, keep)
		}
		if err := errors.Join(err, closeSinks(sinks)); err != nil {
			return err
		}
		if f.stale != nil && f.stale.Lineage == lineage {
			continue // its committables are committed later; the next start forgets it
		}
		if err := at.job.o.Store.End(ctx, lineage); err != nil {
			return err
		}
	}
	return nil
}

// classify asks each sink's committer for the outcome of its committables.
func (at *attempt) classify(ctx context.Context, pending []checkpoint.Committable) ([]checkpoint.Outcome, error) {
	outcomes := make([]checkpoint.Outcome, len(pending))
	for _, group := range bySink(pending) {
		c, err := at.committer(group.sink)
		if err != nil {
			return nil, err
		}
		got, err := c.Classify(ctx, group.list)
		if err != nil {
			return nil, fmt.Errorf("sink %s: outcome of its transactions: %w", group.sink, err)
		}
		if len(got) != len(group.list) {
			return nil, diag.New(diag.Internal, diag.Pos{}, "sink %s classified %d of %d committables", group.sink, len(got), len(group.list))
		}
		for i, o := range got {
			outcomes[group.index[i]] = o
		}
	}
	return outcomes, nil
}

// settleStale commits what a checkpoint of an earlier lineage lists. What is lost there is reported, and left: the user
// asked to start without it.
func (at *attempt) settleStale(ctx context.Context, cp *checkpoint.Checkpoint) error {
	outcomes, err := at.classify(ctx, cp.Pending)
	if err != nil {
		return err
	}
	var alive []checkpoint.Committable
	var lost []int
	for i, o := range outcomes {
		if o == checkpoint.OutcomeOpen || o == checkpoint.OutcomeCommitted {
			alive = append(alive, cp.Pending[i])
		} else {
			lost = append(lost, i)
		}
	}
	for _, i := range lost {
		c := cp.Pending[i]
		at.job.o.Log.Error("the checkpoint that is left behind has output that is lost", "checkpoint", c.Checkpoint,
			"sink", c.Sink, "subtask", c.Subtask, "made", c.CreatedAt, "outcome", outcomes[i].String())
	}
	if err := at.commitAll(ctx, alive); err != nil {
		return err
	}
	return at.job.o.Store.Confirm(ctx, cp.ID)
}

// backoff of commits at restore.
const (
	backoffMin = 10 * time.Millisecond
	backoffMax = time.Second
)

// commitAll commits until every committable is committed, or can never be, or ctx ends.
func (at *attempt) commitAll(ctx context.Context, pending []checkpoint.Committable) error {
	for wait := backoffMin; ; wait = min(2*wait, backoffMax) {
		err := at.commit(ctx, pending)
		if err == nil || !retryable(err) || ctx.Err() != nil {
			return err
		}
		at.job.o.Log.Warn("commit of the restored checkpoint failed and is repeated", "err", err, "after", wait)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
	}
}

// commit commits once, sink by sink.
func (at *attempt) commit(ctx context.Context, pending []checkpoint.Committable) error {
	if err := checkpoint.Failpoint("commit.before"); err != nil {
		return err
	}
	for i, group := range bySink(pending) {
		if i > 0 {
			if err := checkpoint.Failpoint("commit.during"); err != nil {
				return err
			}
		}
		c, err := at.committer(group.sink)
		if err != nil {
			return err
		}
		if err := c.Commit(ctx, group.list); err != nil {
			return fmt.Errorf("sink %s: commit: %w", group.sink, err)
		}
	}
	return checkpoint.Failpoint("commit.after")
}

// abortSinks undoes what earlier runs left open, except keep.
func abortSinks(ctx context.Context, sinks []*openSink, keep []checkpoint.Committable) error {
	for _, s := range sinks {
		if s.committer == nil {
			continue
		}
		var mine []checkpoint.Committable
		for _, c := range keep {
			if c.Sink == s.id {
				mine = append(mine, c)
			}
		}
		if err := s.committer.Abort(ctx, mine); err != nil {
			return fmt.Errorf("sink %s: abort of what the last run left: %w", s.id, err)
		}
	}
	return nil
}

// sinkGroup are the committables of one sink, in checkpoint order.
type sinkGroup struct {
	sink  checkpoint.SinkID
	list  []checkpoint.Committable
	index []int // positions in the input
}

// bySink groups committables, sinks in order of first appearance.
func bySink(cs []checkpoint.Committable) []sinkGroup {
	var out []sinkGroup
	for i, c := range cs {
		k := slices.IndexFunc(out, func(g sinkGroup) bool { return g.sink == c.Sink })
		if k < 0 {
			k = len(out)
			out = append(out, sinkGroup{sink: c.Sink})
		}
		out[k].list = append(out[k].list, c)
		out[k].index = append(out[k].index, i)
	}
	return out
}
