package checkpoint

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// frame makes a record of body, as encodeRecord does of a value: what is fuzzed is behind the checksum.
func frame(kind string, body []byte) []byte {
	b := append(fmt.Appendf(nil, "streamsql-%s %d\n", kind, recordVersion), body...)
	b = append(b, '\n')
	return fmt.Appendf(b, "crc32c %08x %d\n", crc32.Checksum(b, castagnoli), len(b))
}

func put(f testing.TB, fs vfs.FS, path string, data []byte) {
	f.Helper()
	if err := fs.MkdirAll(fs.PathDir(path), 0o755); err != nil {
		f.Fatal(err)
	}
	if err := writeSynced(fs, path, data); err != nil {
		f.Fatal(err)
	}
}

// tree is every file of fs outside dir.
func tree(f testing.TB, fs vfs.FS, at, dir string) (out []string) {
	names, err := fs.List(at)
	if err != nil {
		return []string{at}
	}
	for _, n := range names {
		if p := fs.PathJoin(at, strings.TrimSuffix(n, "/")); p != dir {
			out = append(out, tree(f, fs, p, dir)...)
		}
	}
	slices.Sort(out)
	return out
}

// FuzzManifest: whatever a manifest, a savepoint's or a note says behind a right checksum, reading it, checking its files and
// importing it is an answer or an error, not a panic, and touches no file outside its directory.
func FuzzManifest(f *testing.F) {
	good := Checkpoint{ID: 3, Lineage: "l", Savepoint: true, Fence: 2, Parallelism: map[OperatorID]int{"a": 1},
		Subtasks: []Snapshot{{Subtask: SubtaskID{"a", 0}, State: []byte("s"), Positions: []Position{{Split: "0", Next: []byte{1}}},
			Files: []StateFile{{Path: "chk-3/a-0/000001-000001.seg", Size: 4, CRC32C: crc32.Checksum([]byte("data"), castagnoli)}}}},
		Pending: []Committable{{Sink: "s", Checkpoint: 3, Lineage: "l", Payload: []byte{1}}}}
	body, err := json.Marshal(good)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body, []byte(`{"id":2,"fence":1}`), []byte(`{"ranges":[{"from":1,"to":2}],"fence":1}`))
	f.Add([]byte(strings.ReplaceAll(string(body), "chk-3/a-0", "chk-3/../../other")), []byte(`{}`), []byte(`{}`))
	f.Add([]byte(`{"ID":3,"Savepoint":true,"Subtasks":[{"Files":[{"Path":"/etc/passwd"}]}]}`), []byte(`{"id":18446744073709551615}`), []byte(`{"ranges":[{"from":9,"to":1}]}`))
	f.Fuzz(func(t *testing.T, manifest, confirmed, discarded []byte) {
		fs := vfs.NewMem()
		put(t, fs, "/other/file", []byte("data"))
		for _, dir := range []string{"/from", "/job"} {
			put(t, fs, dir+"/chk-3/MANIFEST", frame("checkpoint", manifest))
			put(t, fs, dir+"/chk-3/a-0/000001-000001.seg", []byte("data"))
		}
		put(t, fs, "/job/confirmed", frame("confirmed", confirmed))
		put(t, fs, "/job/discarded", frame("discarded", discarded))
		outside := tree(t, fs, "/", "/job")
		_, _ = ReadSavepoint(fs, "/from")
		_, _ = ReadCheckpoints(fs, "/job")
		_, _ = Locate(fs, "/from")
		owner, err := Own(fs, "/job")
		if err != nil {
			return
		}
		defer owner.Close()
		s, err := OpenStore(owner, StoreOptions{})
		if err != nil {
			return
		}
		if c, _, err := s.Latest(bg); err == nil {
			_ = s.Verify(bg, c)
			for _, sub := range c.Subtasks {
				for _, file := range sub.Files {
					if !filepath.IsLocal(file.Path) {
						t.Errorf("a manifest with file %q was accepted", file.Path)
					}
				}
			}
		}
		_, _ = s.List(bg)
		_, _ = s.Import(bg, "/from", true)
		_ = s.Collect(bg)
		if now := tree(t, fs, "/", "/job"); !slices.Equal(now, outside) {
			t.Errorf("files outside the directory: %q, were %q", now, outside)
		}
	})
}

// FuzzSegment: a segment of state whose checksum is right and whose contents are not is an error or rows, not a panic.
func FuzzSegment(f *testing.F) {
	owner := OwnMemory()
	b, tb := openTable(f, owner, 1<<30)
	var keys Keys
	intKeys(&keys, []uint64{1, 2, 3})
	if err := count(tb, &keys, make([]Ref, 3)); err != nil {
		f.Fatal(err)
	}
	files := sealed(f, b, 1)
	for _, file := range files {
		data, err := readFile(owner.fs, owner.fs.PathJoin(owner.dir, file.Path))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, int64(0), true)
		f.Add(data, int64(1000), false)
	}
	if err := b.Close(); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte, ttl int64, small bool) {
		owner := OwnMemory()
		defer owner.Close()
		put(t, owner.fs, owner.fs.PathJoin(owner.dir, "chk-1/agg-0/000001-000001.seg"), data)
		limit := int64(1 << 30)
		if small {
			limit = 1 << 16
		}
		b, err := OpenBackend(owner, "agg-0", BackendOptions{Budget: NewMemoryBudget(limit)})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		err = b.Restore(bg, []StateFile{{Path: "chk-1/agg-0/000001-000001.seg", Size: int64(len(data)), CRC32C: crc32.Checksum(data, castagnoli)}})
		if err != nil {
			return
		}
		tb, err := b.Table("agg", TableOptions{Name: "acc", Format: "v1", TTL: max(0, ttl)})
		if err != nil {
			return
		}
		_ = tb.Visit(func(k, v []byte) bool { return true })
	})
}

// FuzzLog: whatever the entries of a log in a bucket and its hint say behind right checksums, taking the log over, with an empty
// directory and with one that knows it, is an answer or an error, and writes no file outside the directory and the bucket.
func FuzzLog(f *testing.F) {
	at := time.Unix(1, 0).UTC()
	path := "chk-1/a-0/000001-000001.seg"
	c := Checkpoint{ID: 1, Lineage: "l", Fence: 1, StartedAt: at, Parallelism: map[OperatorID]int{"a": 1},
		Subtasks: []Snapshot{{Subtask: SubtaskID{"a", 0}, Files: []StateFile{{Path: path, Size: 4, CRC32C: crc32.Checksum([]byte("data"), castagnoli)}}}}}
	sum := sha256.Sum256([]byte("data"))
	object := objectKey(sum[:], 4) + "-x"
	e := logEntry{Number: 1, Nonce: "n", Kind: kindCheckpoint, By: "me", Published: []publishedAt{{1, 1}}, Checkpoint: &c, Objects: map[string]string{path: object}, Reserved: 1}
	add := func(first, second logEntry) {
		var both [2][]byte
		for i, e := range []logEntry{first, second} {
			body, err := json.Marshal(e)
			if err != nil {
				f.Fatal(err)
			}
			both[i] = body
		}
		f.Add(both[0], both[1], []byte(`{"number":2}`))
	}
	note := logEntry{Number: 2, Nonce: "m", Kind: kindNote, By: "me", Published: e.Published, Reserved: 64, Confirmed: 1,
		Lineages: []string{"l"}, Degraded: []Degradation{{At: at, Lineage: "l", From: 2, To: 1, By: "x", Why: "y"}}, Discarded: []idRange{{3, 7}}}
	add(e, note)
	own := note
	own.Published = []publishedAt{{1, 2}} // which holds none
	add(e, own)
	other := c
	other.ID = 5
	wrong := e
	wrong.Checkpoint = &other
	add(wrong, note)
	outside := e
	outside.Checkpoint = &Checkpoint{ID: 1, Subtasks: []Snapshot{{Files: []StateFile{{Path: "chk-1/../../other/new", Size: 4}}}}}
	outside.Objects = map[string]string{"chk-1/../../other/new": object}
	add(outside, note)
	f.Add([]byte(`{"number":1}`), []byte(`{"number":2,"kind":"note","published":[{"id":5,"number":9}],"discarded":[{"from":7,"to":1}]}`), []byte(`{"number":0}`))
	f.Fuzz(func(t *testing.T, first, second, latest []byte) {
		fs := vfs.NewMem()
		put(t, fs, "/other/file", []byte("data"))
		for key, data := range map[string][]byte{"log/00000000000000000001": frame("log", first), "log/00000000000000000002": frame("log", second),
			"latest": frame("latest", latest), object: []byte("data")} {
			put(t, fs, "/bucket/team/job/"+key, data)
		}
		bucket, err := OpenDirObjects(fs, "/bucket")
		if err != nil {
			t.Fatal(err)
		}
		inside := func(p string) bool { return strings.HasPrefix(p, "/bucket/") || strings.HasPrefix(p, "/job/") }
		outside := slices.DeleteFunc(tree(t, fs, "/", ""), inside)
		// The second time the directory is what the log said, or what was left of an attempt.
		for range 2 {
			takeLog(t, fs, bucket)
		}
		if now := slices.DeleteFunc(tree(t, fs, "/", ""), inside); !slices.Equal(now, outside) {
			t.Errorf("files outside the directory and the bucket: %q, were %q", now, outside)
		}
	})
}

// takeLog opens the store and does with it what a job does.
func takeLog(t *testing.T, fs vfs.FS, bucket ObjectStore) {
	owner, err := Own(fs, "/job")
	if err != nil {
		return
	}
	defer owner.Close()
	s, err := OpenRemote(bg, owner, bucket, "team/job", StoreOptions{})
	if err != nil {
		return
	}
	if c, _, err := s.Latest(bg); err == nil {
		if err := c.checkPaths(); err != nil {
			t.Error(err)
		}
		_ = s.Verify(bg, c)
	}
	_, _ = s.List(bg)
	_, _ = s.Degraded(bg)
	_, _ = s.Lineages(bg)
	id := s.NextID()
	if s.Reserve(bg, id) == nil && s.Publish(bg, &Checkpoint{ID: id, Lineage: "l", Fence: owner.fence}) == nil {
		_ = s.Confirm(bg, id)
	}
	_ = s.Collect(bg)
}

// FuzzNotes: whatever the notes beside the checkpoints say behind a right checksum, everything that reads them, also without
// owning the directory, gives an answer or an error.
func FuzzNotes(f *testing.F) {
	names := []string{ownerName, confirmedName, discardedName, lineagesName, degradedName, remoteName}
	for i, body := range []string{`{"fence":3,"pid":1,"host":"h","since":"2024-01-01T00:00:00Z"}`, `{"id":7,"fence":1}`, `{"ranges":[{"from":1,"to":2},{"from":9,"to":4}],"fence":1}`,
		`{"open":["l","","l"]}`, `{"events":[{"At":"2024-01-01T00:00:00Z","Lineage":"l","Lost":true,"From":3,"To":1,"By":"x","Why":"y"}]}`, `{"store":"s3://b/p","by":"me"}`} {
		f.Add(uint8(i), []byte(body))
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		name := names[int(which)%len(names)]
		fs := vfs.NewMem()
		put(t, fs, "/job/"+name, frame(name, body))
		good, err := encodeRecord("checkpoint", &Checkpoint{ID: 7, Lineage: "l", Final: true})
		if err != nil {
			t.Fatal(err)
		}
		put(t, fs, "/job/chk-7/MANIFEST", good)
		_, _, _ = ReadHolder(fs, "/job")
		_, _ = ReadStorage(fs, "/job")
		_, _ = ReadConfirmed(fs, "/job")
		_, _ = ReadLineages(fs, "/job")
		if ds, err := ReadDegraded(fs, "/job"); err == nil {
			for _, d := range MergeDegradations(ds, ds) {
				_ = d.String()
			}
		}
		owner, err := Own(fs, "/job")
		if err != nil {
			return
		}
		defer owner.Close()
		s, err := OpenStore(owner, StoreOptions{})
		if err != nil {
			return
		}
		_, _, _ = s.Latest(bg)
		_, _ = s.Lineages(bg)
		_ = s.Degrade(bg, Degradation{Lineage: "l"})
		id := s.NextID()
		if id <= 7 {
			t.Errorf("checkpoint %d is used again", id)
		}
		_ = s.Discard(bg, id)
		_ = s.Collect(bg)
	})
}
