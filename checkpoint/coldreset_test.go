package checkpoint

import (
	"context"
	"encoding/binary"
	"testing"
)

func TestDisownColdRows(t *testing.T) {
	// Goal: rows in cold chunks are kept when a later table's TTL makes the backend write everything anew. Method: restore with
	// little memory, the second table with a TTL that it had not; a third restore reads what that wrote.
	owner := testOwner(t)
	const n = 6_000
	var files []StateFile
	for round, ttl := range []int64{0, 1 << 40, 1 << 40, 0} {
		b, err := OpenBackend(owner, "agg-0", BackendOptions{Budget: NewMemoryBudget(768 << 10), Now: func() int64 { return 5 }})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Restore(context.Background(), files); err != nil {
			t.Fatal(err)
		}
		for i, o := range []TableOptions{{Name: "a", Format: "v"}, {Name: "b", Format: "v", TTL: ttl}} {
			x, err := b.Table("op", o)
			if err != nil {
				t.Fatal(err)
			}
			rows := 0
			if err := x.Visit(func(_, v []byte) bool {
				rows++
				if len(v) != 100 || int(v[0]) != round-1 {
					t.Fatalf("round %d: a row of table %s has %d bytes", round, o.Name, len(v))
				}
				return true
			}); err != nil {
				t.Fatal(err)
			}
			if want := min(round, 1) * n; rows != want || x.Len() != int64(want) {
				t.Errorf("round %d: table %s has %d rows, len %d, want %d", round, o.Name, rows, x.Len(), want)
			}
			if i == 0 && round > 0 && (x.(*table).absent == 0 || b.db != nil) {
				t.Errorf("round %d: %d rows are in cold chunks, Pebble: %v", round, x.(*table).absent, b.db != nil)
			}
		}
		v := make([]byte, 100)
		v[0] = byte(round)
		for k := range uint64(n) {
			for _, tb := range b.tables {
				if tb == nil {
					continue
				}
				if err := tb.Put(binary.BigEndian.AppendUint64(nil, k), v); err != nil {
					t.Fatal(err)
				}
			}
		}
		files = sealed(t, b, ID(round+1))
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
