package main

import (
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

func TestSpare(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		live, scanned uint64
		want          int
	}{
		{0, 0, 200},
		{8 * mib, 8 * mib, 200},
		{40 * mib, 4 * mib, 100},            // buffers
		{64 * mib, 32 * mib, 100},           // half of it records
		{1024 * mib, 4 * mib, leastSpare},   // a record of many megabytes
		{1024 * mib, 1024 * mib, mostSpare}, // all pointers
		{1 << 40, 1 << 40, mostSpare},       // no overflow
	} {
		if got := spare(c.live, c.scanned); got != c.want {
			t.Errorf("%d MiB live, %d MiB scanned: %d %%, want %d %%", c.live/mib, c.scanned/mib, got, c.want)
		}
	}
}

// A heap of buffers gets less room with the next collections, and its room back when it shrinks.
func TestCollectorFollowsTheHeap(t *testing.T) {
	c := tuneCollector()
	defer c.stopped.Store(true)
	gogc := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	wait := func(what string, ok func(uint64) bool) {
		t.Helper()
		for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
			runtime.GC()
			metrics.Read(gogc)
			if n := gogc[0].Value.Uint64(); ok(n) {
				return
			} else if time.Now().After(deadline) {
				t.Fatalf("%s: GOGC is %d", what, n)
			}
		}
	}
	buffer := make([]byte, 256<<20)
	wait("with a large buffer", func(n uint64) bool { return n < 100 })
	runtime.KeepAlive(buffer)
	buffer = nil
	wait("without it", func(n uint64) bool { return n >= 100 })
}
