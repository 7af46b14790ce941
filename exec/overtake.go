package exec

import (
	"context"

	"github.com/streamsql/streamsql/checkpoint"
)

// arrivals takes what is in the inbox to the gate. It also runs while the task waits for room to send, in the middle of a
// batch: it changes nothing the operators see.
func (t *task) arrivals() error {
	t.spare = t.inbox.drain(t.spare)
	for _, m := range t.spare {
		t.gate.arrive(m)
	}
	clear(t.spare)
	if t.cut != nil {
		return t.recorded()
	}
	return nil
}

// overtaking is a barrier that may pass now.
func (t *task) overtaking() (checkpoint.Barrier, bool) {
	b, ok := t.gate.waiting()
	return b, ok && t.at.overtakes(b.ID)
}

// recorded answers the barrier that overtook, once all that is in flight is recorded.
func (t *task) recorded() error {
	c := t.gate.capture
	if c == nil || !c.complete() {
		if c != nil {
			t.at.walk.records(c.id, t)
		}
		return nil
	}
	cut := t.cut
	t.cut, t.gate.capture = nil, nil
	t.at.walk.overtook(c.id, t, int64(len(c.body)), c.rows)
	if !c.empty() {
		part := &cut.parts[0] // the head's: what is in flight is its input
		state, data := part.finish, c.file()
		name, owner := stateName(t.head.id), t.at.job.o.Owner
		part.finish = func(ctx context.Context) (files []checkpoint.StateFile, err error) {
			if state != nil {
				if files, err = state(ctx); err != nil {
					return nil, err
				}
			}
			f, err := checkpoint.WriteInFlight(ctx, owner, c.id, name, data)
			return append(files, f), err
		}
	}
	return t.submit(cut)
}

// giveUp ends the recording for checkpoint id, which will not complete: its barrier is still to be answered, because of what
// sinks pre-committed at it.
func (t *task) giveUp(id checkpoint.ID) error {
	cut := t.cut
	if cut == nil || cut.id != id {
		return nil
	}
	t.cut = nil
	if c := t.gate.capture; c != nil && c.id == id {
		t.gate.forgetCapture()
	}
	for i := range cut.parts {
		cut.parts[i].givenUp = true
	}
	return t.submit(cut)
}
