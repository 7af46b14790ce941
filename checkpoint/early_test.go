package checkpoint

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/streamsql/streamsql/tests/short"
)

func TestFewEarlyWrites(t *testing.T) {
	short.OneGoroutine(t)
	// Goal: where memory is used up for good, by operators or by the index and the filter, an early write is worth its file: not
	// every batch writes a few rows. Method: count the files that batches of changed rows write between barriers.
	const limit, batch, batches = 2 << 20, 64, 1000
	for _, noCold := range []bool{false, true} {
		t.Run(fmt.Sprintf("pebble %v", noCold), func(t *testing.T) {
			b, tb := openTable(t, testOwner(t), limit)
			defer b.Close()
			b.limits.noCold = noCold
			tb.Reserve(2 * limit)
			defer tb.Reserve(-2 * limit)
			files := func() int { return int(b.sets) } // one each, as no barrier comes
			var keys Keys
			refs := make([]Ref, batch)
			for i := range batches {
				ints := make([]uint64, batch)
				for j := range ints {
					ints[j] = uint64(i*batch+j) % 20_000
				}
				intKeys(&keys, ints)
				if err := count(tb, &keys, refs); err != nil {
					t.Fatal(err)
				}
				if most := b.budget.earlyBytes(); tb.dirtyBytes > most+batch*64 {
					t.Fatalf("%d bytes of changed rows stay in memory, want at most %d and a batch", tb.dirtyBytes, most)
				}
			}
			const changes = batches * batch * 48
			most := int(changes/b.budget.earlyBytes()) + 3
			t.Logf("%d files of %d bytes of changes", files(), changes)
			if n := files(); n == 0 || n > most {
				t.Errorf("%d files of %d bytes of changes, want some, at most %d", n, changes, most)
			}
		})
	}
}

func TestEarlyWritesAreDurableInCheckpoint(t *testing.T) {
	// Goal: nobody waits for the disk when rows are written early, and a checkpoint has them all the same. Method: count what is
	// synced, then lose what is not.
	mem := vfs.NewCrashableMem()
	var syncs atomic.Int64
	owner, err := Own(errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSync {
			syncs.Add(1)
		}
		return nil
	})), "/job")
	if err != nil {
		t.Fatal(err)
	}
	b, tb := openTable(t, owner, 2<<20)
	defer b.Close()
	before := syncs.Load()
	const rows = 40_000
	for range 4 {
		if err := countRows(tb, rows); err != nil {
			t.Fatal(err)
		}
	}
	if early := len(b.segments); early < 3 || b.db != nil {
		t.Fatalf("%d segments were written early, Pebble: %v", early, b.db != nil)
	}
	if n := syncs.Load() - before; n > 0 {
		t.Errorf("%d syncs before the barrier", n)
	}
	files := sealed(t, b, 1)
	crashed, err := Own(mem.CrashClone(vfs.CrashCloneCfg{}), "/job")
	if err != nil {
		t.Fatal(err)
	}
	if err := VerifyFiles(bg, crashed.fs, crashed.dir, &Checkpoint{ID: 1, Subtasks: []Snapshot{{Files: files}}}); err != nil {
		t.Fatal(err)
	}
	if got := rowsOf(t, crashed, files, 1<<30); len(got) != rows {
		t.Errorf("%d rows, want %d", len(got), rows)
	}
}

func TestEarlyWriteThatCannotBeSynced(t *testing.T) {
	// Goal: a disk that loses an early segment ends the backend: no later checkpoint lists it.
	var broken atomic.Bool
	owner, err := Own(errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && op.Kind == errorfs.OpFileSync && strings.HasSuffix(op.Path, segmentSuffix) {
			broken.Store(false)
			return syscall.EIO
		}
		return nil
	})), "/job")
	if err != nil {
		t.Fatal(err)
	}
	b, tb := openTable(t, owner, 2<<20)
	defer b.Close()
	if err := countRows(tb, 40_000); err != nil {
		t.Fatal(err)
	}
	if err := tb.begin(); err != nil || tb.dirtyBytes == 0 {
		t.Fatalf("%d bytes are dirty: %v", tb.dirtyBytes, err)
	}
	if err := b.writeEarly(tb); err != nil { // so that the barrier has no segment of its own
		t.Fatal(err)
	}
	async, err := b.Seal(1)
	if err != nil {
		t.Fatal(err)
	}
	broken.Store(true)
	if _, err := async(bg); !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), b.dir) {
		t.Fatalf("a broken disk is reported as %v", err)
	}
	if _, err := b.Seal(2); !errors.Is(err, syscall.EIO) {
		t.Fatalf("the backend seals again: %v", err)
	}
}
