package checkpoint

import (
	"encoding/binary"
	"testing"
)

// sealRows changes rows [0, n) of a table and writes them for a checkpoint.
func sealRows(t *testing.T, b *Backend, tb Table, id ID, n uint64) []StateFile {
	t.Helper()
	val := make([]byte, 64)
	for i := range n {
		if err := tb.Put(binary.BigEndian.AppendUint64(nil, i), binary.BigEndian.AppendUint64(val[:56], uint64(id)<<32|i*0x9E3779B97F4A7C15)); err != nil {
			t.Fatal(err)
		}
	}
	async, err := b.Seal(id)
	if err != nil {
		t.Fatal(err)
	}
	files, err := async(bg)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestCompactionsWait(t *testing.T) {
	// Goal: a Pebble of a state in memory is not compacted because of small files; it is when they are many, and one that spills at
	// Pebble's own pace.
	for _, c := range []struct {
		limit   int64
		seals   int
		rows    uint64
		compact bool
	}{{1 << 30, manyFiles / 2, 100, false}, {1 << 30, 2 * manyFiles, 100, true}, {16 << 10, 4 * l0Files, 300, true}} {
		b, tb := openTable(t, testOwner(t), c.limit)
		if err := b.toPebble(); err != nil { // which nothing but a full memory does
			t.Fatal(err)
		}
		for i := range c.seals {
			sealRows(t, b, tb, ID(i+1), c.rows)
		}
		if spills := c.limit < 1<<20; (tb.absent > 0) != spills {
			t.Errorf("budget %d: %d rows are on disk only", c.limit, tb.absent)
		}
		if err := b.Close(); err != nil { // which waits for compactions
			t.Fatal(err)
		}
		if n := b.compactions.runs; (n > 0) != c.compact {
			t.Errorf("budget %d, %d seals: %d compactions, want some: %v", c.limit, c.seals, n, c.compact)
		}
	}
}

func TestRestoreTakesOwnSource(t *testing.T) {
	// Goal: at the same parallelism a subtask goes on with the files of its predecessor and copies nothing.
	owner := testOwner(t)
	own := func(i, p int) func(int) bool { return func(g int) bool { return SubtaskOf(g, p) == i } }
	var files []StateFile
	rows := 0
	for i := range 2 {
		b, err := OpenBackend(owner, []string{"agg-0", "agg-1"}[i], BackendOptions{OwnsKeyGroup: own(i, 2)})
		if err != nil {
			t.Fatal(err)
		}
		tb, err := b.Table("agg", TableOptions{Name: "acc", Format: "v1"})
		if err != nil {
			t.Fatal(err)
		}
		for k := range uint64(1000) {
			key := binary.BigEndian.AppendUint64(nil, k)
			if own(i, 2)(KeyGroup(HashKey(key))) {
				if err := tb.Put(key, key); err != nil {
					t.Fatal(err)
				}
			}
		}
		files = append(files, sealRows(t, b, tb, 1, 0)...)
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []int{2, 1} {
		rows = 0
		for i := range p {
			b, err := OpenBackend(owner, "next", BackendOptions{OwnsKeyGroup: own(i, p)})
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Restore(bg, files); err != nil {
				t.Fatal(err)
			}
			if (b.adopted != nil) != (p == 2) {
				t.Errorf("parallelism %d: adopted %v", p, b.adopted != nil)
			}
			tb, err := b.Table("agg", TableOptions{Name: "acc", Format: "v1"})
			if err != nil {
				t.Fatal(err)
			}
			rows += int(tb.Len())
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if rows != 1000 {
			t.Errorf("parallelism %d: %d rows, want 1000", p, rows)
		}
	}
}
