package checkpoint

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/streamsql/streamsql/sql/diag"
)

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
		"reserve": s.Reserve(bg, 2), "publish": s.Publish(bg, testCheckpoint(t, a, 2)), "confirm": s.Confirm(bg, 1), "discard": s.Discard(bg, 1),
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
	if in, err := s.Import(bg, "/save", false); err != nil || in.From != nil {
		t.Fatal(in, err)
	}
	c, confirmed, err := s.Latest(bg)
	if err != nil || !confirmed {
		t.Fatal(confirmed, err)
	}
	if c.Lineage == "l" || len(c.Pending) != 0 || c.Savepoint || !slices.Equal(c.Ancestors, []Origin{{"l", 2}}) {
		t.Fatalf("imported %+v", c)
	}
	if v := restored(t, owner, c); v != "2" {
		t.Fatalf("restores %q", v)
	}
	if in, err := s.Import(bg, "/save", false); err != nil || in.From != nil {
		t.Fatalf("import once more, before a checkpoint: %+v %v", in, err)
	}
	if s.NextID() != 3 {
		t.Fatalf("next id %d", s.NextID())
	}
	data, err := Dump(c)
	if err != nil || !strings.Contains(string(data), `"agg": "1:fp"`) {
		t.Fatalf("%s %v", data, err)
	}
	if _, err := ReadSavepoint(mem, "/nowhere"); err == nil {
		t.Fatal("a savepoint was read from nowhere")
	}
}

// The process that holds a directory is told as its owner, and asking for it leaves the lock alone: closing any other descriptor of
// the file would release it.
func TestLockedByThisProcess(t *testing.T) {
	dir := t.TempDir()
	o, err := OwnDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if pid, err := Locked(dir); err != nil || pid != os.Getpid() {
		t.Errorf("held by %d, %v; want %d", pid, err, os.Getpid())
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if pid, err := Locked(dir); err != nil || pid != 0 {
		t.Errorf("held by %d, %v; want nobody", pid, err)
	}
}
