package checkpoint

import (
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/streamsql/streamsql/sql/diag"
)

// openIn opens a directory as a process of its own does, such as that of a second job on the same file system.
func openIn(t *testing.T, fs vfs.FS, dir string) (*Owner, *DirStore) {
	t.Helper()
	owner, err := Own(fs, dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := OpenStore(owner, StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return owner, s
}

// Goal: going back below what a job has committed is refused by lineage, whichever directory it is tried from, and what is
// not going back is not refused.
func TestImportRewind(t *testing.T) {
	mem := vfs.NewCrashableMem()
	owner, s := savable(t, mem)
	if err := s.Savepoint(bg, 1, "/save"); err != nil {
		t.Fatal(err)
	}
	refused := func(s *DirStore, path, why string) {
		t.Helper()
		if _, err := s.Import(bg, path, false); diag.CodeOf(err) != diag.Config || !strings.Contains(diag.Render(err, "", ""), why) {
			t.Fatalf("%v does not say %q", err, why)
		}
	}
	goesOn := func(s *DirStore, path string) {
		t.Helper()
		if in, err := s.Import(bg, path, false); err != nil || in.From != nil {
			t.Fatalf("%+v %v", in, err)
		}
	}
	goesOn(s, "/save") // nothing was committed since

	// Started from in another directory, where it then goes on.
	forkOwner, fork := openIn(t, mem, "/fork")
	goesOn(fork, "/save")
	goesOn(fork, "/save") // once more, before it came to a checkpoint
	c, _, err := fork.Latest(bg)
	if err != nil || c.Lineage == "l" || len(c.Ancestors) != 1 {
		t.Fatalf("%+v %v", c, err)
	}
	next := testCheckpoint(t, forkOwner, 2)
	next.Lineage, next.Ancestors = c.Lineage, c.Ancestors
	if err := fork.Publish(bg, next); err != nil {
		t.Fatal(err)
	}
	refused(fork, "/save", "is at checkpoint 2, 1 checkpoint(s) later; their output would be written again")

	// The first job commits more.
	publish(t, owner, s, 2)
	refused(s, "/save", "is at checkpoint 2")
	refused(s, "/job/chk-1", "is at checkpoint 2")
	_, third := openIn(t, mem, "/third")
	refused(third, "/save", `"/job" is at checkpoint 2`)
	refused(third, "/job/chk-1", `"/job" is at checkpoint 2`)
	if _, _, err := third.Latest(bg); err == nil {
		t.Fatal("a refused import has published something")
	}
	goesOn(third, "/job") // its newest

	// Another run's directory, and leaving it behind.
	_, run := savableAs(t, mem, "/run", "another")
	refused(run, "/save", "has checkpoints of another run")
	in, err := run.Import(bg, "/save", true)
	if err != nil || in.From == nil || in.From.ID != 2 || in.Rewound != 1 || in.From.Savepoint || in.From.Ancestors[0] != (Origin{"l", 1}) {
		t.Fatalf("%+v %v", in, err)
	}
	if err := run.Verify(bg, in.From); err != nil {
		t.Fatal(err)
	}
	if last, _, err := run.Latest(bg); err != nil || last.ID != 1 || last.Lineage != "another" {
		t.Fatalf("an import that is not yet gone on from has changed the newest checkpoint: %+v %v", last, err)
	}
	if err := run.Collect(bg); err != nil {
		t.Fatal(err)
	}
	if err := run.Verify(bg, in.From); err != nil {
		t.Fatalf("collected before the job came to a checkpoint: %v", err)
	}
}

// savableAs is a store with a committed checkpoint of a lineage.
func savableAs(t *testing.T, fs vfs.FS, dir, lineage string) (*Owner, *DirStore) {
	t.Helper()
	owner, s := openIn(t, fs, dir)
	c := testCheckpoint(t, owner, 1)
	c.Lineage = lineage
	if err := s.Publish(bg, c); err != nil {
		t.Fatal(err)
	}
	if err := s.Confirm(bg, 1); err != nil {
		t.Fatal(err)
	}
	return owner, s
}

// An import that was interrupted is done again under another id, and a damaged savepoint is refused before anything is
// published.
func TestImportAgain(t *testing.T) {
	mem := vfs.NewCrashableMem()
	_, s := savable(t, mem)
	if err := s.Savepoint(bg, 1, "/save"); err != nil {
		t.Fatal(err)
	}
	_, fresh := openIn(t, mem, "/fresh")
	if err := mem.MkdirAll("/fresh/chk-1/agg-0", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writeSynced(mem, "/fresh/chk-1/agg-0/half", []byte("x")); err != nil {
		t.Fatal(err)
	}
	_ = fresh.owner.Close()
	owner, fresh := openIn(t, mem, "/fresh")
	if in, err := fresh.Import(bg, "/save", false); err != nil || in.From != nil {
		t.Fatal(in, err)
	}
	c, confirmed, err := fresh.Latest(bg)
	if err != nil || !confirmed || c.ID != 2 || restored(t, owner, c) != "1" {
		t.Fatalf("%+v %v", c, err)
	}
	saved, err := ReadSavepoint(mem, "/save")
	if err != nil {
		t.Fatal(err)
	}
	overwrite(t, mem, "/save/"+saved.Subtasks[0].Files[0].Path, []byte("damaged"))
	_, last := openIn(t, mem, "/last")
	if _, err := last.Import(bg, "/save", false); diag.CodeOf(err) != diag.Data {
		t.Fatalf("a damaged savepoint: %v", err)
	}
	if _, _, err := last.Latest(bg); err == nil {
		t.Fatal("it was published")
	}
}
