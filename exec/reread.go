package exec

import (
	"sync"

	"github.com/streamsql/streamsql/checkpoint"
)

// reread knows how far the splits had been read at the barriers of the last checkpoints, in rows since this process began to
// read them. What a restart goes back to is known by that, and so which rows are read again; what an earlier process read
// after its last checkpoint is not known.
type reread struct {
	mu    sync.Mutex
	marks map[checkpoint.ID]map[splitKey]int64
	begun bool
	first checkpoint.ID // what this process began with, 0 = afresh
}

// keptMarks bounds the checkpoints that are known. A job goes back to the newest one, rarely to the one before.
const keptMarks = 16

// mark notes how far splits had been read at the barrier of checkpoint id.
func (r *reread) mark(id checkpoint.ID, op checkpoint.OperatorID, splits []*split) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.marks[id]
	if m == nil {
		m = map[splitKey]int64{}
		if r.marks == nil {
			r.marks = map[checkpoint.ID]map[splitKey]int64{}
		}
		r.marks[id] = m
		oldest := id
		for k := range r.marks {
			oldest = min(oldest, k)
		}
		if len(r.marks) > keptMarks {
			delete(r.marks, oldest)
		}
	}
	for _, sp := range splits {
		m[splitKey{op, sp.name}] = sp.read
	}
}

// begin starts an attempt that goes on from cp, nil = afresh.
func (r *reread) begin(cp *checkpoint.Checkpoint) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.begun {
		r.begun = true
		if cp != nil {
			r.first = cp.ID
		}
	}
}

// at is how far a split had been read at the barrier of cp; high is how far it was ever read.
func (r *reread) at(cp *checkpoint.Checkpoint, k splitKey, high int64) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case cp == nil:
		return 0
	case r.marks[cp.ID] != nil:
		return r.marks[cp.ID][k] // 0 for a split that was found later
	case cp.ID == r.first:
		return 0
	}
	return high // from before what is known: nothing is counted rather than too much
}

// pass moves the split on by n rows and counts those that had been read before.
func (sp *split) pass(n int64) {
	high := sp.meter.high.Load()
	if again := min(high, sp.read+n) - sp.read; again > 0 {
		sp.meter.again.Add(again)
	}
	sp.read += n
	if sp.read > high {
		sp.meter.high.Set(sp.read)
	}
}

// rereads is how many rows the attempt's sources are going to read again.
func (at *attempt) rereads() (n int64) {
	for _, t := range at.tasks {
		if t.source == nil {
			continue
		}
		for _, sp := range t.source.splits {
			n += sp.meter.high.Load() - sp.read
		}
	}
	return n
}
