package checkpoint

import (
	"context"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/streamsql/streamsql/sql/diag"
)

// hookObjects is an ObjectStore with something before its answers.
type hookObjects struct {
	ObjectStore
	put    func(key string, do func() error) error
	create func(key string, do func() error) error
	get    func(key string) error
	age    time.Duration // how far the store's clock is behind
}

func (o *hookObjects) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	do := func() error { return o.ObjectStore.Put(ctx, key, r, size) }
	if o.put != nil {
		return o.put(key, do)
	}
	return do()
}

func (o *hookObjects) Create(ctx context.Context, key string, data []byte) error {
	do := func() error { return o.ObjectStore.Create(ctx, key, data) }
	if o.create != nil {
		return o.create(key, do)
	}
	return do()
}

func (o *hookObjects) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	if o.get != nil {
		if err := o.get(key); err != nil {
			return nil, err
		}
	}
	return o.ObjectStore.Get(ctx, key)
}

func (o *hookObjects) List(ctx context.Context, prefix string, f func(ObjectInfo) error) error {
	return o.ObjectStore.List(ctx, prefix, func(i ObjectInfo) error {
		i.Modified = i.Modified.Add(-o.age)
		return f(i)
	})
}

func memBucket(t *testing.T) *DirObjects {
	t.Helper()
	bucket, err := OpenDirObjects(vfs.NewMem(), "/bucket")
	if err != nil {
		t.Fatal(err)
	}
	return bucket
}

func openMachine(t *testing.T, objects ObjectStore) *machine {
	t.Helper()
	m := &machine{fs: vfs.NewMem()}
	if err := m.open(objects); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.drop)
	return m
}

func publishAll(t *testing.T, m *machine, from, to ID) {
	t.Helper()
	for id := from; id <= to; id++ {
		if err := errors.Join(m.store.Reserve(bg, id), remotePublish(m, id, time.Unix(int64(id), 0)), m.store.Confirm(bg, id), m.store.Collect(bg)); err != nil {
			t.Fatal(err)
		}
	}
}

// An owner stands still while it renews the hint and wakes up long after another took over and removed old entries: the hint
// goes back to an entry whose successors are gone. Neither it nor a new owner may go on from there.
func TestRemoteHintGoesBack(t *testing.T) {
	bucket := memBucket(t)
	var late func() error
	old := openMachine(t, &hookObjects{ObjectStore: bucket, put: func(key string, do func() error) error {
		if late == nil && strings.HasSuffix(key, "/"+latestKey) {
			late = do
			return nil
		}
		return do()
	}})
	late = nil
	publishAll(t, old, 1, 1)
	next := openMachine(t, bucket)
	publishAll(t, next, 2, 12)
	if err := late(); err != nil {
		t.Fatal(err)
	}
	err := old.store.Reserve(bg, 2)
	if err == nil {
		err = remotePublish(old, 2, time.Unix(2, 0))
	}
	if diag.CodeOf(err) != diag.Conflict {
		t.Errorf("the old owner's publish: %v, want a conflict", err)
	}
	if c, _, err := openMachine(t, bucket).store.Latest(bg); err != nil || c.ID != 12 {
		t.Errorf("a new owner found %v, %v; want checkpoint 12", c, err)
	}
}

// Moving a directory in fails half-way, or its answer is lost: the next start moves it in.
func TestRemoteMovesInLater(t *testing.T) {
	for name, fail := range map[string]func(*hookObjects){
		"a file": func(o *hookObjects) {
			o.put = func(key string, do func() error) error {
				if strings.Contains(key, "/"+filesPrefix) {
					return errNoAnswer
				}
				return do()
			}
		},
		"the answer": func(o *hookObjects) {
			o.create = func(key string, do func() error) error {
				if err := do(); err != nil || strings.HasSuffix(key, "01") {
					return err
				}
				return errNoAnswer
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bucket, m := memBucket(t), &machine{fs: vfs.NewMem()}
			owner, err := Own(m.fs, "/job")
			if err != nil {
				t.Fatal(err)
			}
			s, err := OpenStore(owner, StoreOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(s.Publish(bg, testCheckpoint(t, owner, 1)), owner.Close()); err != nil {
				t.Fatal(err)
			}
			hooked := &hookObjects{ObjectStore: bucket}
			fail(hooked)
			if err := m.open(hooked); err == nil {
				t.Fatal("opened")
			}
			if err := m.open(bucket); err != nil {
				t.Fatal(err)
			}
			m.drop()
			if c, _, err := openMachine(t, bucket).store.Latest(bg); err != nil || c.ID != 1 {
				t.Errorf("another machine found %v, %v; want checkpoint 1", c, err)
			}
		})
	}
}

// An older entry that cannot be read for a moment is not taken for damaged: the start fails, and the next one has it.
func TestRemoteReadFailsOnce(t *testing.T) {
	bucket := memBucket(t)
	m := openMachine(t, bucket)
	publishAll(t, m, 1, 3)
	older := m.store.log.key(m.store.log.last.Published[0].Number)
	hooked := &hookObjects{ObjectStore: bucket, get: func(key string) error {
		if key == older {
			return errNoAnswer
		}
		return nil
	}}
	again := &machine{fs: m.fs}
	m.drop()
	if err := again.open(hooked); diag.CodeOf(err) != diag.External {
		t.Errorf("opened beside an entry without an answer: %v", err)
	}
	if err := again.open(bucket); err != nil {
		t.Fatal(err)
	}
	defer again.drop()
	if cs, err := again.store.List(bg); err != nil || len(cs) != 3 {
		t.Errorf("%d checkpoints, %v; want 3", len(cs), err)
	}
}

// An owner that does not know yet that it was replaced cleans the store, whose clock is hours behind, just as the new owner has
// written the files of a checkpoint and not its entry.
func TestRemoteCollectByOldOwner(t *testing.T) {
	bucket := memBucket(t)
	old := openMachine(t, &hookObjects{ObjectStore: bucket, age: 3 * collectGrace})
	if err := errors.Join(old.store.Reserve(bg, 1), remotePublish(old, 1, time.Unix(1, 0))); err != nil {
		t.Fatal(err)
	}
	var cleaned error
	hooked := &hookObjects{ObjectStore: bucket}
	next := openMachine(t, hooked)
	hooked.create = func(_ string, do func() error) error {
		cleaned = old.store.Collect(bg)
		return do()
	}
	if err := remotePublish(next, 2, time.Unix(2, 0)); err != nil {
		t.Fatal(err)
	}
	if diag.CodeOf(cleaned) != diag.Conflict {
		t.Errorf("the old owner's collection: %v, want a conflict", cleaned)
	}
	c, _, err := openMachine(t, bucket).store.Latest(bg)
	if err != nil || c.ID != 2 {
		t.Fatalf("found %v, %v; want checkpoint 2", c, err)
	}
}

// A file that is removed is written again with the same content; the removal, which had no answer, arrives after that.
func TestRemoteRemovalArrivesLate(t *testing.T) {
	bucket := memBucket(t)
	m := openMachine(t, bucket)
	publishAll(t, m, 1, 1)
	var first []string
	if err := bucket.List(bg, "team/job/"+filesPrefix, func(o ObjectInfo) error { first = append(first, o.Key); return nil }); err != nil {
		t.Fatal(err)
	}
	publishAll(t, m, 2, 8)
	next := openMachine(t, bucket)
	c, err := tryCheckpoint(next.owner, 1) // the content of the first
	if err != nil {
		t.Fatal(err)
	}
	c.ID = next.store.NextID()
	for i := range c.Subtasks[0].Files {
		f := &c.Subtasks[0].Files[i]
		moved := renamed(f.Path, c.ID)
		dst := next.fs.PathJoin("/job", moved)
		if err := errors.Join(mkdirAllSynced(next.fs, next.fs.PathDir(dst)), next.fs.Rename(next.fs.PathJoin("/job", f.Path), dst)); err != nil {
			t.Fatal(err)
		}
		f.Path = moved
	}
	if err := next.store.Publish(bg, c); err != nil {
		t.Fatal(err)
	}
	for _, key := range first {
		if err := bucket.Remove(bg, key); err != nil {
			t.Fatal(err)
		}
	}
	last := openMachine(t, bucket)
	got, _, err := last.store.Latest(bg)
	if err != nil || got.ID != c.ID {
		t.Fatalf("found %v, %v; want checkpoint %d", got, err, c.ID)
	}
	if err := last.store.Verify(bg, got); err != nil {
		t.Error(err)
	}
}

// The copy is damaged and the store is not: the store's files are fetched.
func TestRemoteRepairsTheCopy(t *testing.T) {
	bucket := memBucket(t)
	m := openMachine(t, bucket)
	publishAll(t, m, 1, 3)
	c, _, err := m.store.Latest(bg)
	if err != nil {
		t.Fatal(err)
	}
	path := "/job/" + c.Subtasks[0].Files[0].Path
	data, err := readFile(m.fs, path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := errors.Join(m.fs.Remove(path), writeSynced(m.fs, path, data)); err != nil {
		t.Fatal(err)
	}
	if err := m.open(bucket); err != nil {
		t.Fatal(err)
	}
	if c, _, err = m.store.Latest(bg); err == nil {
		err = m.store.Verify(bg, c)
	}
	if err != nil {
		t.Error(err)
	}
}

// fullFS is a disk on which no state file can be written.
type fullFS struct{ vfs.FS }

func (fs fullFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, c)
	if err == nil && strings.Contains(name, chkPrefix) {
		f = fullFile{f}
	}
	return f, err
}

type fullFile struct{ vfs.File }

func (fullFile) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// A full disk is told from a store that does not answer.
func TestRemoteFullDisk(t *testing.T) {
	bucket := memBucket(t)
	m := openMachine(t, bucket)
	publishAll(t, m, 1, 3)
	owner, err := Own(fullFS{vfs.NewMem()}, "/job")
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	_, err = OpenRemote(bg, owner, bucket, "team/job", StoreOptions{})
	if diag.CodeOf(err) != diag.External || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), `"/job"`) {
		t.Errorf("got %v, want an error of the state directory", err)
	}
}

// A job is not started from the copy that another keeps of its checkpoints: unless the user says so.
func TestRemoteCopyIsNotAStart(t *testing.T) {
	fs, bucket := vfs.NewMem(), memBucket(t)
	m := &machine{fs: fs}
	if err := m.open(bucket); err != nil {
		t.Fatal(err)
	}
	publishAll(t, m, 1, 2)
	m.drop()
	owner, err := Own(fs, "/fresh")
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	s, err := OpenStore(owner, StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Import(bg, "/job", false); diag.CodeOf(err) != diag.Config || !strings.Contains(err.Error(), "/bucket/team/job") {
		t.Errorf("got %v, want a refusal that names the storage", err)
	}
	if _, err := s.Import(bg, "/job", true); err != nil {
		t.Error(err)
	}
}

// A savepoint is the start of a job whose checkpoints are in a store, also when the first answer is lost; what is gone back
// behind afterwards is gone for every machine.
func TestRemoteImportAndDiscard(t *testing.T) {
	fs, bucket := vfs.NewMem(), memBucket(t)
	owner, err := Own(fs, "/origin")
	if err != nil {
		t.Fatal(err)
	}
	origin, err := OpenStore(owner, StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := testCheckpoint(t, owner, 5)
	if err := errors.Join(origin.Publish(bg, c), origin.Confirm(bg, 5), origin.Savepoint(bg, 5, "/savepoint"), owner.Close()); err != nil {
		t.Fatal(err)
	}
	hooked := &hookObjects{ObjectStore: bucket}
	m := &machine{fs: fs}
	if err := m.open(hooked); err != nil {
		t.Fatal(err)
	}
	hooked.create = func(_ string, do func() error) error {
		hooked.create = nil
		return errors.Join(do(), errNoAnswer)
	}
	if _, err := m.store.Import(bg, "/savepoint", false); !errors.Is(err, errNoAnswer) {
		t.Fatalf("import without an answer: %v", err)
	}
	if _, err := m.store.Import(bg, "/savepoint", false); err != nil {
		t.Fatal(err)
	}
	next := openMachine(t, bucket)
	got, confirmed, err := next.store.Latest(bg)
	if err != nil || got.ID != 5 || !confirmed || got.Lineage == c.Lineage {
		t.Fatalf("another machine found %v, confirmed %v, %v", got, confirmed, err)
	}
	if err := next.store.Verify(bg, got); err != nil {
		t.Error(err)
	}
	id := next.store.NextID()
	if err := errors.Join(remotePublish(next, id, time.Unix(6, 0)), next.store.Discard(bg, 1)); err != nil {
		t.Fatal(err)
	}
	last := openMachine(t, bucket)
	if c, _, err := last.store.Latest(bg); !errors.Is(err, ErrNone) {
		t.Errorf("after all was discarded: %v, %v", c, err)
	}
	if again := last.store.NextID(); again <= id {
		t.Errorf("id %d is used again", again)
	}
}

// A record that could not be read again is not written.
func TestRecordTooLarge(t *testing.T) {
	if readable("log", maxRecordBytes) != nil || readable("log", maxRecordBytes+1) == nil {
		t.Error("the limit of reading is not that of writing")
	}
}
