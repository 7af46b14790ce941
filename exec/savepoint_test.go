package exec_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors/memory"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/diag"
)

// ownDir is a state directory on disk.
func ownDir(t *testing.T, dir string) *checkpoint.Owner {
	t.Helper()
	owner, err := checkpoint.OwnDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = owner.Close() })
	return owner
}

// A job that is stopped with a savepoint leaves one with all of its output committed; one that cannot be written does not
// undo the stop, and the error says where the state is.
func TestStopWithSavepoint(t *testing.T) {
	bus := memory.NewBus()
	f := bus.Feed("in")
	want := fill(f, 1, 100)
	g := newGraph(bus)
	g.sink("out", 1, hash(g.source("in", 1, nil)))
	dir := t.TempDir()
	owner := ownDir(t, filepath.Join(dir, "job"))
	j := start(t, g.g, exec.JobOptions{Owner: owner})
	waitRows(t, j, 100)
	if _, err := j.Savepoint(patient(t), dir); diag.CodeOf(err) != diag.Config {
		t.Fatalf("into a directory that exists: %v", err)
	}
	id, err := j.Savepoint(patient(t), filepath.Join(dir, "first"))
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Stop(patient(t), exec.StopOptions{Savepoint: filepath.Join(dir, "last")}); err != nil {
		t.Fatal(err)
	}
	same(t, bus.Queue("out").Rows(), want)
	first, err := checkpoint.ReadSavepoint(vfs.Default, filepath.Join(dir, "first"))
	if err != nil || first.ID != id || !first.Savepoint || len(first.Pending) != 0 || first.Job.Name != "test" {
		t.Fatalf("%+v %v", first, err)
	}
	last, err := checkpoint.ReadSavepoint(vfs.Default, filepath.Join(dir, "last"))
	if err != nil || last.ID <= id || last.From != owner.Dir() {
		t.Fatalf("%+v %v", last, err)
	}
	if err := j.Stop(patient(t), exec.StopOptions{Savepoint: filepath.Join(dir, "third")}); diag.CodeOf(err) != diag.Conflict {
		t.Fatalf("a savepoint of a job that has ended: %v", err)
	}
}

// The savepoint's directory is taken away while the job stops: the job has stopped, and the error names its checkpoint.
func TestStopSavepointNotWritten(t *testing.T) {
	bus := memory.NewBus()
	want := fill(bus.Feed("in"), 1, 100)
	g := newGraph(bus)
	g.sink("out", 1, hash(g.source("in", 1, nil)))
	dir := t.TempDir()
	owner := ownDir(t, filepath.Join(dir, "job"))
	j := start(t, g.g, exec.JobOptions{Owner: owner})
	waitRows(t, j, 100)
	into := filepath.Join(dir, "save")
	bus.Queue("out").OnOp(func(op memory.Op) {
		if op == memory.OpCommit { // behind the check that it does not exist
			if err := vfs.Default.MkdirAll(into, 0o755); err != nil {
				t.Error(err)
			}
		}
	})
	err := j.Stop(patient(t), exec.StopOptions{Savepoint: into})
	text := diag.Render(err, "", "")
	if err == nil || !strings.Contains(text, "stopped, but its savepoint was not written") || !strings.Contains(text, owner.Dir()) {
		t.Fatal(text)
	}
	same(t, bus.Queue("out").Rows(), want)
}

// The commit of the final checkpoint fails for good: Stop fails, names the checkpoint, and the next run does not go below
// it but finishes its commit.
func TestStopCommitFails(t *testing.T) {
	bus := memory.NewBus()
	f := bus.Feed("in")
	want := fill(f, 1, 100)
	g := newGraph(bus)
	g.sink("out", 1, hash(g.source("in", 1, nil)))
	dir := t.TempDir()
	owner := ownDir(t, filepath.Join(dir, "job"))
	o := exec.JobOptions{Owner: owner}
	j := start(t, g.g, o)
	waitRows(t, j, 100)
	q := bus.Queue("out")
	q.Fail(memory.OpCommit, diag.New(diag.Lost, diag.Pos{}, "the target is gone"))
	into := filepath.Join(dir, "save")
	err := j.Stop(patient(t), exec.StopOptions{Savepoint: into})
	text := diag.Render(err, "", "")
	if diag.CodeOf(err) != diag.Lost || !strings.Contains(text, "stopped at checkpoint 1, whose output is not committed") || !strings.Contains(text, owner.Dir()) {
		t.Fatal(text)
	}
	if _, err := checkpoint.ReadSavepoint(vfs.Default, into); err == nil {
		t.Fatal("there is a savepoint whose output is not committed")
	}
	f.Close()
	if err := start(t, g.g, o).wait(); err != nil {
		t.Fatal(err)
	}
	same(t, q.Rows(), want)
}

// A savepoint of before is gone back to, as allowed: what was committed since is written again, under a new lineage, and
// nothing that the newest checkpoint lists is lost.
func TestRewind(t *testing.T) {
	bus := memory.NewBus()
	f := bus.Feed("in")
	want := fill(f, 1, 100)
	g := newGraph(bus)
	g.sink("out", 1, hash(g.source("in", 1, nil)))
	dir := t.TempDir()
	owner := ownDir(t, filepath.Join(dir, "job"))
	o := exec.JobOptions{Owner: owner}
	j := start(t, g.g, o)
	waitRows(t, j, 100)
	save := filepath.Join(dir, "save")
	if _, err := j.Savepoint(patient(t), save); err != nil {
		t.Fatal(err)
	}
	var again []memory.Row
	for i := range int64(50) {
		again = append(again, row(i%17, 1000+i, 1000+i))
	}
	f.Append(0, again...)
	waitRows(t, j, 150)
	crashAtCommit(j, bus.Queue("out"))
	_, _ = j.Checkpoint(patient(t)) // durable, not committed
	_ = j.wait()
	bus.Queue("out").OnOp(nil)
	lineage := j.Status().Lineage

	store, err := checkpoint.OpenStore(owner, checkpoint.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Import(patient(t), save, false); diag.CodeOf(err) != diag.Config || !strings.Contains(err.Error(), "older than what its job has committed") {
		t.Fatal(err)
	}
	in, err := store.Import(patient(t), save, true)
	if err != nil || in.From == nil || in.Rewound != 2 {
		t.Fatalf("%+v %v", in, err)
	}
	o.Store, o.Restore = store, exec.Restore{Mode: exec.RestorePath, From: in.From}
	f.Close()
	j = start(t, g.g, o)
	if err := j.wait(); err != nil {
		t.Fatal(err)
	}
	if j.Status().Lineage == lineage {
		t.Fatal("the lineage is that of the output which is written again")
	}
	same(t, bus.Queue("out").Rows(), append(append(want, again...), again...))
}
