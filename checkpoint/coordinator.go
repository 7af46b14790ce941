package checkpoint

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/streamsql/streamsql/sql/diag"
)

// CoordinatorConfig is what a Coordinator needs to know of its job.
type CoordinatorConfig struct {
	// Interval between the starts of periodic checkpoints; 0 = only on demand and at the end.
	Interval time.Duration
	// First is the time from the start to the first periodic checkpoint, where that is less than Interval; 0 = Interval.
	First time.Duration
	// Timeout after which a checkpoint that is not complete is given up; 0 = never.
	Timeout time.Duration
	// MinPause between the end of a checkpoint and the start of the next periodic one.
	MinPause time.Duration
	// MaxConcurrent is how many checkpoints may be under way, published ones whose commit is not confirmed included;
	// 0 means 1.
	MaxConcurrent int
	// TolerableFailed is how many checkpoints in a row may fail before the job does; negative = any number.
	TolerableFailed int
	// Subtasks must all answer a barrier. Sources are those among them that read.
	Subtasks []SubtaskID
	Sources  []SubtaskID
	// Lineage, Identities, Fence and Parallelism go into every manifest.
	Lineage     string
	Identities  map[OperatorID]string
	Fence       uint64
	Parallelism map[OperatorID]int
	// NextID is the first id to use: Store.NextID.
	NextID ID
}

// commitBackoff bounds the pause between attempts to commit.
const (
	commitBackoffMin = 10 * time.Millisecond
	commitBackoffMax = time.Second
)

// Coordinator decides when checkpoints start, complete, commit and fail. It does no I/O and has no clock and no
// goroutine: Step applies an event and returns what the caller must do. Not safe for concurrent use.
type Coordinator struct {
	cfg     CoordinatorConfig
	next    ID
	running []*attempt // injected, not yet published or given up; by id
	carried []carried  // committables not confirmed committed; by checkpoint, subtask
	restore []Committable
	// published is the newest durable checkpoint, confirmed the newest whose commit is durable knowledge.
	published, confirmed ID
	unconfirmed          []ID // published and not confirmed
	// committing is the checkpoint of the outstanding Commit action (0: none), wantCommit the newest to commit.
	committing, wantCommit ID
	commitAttempt          int
	// answered are the ids each subtask has answered: complete needs every earlier answer too.
	answered map[SubtaskID]map[ID]bool
	injected []ID // ids injected in this attempt of the job that some subtask has not answered

	lastStart, lastEnd time.Time
	failures           int // in a row
	due, dueSavepoint  bool
	finished           map[SubtaskID]bool
	stop               *StopMode
	stopID             ID // the checkpoint that ends the job
	done               bool
}

type attempt struct {
	id         ID
	started    time.Time
	savepoint  bool
	final      bool
	acks       map[SubtaskID]Snapshot
	publishing bool
}

// carried are the committables one subtask pre-committed at barrier id.
type carried struct {
	id      ID
	subtask SubtaskID
	cs      []Committable
}

// NewCoordinator makes the coordinator of one attempt of a job. restored is the checkpoint it resumes from, nil for a
// fresh start; when its commit is not confirmed (see Recover), its committables are carried. now is the start of the
// first interval.
func NewCoordinator(cfg CoordinatorConfig, restored *Checkpoint, confirmed bool, now time.Time) *Coordinator {
	if cfg.MaxConcurrent <= 0 {
		cfg.MaxConcurrent = 1
	}
	c := &Coordinator{
		cfg: cfg, next: max(cfg.NextID, 1), lastStart: now, lastEnd: now,
		answered: map[SubtaskID]map[ID]bool{}, finished: map[SubtaskID]bool{},
	}
	if 0 < cfg.First && cfg.First < cfg.Interval {
		c.lastStart = now.Add(cfg.First - cfg.Interval)
	}
	if restored != nil {
		c.published, c.confirmed = restored.ID, restored.ID
		c.next = max(c.next, restored.ID+1)
		if !confirmed {
			c.restore = slices.Clone(restored.Pending)
		}
	}
	return c
}

// Step applies e and returns the actions to carry out, in order. After Fail or Stop it returns nothing more.
func (c *Coordinator) Step(e Event) []Action {
	if c.done {
		return nil
	}
	var out []Action
	var now time.Time
	switch e := e.(type) {
	case Tick:
		now = e.Now
		c.stepBack(now)
	case Due:
		now = e.Now
		c.due, c.dueSavepoint = true, c.dueSavepoint || e.Savepoint
	case Acked:
		now = e.Now
		out = c.acked(e)
	case Declined:
		now = e.Now
		out = c.declined(e)
	case Published:
		now = e.Now
		out = c.publishedOK(e)
	case PublishFailed:
		now = e.Now
		out = c.publishFailed(e)
	case CommitDone:
		now = e.Now
		if e.ID == c.committing {
			out = append(out, Confirm{ID: e.ID})
		}
	case CommitFailed:
		now = e.Now
		out = c.commitFailed(e)
	case Confirmed:
		now = e.Now
		out = c.confirmedOK(e)
	case ConfirmFailed:
		now = e.Now
		out = c.confirmFailed(e)
	case TaskFinished:
		now = e.Now
		c.taskFinished(e)
	case StopRequested:
		now = e.Now
		out = c.stopRequested(e)
	}
	if !c.done {
		out = append(out, c.expire(now)...)
	}
	if !c.done {
		out = append(out, c.trigger(now)...)
	}
	return out
}

// NextWake is when the next Tick is needed; ok is false when no time limit is running.
func (c *Coordinator) NextWake() (at time.Time, ok bool) {
	earliest := func(t time.Time) {
		if !ok || t.Before(at) {
			at, ok = t, true
		}
	}
	if c.done {
		return time.Time{}, false
	}
	if c.cfg.Timeout > 0 {
		for _, a := range c.running {
			if !a.publishing {
				earliest(a.started.Add(c.cfg.Timeout))
			}
		}
	}
	if c.stop == nil && c.free() && (c.cfg.Interval > 0 || c.due) {
		earliest(c.nextStart())
	}
	return at, ok
}

// Failures are how many checkpoints in a row have failed, and how many more may before the job fails; left is negative
// when any number may.
func (c *Coordinator) Failures() (inARow, left int) {
	if c.cfg.TolerableFailed < 0 {
		return c.failures, -1
	}
	return c.failures, max(0, c.cfg.TolerableFailed-c.failures)
}

// stepBack starts the time limits anew that began after now: the clock was set back, and what waits for it to come there
// again would wait for as long as it was set back.
func (c *Coordinator) stepBack(now time.Time) {
	for _, t := range []*time.Time{&c.lastStart, &c.lastEnd} {
		if now.Before(*t) {
			*t = now
		}
	}
	for _, a := range c.running {
		if now.Before(a.started) {
			a.started = now
		}
	}
}

// nextStart is when the next periodic checkpoint may start.
func (c *Coordinator) nextStart() time.Time {
	paused := c.lastEnd.Add(c.cfg.MinPause)
	if c.due {
		return paused
	}
	at := c.lastStart.Add(c.cfg.Interval)
	if at.Before(paused) {
		return paused
	}
	return at
}

// free tells whether another checkpoint may start. A published checkpoint counts until it is confirmed, which bounds
// the prepared transactions per writer.
func (c *Coordinator) free() bool {
	return len(c.running)+len(c.unconfirmed) < c.cfg.MaxConcurrent
}

func (c *Coordinator) trigger(now time.Time) []Action {
	if c.stop != nil {
		// The last checkpoint waits until no other is under way: nothing may complete after it.
		if c.stopID == 0 && len(c.running) == 0 && len(c.unconfirmed) == 0 {
			a := c.inject(now, true, *c.stop == StopDrain)
			c.stopID = a.id
			return []Action{Inject{Barrier: Barrier{ID: a.id, Final: a.final}, Savepoint: true}}
		}
		return nil
	}
	if !c.free() || (c.cfg.Interval <= 0 && !c.due) || now.Before(c.nextStart()) {
		return nil
	}
	a := c.inject(now, c.dueSavepoint, false)
	c.due, c.dueSavepoint = false, false
	return []Action{Inject{Barrier: Barrier{ID: a.id}, Savepoint: a.savepoint}}
}

func (c *Coordinator) inject(now time.Time, savepoint, final bool) *attempt {
	a := &attempt{id: c.next, started: now, savepoint: savepoint, final: final, acks: map[SubtaskID]Snapshot{}}
	c.next++
	c.lastStart = now
	c.running = append(c.running, a)
	c.injected = append(c.injected, a.id)
	return a
}

func (c *Coordinator) find(id ID) *attempt {
	for _, a := range c.running {
		if a.id == id {
			return a
		}
	}
	return nil
}

// answer records that subtask s has answered barrier id and what it pre-committed there. It tells whether the id
// belongs to this attempt of the job at all.
func (c *Coordinator) answer(id ID, s SubtaskID, cs []Committable) bool {
	if !slices.Contains(c.injected, id) || !slices.Contains(c.cfg.Subtasks, s) {
		return false
	}
	m := c.answered[s]
	if m == nil {
		m = map[ID]bool{}
		c.answered[s] = m
	}
	if m[id] {
		return true // a duplicate; the first answer holds
	}
	m[id] = true
	if len(cs) > 0 {
		c.carried = append(c.carried, carried{id: id, subtask: s, cs: cs})
		slices.SortStableFunc(c.carried, func(x, y carried) int {
			return cmp.Or(cmp.Compare(x.id, y.id), cmp.Compare(x.subtask.Operator, y.subtask.Operator),
				cmp.Compare(x.subtask.Index, y.subtask.Index))
		})
	}
	return true
}

func (c *Coordinator) acked(e Acked) []Action {
	if !c.answer(e.ID, e.Snapshot.Subtask, e.Snapshot.Committables) {
		return nil
	}
	if a := c.find(e.ID); a != nil && !a.publishing {
		if _, dup := a.acks[e.Snapshot.Subtask]; !dup {
			a.acks[e.Snapshot.Subtask] = e.Snapshot
		}
	}
	return c.publishReady()
}

func (c *Coordinator) declined(e Declined) []Action {
	if !c.answer(e.ID, e.Subtask, e.Committables) {
		return nil
	}
	a := c.find(e.ID)
	if a == nil || a.publishing {
		return c.publishReady()
	}
	why := Abort{Cause: AbortFailed, Reason: e.Reason, Subtasks: []SubtaskID{e.Subtask}}
	if e.NotReady {
		why.Cause = AbortDeclined
	}
	out := c.giveUp(a, why, e.Err, e.Now)
	if c.done {
		return out
	}
	return append(out, c.publishReady()...)
}

// publishReady publishes the newest complete checkpoint. Earlier ones still running are subsumed: their barriers were
// sent before, so their answers are in or will be carried.
func (c *Coordinator) publishReady() []Action {
	for i := len(c.running) - 1; i >= 0; i-- {
		a := c.running[i]
		if a.publishing || !c.complete(a) {
			continue
		}
		if i > 0 && c.running[i-1].publishing {
			return nil // one at a time, in order
		}
		var out []Action
		for _, old := range slices.Clone(c.running[:i]) {
			out = append(out, c.giveUp(old, Abort{Cause: AbortSubsumed}, nil, a.started)...)
		}
		a.publishing = true
		return append(out, Publish{Checkpoint: c.manifest(a)})
	}
	return nil
}

// complete tells whether every subtask has acked a and answered every earlier barrier of this attempt of the job. The
// second part is not a formality: what a subtask pre-committed at an earlier barrier, given up meanwhile, is in no
// later snapshot of it, and the source will not replay those rows once a is published.
func (c *Coordinator) complete(a *attempt) bool {
	for _, s := range c.cfg.Subtasks {
		if _, ok := a.acks[s]; !ok {
			return false
		}
		for _, id := range c.injected {
			if id < a.id && !c.answered[s][id] {
				return false
			}
		}
	}
	return true
}

func (c *Coordinator) manifest(a *attempt) *Checkpoint {
	m := &Checkpoint{
		ID: a.id, Lineage: c.cfg.Lineage, Identities: c.cfg.Identities, Fence: c.cfg.Fence,
		Parallelism: c.cfg.Parallelism, StartedAt: a.started, Savepoint: a.savepoint, Final: a.final,
		Pending: c.pending(a.id),
	}
	for _, s := range c.cfg.Subtasks {
		m.Subtasks = append(m.Subtasks, a.acks[s])
	}
	return m
}

// pending are all committables up to checkpoint id that are not confirmed committed, in checkpoint order.
func (c *Coordinator) pending(id ID) []Committable {
	out := slices.Clone(c.restore)
	for _, k := range c.carried {
		if k.id <= id {
			out = append(out, k.cs...)
		}
	}
	return out
}

// giveUp ends a pending checkpoint. err is the failure behind it, nil where why has a reason of its own. The id stays used and
// what sinks pre-committed stays carried.
func (c *Coordinator) giveUp(a *attempt, why Abort, err error, now time.Time) []Action {
	c.running = slices.DeleteFunc(c.running, func(b *attempt) bool { return b == a })
	c.lastEnd = now
	said := errorf(diag.External, "checkpoint %d %s%s", a.id, why.Cause, because(why.Reason, why.Subtasks)).Wrap(err)
	why.ID = a.id
	if err != nil {
		why.Reason = err.Error()
	}
	counts := why.Cause == AbortExpired || why.Cause == AbortFailed
	if counts {
		c.failures++
	}
	switch {
	case a.id == c.stopID:
		said.Message = "the last " + said.Message
		return []Action{why, c.fail(said.WithHint("nothing is lost: start the job again, it resumes at checkpoint %d", c.published))}
	case counts && c.cfg.TolerableFailed >= 0 && c.failures > c.cfg.TolerableFailed:
		said.WithDetail("%d checkpoint(s) failed in a row, %d tolerated", c.failures, c.cfg.TolerableFailed).
			WithHint("raise 'execution.checkpointing.timeout' or 'execution.checkpointing.tolerable-failed-checkpoints' if this load is expected")
		if cause := (*diag.Error)(nil); errors.As(err, &cause) && cause.Hint != "" {
			said.Hint = cause.Hint
		}
		return []Action{why, c.fail(said)}
	}
	return []Action{why}
}

// because is where and why, to stand behind what happened.
func because(reason string, who []SubtaskID) string {
	var sb strings.Builder
	for i, s := range who {
		switch {
		case i == 0:
			sb.WriteString(" at ")
		case i == 4:
			sb.WriteString(", …")
			continue
		case i > 4:
			continue
		default:
			sb.WriteString(", ")
		}
		sb.WriteString(s.String())
	}
	if reason != "" {
		sb.WriteString(": ")
		sb.WriteString(reason)
	}
	return sb.String()
}

func (c *Coordinator) fail(err error) Action {
	c.done = true
	return Fail{Err: err}
}

func (c *Coordinator) expire(now time.Time) []Action {
	if c.cfg.Timeout <= 0 {
		return nil
	}
	var out []Action
	for _, a := range slices.Clone(c.running) {
		if a.publishing || now.Before(a.started.Add(c.cfg.Timeout)) {
			continue
		}
		var missing []SubtaskID
		for _, s := range c.cfg.Subtasks {
			if _, ok := a.acks[s]; !ok {
				missing = append(missing, s)
			}
		}
		why := Abort{Cause: AbortExpired, Reason: "no answer within " + c.cfg.Timeout.String(), Subtasks: missing}
		if len(missing) == 0 {
			why.Reason = "an earlier barrier is still unanswered after " + c.cfg.Timeout.String()
		}
		out = append(out, c.giveUp(a, why, nil, now)...)
		if c.done {
			break
		}
	}
	return out
}

func (c *Coordinator) publishedOK(e Published) []Action {
	a := c.find(e.ID)
	if a == nil || !a.publishing {
		return nil
	}
	c.running = slices.DeleteFunc(c.running, func(b *attempt) bool { return b == a })
	c.published, c.wantCommit = a.id, a.id
	c.unconfirmed = append(c.unconfirmed, a.id)
	c.failures = 0
	c.lastEnd = e.Now
	return append(c.commitNext(), c.publishReady()...)
}

// commitNext commits the newest published checkpoint, which covers the ones before it.
func (c *Coordinator) commitNext() []Action {
	if c.committing != 0 || c.wantCommit <= c.confirmed {
		return nil
	}
	c.committing, c.commitAttempt = c.wantCommit, 0
	return []Action{Commit{ID: c.committing, Pending: c.pending(c.committing)}}
}

func (c *Coordinator) publishFailed(e PublishFailed) []Action {
	a := c.find(e.ID)
	if a == nil || !a.publishing {
		return nil
	}
	if code := diag.CodeOf(e.Err); code == diag.Conflict {
		return []Action{c.fail(e.Err)}
	}
	// The manifest may be durable all the same. That is harmless: nothing of it is committed here before a later
	// manifest lists the same committables, and a restore that finds it commits them.
	a.publishing = false
	out := c.giveUp(a, Abort{Cause: AbortFailed}, e.Err, e.Now)
	if c.done {
		return out
	}
	return append(out, c.publishReady()...)
}

func (c *Coordinator) commitFailed(e CommitFailed) []Action {
	if e.ID != c.committing {
		return nil
	}
	if code := diag.CodeOf(e.Err); code == diag.Lost || code == diag.Conflict {
		return []Action{c.fail(e.Err)}
	}
	after := backoff(c.commitAttempt)
	c.commitAttempt++
	return []Action{Commit{ID: c.committing, Pending: c.pending(c.committing), Attempt: c.commitAttempt, After: after}}
}

func (c *Coordinator) confirmedOK(e Confirmed) []Action {
	if e.ID != c.committing {
		return nil
	}
	c.confirmed, c.committing, c.restore = e.ID, 0, nil
	c.unconfirmed = slices.DeleteFunc(c.unconfirmed, func(id ID) bool { return id <= e.ID })
	c.carried = slices.DeleteFunc(c.carried, func(k carried) bool { return k.id <= e.ID })
	c.injected = slices.DeleteFunc(c.injected, func(id ID) bool { return id <= e.ID })
	for _, m := range c.answered {
		for id := range m {
			if id <= e.ID {
				delete(m, id)
			}
		}
	}
	out := []Action{NotifyCommitted{ID: e.ID}}
	if c.stop != nil && e.ID == c.stopID {
		c.done = true
		return append(out, Stop{ID: e.ID, Mode: *c.stop})
	}
	return append(out, c.commitNext()...)
}

func (c *Coordinator) confirmFailed(e ConfirmFailed) []Action {
	if e.ID != c.committing {
		return nil
	}
	if diag.CodeOf(e.Err) == diag.Conflict {
		return []Action{c.fail(e.Err)}
	}
	// Everything is committed; only the note of it is missing. A restore would commit again, which is idempotent, but
	// a store that cannot write will not take the next checkpoint either.
	return []Action{c.fail(errorf(diag.External, "checkpoint %d is committed but cannot be confirmed", e.ID).Wrap(e.Err).
		WithHint("check space and permissions of the state directory, then start the job again"))}
}

func (c *Coordinator) taskFinished(e TaskFinished) {
	if !slices.Contains(c.cfg.Sources, e.Subtask) {
		return
	}
	c.finished[e.Subtask] = true
	if len(c.finished) == len(c.cfg.Sources) && c.stop == nil {
		m := StopDrain
		c.stop = &m
	}
}

func (c *Coordinator) stopRequested(e StopRequested) []Action {
	if e.Mode != StopNow {
		// A stop already under way stands: its barrier may be on its way.
		if c.stop == nil {
			c.stop = &e.Mode
		}
		return nil
	}
	var out []Action
	for _, a := range c.running {
		out = append(out, Abort{ID: a.id, Cause: AbortStopped, Reason: "the job is stopping"})
	}
	c.done = true
	return append(out, Stop{ID: c.published, Mode: StopNow})
}
