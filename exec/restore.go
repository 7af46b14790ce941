package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	cp        *checkpoint.Checkpoint
	confirmed bool
	stale     *checkpoint.Checkpoint
	earlier   []string // other lineages that may have left output open
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
		f.cp, f.confirmed = latest, confirmed
		return f, nil
	}
	if latest != nil && !confirmed {
		f.stale = latest
	}
	if o.mode == RestorePath {
		f.cp, f.confirmed = o.from, true // output of a savepoint was committed, or is the latest checkpoint's to commit
	}
	return f, nil
}

// verdict is what restoring a checkpoint with pending committables comes to: go on from target, or stop because of lost.
type verdict struct {
	target checkpoint.ID
	lost   []int // indexes into the pending committables
}

// decide applies the rule of recovery to the newest checkpoint. usable are the ids of older usable checkpoints. Target is
// newest when everything pending is open or committed. Otherwise it is the newest usable checkpoint k such that
// everything pending up to k is open or committed and nothing after k is committed or may be: then the rows after k are
// provably nowhere, and producing them again is exact. When there is no such k, output is lost or may be.
func decide(newest checkpoint.ID, usable []checkpoint.ID, pending []checkpoint.Committable, outcomes []checkpoint.Outcome) verdict {
	var bad []int
	for i, o := range outcomes {
		if o != checkpoint.OutcomeOpen && o != checkpoint.OutcomeCommitted {
			bad = append(bad, i)
		}
	}
	if len(bad) == 0 {
		return verdict{target: newest}
	}
	candidates := slices.Clone(usable)
	slices.Sort(candidates)
	for i := len(candidates) - 1; i >= 0; i-- {
		k := candidates[i]
		if k >= newest {
			continue
		}
		ok := true
		for j, c := range pending {
			switch o := outcomes[j]; {
			case c.Checkpoint <= k:
				ok = ok && (o == checkpoint.OutcomeOpen || o == checkpoint.OutcomeCommitted)
			default:
				ok = ok && (o == checkpoint.OutcomeOpen || o == checkpoint.OutcomeAborted)
			}
		}
		if ok {
			return verdict{target: k}
		}
	}
	return verdict{target: newest, lost: bad}
}

// restore carries out the restore order of the checkpoint package up to the point where writers may open: commit what
// the checkpoint lists, make that durable, abort leftovers. The store is fenced by its owner already.
func (at *attempt) restore(ctx context.Context, f found) (*checkpoint.Checkpoint, error) {
	if err := checkpoint.Failpoint("restore.begin"); err != nil {
		return nil, err
	}
	store := at.job.o.Store
	if f.stale != nil {
		if err := at.settleStale(ctx, f.stale); err != nil {
			return nil, err
		}
	}
	var undone []checkpoint.Committable
	for f.cp != nil && !f.confirmed {
		v, outcomes, err := at.judge(ctx, f.cp)
		if err != nil {
			return nil, err
		}
		if len(v.lost) > 0 {
			return nil, lostError(f.cp, v.lost, outcomes)
		}
		if v.target == f.cp.ID {
			if err := at.commitAll(ctx, f.cp.Pending); err != nil {
				return nil, err
			}
			if err := store.Confirm(ctx, f.cp.ID); err != nil {
				return nil, err
			}
			break
		}
		at.job.o.Log.Warn("going back: the output of the newest checkpoint is provably aborted", "newest", f.cp.ID, "to", v.target)
		for _, c := range f.cp.Pending {
			if c.Checkpoint > v.target {
				undone = append(undone, c)
			}
		}
		if err := store.Discard(ctx, v.target+1); err != nil {
			return nil, err
		}
		if f.cp, f.confirmed, err = store.Latest(ctx); err != nil {
			return nil, err
		}
	}
	if err := checkpoint.Failpoint("restore.committed"); err != nil {
		return nil, err
	}
	var keep []checkpoint.Committable
	if f.cp != nil {
		keep = f.cp.Pending
	}
	if err := at.abortAll(ctx, keep, undone); err != nil {
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

// judge classifies what cp lists and decides.
func (at *attempt) judge(ctx context.Context, cp *checkpoint.Checkpoint) (verdict, []checkpoint.Outcome, error) {
	outcomes, err := at.classify(ctx, cp.Pending)
	if err != nil {
		return verdict{}, nil, err
	}
	older, err := at.job.o.Store.List(ctx)
	if err != nil {
		return verdict{}, nil, err
	}
	var usable []checkpoint.ID
	for _, c := range older {
		if c.Lineage == cp.Lineage {
			usable = append(usable, c.ID)
		}
	}
	return decide(cp.ID, usable, cp.Pending, outcomes), outcomes, nil
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
	if len(lost) > 0 {
		at.job.o.Log.Error("the checkpoint that is left behind has output that is lost", "checkpoint", cp.ID,
			"err", lostError(cp, lost, outcomes).Detail)
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

// abortAll undoes what earlier runs left beside keep, and checks that what a rewind will produce again is gone.
func (at *attempt) abortAll(ctx context.Context, keep, undone []checkpoint.Committable) error {
	if err := abortSinks(ctx, at.sinks, keep); err != nil {
		return err
	}
	if len(undone) == 0 {
		return nil
	}
	outcomes, err := at.classify(ctx, undone)
	if err != nil {
		return err
	}
	for _, o := range outcomes {
		if o != checkpoint.OutcomeAborted {
			return diag.New(diag.Lost, diag.Pos{}, "output of a checkpoint that was given up is not gone").
				WithDetail("a transaction of checkpoint %d is %s after it was aborted; producing its rows again could repeat them", undone[0].Checkpoint, o).
				WithHint("make sure that no other program uses this job's transactions, then start the job again")
		}
	}
	return nil
}

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

func lostError(cp *checkpoint.Checkpoint, lost []int, outcomes []checkpoint.Outcome) *diag.Error {
	var sb strings.Builder
	for _, i := range lost {
		c := cp.Pending[i]
		fmt.Fprintf(&sb, "sink %s: transaction of checkpoint %d, subtask %d, made %s: %s\n", c.Sink, c.Checkpoint, c.Subtask,
			c.CreatedAt.UTC().Format(time.RFC3339), outcomes[i])
	}
	return diag.New(diag.Lost, diag.Pos{}, "output of checkpoint %d is lost or cannot be proven to exist", cp.ID).
		WithDetail("%sno older checkpoint can be restored without repeating output that is already committed", sb.String()).
		WithHint("compare the sinks with the source from checkpoint %d on, then start with --restore none or from a savepoint; "+
			"to prevent it, make the sinks' transaction timeouts longer than the longest downtime", cp.ID)
}
