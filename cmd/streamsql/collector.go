package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// Bounds of what the Go heap may grow by between two collections. State lies outside of it.
const (
	freeSpare    = 40 << 20 // bytes that cost less processor time than they save, whatever the heap holds
	mostSpare    = 200      // percent of the live heap
	leastSpare   = 25
	scannedSpare = 200 // percent of what a collection has to look at
)

// collector sets GOGC after every collection. Marking costs by the bytes that hold pointers, and only those deserve room
// in proportion: a heap of records and buffers on their way through a job would otherwise be three times what is live.
type collector struct {
	stopped atomic.Bool
	percent int
	samples []metrics.Sample
}

// tuneCollector starts it.
func tuneCollector() *collector {
	c := &collector{samples: []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/heap:bytes"}}}
	c.set(mostSpare)
	c.watch()
	return c
}

// watch waits for the next collection: it finds an object that nobody holds.
func (c *collector) watch() {
	runtime.AddCleanup(new([64]byte), (*collector).collected, c)
}

func (c *collector) collected() {
	if c.stopped.Load() {
		return
	}
	metrics.Read(c.samples)
	c.set(spare(c.samples[0].Value.Uint64(), c.samples[1].Value.Uint64()))
	c.watch()
}

// set changes GOGC, for which the world stops for a moment: a difference of a tenth is none.
func (c *collector) set(percent int) {
	if d := percent - c.percent; 10*max(d, -d) > c.percent {
		c.percent = percent
		debug.SetGCPercent(percent)
	}
}

// spare is GOGC for a heap of which so many bytes are live and so many may hold pointers.
func spare(live, scanned uint64) int {
	room := max(freeSpare, scanned*scannedSpare/100)
	return int(min(max(room*100/max(live, 1), leastSpare), mostSpare))
}
