package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/streamsql/streamsql/sql/diag"
)

// simStore is durable.
type simStore struct {
	w         *simWorld
	all       []*Checkpoint
	confirmed ID
	discarded []idRange
	used      ID
}

func (s *simStore) Publish(ctx context.Context, c *Checkpoint) error {
	s.w.step()
	if s.w.r.IntN(25) == 0 {
		return errors.New("disk full")
	}
	s.all = append(s.all, c)
	s.used = max(s.used, c.ID)
	s.w.step()
	if s.w.r.IntN(25) == 0 {
		return errors.New("directory not synced") // it is durable all the same
	}
	return nil
}

func (s *simStore) Confirm(ctx context.Context, id ID) error {
	s.w.step()
	s.confirmed = max(s.confirmed, id)
	s.w.step()
	return nil
}

func (s *simStore) Discard(ctx context.Context, from ID) error {
	s.w.step()
	s.discarded = append(s.discarded, idRange{from, s.used})
	s.all = slices.DeleteFunc(s.all, func(c *Checkpoint) bool { return c.ID >= from })
	return nil
}

func (s *simStore) Latest(ctx context.Context) (*Checkpoint, bool, error) {
	if len(s.all) == 0 {
		return nil, false, ErrNone
	}
	c := s.all[len(s.all)-1]
	return c, c.ID <= s.confirmed, nil
}

func (s *simStore) List(ctx context.Context) ([]*Checkpoint, error) {
	out := slices.Clone(s.all)
	slices.Reverse(out)
	return out[:min(4, len(out))], nil
}

func (s *simStore) NextID() ID { return s.used + 1 }

// simCommitter is the committer of either sink.
type simCommitter struct{ w *simWorld }

func (c simCommitter) Close() error { return nil }

func markerKey(p Committable) string {
	return fmt.Sprintf("%s/%d/%d", p.Lineage, p.Checkpoint, p.Subtask)
}

func (c simCommitter) Classify(ctx context.Context, cs []Committable) ([]Outcome, error) {
	c.w.step()
	var out []Outcome
	for _, p := range cs {
		switch {
		case c.w.sink == "txn":
			o := c.w.txns[string(p.Payload)].state
			if c.w.wrong == "aborted counts as committed" && o == OutcomeAborted {
				o = OutcomeCommitted
			}
			out = append(out, o)
		case c.w.markers[markerKey(p)]:
			out = append(out, OutcomeCommitted)
		default:
			out = append(out, OutcomeOpen)
		}
	}
	return out, nil
}

func (c simCommitter) Commit(ctx context.Context, cs []Committable) error {
	for _, p := range cs {
		c.w.step()
		if c.w.r.IntN(12) == 0 { // the request is delayed and the caller gives up waiting
			c.w.zombies = append(c.w.zombies, func() { c.apply(p) })
			return errors.New("request timed out")
		}
		if o := c.apply(p); o == OutcomeAborted && c.w.wrong != "aborted counts as committed" {
			return errorf(diag.Lost, "transaction %s was aborted by the broker", p.Payload)
		}
		c.w.step()
		if c.w.r.IntN(12) == 0 { // the answer is lost
			return errors.New("connection reset")
		}
	}
	return nil
}

func (c simCommitter) apply(p Committable) Outcome {
	w := c.w
	if w.sink == "marker" {
		if !w.markers[markerKey(p)] || w.wrong == "commit is not idempotent" {
			w.markers[markerKey(p)] = true
			for _, f := range strings.Fields(string(p.Payload)) {
				n, _ := strconv.Atoi(f)
				w.visible = append(w.visible, n)
			}
		}
		return OutcomeCommitted
	}
	x := w.txns[string(p.Payload)]
	if x.state == OutcomeOpen {
		x.state = OutcomeCommitted
		w.visible = append(w.visible, x.rows...)
	}
	return x.state
}

func (c simCommitter) Abort(ctx context.Context, keep []Committable) error {
	c.w.step()
	if c.w.wrong != "writers are not fenced" {
		c.w.fence = c.w.attempt
	}
	for _, x := range c.w.open {
		kept := slices.ContainsFunc(keep, func(p Committable) bool { return c.w.txns[string(p.Payload)] == x })
		if !kept && x.state == OutcomeOpen {
			x.state = OutcomeAborted
		}
	}
	c.w.step()
	return nil
}

// simChain is a source, a fold and a writer in one task.
type simChain struct {
	w        *simWorld
	i        int
	attempt  int
	pos, sum int
	txn      string
	rows     []int
	barriers []Barrier
	ended    bool // saw the final barrier
	told     bool // told that the source is exhausted
}

func (c *simChain) write(row int) {
	if c.w.sink == "marker" {
		c.rows = append(c.rows, row)
		return
	}
	if c.attempt < c.w.fence {
		panic(simCrash{}) // a fenced writer's task fails; a zombie's caller recovers
	}
	if c.txn == "" {
		c.txn = fmt.Sprintf("t%d-%d-%d", c.attempt, c.i, len(c.w.txns))
		x := &simTxn{began: c.w.now, attempt: c.attempt}
		c.w.txns[c.txn] = x
		c.w.open = append(c.w.open, x)
	}
	x := c.w.txns[c.txn]
	if x.state != OutcomeOpen {
		panic(simCrash{})
	}
	x.rows = append(x.rows, row)
}

func (c *simChain) preCommit(id ID) []Committable {
	p := Committable{Sink: "s", Checkpoint: id, Subtask: c.i, Lineage: c.w.lineage}
	switch {
	case c.w.sink == "marker" && len(c.rows) > 0:
		p.Payload = []byte(strings.Trim(fmt.Sprint(c.rows), "[]"))
		c.rows = nil
	case c.txn != "":
		p.Payload = []byte(c.txn)
		c.txn = ""
	default:
		return nil
	}
	return []Committable{p}
}

// advance does one thing: a row or a barrier. It returns the event it causes, if any.
func (c *simChain) advance(now time.Time) Event {
	if len(c.barriers) > 0 && (c.w.r.IntN(3) == 0 || c.pos == simRows) {
		b := c.barriers[0]
		c.barriers = c.barriers[1:]
		id := SubtaskID{"chain", c.i}
		if !b.Final && c.w.r.IntN(15) == 0 {
			return Declined{ID: b.ID, Subtask: id, NotReady: c.w.r.IntN(2) == 0, Reason: "not ready", Now: now}
		}
		cs := c.preCommit(b.ID)
		if !b.Final && c.w.r.IntN(15) == 0 { // the snapshot fails after the writer pre-committed
			d := Declined{ID: b.ID, Subtask: id, Reason: "io", Committables: cs, Now: now}
			if c.w.wrong == "a declined snapshot's committables are dropped" {
				d.Committables = nil
			}
			return d
		}
		c.ended = b.Final
		if c.w.wrong == "positions are acked before the checkpoint" {
			c.w.eager[c.i] = c.pos
		}
		return Acked{ID: b.ID, Now: now, Snapshot: Snapshot{
			Subtask: id, Committables: cs,
			Positions: []Position{{Split: Split(strconv.Itoa(c.i)), Next: []byte(strconv.Itoa(c.pos))}},
			State:     []byte(strconv.Itoa(c.sum)),
		}}
	}
	if c.pos < simRows && !c.ended {
		row := c.i*1000 + c.pos
		c.pos++
		c.sum += row
		c.write(row)
		return nil
	}
	if c.pos == simRows && !c.told {
		c.told = true
		return TaskFinished{Subtask: SubtaskID{"chain", c.i}, Now: now}
	}
	return nil
}
