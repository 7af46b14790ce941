package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/streamsql/streamsql/sql/diag"
)

// Verifier is the part of a store that can check a checkpoint's files before they are used.
type Verifier interface {
	Verify(ctx context.Context, c *Checkpoint) error
}

// RecoverOptions configure Recover.
type RecoverOptions struct {
	// Log receives what a person wants to know: rewinds, and commits that are repeated. nil discards.
	Log *slog.Logger
	// OnDegraded says what to do when exactly once cannot be kept.
	OnDegraded OnDegraded
	// LeftBy is what the user said by which a checkpoint is left behind (Settle).
	LeftBy string
	// Now is the clock of the record of guarantees given up; nil = the wall clock.
	Now func() time.Time

	// Sleep waits between attempts to commit; nil = the wall clock. A simulation has its own.
	Sleep func(ctx context.Context, d time.Duration) error
}

func (o *RecoverOptions) defaults() {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

// Recover brings the outside of a job to the state of its newest usable checkpoint and returns that checkpoint, or
// ErrNone for a job that starts afresh. It runs after the owner is fenced (Own) and before any writer or reader opens:
//
//  1. read the newest manifest and verify its files;
//  2. ask every sink what became of the committables it lists;
//  3. when the newest checkpoints' output is proven never to have become visible, or their files are damaged and
//     nothing of theirs was committed, go back to an earlier checkpoint: abort, prove it, Discard, start over;
//  4. commit what the checkpoint lists, in order, until that succeeds, and Confirm;
//  5. only then abort what else the sinks left open, which also fences older writers.
//
// The order is the argument: an abort before the commit could destroy listed output, a writer opened before the abort
// could have its transaction aborted. An error of code Lost names what cannot be proven.
//
// Where the newest manifest cannot be read at all, or step 3 finds nothing exact, and the user has said so beforehand, it goes
// back to where rows repeat but none is lost (DegradedRepeat), or on without rows that are gone (OutcomeGivenUp). The store
// notes that first; see Degradation.
func Recover(ctx context.Context, s Store, committers Committers, o RecoverOptions) (*Checkpoint, error) {
	o.defaults()
	r := recovery{s: s, committers: committers, o: o}
	for late := false; ; {
		c, confirmed, err := s.Latest(ctx)
		if errors.Is(err, ErrNone) {
			return nil, errors.Join(committers.Abort(ctx, nil), ErrNone)
		}
		var lost *UnreadableError
		if errors.As(err, &lost) && o.OnDegraded == DegradedRepeat {
			if went, rerr := r.behind(ctx, lost); went || rerr != nil {
				if rerr != nil {
					return nil, rerr
				}
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		st, err := r.decide(ctx, c, confirmed)
		if err == nil && st.price != nil {
			err = r.record(ctx, *st.price)
		}
		if err != nil {
			return nil, err
		}
		if st.back > 0 {
			if err := r.rewind(ctx, c, st); err != nil {
				return nil, err
			}
			continue
		}
		if !confirmed {
			err := r.commit(ctx, st.commit)
			if diag.CodeOf(err) == diag.Lost && !late {
				late = true // it was ended since it was looked at: look again, once
				continue
			}
			if err != nil {
				return nil, err
			}
			if err := s.Confirm(ctx, c.ID); err != nil {
				return nil, err
			}
		}
		if err := Failpoint("restore.committed"); err != nil {
			return nil, err
		}
		if err := committers.Abort(ctx, nil); err != nil {
			return nil, err
		}
		return c, Failpoint("restore.aborted")
	}
}

// Settle commits what c lists, which is published but not what the job goes on from, and confirms it. What is lost is
// put on record and left: the user asked to start without it.
func Settle(ctx context.Context, s Store, c *Checkpoint, committers Committers, o RecoverOptions) error {
	o.defaults()
	out, err := committers.classify(ctx, c.Pending)
	if err != nil {
		return err
	}
	var alive []Committable
	for i, p := range c.Pending {
		if out[i] == OutcomeOpen || out[i] == OutcomeCommitted {
			alive = append(alive, p)
			continue
		}
		o.Log.Error("the checkpoint that is left behind has output that is lost", "checkpoint", p.Checkpoint,
			"sink", p.Sink, "subtask", p.Subtask, "made", p.CreatedAt, "outcome", out[i].String())
	}
	r := recovery{s: s, committers: committers, o: o}
	if len(alive) < len(c.Pending) {
		err := r.record(ctx, Degradation{Lineage: c.Lineage, Lost: true, From: c.ID, To: c.ID, By: o.LeftBy,
			Why: named(c.Pending, out, OutcomeAborted, OutcomeGivenUp, OutcomeUnknown)})
		if err != nil {
			return err
		}
	}
	if err := r.commit(ctx, alive); err != nil {
		return err
	}
	return s.Confirm(ctx, c.ID)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

type recovery struct {
	s          Store
	committers Committers
	o          RecoverOptions
}

// step is what to do with the newest checkpoint.
type step struct {
	back   ID            // the earlier checkpoint to go back to, 0 = resume the newest one
	commit []Committable // what to commit of the newest one when it is resumed
	price  *Degradation  // the guarantee that it costs, nil = none
}

// decide says what to do with c.
func (r *recovery) decide(ctx context.Context, c *Checkpoint, confirmed bool) (step, error) {
	damage := r.verify(ctx, c)
	if damage != nil && diag.CodeOf(damage) != diag.Data {
		return step{}, damage
	}
	if confirmed {
		if damage != nil {
			return r.older(ctx, c, nil, nil, damage)
		}
		return step{}, nil
	}
	out, err := r.committers.classify(ctx, c.Pending)
	if err != nil {
		return step{}, err
	}
	return r.settle(ctx, c, out, damage)
}

// settle is decide once the outcomes of what c lists are known.
func (r *recovery) settle(ctx context.Context, c *Checkpoint, out []Outcome, damage error) (step, error) {
	if damage != nil {
		return r.older(ctx, c, c.Pending, out, damage)
	}
	if !slices.ContainsFunc(out, gone) && !slices.Contains(out, OutcomeUnknown) {
		return step{commit: c.Pending}, nil
	}
	return r.older(ctx, c, c.Pending, out, nil)
}

// gone reports that rows are proven not to be visible, and never will be.
func gone(o Outcome) bool { return o == OutcomeAborted || o == OutcomeGivenUp }

func (r *recovery) verify(ctx context.Context, c *Checkpoint) error {
	if v, ok := r.s.(Verifier); ok {
		return v.Verify(ctx, c)
	}
	return nil
}

// older finds the newest checkpoint before c that it is exact to resume from: of everything a later checkpoint pre-
// committed nothing is visible, and everything that it lists itself is, or can still be made so. Where there is none, it
// gives up as much as the user has allowed.
func (r *recovery) older(ctx context.Context, c *Checkpoint, pending []Committable, out []Outcome, damage error) (step, error) {
	all, err := r.s.List(ctx)
	if err != nil {
		return step{}, err
	}
	for _, k := range all {
		if k.ID >= c.ID || k.Lineage != c.Lineage {
			continue
		}
		if committedSince(k.ID, c, all, pending) {
			break
		}
		if resumable(k.ID, pending, out) && r.verify(ctx, k) == nil {
			return step{back: k.ID}, nil
		}
	}
	if st, ok := r.giveUp(ctx, c, all, pending, out, damage); ok {
		return st, nil
	}
	if damage != nil {
		return step{}, errorf(diag.Lost, "checkpoint %d is damaged and no earlier one can replace it", c.ID).Wrap(damage).
			WithDetail("its output is or may be committed, an earlier checkpoint would repeat it").
			WithHint("restore the file from a backup, or start from a savepoint in a new state directory%s", r.wayOut(ctx, c, all, pending, out))
	}
	return step{}, errorf(diag.Lost, "output of checkpoint %d cannot be committed", c.ID).
		WithDetail("%s", listed(pending, out)).
		WithHint("raise the sink's transaction timeout above the longest downtime for the next time%s; to go on without these rows set 'sink.recovery.on-lost-transaction' = 'ignore'",
			r.wayOut(ctx, c, all, pending, out))
}

// wayOut is the part of a hint that names the setting by which nothing is lost, "" where it would not help.
func (r *recovery) wayOut(ctx context.Context, c *Checkpoint, all []*Checkpoint, pending []Committable, out []Outcome) string {
	k := r.repeatable(ctx, c, all, pending, out)
	if k == 0 || r.o.OnDegraded == DegradedRepeat {
		return ""
	}
	return fmt.Sprintf("; SET '%s' = '%s' goes back to checkpoint %d: nothing is lost, and output since then is written again", OnDegradedKey, DegradedRepeat, k)
}

// giveUp is what to do where nothing is exact, as far as the user has allowed it: rather repeat rows than lose them.
func (r *recovery) giveUp(ctx context.Context, c *Checkpoint, all []*Checkpoint, pending []Committable, out []Outcome, damage error) (step, bool) {
	d := Degradation{Lineage: c.Lineage, From: c.ID}
	if r.o.OnDegraded == DegradedRepeat {
		if k := r.repeatable(ctx, c, all, pending, out); k > 0 {
			d.To, d.By = k, fmt.Sprintf("'%s' = '%s'", OnDegradedKey, DegradedRepeat)
			d.Why = named(pending, out, OutcomeAborted, OutcomeGivenUp, OutcomeUnknown)
			if damage != nil {
				d.Why = damage.Error()
			}
			return step{back: k, price: &d}, true
		}
	}
	if damage != nil || slices.Contains(out, OutcomeAborted) || slices.Contains(out, OutcomeUnknown) {
		return step{}, false
	}
	st := step{price: &d}
	for i, p := range pending {
		if out[i] != OutcomeGivenUp {
			st.commit = append(st.commit, p)
		}
	}
	d.To, d.Lost, d.By, d.Why = c.ID, true, OnLostOption, named(pending, out, OutcomeGivenUp)
	return st, true
}

// repeatable is the newest checkpoint before c from which nothing is lost, whatever is written again: all that was pre-
// committed up to it is visible, or can be made so. 0 = none.
func (r *recovery) repeatable(ctx context.Context, c *Checkpoint, all []*Checkpoint, pending []Committable, out []Outcome) ID {
	for _, k := range all {
		if k.ID >= c.ID || k.Lineage != c.Lineage {
			continue
		}
		kept := true
		for i, p := range pending {
			if p.Checkpoint <= k.ID && out[i] != OutcomeCommitted && out[i] != OutcomeOpen {
				kept = false
			}
		}
		if kept && r.verify(ctx, k) == nil {
			return k.ID
		}
	}
	return 0
}

// behind goes back to before a checkpoint whose manifest cannot be read, where rows may repeat: to the newest from which nothing is
// lost. What the unreadable one lists is not known. What of that is visible stays so, and what is open is aborted: all of it is behind the
// checkpoint gone back to, and is written again. false = there is none.
func (r *recovery) behind(ctx context.Context, lost *UnreadableError) (bool, error) {
	for _, k := range lost.Earlier {
		pending := k.Pending
		if k.ID <= lost.Confirmed {
			pending = nil
		}
		out, err := r.committers.classify(ctx, pending)
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(out, func(o Outcome) bool { return o != OutcomeCommitted && o != OutcomeOpen }) || r.verify(ctx, k) != nil {
			continue
		}
		err = r.record(ctx, Degradation{Lineage: k.Lineage, From: lost.ID, To: k.ID,
			By: fmt.Sprintf("'%s' = '%s'", OnDegradedKey, DegradedRepeat), Why: fmt.Sprintf("checkpoint %d cannot be read: %v", lost.ID, lost)})
		if err != nil {
			return false, err
		}
		if err := r.committers.Abort(ctx, pending); err != nil {
			return false, err
		}
		return true, r.s.Discard(ctx, k.ID+1)
	}
	return false, nil
}

// OnDegradedKey is the setting of OnDegraded; OnLostOption is what tables say for OutcomeGivenUp. They are named in
// errors and in the record.
const (
	OnDegradedKey = "streamsql.on-degraded"
	OnLostOption  = "'sink.recovery.on-lost-transaction' = 'ignore'"
)

// record notes durably that a guarantee is given up, and says so.
func (r *recovery) record(ctx context.Context, d Degradation) error {
	keeper, ok := r.s.(Recorder)
	if !ok {
		return errorf(diag.Internal, "a guarantee cannot be given up: the store keeps no record of it").WithDetail("%s", d)
	}
	d.At = r.o.Now().UTC()
	if err := keeper.Degrade(ctx, d); err != nil {
		return err
	}
	r.o.Log.Error("a guarantee is given up, as the user allowed", "lost", d.Lost, "from", d.From, "to", d.To, "by", d.By, "why", d.Why)
	return Failpoint("restore.degraded")
}

// committedSince tells whether output of a barrier after k was committed before c was published: a manifest in between
// lists it and pending does not. all is newest first without gaps down to k.
func committedSince(k ID, c *Checkpoint, all []*Checkpoint, pending []Committable) bool {
	for _, m := range all {
		if m.ID <= k || m.ID > c.ID {
			continue
		}
		for _, p := range m.Pending {
			if p.Checkpoint > k && !slices.ContainsFunc(pending, p.same) {
				return true
			}
		}
	}
	return false
}

// same tells whether two committables are the same unit of output.
func (c Committable) same(d Committable) bool {
	return c.Sink == d.Sink && c.Checkpoint == d.Checkpoint && c.Subtask == d.Subtask && c.Lineage == d.Lineage &&
		bytes.Equal(c.Payload, d.Payload)
}

// resumable tells whether nothing of a barrier after k is visible and all up to k is or can be.
func resumable(k ID, pending []Committable, out []Outcome) bool {
	for i, p := range pending {
		if p.Checkpoint > k && !gone(out[i]) && out[i] != OutcomeOpen {
			return false
		}
		if p.Checkpoint <= k && out[i] != OutcomeCommitted && out[i] != OutcomeOpen {
			return false
		}
	}
	return true
}

// rewind aborts what c lists beyond checkpoint st.back, proves it, and discards the checkpoints after that. Where rows may
// repeat, what is visible stays so.
func (r *recovery) rewind(ctx context.Context, c *Checkpoint, st step) error {
	back := st.back
	var keep, drop []Committable
	for _, p := range c.Pending {
		if p.Checkpoint <= back {
			keep = append(keep, p)
		} else {
			drop = append(drop, p)
		}
	}
	if len(drop) > 0 {
		if err := r.committers.Abort(ctx, keep); err != nil {
			return err
		}
		out, err := r.committers.classify(ctx, drop)
		if err != nil {
			return err
		}
		for _, x := range out {
			if !gone(x) && (st.price == nil || x == OutcomeOpen) {
				return errorf(diag.Lost, "going back from checkpoint %d to %d is not safe: output could not be aborted", c.ID, back).
					WithDetail("%s", listed(drop, out))
			}
		}
	}
	if st.price == nil {
		r.o.Log.Warn("going back to an earlier checkpoint: the output of later ones never became visible", "from", c.ID, "to", back)
	}
	return r.s.Discard(ctx, back+1)
}

// commit commits and repeats until that succeeds, the context ends, or the error is final.
func (r *recovery) commit(ctx context.Context, cs []Committable) error {
	return r.committers.eachSink(cs, func(s SinkID, list []Committable) error { return r.commitSink(ctx, s, list) })
}

// commitSink repeats one sink's commit until it succeeds. Only failures of the outside are worth repeating.
func (r *recovery) commitSink(ctx context.Context, s SinkID, cs []Committable) error {
	for attempt := 0; ; attempt++ {
		err := r.committers[s].Commit(ctx, cs)
		if err == nil || ctx.Err() != nil {
			return err
		}
		var de *diag.Error
		code := diag.External // an error of the network or a driver
		if errors.As(err, &de) {
			code = de.Code
		}
		if code != diag.External {
			return err
		}
		r.o.Log.Warn("commit is repeated", "sink", s, "attempt", attempt, "err", err)
		if err := r.o.Sleep(ctx, backoff(attempt)); err != nil {
			return err
		}
	}
}

// listed names committables and outcomes for people, those that are neither open nor committed first.
func listed(cs []Committable, out []Outcome) string {
	var bad, good []string
	for i, c := range cs {
		line := fmt.Sprintf("sink %s, checkpoint %d, subtask %d: %s", c.Sink, c.Checkpoint, c.Subtask, out[i])
		if gone(out[i]) || out[i] == OutcomeUnknown {
			bad = append(bad, line)
		} else {
			good = append(good, line)
		}
	}
	return strings.Join(append(bad, good...), "; ")
}

// backoff is the pause before another attempt to commit.
func backoff(attempt int) time.Duration {
	if attempt >= 7 {
		return commitBackoffMax
	}
	return min(commitBackoffMin<<attempt, commitBackoffMax)
}
