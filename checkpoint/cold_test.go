package checkpoint

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/streamsql/streamsql/tests/short"
)

// countRows counts each of n keys once, in batches.
func countRows(tb *table, n int) error { return countRange(tb, 0, n) }

// countRange counts the keys from from to to once, in batches.
func countRange(tb *table, from, to int) error {
	var keys Keys
	refs := make([]Ref, 1000)
	for ; from < to; from += 1000 {
		ints := make([]uint64, 0, 1000)
		for i := from; i < min(from+1000, to); i++ {
			ints = append(ints, uint64(i))
		}
		intKeys(&keys, ints)
		if err := count(tb, &keys, refs); err != nil {
			return err
		}
	}
	return nil
}

func TestColdChunks(t *testing.T) {
	short.OneGoroutine(t)
	// Goal: rows that memory has no room for are read back from cold chunks, whose room is used again. Method: count keys,
	// several times as many as fit, again and again.
	owner := testOwner(t)
	b, tb := openTable(t, owner, 8<<20)
	defer b.Close()
	const n = 150_000
	for range 4 {
		if err := countRows(tb, n); err != nil {
			t.Fatal(err)
		}
	}
	if b.db != nil || tb.absent == 0 {
		t.Fatalf("Pebble is open: %v; %d rows are in cold chunks", b.db != nil, tb.absent)
	}
	if got := b.budget.Used(); got > 9<<20 {
		t.Errorf("%d bytes are taken of a budget of %d", got, 8<<20)
	}
	if live := tb.a.coldLive; tb.cold.end > 3*live+8<<20 {
		t.Errorf("the file of cold chunks has %d bytes for rows of %d", tb.cold.end, live)
	}
	rows := 0
	err := tb.Visit(func(_, value []byte) bool {
		rows++
		if value[0] != 4 {
			t.Errorf("a key was counted %d times, want 4", value[0])
		}
		return value[0] == 4
	})
	if err != nil || rows != n {
		t.Fatalf("%d rows, want %d: %v", rows, n, err)
	}
}

func TestDamagedColdChunk(t *testing.T) {
	// Goal: a bit that flips in a cold chunk is an error that names the table and the file, never another value.
	owner := testOwner(t)
	b, tb := openTable(t, owner, 4<<20)
	defer b.Close()
	if err := countRows(tb, 70_000); err != nil {
		t.Fatal(err)
	}
	if tb.absent == 0 {
		t.Fatal("no row is in a cold chunk")
	}
	f, err := b.fs.OpenReadWrite(tb.cold.path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	var p [1]byte
	for at := int64(rowHeadSize + 16); at < tb.cold.end; at += 32 { // in values of 16 bytes, or whatever is there
		if _, err := f.ReadAt(p[:], at); err != nil {
			break
		}
		p[0] ^= 4
		if _, err := f.WriteAt(p[:], at); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	err = countRows(tb, 70_000)
	if err == nil || !strings.Contains(err.Error(), "agg.acc") || !errors.Is(err, errDamaged) {
		t.Fatalf("the damage is reported as %v", err)
	}
}

func TestColdChunkOnFullDisk(t *testing.T) {
	// Goal: a full disk ends the backend with an error that says so and where.
	var full atomic.Bool
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && op.Kind == errorfs.OpFileWriteAt {
			return syscall.ENOSPC
		}
		return nil
	}))
	owner, err := Own(fs, "/job")
	if err != nil {
		t.Fatal(err)
	}
	b, tb := openTable(t, owner, 4<<20)
	defer b.Close()
	full.Store(true)
	err = countRows(tb, 70_000)
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), b.dir) {
		t.Fatalf("a full disk is reported as %v", err)
	}
	if err := countRows(tb, 1); err == nil {
		t.Fatal("the table goes on")
	}
}

// rebasing is a table with 1000 rows, most of which are in cold chunks, during a rebase.
func rebasing(t *testing.T) (*Backend, *table) {
	t.Helper()
	b, tb := openTable(t, testOwner(t), 96<<10)
	b.limits = segmentLimits{files: 64, join: 16, garbage: 1, rebase: 1}
	for round := 0; !b.rebase.running; round++ {
		if round == 100 {
			t.Fatal("no rebase begins")
		}
		for k := range uint64(1000) {
			if err := tb.Put(binary.BigEndian.AppendUint64(nil, k), make([]byte, 150)); err != nil {
				t.Fatal(err)
			}
		}
		sealed(t, b, ID(round+1))
	}
	return b, tb
}

// readRows reads rows of rebasing, some of them often.
func readRows(t *testing.T, tb *table, r *rand.Rand) {
	t.Helper()
	for range 1000 {
		k := r.Uint64N(1000)
		if r.IntN(2) == 0 {
			k %= 150
		}
		v, ok, err := tb.Get(binary.BigEndian.AppendUint64(nil, k))
		if err != nil || !ok || len(v) != 150 {
			t.Fatalf("row %d has %d bytes: %v %v", k, len(v), ok, err)
		}
	}
}

func TestColdChunkNumbersDuringRebase(t *testing.T) {
	// Goal: rows that come and go during a long rebase do not use up the chunk numbers.
	b, tb := rebasing(t)
	defer b.Close()
	r := rand.New(rand.NewPCG(1, 1))
	for range short.Or(1000, 100) {
		readRows(t, tb, r)
	}
	if b.db != nil {
		t.Error("the rows went to Pebble")
	}
	if n := len(tb.a.chunks); n > maxChunks/8 {
		t.Errorf("%d chunk numbers are in use", n)
	}
}

func TestRebaseEndsBesideEviction(t *testing.T) {
	// Goal: a rebase ends although more rows turn cold between two barriers than it writes at least.
	b, tb := rebasing(t)
	defer b.Close()
	r := rand.New(rand.NewPCG(1, 1))
	for id := ID(1000); b.rebase.running; id++ {
		if id == 1200 {
			t.Fatalf("the rebase is at chunk %d of %d", b.rebase.chunk, len(tb.a.chunks))
		}
		for range 10 {
			readRows(t, tb, r)
		}
		sealed(t, b, id)
	}
	if b.db != nil {
		t.Error("the rows went to Pebble")
	}
}

func TestColdFileEndsWithPebble(t *testing.T) {
	// Goal: the file of cold chunks takes no room once the index has outgrown memory and all rows are in Pebble.
	b, tb := openTable(t, testOwner(t), 512<<10)
	defer b.Close()
	wasCold := false
	for n := 0; b.db == nil; n += 1000 {
		if n > 100_000 {
			t.Fatal("the rows stay in cold chunks")
		}
		wasCold = wasCold || tb.a.coldUsed > 0
		if err := countRange(tb, n, n+1000); err != nil {
			t.Fatal(err)
		}
	}
	if !wasCold {
		t.Error("there were no cold chunks")
	}
	if _, err := b.fs.Stat(tb.cold.path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there: %v", tb.cold.path, err)
	}
}

// countingOwner counts the reads of files.
func countingOwner(t *testing.T) (*Owner, *atomic.Int64) {
	t.Helper()
	var reads atomic.Int64
	owner, err := Own(errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileReadAt {
			reads.Add(1)
		}
		return nil
	})), "/job")
	if err != nil {
		t.Fatal(err)
	}
	return owner, &reads
}

func TestNeighboursAreReadAtOnce(t *testing.T) {
	// Goal: rows of a batch that are near each other in a cold chunk cost one read. Method: count the reads for keys that came
	// together long ago.
	owner, reads := countingOwner(t)
	b, tb := openTable(t, owner, 1536<<10)
	defer b.Close()
	if err := countRows(tb, 30_000); err != nil {
		t.Fatal(err)
	}
	before, absent := reads.Load(), tb.absent
	if err := countRows(tb, 1000); err != nil {
		t.Fatal(err)
	}
	if back := absent - tb.absent; back < 900 || b.db != nil {
		t.Fatalf("%d rows came back, Pebble: %v", back, b.db != nil)
	}
	if n := reads.Load() - before; n == 0 || n > 50 {
		t.Errorf("%d reads for 1000 rows that came together", n)
	}
	for _, s := range tb.x.slots {
		if loc := uint32(s) - 1; s != 0 && tb.a.base[loc>>chunkShift] != nil && tb.Value(Ref(loc))[0] > 2 {
			t.Errorf("key %x is counted %d times", tb.rowKey(loc), tb.Value(Ref(loc))[0])
		}
	}
}

func TestSweepReadsNoChunkInVain(t *testing.T) {
	// Goal: the sweep of expired rows reads no cold chunk before one of its rows expires. Method: every read is counted.
	owner, reads := countingOwner(t)
	now := int64(0)
	b, err := OpenBackend(owner, "agg-0", BackendOptions{Budget: NewMemoryBudget(1536 << 10), Now: func() int64 { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	x, err := b.Table("agg", TableOptions{Name: "acc", Format: "v1", TTL: 1000})
	if err != nil {
		t.Fatal(err)
	}
	tb := x.(*table)
	if err := countRows(tb, 30_000); err != nil {
		t.Fatal(err)
	}
	if tb.absent == 0 || b.db != nil {
		t.Fatalf("%d rows are in cold chunks, Pebble: %v", tb.absent, b.db != nil)
	}
	for i, c := range tb.a.chunks {
		if c.cold {
			tb.sweep.cold = i
		}
	}
	before := reads.Load()
	for range 10 * sweepDiskEvery {
		if err := tb.sweepStep(); err != nil {
			t.Fatal(err)
		}
	}
	if n := reads.Load() - before; n > 0 {
		t.Errorf("%d reads while no row has expired", n)
	}
	now = 1000
	for range 1000 * sweepDiskEvery {
		if err := tb.begin(); err != nil {
			t.Fatal(err)
		}
	}
	if tb.Len() != 0 {
		t.Errorf("%d rows are left after all have expired", tb.Len())
	}
}

func TestRebaseStopsAtDamagedChunk(t *testing.T) {
	// Goal: a barrier that cannot read a cold chunk is the last: a later one would complete the rebase without rows that this one
	// had passed, and drop the segments that have them.
	b, tb := rebasing(t)
	defer b.Close()
	b.limits.rebase = 1 << 30
	f, err := b.fs.OpenReadWrite(tb.cold.path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	last := 0
	for i, c := range tb.a.chunks {
		if c.cold {
			last = i
		}
	}
	page := make([]byte, tb.a.chunks[last].used)
	at := tb.a.chunks[last].at
	saved := make([]byte, len(page))
	if _, err := f.ReadAt(saved, at); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(page, at); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Seal(5000); !errors.Is(err, errDamaged) {
		t.Fatalf("a damaged chunk is reported as %v", err)
	}
	if _, err := f.WriteAt(saved, at); err != nil { // as if the disk could be read again
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Seal(5001); err == nil {
		t.Fatal("the backend seals again")
	}
}
