package checkpoint

import (
	"fmt"
	"time"
)

// Restored is a start of a job from a checkpoint: how long it took until rows flowed, by parts that follow one another, so
// that they add up. It is measured with the job's clock, and for people: nothing depends on it.
type Restored struct {
	From         ID            `json:"from"`
	Begun        time.Time     `json:"begun"`
	Metadata     time.Duration `json:"metadata"`     // manifests were found, read and compared with the job
	Transactions time.Duration `json:"transactions"` // sinks were asked, listed output was committed, what else was open was aborted
	Sources      time.Duration `json:"sources"`      // splits were listed and given to subtasks
	State        time.Duration `json:"state"`        // every operator had its state back
	Writers      time.Duration `json:"writers"`      // every sink had its writers open: from here rows flow
	// FirstCommit is from there to the first commit of a checkpoint, 0 = there was none yet.
	FirstCommit time.Duration `json:"firstCommit,omitempty"`
	// Again are the rows that are read a second time, as far as this process read them before: none after a start of the process.
	Again int64 `json:"again,omitempty"`
}

// Took is from the beginning until rows flow: the sum of the parts but FirstCommit.
func (r *Restored) Took() time.Duration {
	return r.Metadata + r.Transactions + r.Sources + r.State + r.Writers
}

// String is the parts on one line.
func (r *Restored) String() string {
	s := fmt.Sprintf("restored from checkpoint %d in %s: metadata %s, transactions %s, sources %s, state %s, writers %s", r.From, Short(r.Took()),
		Short(r.Metadata), Short(r.Transactions), Short(r.Sources), Short(r.State), Short(r.Writers))
	if r.FirstCommit > 0 {
		s += fmt.Sprintf("; first commit %s later", Short(r.FirstCommit))
	}
	if r.Again > 0 {
		s += fmt.Sprintf("; %d rows read again", r.Again)
	}
	return s
}

// Restore notes that the attempt was restored. It is kept with the attempt's first checkpoint.
func (t *Traces) Restore(r Restored) { t.restored = &r }

// Restored is how the running attempt was restored; nil when it began afresh.
func (t *Traces) Restored() *Restored { return t.restored }

// carry puts the restore on the attempt's first checkpoint.
func (t *Traces) carry(x *Trace) {
	if t.restored != nil && t.carrier == nil {
		t.carrier, x.Restored = x, t.restored
	}
}

// firstCommit notes the first commit after the restore. Readers may hold what was there before.
func (t *Traces) firstCommit(now time.Time) {
	if t.restored == nil || t.restored.FirstCommit != 0 {
		return
	}
	r := *t.restored
	r.FirstCommit = max(1, now.Sub(r.Begun.Add(r.Took())))
	t.restored = &r
	if t.carrier != nil {
		t.carrier.Restored = &r
		t.touch(t.carrier)
	}
}
