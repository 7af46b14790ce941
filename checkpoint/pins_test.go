package checkpoint

import (
	"context"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Rows written once are written to disk from where they are, also when the table has given up their memory meanwhile.
func TestWriteOnceIsNotCopied(t *testing.T) {
	owner, err := Own(vfs.NewCrashableMem(), "/job")
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	const budget, rowBytes = 48 << 20, 1 << 10
	options := TableOptions{Name: "t", Format: "1", WriteOnce: true}
	open := func() (*Backend, *MemoryBudget) {
		m := NewMemoryBudget(budget)
		b, err := OpenBackend(owner, "op-0", BackendOptions{Budget: m})
		if err != nil {
			t.Fatal(err)
		}
		return b, m
	}
	b, memory := open()
	tb, err := b.Table("op", options)
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	insert := func(n int) {
		for n > 0 {
			var keys Keys
			for range min(n, 1000) {
				addKey(&keys, binary.BigEndian.AppendUint32(nil, uint32(rows)))
				rows, n = rows+1, n-1
			}
			refs := make([]Ref, keys.Len())
			if err := tb.Probe(&keys, refs); err != nil {
				t.Fatal(err)
			}
			for i := range refs {
				r, _, err := tb.Insert(&keys, i, rowBytes)
				if err != nil {
					t.Fatal(err)
				}
				copy(tb.Mutable(r), keys.Key(i))
			}
		}
	}
	seal := func(id ID) func() []StateFile {
		async, err := b.Seal(id)
		if err != nil {
			t.Fatal(err)
		}
		return func() []StateFile {
			files, err := async(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			return files
		}
	}
	insert(20 << 10)
	seal(1)()
	insert(10 << 10)
	before := memory.Used()
	finish := seal(2)
	if grown := memory.Used() - before; grown > 1<<20 {
		t.Errorf("the barrier took %d bytes for 10 MiB of rows", grown)
	}
	insert(30 << 10) // more than the budget: rows of both barriers leave
	files := finish()
	if tb.(*table).absent == 0 {
		t.Error("no row left memory")
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if used := memory.Used(); used != 0 {
		t.Errorf("%d bytes are still counted", used)
	}
	b, _ = open()
	defer b.Close()
	if err := b.Restore(context.Background(), files); err != nil {
		t.Fatal(err)
	}
	if tb, err = b.Table("op", options); err != nil {
		t.Fatal(err)
	}
	for k := range uint32(30 << 10) {
		key := binary.BigEndian.AppendUint32(nil, k)
		v, ok, err := tb.Get(key)
		if err != nil || !ok || len(v) != rowBytes || string(v[:4]) != string(key) {
			t.Fatalf("row %d: %d bytes, %v, %v", k, len(v), ok, err)
		}
	}
	if n := tb.Len(); n != 30<<10 {
		t.Errorf("%d rows, want those of the barrier", n)
	}
}

// A chunk that is freed while views of its arena exist stays mapped until the last has ended.
func TestArenaView(t *testing.T) {
	m := NewMemoryBudget(1 << 30)
	a := newArena(m)
	var last uint32
	for range 20_000 {
		loc, ok := a.alloc(1024)
		if !ok {
			t.Fatal("no room")
		}
		*a.head(loc) = rowHead{hash: uint64(loc), units: 1024 >> unitShift}
		last = loc
	}
	mapped := slices.ContainsFunc(a.chunks, func(c chunk) bool { return c.raw != nil })
	v, end := a.view()
	w, endToo := a.view()
	a.close()
	endToo()
	if v.head(last).hash != uint64(last) || w.head(last) != v.head(last) {
		t.Error("a view reads something else")
	}
	if m.Used() == 0 && mapped {
		t.Error("memory that is still mapped is not counted")
	}
	end()
	if m.Used() != 0 {
		t.Errorf("%d bytes are still counted", m.Used())
	}
}
