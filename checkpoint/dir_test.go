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

func tryCheckpoint(owner *Owner, id ID) (*Checkpoint, error) {
	b, err := OpenBackend(owner, "agg-0", BackendOptions{Budget: NewMemoryBudget(1 << 20)})
	if err != nil {
		return nil, err
	}
	defer b.Close()
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
		ID: id, Lineage: "l", Fingerprint: "fp", Fence: owner.Fence(), Parallelism: map[OperatorID]int{"agg": 1},
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
	c1 := testCheckpoint(t, owner, 1)
	c2 := testCheckpoint(t, owner, 2)
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
	if tried < 40 {
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

// fakeCommitter answers from a table and records the order of calls.
type fakeCommitter struct {
	out      map[ID]Outcome
	calls    []string
	failures int
	lost     bool
}

func (f *fakeCommitter) Classify(ctx context.Context, cs []Committable) ([]Outcome, error) {
	f.calls = append(f.calls, "classify")
	var out []Outcome
	for _, c := range cs {
		out = append(out, f.out[c.Checkpoint])
	}
	return out, nil
}

func (f *fakeCommitter) Commit(ctx context.Context, cs []Committable) error {
	var ids []string
	for _, c := range cs {
		ids = append(ids, fmt.Sprint(c.Checkpoint))
	}
	f.calls = append(f.calls, "commit "+strings.Join(ids, ","))
	if f.lost {
		return errorf(diag.Lost, "gone")
	}
	if f.failures > 0 {
		f.failures--
		return errors.New("broker not there")
	}
	for _, c := range cs {
		f.out[c.Checkpoint] = OutcomeCommitted
	}
	return nil
}

func (f *fakeCommitter) Abort(ctx context.Context, keep []Committable) error {
	f.calls = append(f.calls, fmt.Sprintf("abort keep %d", len(keep)))
	for id, o := range f.out {
		kept := slices.ContainsFunc(keep, func(c Committable) bool { return c.Checkpoint == id })
		if o == OutcomeOpen && !kept {
			f.out[id] = OutcomeAborted
		}
	}
	return nil
}

func (f *fakeCommitter) Close() error { return nil }

func TestRecoverOrder(t *testing.T) {
	// Goal: the order of the calls to sinks, and the decisions of §R3, over the real store.
	for _, c := range []struct {
		name      string
		out       map[ID]Outcome // of the committables of checkpoints 1, 2, 3; 3 lists 2 and 3, 2 lists 1 and 2
		confirmed ID
		failures  int
		want      ID
		code      diag.Code
		calls     string
	}{
		{name: "all open", out: map[ID]Outcome{1: OutcomeCommitted}, confirmed: 1, want: 3,
			calls: "classify; commit 2,3; abort keep 0"},
		{name: "commit is repeated", out: map[ID]Outcome{1: OutcomeCommitted}, confirmed: 1, failures: 2, want: 3,
			calls: "classify; commit 2,3; commit 2,3; commit 2,3; abort keep 0"},
		{name: "confirmed", out: map[ID]Outcome{1: OutcomeCommitted, 2: OutcomeCommitted, 3: OutcomeCommitted}, confirmed: 3, want: 3,
			calls: "abort keep 0"},
		{name: "partly committed", out: map[ID]Outcome{1: OutcomeCommitted, 2: OutcomeCommitted}, confirmed: 1, want: 3,
			calls: "classify; commit 2,3; abort keep 0"},
		{name: "newest aborted", out: map[ID]Outcome{1: OutcomeCommitted, 3: OutcomeAborted}, confirmed: 1, want: 2,
			calls: "classify; abort keep 1; classify; classify; commit 1,2; abort keep 0"},
		{name: "both aborted", out: map[ID]Outcome{1: OutcomeCommitted, 2: OutcomeAborted, 3: OutcomeAborted}, confirmed: 1, want: 1,
			calls: "classify; abort keep 0; classify; abort keep 0"},
		{name: "aborted below a committed one", out: map[ID]Outcome{1: OutcomeCommitted, 2: OutcomeAborted, 3: OutcomeCommitted},
			confirmed: 1, code: diag.Lost, calls: "classify"},
		{name: "unknown", out: map[ID]Outcome{1: OutcomeCommitted, 2: OutcomeUnknown}, confirmed: 1, code: diag.Lost, calls: "classify"},
		{name: "everything aborted, nothing to go back to", out: map[ID]Outcome{1: OutcomeAborted, 2: OutcomeAborted, 3: OutcomeAborted},
			confirmed: 0, code: diag.Lost, calls: "classify"},
	} {
		t.Run(c.name, func(t *testing.T) {
			owner, s := openStore(t, vfs.NewMem())
			for id := ID(1); id <= 3; id++ {
				cp := testCheckpoint(t, owner, id)
				if id > 1 {
					cp.Pending = append([]Committable{{Sink: "s", Checkpoint: id - 1, Lineage: "l", Payload: []byte{byte(id - 1)}}}, cp.Pending...)
				}
				if c.confirmed == 0 && id == 3 {
					cp.Pending = append([]Committable{{Sink: "s", Checkpoint: 1, Lineage: "l", Payload: []byte{1}}}, cp.Pending...)
				}
				if err := s.Publish(bg, cp); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Confirm(bg, c.confirmed); err != nil {
				t.Fatal(err)
			}
			f := &fakeCommitter{out: c.out, failures: c.failures}
			cp, err := Recover(bg, s, map[SinkID]Committer{"s": f},
				RecoverOptions{Sleep: func(context.Context, time.Duration) error { return nil }})
			if c.code != "" {
				if diag.CodeOf(err) != c.code {
					t.Fatalf("error %v, want code %s", err, c.code)
				}
			} else if err != nil || cp.ID != c.want {
				t.Fatalf("resumes at %v, %v; want %d", cp, err, c.want)
			}
			if got := strings.Join(f.calls, "; "); got != c.calls {
				t.Errorf("calls %s\nwant  %s", got, c.calls)
			}
			if s.NextID() != 4 {
				t.Errorf("next id %d, want 4", s.NextID())
			}
			if c.code == "" {
				if _, confirmed, err := s.Latest(bg); !confirmed || err != nil {
					t.Errorf("not confirmed after recovery: %v", err)
				}
			}
		})
	}
}

func TestDamagedWithoutCommittables(t *testing.T) {
	// Goal: a confirmed checkpoint of a job that commits nothing (upsert sinks) is replaced by the one before when a file
	// is damaged, and its id stays used.
	mem := vfs.NewCrashableMem()
	owner, s := openStore(t, mem)
	var last *Checkpoint
	for id := ID(1); id <= 3; id++ {
		last = testCheckpoint(t, owner, id)
		last.Pending = nil
		if id == 1 {
			last.Pending = []Committable{{Sink: "s", Checkpoint: 1, Payload: []byte{1}}}
		}
		if err := s.Publish(bg, last); err != nil {
			t.Fatal(err)
		}
		if err := s.Confirm(bg, id); err != nil {
			t.Fatal(err)
		}
	}
	for round, want := range []ID{2, 1} {
		for _, f := range last.Subtasks[0].Files {
			if strings.HasSuffix(f.Path, ".sst") {
				overwrite(t, mem, "/job/"+f.Path, []byte("x"))
			}
		}
		owner.Close()
		owner, s = openStore(t, mem)
		f := &fakeCommitter{out: map[ID]Outcome{1: OutcomeCommitted}}
		c, err := Recover(bg, s, map[SinkID]Committer{"s": f}, RecoverOptions{})
		if err != nil || c.ID != want {
			t.Fatalf("round %d: %v %v", round, c, err)
		}
		if s.NextID() != 4 {
			t.Fatalf("next id %d", s.NextID())
		}
		last = c
	}
	// Behind checkpoint 1 there is nothing.
	for _, f := range last.Subtasks[0].Files {
		overwrite(t, mem, "/job/"+f.Path, nil)
	}
	owner.Close()
	_, s = openStore(t, mem)
	if _, err := Recover(bg, s, map[SinkID]Committer{"s": &fakeCommitter{}}, RecoverOptions{}); diag.CodeOf(err) != diag.Lost {
		t.Fatalf("nothing left: %v", err)
	}
}

func TestOwner(t *testing.T) {
	dir := t.TempDir()
	a, err := OwnDir(dir + "/job")
	if err != nil {
		t.Fatal(err)
	}
	_, err = OwnDir(dir + "/job")
	var e *diag.Error
	if !errors.As(err, &e) || e.Code != diag.Conflict || !strings.Contains(e.Detail, "held by process ") || !strings.Contains(e.Detail, " on ") {
		t.Fatalf("second owner: %v, %+v", err, e)
	}
	s, err := OpenStore(a, StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Publish(bg, testCheckpoint(t, a, 1)); err != nil {
		t.Fatal(err)
	}
	// The lock is lost without the owner's knowledge: its next writes are refused.
	a.lock.Close()
	b, err := OwnDir(dir + "/job")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if b.Fence() <= a.Fence() {
		t.Fatalf("fencing numbers %d, %d", a.Fence(), b.Fence())
	}
	for name, err := range map[string]error{
		"publish": s.Publish(bg, testCheckpoint(t, a, 2)), "confirm": s.Confirm(bg, 1), "discard": s.Discard(bg, 1),
	} {
		if diag.CodeOf(err) != diag.Conflict {
			t.Errorf("%s by the old owner: %v", name, err)
		}
	}
	s2, err := OpenStore(b, StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if c, _, err := s2.Latest(bg); err != nil || c.ID != 1 {
		t.Fatalf("latest %v, %v", c, err)
	}
	if NewLineage() == NewLineage() || len(NewLineage()) != 36 {
		t.Fatalf("lineage %s", NewLineage())
	}
}

func TestRetention(t *testing.T) {
	mem := vfs.NewCrashableMem()
	owner, s := openStore(t, mem)
	if _, _, err := s.Latest(bg); !errors.Is(err, ErrNone) {
		t.Fatalf("empty store: %v", err)
	}
	ids := func() (out []ID) {
		all, _ := listIDs(mem, "/job")
		return all
	}
	publish := func(id ID) {
		if err := s.Publish(bg, testCheckpoint(t, owner, id)); err != nil {
			t.Fatal(err)
		}
	}
	publish(1)
	if _, _, err := s.Latest(bg); err != nil { // restored: pinned
		t.Fatal(err)
	}
	for id := ID(2); id <= 6; id++ {
		if id == 4 {
			testCheckpoint(t, owner, id) // given up: files without a manifest
			continue
		}
		publish(id)
	}
	if err := s.Reserve(bg, 7); err != nil {
		t.Fatal(err)
	}
	if err := s.Collect(bg); err != nil {
		t.Fatal(err)
	}
	if got := ids(); !slices.Equal(got, []ID{1, 3, 5, 6, 7}) {
		t.Fatalf("kept %v", got)
	}
	if s.NextID() != 8 {
		t.Fatalf("next id %d", s.NextID())
	}
	if err := s.Discard(bg, 6); err != nil {
		t.Fatal(err)
	}
	if err := s.Collect(bg); err != nil {
		t.Fatal(err)
	}
	owner.Close()
	owner, s = openStore(t, mem)
	c, _, err := s.Latest(bg)
	if err != nil || c.ID != 5 {
		t.Fatalf("latest %v, %v", c, err)
	}
	if s.NextID() != 8 {
		t.Fatalf("next id %d: discarded and reserved ids are used", s.NextID())
	}
	if err := s.Publish(bg, testCheckpoint(t, owner, 6)); err == nil {
		t.Fatal("a discarded id was published again")
	}
	if got := restored(t, owner, c); got != "5" {
		t.Fatalf("restores %q", got)
	}
}

func TestSavepoint(t *testing.T) {
	mem := vfs.NewCrashableMem()
	owner, s := openStore(t, mem)
	for id := ID(1); id <= 2; id++ {
		if err := s.Publish(bg, testCheckpoint(t, owner, id)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Savepoint(bg, 2, "/save"); diag.CodeOf(err) != diag.Config {
		t.Fatalf("savepoint of an unconfirmed checkpoint: %v", err)
	}
	if err := s.Confirm(bg, 2); err != nil {
		t.Fatal(err)
	}
	if err := s.Savepoint(bg, 2, "/save"); err != nil {
		t.Fatal(err)
	}
	if err := s.Savepoint(bg, 2, "/save"); diag.CodeOf(err) != diag.Config {
		t.Fatalf("savepoint over another: %v", err)
	}
	// The copy outlives the job's directory and a crash.
	owner.Close()
	mem = mem.CrashClone(vfs.CrashCloneCfg{})
	if err := mem.RemoveAll("/job"); err != nil {
		t.Fatal(err)
	}
	owner, s = openStore(t, mem)
	c, err := s.Import(bg, "/save")
	if err != nil {
		t.Fatal(err)
	}
	if c.Lineage == "l" || len(c.Pending) != 0 || !c.Savepoint {
		t.Fatalf("imported %+v", c)
	}
	got, confirmed, err := s.Latest(bg)
	if err != nil || !confirmed {
		t.Fatal(confirmed, err)
	}
	same(t, got, c)
	if v := restored(t, owner, got); v != "2" {
		t.Fatalf("restores %q", v)
	}
	if _, err := s.Import(bg, "/save"); diag.CodeOf(err) != diag.Config {
		t.Fatalf("import into a used store: %v", err)
	}
	if s.NextID() != 3 {
		t.Fatalf("next id %d", s.NextID())
	}
	data, err := Dump(c)
	if err != nil || !strings.Contains(string(data), `"Fingerprint": "fp"`) {
		t.Fatalf("%s %v", data, err)
	}
	if _, err := ReadSavepoint(mem, "/nowhere"); err == nil {
		t.Fatal("a savepoint was read from nowhere")
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
