package checkpoint

import (
	"encoding/binary"
	"fmt"
	"testing"
)

// Keys whose hashes are equal, in the half that the index keeps or as a whole, and keys that are away from their home slots are
// told apart.
func TestProbeCollisions(t *testing.T) {
	b, err := OpenBackend(testOwner(t), "a-0", BackendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	tb, err := b.Table("op", TableOptions{Name: "t", Format: "f"})
	if err != nil {
		t.Fatal(err)
	}
	var keys Keys
	for i := range 24 {
		keys.Buf = fmt.Appendf(keys.Buf, "key %05d", i) // of nine bytes, as integers are
		if i%2 == 1 {
			keys.Buf = append(keys.Buf, " and more"...)
		}
		keys.Ends = append(keys.Ends, int32(len(keys.Buf)))
		keys.Hashes = append(keys.Hashes, 5+uint64(i%3)+uint64(i/3%2)<<40)
	}
	refs := make([]Ref, keys.Len())
	for have := 0; have <= keys.Len(); have += 4 {
		if err := tb.Probe(&keys, refs); err != nil {
			t.Fatal(err)
		}
		for i, r := range refs {
			if i >= have {
				if r != NoRow {
					t.Fatalf("of %d keys, %q is found as %d", have, keys.Key(i), r)
				}
			} else if v := tb.Value(r); v[0] != byte(i) {
				t.Fatalf("of %d keys, %q has the value of %d", have, keys.Key(i), v[0])
			}
		}
		for i := have; i < min(have+4, keys.Len()); i++ {
			r, created, err := tb.Insert(&keys, i, 1)
			if err != nil || !created {
				t.Fatal(created, err)
			}
			tb.Mutable(r)[0] = byte(i)
		}
	}
}

// BenchmarkProbe looks up keys that exist, of nine bytes, in random order; ns/op is a key.
func BenchmarkProbe(b *testing.B) {
	const batch = 2048
	for _, rows := range []int{3000, 300_000, 3_000_000} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			owner := testOwner(b)
			bs, err := OpenBackend(owner, "a-0", BackendOptions{})
			if err != nil {
				b.Fatal(err)
			}
			defer bs.Close()
			tb, err := bs.Table("op", TableOptions{Name: "t", Format: "f"})
			if err != nil {
				b.Fatal(err)
			}
			var keys Keys
			fill := func(next func() uint64) {
				keys.Reset()
				for range batch {
					w := next()
					keys.Buf = binary.LittleEndian.AppendUint64(append(keys.Buf, 1), w)
					keys.Ends = append(keys.Ends, int32(len(keys.Buf)))
					keys.Hashes = append(keys.Hashes, HashWord(w))
				}
			}
			refs := make([]Ref, batch)
			n := uint64(0)
			for n < uint64(rows) {
				fill(func() uint64 { n++; return n })
				if err := tb.Probe(&keys, refs); err != nil {
					b.Fatal(err)
				}
				for i := range batch {
					if _, _, err := tb.Insert(&keys, i, 16); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportAllocs()
			b.ResetTimer()
			x := uint64(1)
			for i := 0; i < b.N; i += batch {
				b.StopTimer()
				fill(func() uint64 { x = x*6364136223846793005 + 1442695040888963407; return x>>33%uint64(rows) + 1 })
				b.StartTimer()
				if err := tb.Probe(&keys, refs); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
