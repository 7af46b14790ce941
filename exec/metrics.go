package exec

import "sync/atomic"

// Counter is a count that its subtask increments and anyone may read.
type Counter struct{ v atomic.Int64 }

// Add adds n.
func (c *Counter) Add(n int64) { c.v.Add(n) }

// Load is the current value.
func (c *Counter) Load() int64 { return c.v.Load() }

// Set replaces the value, for gauges.
func (c *Counter) Set(n int64) { c.v.Store(n) }

// maxInt64 is a value that only grows.
type maxInt64 struct{ v atomic.Int64 }

// raise sets the value to at least n and returns it.
func (m *maxInt64) raise(n int64) int64 {
	for {
		old := m.v.Load()
		if n <= old {
			return old
		}
		if m.v.CompareAndSwap(old, n) {
			return n
		}
	}
}
