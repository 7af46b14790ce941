package checkpoint

import (
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"
)

// Goal: the figures of state on disk are those of the Pebble that holds it, may be asked for at any time, and end with the
// backend. Method: rows for which memory has no room, sealed twice, while another goroutine asks all the time; then a restore
// that goes on with the files.
func TestStoreFigures(t *testing.T) {
	owner := testOwner(t)
	var m Meter
	budget := NewMemoryBudget(256 << 10)
	open := func() (*Backend, func() Table) {
		t.Helper()
		b, err := OpenBackend(owner, "agg-0", BackendOptions{Budget: budget, Meter: &m})
		if err != nil {
			t.Fatal(err)
		}
		return b, func() Table {
			t.Helper()
			tb, err := b.Table("agg", TableOptions{Name: "acc", Format: "v1"})
			if err != nil {
				t.Fatal(err)
			}
			return tb
		}
	}
	b, tables := open()
	if f := m.Figures(budget); f.Databases != 0 || f.Files != 0 || f.CacheHitRatio() != 1 || f.MemoryLimit != 256<<10 {
		t.Fatalf("before the first row: %+v", f)
	}
	tb := tables().(*table)
	done := make(chan struct{})
	var asking sync.WaitGroup
	asking.Add(1)
	go func() {
		defer asking.Done()
		for {
			select {
			case <-done:
				return
			default:
				m.Figures(budget)
			}
		}
	}()
	var files []StateFile
	for id := ID(1); id <= 2; id++ {
		if err := countRows(tb, 20_000); err != nil {
			t.Fatal(err)
		}
		async, err := b.Seal(id)
		if err != nil {
			t.Fatal(err)
		}
		if files, err = async(bg); err != nil {
			t.Fatal(err)
		}
	}
	if tb.absent == 0 || b.db == nil {
		t.Fatal("memory had room for all rows")
	}
	f := m.Figures(budget)
	if f.Databases != 1 || f.Files == 0 || f.Bytes < 20_000*8 || f.NewFiles > f.Files || f.MemoryUsed == 0 {
		t.Errorf("with rows on disk: %+v", f)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if f := m.Figures(budget); f.Databases != 0 || f.Files != 0 {
		t.Errorf("after the end: %+v", f)
	}
	b, tables = open()
	if err := b.Restore(bg, files); err != nil {
		t.Fatal(err)
	}
	if err := countRows(tables().(*table), 20_000); err != nil {
		t.Fatal(err)
	}
	if f := m.Figures(budget); f.Databases != 1 || f.Files == 0 || f.CacheHits+f.CacheMisses == 0 {
		t.Errorf("after a restore: %+v", f)
	}
	close(done)
	asking.Wait()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if f := m.Figures(budget); f.Databases != 0 || f.CacheSize != 0 {
		t.Errorf("after the end: %+v", f)
	}
}

// Times that writes are held back add up, and one that lasts counts so far.
func TestStallFigures(t *testing.T) {
	var f figures
	l := f.listener()
	for i := range int64(2) {
		l.WriteStallBegin(pebble.WriteStallBeginInfo{Reason: "memtable"})
		var out StoreFigures
		if f.addTo(&out); out.Stalls != i+1 || f.since.Load() == 0 {
			t.Errorf("stall %d lasts: %+v", i+1, out)
		}
		l.WriteStallEnd()
		l.WriteStallEnd() // nothing is held back any more
		if f.since.Load() != 0 {
			t.Error("a stall that has ended goes on")
		}
	}
}
