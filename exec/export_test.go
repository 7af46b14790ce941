package exec

import "time"

// SetSlowCancel sets after how long what does not end is named in the log, and returns what undoes it.
func SetSlowCancel(d time.Duration) func() {
	was := slowCancel
	slowCancel = d
	return func() { slowCancel = was }
}

// Poison makes exchanges overwrite the batches they get back.
func (o *JobOptions) Poison() { o.poison = true }

// Queued is how many batches of each channel, and how many barriers, wait at the gate of s's task, whose goroutine must be
// known to stand still.
func Queued(s Subtask) (batches []int, barriers int) {
	t := s.(*subtask).m.task
	if t.inbox == nil {
		return nil, 0
	}
	batches = make([]int, len(t.gate.inputs))
	t.inbox.mu.Lock()
	defer t.inbox.mu.Unlock()
	for _, list := range [][]message{t.gate.held, t.gate.replay[t.gate.at:], t.inbox.list} {
		for _, m := range list {
			switch m.kind {
			case msgRows:
				batches[m.input]++
			case msgBarrier:
				barriers++
			}
		}
	}
	return batches, barriers
}
