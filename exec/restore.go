package exec

import (
	"context"
	"errors"
	"slices"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
)

// origin is what the job's first attempt starts from, and, once the job has a lineage, what later attempts start from
// as long as that lineage has no checkpoint.
type origin struct {
	mode    RestoreMode
	from    *checkpoint.Checkpoint
	lineage string
	taken   bool // the lineage is one that another process began
}

// found is what read found. stale is a checkpoint of another lineage whose output still has to be committed: it is
// published, so that its sinks' rows belong to the world, although this job does not go on from it.
type found struct {
	cp      *checkpoint.Checkpoint
	newest  bool // cp is the store's newest checkpoint
	stale   *checkpoint.Checkpoint
	known   []checkpoint.Degradation // what the store's newest checkpoint lists
	earlier []string                 // other lineages that may have left output open
	ended   string                   // the lineage of a run before this one that came to its end, "" = none
}

// read decides what to restore. It changes nothing outside. repeat: output may be written again where nothing is exact.
func (o *origin) read(ctx context.Context, store checkpoint.Store, fresh string, repeat bool) (f found, err error) {
	latest, confirmed, err := store.Latest(ctx)
	var lost *checkpoint.UnreadableError
	switch {
	case errors.Is(err, checkpoint.ErrNone):
		latest, err = nil, nil
	case errors.As(err, &lost) && repeat && o.mode == RestoreLatest && len(lost.Earlier) > 0:
		latest, err = lost.Earlier[0], nil // Recover goes back to it, or further
	}
	if err != nil {
		return f, err
	}
	open, err := store.Lineages(ctx)
	if err != nil {
		return f, err
	}
	if latest != nil {
		f.known = latest.Degraded
	}
	if o.lineage == "" {
		switch {
		case o.mode == RestoreLatest && latest != nil:
			o.lineage, o.taken = latest.Lineage, true
		case o.mode == RestoreLatest && len(open) > 0:
			o.lineage, o.taken = open[len(open)-1], true // a run that died before its first checkpoint is gone on with
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
	switch {
	case latest != nil && !confirmed:
		f.stale = latest
	case latest != nil && latest.Final:
		f.ended = latest.Lineage
	}
	if o.mode == RestorePath {
		f.cp = o.from // output of a savepoint was committed, or is the latest checkpoint's to commit
	}
	return f, nil
}

// restore carries out the restore order of the checkpoint package up to the point where writers may open. The store is
// fenced by its owner already.
func (at *attempt) restore(ctx context.Context, f found, lineage string) (*checkpoint.Checkpoint, error) {
	if err := checkpoint.Failpoint("restore.begin"); err != nil {
		return nil, err
	}
	settlers, err := at.settlers(ctx, lineage, at.sinks, f)
	defer func() {
		for _, s := range settlers {
			at.logClose(s.node, closeSinks([]*openSink{s}))
		}
	}()
	if err != nil {
		return nil, err
	}
	committers := committersOf(append(settlers, at.sinks...))
	o := checkpoint.RecoverOptions{Log: at.job.o.Log, OnDegraded: at.job.o.Checkpoints.OnDegraded}
	if f.newest {
		return checkpoint.Recover(ctx, at.job.o.Store, committers, o)
	}
	if f.stale != nil {
		o.LeftBy = map[RestoreMode]string{RestoreNone: "--restore none", RestorePath: "--restore PATH"}[at.job.o.Restore.Mode]
		if err := checkpoint.Settle(ctx, at.job.o.Store, f.stale, committers, o); err != nil {
			return nil, err
		}
	}
	if err := checkpoint.Failpoint("restore.committed"); err != nil {
		return nil, err
	}
	if err := committers.Abort(ctx, nil); err != nil {
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
			var settlers []*openSink
			settlers, err = at.settlers(ctx, lineage, sinks, f)
			sinks = append(sinks, settlers...)
		}
		if err == nil {
			err = committersOf(sinks).Abort(ctx, keep)
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

// sweep removes what processes that woke up after they had been replaced left of a lineage that has come to its end: its final
// checkpoint is committed, so nobody writes under it any more whose output counts. No reader sees what is left when that fails.
func (at *attempt) sweep(ctx context.Context, lineage string) {
	for _, s := range at.sinks {
		w, ok := s.sink.(connectors.Sweeper)
		if !ok || s.committer == nil {
			continue
		}
		if err := w.Sweep(ctx, lineage); err != nil {
			at.job.o.Log.Warn("what a process left that had been replaced is still there; no reader sees it", "sink", s.id, "err", err)
		}
	}
}

// committersOf are the committers of sinks that need one.
func committersOf(sinks []*openSink) checkpoint.Committers {
	m := checkpoint.Committers{}
	for _, s := range sinks {
		if s.committer != nil {
			m[s.id] = s.committer
		}
	}
	return m
}

// recall takes over what the restored checkpoint says of the job's life, nil = it has none: where it came from, and, with
// what the store has noted since, which guarantees it gave up. known are those that are no news.
func (at *attempt) recall(ctx context.Context, cp *checkpoint.Checkpoint, known []checkpoint.Degradation) error {
	var listed, noted []checkpoint.Degradation
	if cp != nil {
		at.ancestors, listed = cp.Ancestors, cp.Degraded
	}
	if s, ok := at.job.o.Store.(checkpoint.Recorder); ok {
		var err error
		if noted, err = s.Degraded(ctx); err != nil {
			return err
		}
		for _, d := range listed { // of a savepoint of another directory
			if err := s.Degrade(ctx, d); err != nil {
				return err
			}
		}
	}
	at.degraded = checkpoint.MergeDegradations(listed, noted)
	at.job.mu.Lock()
	at.job.degraded = at.degraded
	if at.job.known == nil {
		at.job.known = slices.Concat([]checkpoint.Degradation{}, known, listed)
	}
	at.job.mu.Unlock()
	return nil
}
