package exec

import "sync/atomic"

// Counter is a count that its subtask increments and anyone may read.
type Counter struct{ v atomic.Int64 }

// Add adds n.
func (c *Counter) Add(n int64) { c.v.Add(n) }

// Load is the current value.
func (c *Counter) Load() int64 { return c.v.Load() }
