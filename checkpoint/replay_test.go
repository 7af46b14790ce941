package checkpoint

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// sameLower finds pairs of keys whose hashes have the same lower half, so that they meet in the index.
func sameLower(n int) (pairs [][2][]byte) {
	seen := map[uint32]uint64{}
	for i := uint64(0); len(pairs) < n; i++ {
		key := binary.BigEndian.AppendUint64(nil, i)
		low := uint32(HashKey(key))
		if other, ok := seen[low]; ok {
			pairs = append(pairs, [2][]byte{binary.BigEndian.AppendUint64(nil, other), key})
			continue
		}
		seen[low] = i
	}
	return pairs
}

func TestReplayTellsKeysApart(t *testing.T) {
	// Goal: rows that are looked up together at a restore are taken for what they are, also where keys meet in the index, rows
	// are replaced or deleted by later segments, come back, or do not fit into memory. Method: pairs of keys whose hashes have the same lower
	// half, among others, change at random over many barriers; the restored rows are compared with a map, at the same and at
	// another parallelism.
	owner := testOwner(t)
	b, tb := openTable(t, owner, 1<<30)
	defer b.Close()
	var keys [][]byte
	for _, p := range sameLower(6) {
		keys = append(keys, p[0], p[1])
	}
	for i := range 1500 {
		keys = append(keys, fmt.Appendf(nil, "key %d", i))
	}
	want := map[string]string{}
	r := rand.New(rand.NewPCG(5, 7))
	var files []StateFile
	for id := ID(1); id <= 12; id++ {
		for i, k := range keys {
			switch p := r.IntN(10); {
			case p < 2 && id > 1:
				if err := tb.Remove(k); err != nil {
					t.Fatal(err)
				}
				delete(want, string(k))
			case p < 6 || i < 12 && p < 8:
				v := fmt.Sprintf("%d at %d%s", i, id, strings.Repeat(".", r.IntN(60)))
				if err := tb.Put(k, []byte(v)); err != nil {
					t.Fatal(err)
				}
				want[string(k)] = v
			}
		}
		async, err := b.Seal(id)
		if err != nil {
			t.Fatal(err)
		}
		if files, err = async(bg); err != nil {
			t.Fatal(err)
		}
	}
	if names, _ := segmentsOf(files); len(names) < 12 {
		t.Fatalf("%d segments: nothing is replaced", len(names))
	}
	same := func(what string, got map[string]string) {
		t.Helper()
		if len(got) != len(want) {
			t.Errorf("%s: %d rows, want %d", what, len(got), len(want))
		}
		for k, v := range want {
			if got[k] != v {
				t.Fatalf("%s: row %q = %q, want %q", what, k, got[k], v)
			}
		}
	}
	for _, limit := range []int64{1 << 30, 256 << 10, 32 << 10} {
		same(fmt.Sprintf("memory %d", limit), rowsOf(t, owner, files, limit))
		halves := map[string]string{}
		for i := range 2 {
			for k, v := range ownedRows(t, owner, files, limit, func(g int) bool { return SubtaskOf(g, 2) == i }) {
				halves[k] = v
			}
		}
		same(fmt.Sprintf("two subtasks, memory %d", limit), halves)
	}
}

// ownedRows are the rows of files that a subtask with some of the key groups has; owns = nil are all.
func ownedRows(t *testing.T, owner *Owner, files []StateFile, limit int64, owns func(int) bool) map[string]string {
	t.Helper()
	b, err := OpenBackend(owner, "restored", BackendOptions{Budget: NewMemoryBudget(limit), OwnsKeyGroup: owns})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Restore(bg, files); err != nil {
		t.Fatal(err)
	}
	tb, err := b.Table("agg", TableOptions{Name: "acc", Format: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	if err := tb.Visit(func(k, v []byte) bool {
		if owns != nil && !owns(KeyGroup(HashKey(k))) {
			t.Errorf("row %q is another subtask's", k)
		}
		rows[string(k)] = string(v)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if n := tb.Len(); n != int64(len(rows)) {
		t.Errorf("%d rows are counted, %d there", n, len(rows))
	}
	return rows
}

func TestReplayKeepsIndexSmall(t *testing.T) {
	// Goal: the index of a restored table is no larger than that of the table that was written, though its segments hold each row
	// many times, and takes no more than its share where memory is short.
	owner := testOwner(t)
	b, tb := openTable(t, owner, 1<<30)
	defer b.Close()
	var files []StateFile
	for id := ID(1); id <= 20; id++ {
		for i := range uint64(3000) {
			if err := tb.Put(binary.BigEndian.AppendUint64(nil, i), fmt.Append(nil, id)); err != nil {
				t.Fatal(err)
			}
		}
		async, err := b.Seal(id)
		if err != nil {
			t.Fatal(err)
		}
		if files, err = async(bg); err != nil {
			t.Fatal(err)
		}
	}
	written := b.budget.index.Load()
	for _, limit := range []int64{1 << 30, 512 << 10} {
		budget := NewMemoryBudget(limit)
		r, err := OpenBackend(owner, "restored", BackendOptions{Budget: budget})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Restore(bg, files); err != nil {
			t.Fatal(err)
		}
		rt, err := r.Table("agg", TableOptions{Name: "acc", Format: "v1"})
		if err != nil {
			t.Fatal(err)
		}
		if got := budget.index.Load(); got != written {
			t.Errorf("memory %d: the index takes %d bytes, that of the table that was written %d", limit, got, written)
		}
		if r.db != nil {
			t.Errorf("memory %d: the rows went to Pebble", limit)
		}
		if n := rt.Len(); n != 3000 {
			t.Errorf("%d rows", n)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReserveKeepsToItsShare(t *testing.T) {
	// Goal: a guess of how many rows come takes no memory that decides how rows are kept.
	budget := NewMemoryBudget(1 << 20)
	var all []index
	for range 8 {
		x := newIndex(budget)
		x.reserve(1 << 30)
		all = append(all, x)
	}
	if got := budget.index.Load(); got > budget.limit/4 {
		t.Errorf("indexes took %d bytes of %d", got, budget.limit)
	}
	for i := range all {
		all[i].close()
	}
	if got := budget.Used(); got != 0 {
		t.Errorf("%d bytes are not given back", got)
	}
}
