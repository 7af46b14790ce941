package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/streamsql/streamsql/sql/diag"
)

var bg = context.Background()

// testCheckpoint writes a small real state of key k=id and makes its checkpoint.
func testCheckpoint(t testing.TB, owner *Owner, id ID) *Checkpoint {
	t.Helper()
	c, err := tryCheckpoint(owner, id)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// spilledCheckpoint is testCheckpoint with state that memory did not hold: in Pebble's files.
func spilledCheckpoint(t testing.TB, owner *Owner, id ID) *Checkpoint {
	t.Helper()
	c, err := writeCheckpoint(owner, id, func(b *Backend) error {
		b.cutMu.Lock()
		defer b.cutMu.Unlock()
		return b.ensureDB()
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func tryCheckpoint(owner *Owner, id ID) (*Checkpoint, error) {
	return writeCheckpoint(owner, id, func(*Backend) error { return nil })
}

func writeCheckpoint(owner *Owner, id ID, prepare func(*Backend) error) (*Checkpoint, error) {
	b, err := OpenBackend(owner, "agg-0", BackendOptions{Budget: NewMemoryBudget(1 << 20)})
	if err != nil {
		return nil, err
	}
	defer b.Close()
	if err := prepare(b); err != nil {
		return nil, err
	}
	tb, err := b.Table("agg", TableOptions{Name: "acc", Format: "v1"})
	if err != nil {
		return nil, err
	}
	if err := tb.Put([]byte("k"), fmt.Append(nil, id)); err != nil {
		return nil, err
	}
	async, err := b.Seal(id)
	if err != nil {
		return nil, err
	}
	files, err := async(bg)
	if err != nil {
		return nil, err
	}
	return &Checkpoint{
		ID: id, Lineage: "l", Identities: map[OperatorID]string{"agg": "1:fp"}, Fence: owner.Fence(), Parallelism: map[OperatorID]int{"agg": 1},
		StartedAt: time.Unix(int64(id), 0).UTC(),
		Subtasks:  []Snapshot{{Subtask: SubtaskID{"agg", 0}, State: []byte{1}, Files: files}},
		Pending:   []Committable{{Sink: "s", Checkpoint: id, Lineage: "l", Payload: []byte{byte(id)}}},
	}, nil
}

// restored reads back what checkpoint c holds for key k.
func restored(t testing.TB, owner *Owner, c *Checkpoint) string {
	t.Helper()
	b, err := OpenBackend(owner, "agg-0", BackendOptions{Budget: NewMemoryBudget(1 << 20)})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Restore(bg, c.Subtasks[0].Files); err != nil {
		t.Fatal(err)
	}
	tb, err := b.Table("agg", TableOptions{Name: "acc", Format: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	v, _, err := tb.Get([]byte("k"))
	if err != nil {
		t.Fatal(err)
	}
	return string(v)
}

func openStore(t testing.TB, fs vfs.FS) (*Owner, *DirStore) {
	t.Helper()
	owner, err := Own(fs, "/job")
	if err != nil {
		t.Fatal(err)
	}
	s, err := OpenStore(owner, StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return owner, s
}

func same(t testing.TB, a, b *Checkpoint) {
	t.Helper()
	ja, _ := json.Marshal(a)
	jb, _ := json.Marshal(b)
	if string(ja) != string(jb) {
		t.Fatalf("checkpoints differ:\n%s\n%s", ja, jb)
	}
}

func TestPublishAtEveryCrashPoint(t *testing.T) {
	// Goal: after a crash anywhere in sealing and publishing checkpoint 2, the store holds wholly checkpoint 1 or wholly
	// checkpoint 2, and 2 once Publish has returned. Method: a clone of the crashable file system before every
	// operation, with none, half and all of the unsynced data.
	mem := vfs.NewCrashableMem()
	owner, s := openStore(t, mem)
	c1 := testCheckpoint(t, owner, 1)
	if err := s.Publish(bg, c1); err != nil {
		t.Fatal(err)
	}
	if err := s.Confirm(bg, 1); err != nil {
		t.Fatal(err)
	}
	var clones []*vfs.MemFS
	snap := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			for i, pct := range []int{0, 50, 100} {
				clones = append(clones, mem.CrashClone(vfs.CrashCloneCfg{
					UnsyncedDataPercent: pct, RNG: rand.New(rand.NewPCG(uint64(len(clones)), uint64(i)))}))
			}
		}
		return nil
	})
	owner.fs = errorfs.Wrap(mem, snap)
	s.fs = owner.fs
	c2 := testCheckpoint(t, owner, 2)
	if err := s.Publish(bg, c2); err != nil {
		t.Fatal(err)
	}
	published := len(clones)
	if err := s.Confirm(bg, 2); err != nil {
		t.Fatal(err)
	}
	clones = append(clones, mem.CrashClone(vfs.CrashCloneCfg{}))
	old, now := 0, 0
	for i, fs := range clones {
		owner, s := openStore(t, fs)
		c, confirmed, err := s.Latest(bg)
		if err != nil {
			t.Fatalf("clone %d: %v", i, err)
		}
		if err := s.Verify(bg, c); err != nil {
			t.Fatalf("clone %d: %v", i, err)
		}
		if got := restored(t, owner, c); got != fmt.Sprint(c.ID) {
			t.Fatalf("clone %d: checkpoint %d restores %q", i, c.ID, got)
		}
		switch c.ID {
		case 1:
			old++
			same(t, c, c1)
			if i >= published {
				t.Fatalf("clone %d: checkpoint 2 was published and is gone", i)
			}
		case 2:
			now++
			same(t, c, c2)
		}
		if confirmed && c.ID == 2 && i < published {
			t.Fatalf("clone %d: confirmed before it was published", i)
		}
		if owner.Fence() <= 1 {
			t.Fatalf("clone %d: fencing number %d", i, owner.Fence())
		}
		if err := s.Collect(bg); err != nil {
			t.Fatal(err)
		}
		next := testCheckpoint(t, owner, s.NextID())
		if err := s.Publish(bg, next); err != nil {
			t.Fatalf("clone %d: the next checkpoint: %v", i, err)
		}
	}
	if old < 10 || now < 3 {
		t.Fatalf("%d clones at the old checkpoint, %d at the new: the crash points do not cover both", old, now)
	}
}

func TestFaultsWhilePublishing(t *testing.T) {
	// Goal: whichever write, sync, rename or link fails, the error is clean (External, no panic), the store still opens,
	// and what it holds is whole. Method: fail the n-th write operation, for every n.
	for _, cause := range []error{syscall.ENOSPC, syscall.EIO} {
		for n := int32(0); ; n++ {
			mem := vfs.NewCrashableMem()
			owner, s := openStore(t, mem)
			if err := s.Publish(bg, testCheckpoint(t, owner, 1)); err != nil {
				t.Fatal(err)
			}
			left, hit := n, false
			owner.fs = errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
					return nil
				}
				if left--; left == -1 {
					hit = true
					return cause
				}
				return nil
			}))
			s.fs = owner.fs
			c2, err := tryCheckpoint(owner, 2)
			if err == nil {
				err = s.Publish(bg, c2)
			}
			if err != nil && (!errors.Is(err, cause) && !strings.Contains(err.Error(), cause.Error())) {
				t.Fatalf("fault %d: %v does not name %v", n, err, cause)
			}
			owner.Close()
			owner, s = openStore(t, mem.CrashClone(vfs.CrashCloneCfg{}))
			c, _, lerr := s.Latest(bg)
			if lerr != nil {
				t.Fatalf("fault %d: %v", n, lerr)
			}
			if err := s.Verify(bg, c); err != nil {
				t.Fatalf("fault %d: %v", n, err)
			}
			if c.ID != 2 && err == nil {
				t.Fatalf("fault %d: published and gone", n)
			}
			if got := restored(t, owner, c); got != fmt.Sprint(c.ID) {
				t.Fatalf("fault %d: checkpoint %d restores %q", n, c.ID, got)
			}
			if !hit {
				if n < 20 {
					t.Fatalf("only %d write operations", n)
				}
				break
			}
		}
	}
}

// overwrite replaces a file.
func overwrite(t testing.TB, fs vfs.FS, name string, data []byte) {
	t.Helper()
	if err := fs.Remove(name); err != nil {
		t.Fatal(err)
	}
	if data != nil {
		if err := writeSynced(fs, name, data); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDamage(t *testing.T) {
	t.Run("segments", func(t *testing.T) { testDamage(t, testCheckpoint, 24) })
	t.Run("pebble", func(t *testing.T) { testDamage(t, spilledCheckpoint, 40) })
}

func testDamage(t *testing.T, checkpointed func(testing.TB, *Owner, ID) *Checkpoint, least int) {
	// Goal: no damaged byte is ever used. Method: damage each file of a checkpoint in each way; a manifest must fall
	// back to its second copy, a state file must be found by Verify, and the restore must refuse or go back only when
	// that is exact.
	damages := map[string]func([]byte) []byte{
		"bit":     func(b []byte) []byte { b[len(b)/2] ^= 4; return b },
		"first":   func(b []byte) []byte { b[0] ^= 1; return b },
		"last":    func(b []byte) []byte { b[len(b)-1] ^= 0x80; return b },
		"short":   func(b []byte) []byte { return b[:len(b)-1] },
		"half":    func(b []byte) []byte { return b[:len(b)/2] },
		"empty":   func(b []byte) []byte { return []byte{} },
		"long":    func(b []byte) []byte { return append(b, 'x') },
		"missing": func(b []byte) []byte { return nil },
	}
	mem := vfs.NewCrashableMem()
	owner, s := openStore(t, mem)
	c1 := checkpointed(t, owner, 1)
	c2 := checkpointed(t, owner, 2)
	for _, c := range []*Checkpoint{c1, c2} {
		if err := s.Publish(bg, c); err != nil {
			t.Fatal(err)
		}
		if err := s.Confirm(bg, c.ID-1); err != nil { // 2 stays unconfirmed
			t.Fatal(err)
		}
	}
	owner.Close()
	files := []string{"chk-2/MANIFEST", "chk-2/MANIFEST.2"}
	for _, f := range c2.Subtasks[0].Files {
		files = append(files, f.Path)
	}
	tried := 0
	for _, name := range files {
		for what, damage := range damages {
			fs := mem.CrashClone(vfs.CrashCloneCfg{})
			data, err := readFile(fs, "/job/"+name)
			if err != nil {
				t.Fatal(err)
			}
			if len(data) == 0 && what != "missing" && what != "long" {
				continue
			}
			tried++
			overwrite(t, fs, "/job/"+name, damage(slices.Clone(data)))
			owner, s := openStore(t, fs)
			c, _, err := s.Latest(bg)
			if err != nil {
				t.Fatalf("%s %s: %v", what, name, err)
			}
			same(t, c, c2)
			err = s.Verify(bg, c)
			if strings.Contains(name, "MANIFEST") && !strings.Contains(name, "agg-0") {
				if err != nil {
					t.Fatalf("%s %s: %v", what, name, err)
				}
				continue
			}
			if diag.CodeOf(err) != diag.Data || !strings.Contains(err.Error(), name) {
				t.Fatalf("%s %s: verify says %v", what, name, err)
			}
			// Proven aborted: the older checkpoint is exact. Committed: nothing is.
			for _, o := range []Outcome{OutcomeOpen, OutcomeCommitted, OutcomeUnknown} {
				fc := &fakeCommitter{out: map[ID]Outcome{1: OutcomeCommitted, 2: o}}
				got, err := Recover(bg, s, map[SinkID]Committer{"s": fc}, RecoverOptions{})
				if o == OutcomeOpen {
					if err != nil || got.ID != 1 {
						t.Fatalf("%s %s, %v: %v %v", what, name, o, got, err)
					}
					if s.NextID() != 3 {
						t.Fatalf("next id is %d, 2 is used", s.NextID())
					}
					// Start over from the damaged state for the next outcome.
					owner.Close()
					fs2 := mem.CrashClone(vfs.CrashCloneCfg{})
					overwrite(t, fs2, "/job/"+name, damage(slices.Clone(data)))
					owner, s = openStore(t, fs2)
					continue
				}
				if diag.CodeOf(err) != diag.Lost || !errors.Is(err, errDamaged) {
					t.Fatalf("%s %s, %v: %v", what, name, o, err)
				}
				if len(fc.calls) > 1 || strings.Contains(strings.Join(fc.calls, ","), "abort") {
					t.Fatalf("the sink was touched: %v", fc.calls)
				}
			}
			owner.Close()
		}
	}
	if tried < least {
		t.Fatalf("%d damages tried", tried)
	}
	// Both copies: refused, not replaced by the older one.
	for what, damage := range damages {
		fs := mem.CrashClone(vfs.CrashCloneCfg{})
		for _, name := range files[:2] {
			data, _ := readFile(fs, "/job/"+name)
			overwrite(t, fs, "/job/"+name, damage(data))
		}
		if what == "missing" {
			continue // an unconfirmed checkpoint without manifest was never published
		}
		_, s := openStore(t, fs)
		if _, _, err := s.Latest(bg); diag.CodeOf(err) != diag.Lost {
			t.Fatalf("%s both manifests: %v", what, err)
		}
	}
	// The notes decide what is committed: damaged ones are refused.
	for what, damage := range damages {
		fs := mem.CrashClone(vfs.CrashCloneCfg{})
		data, _ := readFile(fs, "/job/confirmed")
		if what == "missing" {
			continue
		}
		overwrite(t, fs, "/job/confirmed", damage(data))
		owner, err := Own(fs, "/job")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := OpenStore(owner, StoreOptions{}); err == nil || !strings.Contains(err.Error(), `"confirmed"`) {
			t.Fatalf("%s confirmed: %v", what, err)
		}
	}
	// A damaged owner record does not let the fence go back.
	for _, damage := range damages {
		fs := mem.CrashClone(vfs.CrashCloneCfg{})
		data, _ := readFile(fs, "/job/owner")
		overwrite(t, fs, "/job/owner", damage(data))
		owner, err := Own(fs, "/job")
		if err != nil {
			t.Fatal(err)
		}
		if owner.Fence() <= c2.Fence {
			t.Fatalf("fence %d after %d", owner.Fence(), c2.Fence)
		}
	}
}

func FuzzDecodeRecord(f *testing.F) {
	// Goal: no input panics, and none is accepted that was not written. The seed is a real manifest.
	good, err := encodeRecord("checkpoint", &Checkpoint{ID: 7, Lineage: "l"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte("streamsql-checkpoint 2\n{}\ncrc32c 00000000 25\n"))
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var c Checkpoint
		if err := decodeRecord("checkpoint", data, &c); err != nil {
			return
		}
		if _, err := encodeRecord("checkpoint", &c); err != nil {
			t.Fatal(err)
		}
	})
}
