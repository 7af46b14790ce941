package checkpoint

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"
)

func TestRestoreColdRowsBesidePebble(t *testing.T) {
	// Goal: rows of a subtask with segments are kept when they outgrow memory and those of another subtask are in Pebble.
	// Method: two subtasks with small memory, one of which must not have cold chunks, are restored into one; so is its checkpoint.
	owner := testOwner(t)
	const n = 20_000
	var files []StateFile
	for i := range 2 {
		b, err := OpenBackend(owner, fmt.Sprintf("agg-%d", i), BackendOptions{Budget: NewMemoryBudget(512 << 10),
			OwnsKeyGroup: func(g int) bool { return SubtaskOf(g, 2) == i }})
		if err != nil {
			t.Fatal(err)
		}
		b.limits.noCold = i == 1
		tb, err := b.Table("agg", TableOptions{Name: "acc", Format: "v1"})
		if err != nil {
			t.Fatal(err)
		}
		for k := range uint64(n) {
			if key := binary.BigEndian.AppendUint64(nil, k); SubtaskOf(KeyGroup(HashKey(key)), 2) == i {
				if err := tb.Put(key, key); err != nil {
					t.Fatal(err)
				}
			}
		}
		files = append(files, sealed(t, b, 1)...)
		if (b.db != nil) != (i == 1) {
			t.Fatalf("subtask %d has Pebble: %v", i, b.db != nil)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 2 {
		b, err := OpenBackend(owner, "agg-0", BackendOptions{Budget: NewMemoryBudget(512 << 10)})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Restore(context.Background(), files); err != nil {
			t.Fatal(err)
		}
		tb, err := b.Table("agg", TableOptions{Name: "acc", Format: "v1"})
		if err != nil {
			t.Fatal(err)
		}
		rows := 0
		if err := tb.Visit(func(_, _ []byte) bool { rows++; return true }); err != nil {
			t.Fatal(err)
		}
		if rows != n || tb.Len() != n {
			t.Errorf("round %d: %d rows, len %d, want %d", round, rows, tb.Len(), n)
		}
		files = sealed(t, b, ID(2+round))
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// sealed are the files of a checkpoint.
func sealed(t testing.TB, b *Backend, id ID) []StateFile {
	t.Helper()
	async, err := b.Seal(id)
	if err != nil {
		t.Fatal(err)
	}
	files, err := async(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return files
}
