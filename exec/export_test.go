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
