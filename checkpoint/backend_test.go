package checkpoint

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/streamsql/streamsql/tests/short"
)

func openTable(t testing.TB, owner *Owner, limit int64) (*Backend, *table) {
	t.Helper()
	b, err := OpenBackend(owner, "agg-0", BackendOptions{Budget: NewMemoryBudget(limit)})
	if err != nil {
		t.Fatal(err)
	}
	tb, err := b.Table("agg", TableOptions{Name: "acc", Format: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	return b, tb.(*table)
}

// intKeys encodes keys as 8 bytes each.
func intKeys(k *Keys, keys []uint64) {
	k.Reset()
	for _, x := range keys {
		k.Buf = binary.BigEndian.AppendUint64(k.Buf, x)
		k.Ends = append(k.Ends, int32(len(k.Buf)))
		k.Hashes = append(k.Hashes, HashKey(k.Buf[len(k.Buf)-8:]))
	}
}

// count adds one to the row of every key of the batch.
func count(tb Table, keys *Keys, refs []Ref) error {
	refs = refs[:keys.Len()]
	if err := tb.Probe(keys, refs); err != nil {
		return err
	}
	for i, r := range refs {
		if r == NoRow {
			var err error
			if r, _, err = tb.Insert(keys, i, 16); err != nil {
				return err
			}
		}
		v := tb.Mutable(r)
		binary.LittleEndian.PutUint64(v, binary.LittleEndian.Uint64(v)+1)
	}
	return nil
}

func TestSnapshotBesideProcessing(t *testing.T) {
	// Goal: a checkpoint holds exactly the rows before its barrier although the subtask goes on, and spills, while the
	// snapshot is written. Method: real goroutines (run with -race); each sealed count is known; every snapshot is
	// restored and counted.
	for _, limit := range []int64{64 << 20, 64 << 10} {
		owner := testOwner(t)
		b, tb := openTable(t, owner, limit)
		r := rand.New(rand.NewPCG(1, uint64(limit)))
		var keys Keys
		refs := make([]Ref, 128)
		batch := make([]uint64, 128)
		type result struct {
			id    ID
			rows  uint64
			files []StateFile
			err   error
		}
		results := make(chan result, 100)
		var wg sync.WaitGroup
		rows, id, sealed := uint64(0), ID(0), 0
		for i := range 300 {
			for j := range batch {
				batch[j] = uint64(r.IntN(4000))
			}
			intKeys(&keys, batch)
			if err := count(tb, &keys, refs); err != nil {
				t.Fatal(err)
			}
			rows += uint64(len(batch))
			if i%10 != 0 {
				continue
			}
			id++
			async, err := b.Seal(id)
			if errors.Is(err, ErrSealing) {
				wg.Wait()
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			sealed++
			wg.Add(1)
			go func(id ID, rows uint64) {
				defer wg.Done()
				files, err := async(bg)
				results <- result{id, rows, files, err}
			}(id, rows)
		}
		wg.Wait()
		close(results)
		if spills := limit < 1<<20; (tb.absent > 0) != spills {
			t.Errorf("budget %d: %d rows are on disk only", limit, tb.absent)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if sealed < 10 {
			t.Fatalf("%d snapshots", sealed)
		}
		for res := range results {
			if res.err != nil {
				t.Fatal(res.err)
			}
			c := &Checkpoint{ID: res.id, Subtasks: []Snapshot{{Files: res.files}}}
			if err := VerifyFiles(bg, owner.fs, owner.dir, c); err != nil {
				t.Fatal(err)
			}
			b, err := OpenBackend(owner, "check", BackendOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Restore(bg, res.files); err != nil {
				t.Fatal(err)
			}
			tb, err := b.Table("agg", TableOptions{Name: "acc", Format: "v1"})
			if err != nil {
				t.Fatal(err)
			}
			sum := uint64(0)
			if err := tb.Scan(nil, func(_, v []byte) bool {
				sum += binary.LittleEndian.Uint64(v)
				return true
			}); err != nil {
				t.Fatal(err)
			}
			if sum != res.rows {
				t.Fatalf("budget %d: snapshot %d holds %d rows, %d were before its barrier", limit, res.id, sum, res.rows)
			}
			b.Close()
		}
	}
}

func TestSpillBeforeSnapshotIsWritten(t *testing.T) {
	// Goal: rows written early after a barrier are not in its checkpoint, even when the subtask needs the room before the
	// asynchronous part has started.
	owner := testOwner(t)
	b, tb := openTable(t, owner, 64<<10)
	var keys Keys
	refs := make([]Ref, 64)
	fill := func(from, n int) {
		for at := from; at < from+n; at += 64 {
			var ks []uint64
			for j := range 64 {
				ks = append(ks, uint64(at+j))
			}
			intKeys(&keys, ks)
			if err := count(tb, &keys, refs); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill(0, 1024)
	async, err := b.Seal(1)
	if err != nil {
		t.Fatal(err)
	}
	fill(0, 1024) // change every row
	fill(1024, 8192)
	if tb.absent == 0 {
		t.Fatal("nothing was spilled")
	}
	files, err := async(bg)
	if err != nil {
		t.Fatal(err)
	}
	b.Close()
	b, _ = OpenBackend(owner, "agg-0", BackendOptions{})
	defer b.Close()
	if err := b.Restore(bg, files); err != nil {
		t.Fatal(err)
	}
	got, err := b.Table("agg", TableOptions{Name: "acc", Format: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	if got.Len() != 1024 {
		t.Fatalf("%d rows, want the 1024 before the barrier", got.Len())
	}
	if err := got.Scan(nil, func(k, v []byte) bool {
		if n := binary.LittleEndian.Uint64(v); n != 1 {
			t.Errorf("key %x has %d, want 1: the value before the barrier", k, n)
		}
		return !t.Failed()
	}); err != nil {
		t.Fatal(err)
	}
}

func TestSpillBeforeEmptySnapshotIsWritten(t *testing.T) {
	// Goal: a checkpoint at whose barrier there was no state has no files, also when the subtask's rows go to disk before the
	// asynchronous part has started.
	owner := testOwner(t)
	b, tb := openTable(t, owner, 64<<10)
	defer b.Close()
	async, err := b.Seal(1)
	if err != nil {
		t.Fatal(err)
	}
	var keys Keys
	refs := make([]Ref, 64)
	for at := uint64(0); tb.absent == 0; at += 64 {
		var ks []uint64
		for j := range uint64(64) {
			ks = append(ks, at+j)
		}
		intKeys(&keys, ks)
		if err := count(tb, &keys, refs); err != nil {
			t.Fatal(err)
		}
	}
	if files, err := async(bg); err != nil || len(files) != 0 {
		t.Fatalf("files %v, error %v", files, err)
	}
}

func TestSnapshotAfterFault(t *testing.T) {
	// Goal: a snapshot that fails (full disk) loses no row: the next one that succeeds holds them. Method: fail every
	// write for one snapshot, then let go.
	mem := vfs.NewMem()
	var full atomic.Bool
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpRemove && op.Kind != errorfs.OpRemoveAll {
			return syscall.ENOSPC
		}
		return nil
	}))
	owner, err := Own(fs, "/job")
	if err != nil {
		t.Fatal(err)
	}
	b, tb := openTable(t, owner, 1<<30)
	put := func(from int) {
		for i := from; i < from+100; i++ {
			if err := tb.Put(fmt.Append(nil, i), fmt.Append(nil, i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(0)
	var files []StateFile
	for id := ID(1); id <= 5; id++ {
		full.Store(id == 2 || id == 3)
		async, err := b.Seal(id)
		if err != nil {
			t.Fatal(err)
		}
		put(int(id) * 100)
		got, err := async(bg)
		if full.Load() {
			if !errors.Is(err, syscall.ENOSPC) && !strings.Contains(fmt.Sprint(err), "no space") {
				t.Fatalf("snapshot %d on a full disk: %v", id, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("snapshot %d: %v", id, err)
		}
		files = got
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b, _ = OpenBackend(owner, "agg-0", BackendOptions{})
	defer b.Close()
	if err := b.Restore(bg, files); err != nil {
		t.Fatal(err)
	}
	got, err := b.Table("agg", TableOptions{Name: "acc", Format: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	if got.Len() != 500 {
		t.Fatalf("%d rows, want 500", got.Len())
	}
}

func TestSnapshotIsIncremental(t *testing.T) {
	// Goal: an idle checkpoint writes no new file of rows.
	owner := testOwner(t)
	b, tb := openTable(t, owner, 1<<30)
	defer b.Close()
	rows := func(fs []StateFile) map[string]bool {
		m := map[string]bool{}
		for _, f := range fs {
			if strings.HasSuffix(f.Path, segmentSuffix) {
				m[f.Path[strings.LastIndex(f.Path, "/"):]] = true
			}
		}
		return m
	}
	seal := func(id ID) []StateFile {
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
	if files := seal(1); len(files) != 0 {
		t.Fatalf("no state, but files %v", files)
	}
	for i := range 1000 {
		if err := tb.Put(fmt.Append(nil, i), []byte("v")); err != nil {
			t.Fatal(err)
		}
	}
	first := rows(seal(2))
	if second := rows(seal(3)); fmt.Sprint(first) != fmt.Sprint(second) || len(first) != 1 {
		t.Fatalf("idle: %v, then %v", first, second)
	}
	// Called once: the second call is an error, not a second snapshot.
	async, _ := b.Seal(4)
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if _, err := async(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled: %v", err)
	}
	if _, err := async(bg); err == nil {
		t.Fatal("the asynchronous part ran twice")
	}
}

func TestSteadyStateAllocs(t *testing.T) {
	owner := testOwner(t)
	b, tb := openTable(t, owner, 1<<30)
	defer b.Close()
	var keys Keys
	refs := make([]Ref, 1024)
	batch := make([]uint64, 1024)
	next := uint64(0)
	run := func() {
		for j := range batch {
			batch[j] = next % 5000
			if j%2 == 0 {
				batch[j] = next // a new key
			}
			next++
		}
		intKeys(&keys, batch)
		if err := count(tb, &keys, refs); err != nil {
			t.Fatal(err)
		}
	}
	for range 200 {
		run()
	}
	// A few per batch are chunks, slots and the dirty list growing; per row there is none.
	if n := testing.AllocsPerRun(100, run); n > 1 {
		t.Errorf("%.2f allocations per batch of %d rows", n, len(batch))
	}
}

func TestMemoryStaysInBudget(t *testing.T) {
	short.OneGoroutine(t)
	// Goal: the resident rows stay near the budget however much state there is.
	owner := testOwner(t)
	const limit = 1 << 20
	b, tb := openTable(t, owner, limit)
	defer b.Close()
	var keys Keys
	refs := make([]Ref, 512)
	batch := make([]uint64, 512)
	peak := int64(0)
	for i := range 200 { // 102,400 rows of 56 bytes: first in cold chunks, then in Pebble
		for j := range batch {
			batch[j] = uint64(i*512 + j)
		}
		intKeys(&keys, batch)
		if err := count(tb, &keys, refs); err != nil {
			t.Fatal(err)
		}
		peak = max(peak, b.budget.Used())
	}
	if peak > limit*3/2 {
		t.Fatalf("%d bytes used of a budget of %d", peak, limit)
	}
	if tb.Len() != 102400 || tb.absent < 80000 || b.db == nil {
		t.Fatalf("%d rows, %d on disk only", tb.Len(), tb.absent)
	}
}

// BenchmarkTable counts uniform keys in batches of 1024, against Go's map.
func BenchmarkTable(b *testing.B) {
	for _, d := range []int{1000, 1_000_000} {
		batches := make([]Keys, 512)
		r := rand.New(rand.NewPCG(1, 2))
		ks := make([]uint64, 1024)
		for i := range batches {
			for j := range ks {
				ks[j] = uint64(r.IntN(d))
			}
			intKeys(&batches[i], ks)
		}
		b.Run(fmt.Sprintf("table/%d", d), func(b *testing.B) {
			bk, tb := openTable(b, OwnMemory(), 8<<30)
			defer bk.Close()
			refs := make([]Ref, 1024)
			for i := range d/1024*3 + 1 {
				if err := count(tb, &batches[i%512], refs); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if err := count(tb, &batches[i%512], refs); err != nil {
					b.Fatal(err)
				}
				i++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1024, "ns/row")
		})
		b.Run(fmt.Sprintf("map/%d", d), func(b *testing.B) {
			m := map[string]*[2]uint64{}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				k := &batches[i%512]
				for j := range k.Len() {
					v := m[string(k.Key(j))]
					if v == nil {
						v = new([2]uint64)
						m[string(k.Key(j))] = v
					}
					v[0]++
				}
				i++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1024, "ns/row")
		})
	}
}

// TestManyKeys fills 20 M keys (STREAMSQL_KEYS overrides) on a real disk, seals, and restores: run by hand with
// STREAMSQL_BIG=1.
func TestManyKeys(t *testing.T) {
	if os.Getenv("STREAMSQL_BIG") == "" {
		t.Skip("set STREAMSQL_BIG=1")
	}
	n := 20_000_000
	if s := os.Getenv("STREAMSQL_KEYS"); s != "" {
		fmt.Sscan(s, &n)
	}
	for _, limit := range []int64{8 << 30, 512 << 20} {
		owner, err := OwnDir(t.TempDir() + "/job")
		if err != nil {
			t.Fatal(err)
		}
		b, tb := openTable(t, owner, limit)
		var keys Keys
		refs, ks := make([]Ref, 2048), make([]uint64, 2048)
		start := time.Now()
		for at := 0; at < n; at += len(ks) {
			for j := range ks {
				ks[j] = uint64(at + j)
			}
			intKeys(&keys, ks)
			if err := count(tb, &keys, refs); err != nil {
				t.Fatal(err)
			}
		}
		fill := time.Since(start)
		start = time.Now()
		async, err := b.Seal(1)
		if err != nil {
			t.Fatal(err)
		}
		sync := time.Since(start)
		files, err := async(bg)
		if err != nil {
			t.Fatal(err)
		}
		seal := time.Since(start)
		var ms runtime.MemStats
		runtime.ReadMemStats(&ms)
		t.Logf("budget %d MiB: fill %v (%.0f ns/row), barrier %v, snapshot %v, %d files, %d rows on disk only, used %d MiB, go heap %d MiB",
			limit>>20, fill, float64(fill.Nanoseconds())/float64(n), sync, seal, len(files), tb.absent, b.budget.Used()>>20, ms.HeapSys>>20)
		b.Close()
		start = time.Now()
		b, err = OpenBackend(owner, "agg-0", BackendOptions{Budget: NewMemoryBudget(limit)})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Restore(bg, files); err != nil {
			t.Fatal(err)
		}
		got, err := b.Table("agg", TableOptions{Name: "acc", Format: "v1"})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("restore %v, %d rows", time.Since(start), got.Len())
		b.Close()
	}
}
