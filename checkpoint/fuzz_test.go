package checkpoint

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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

// FuzzLog: whatever the newest entry of a log in a bucket says behind a right checksum, opening it is an answer or an error.
func FuzzLog(f *testing.F) {
	e, err := json.Marshal(logEntry{Number: 1, Nonce: "n", Kind: kindCheckpoint, By: "me", Published: []publishedAt{{1, 1}}, Checkpoint: &Checkpoint{ID: 1}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(e, []byte(`{"number":1}`))
	f.Add([]byte(`{"number":1,"kind":"note","published":[{"id":5,"number":9}],"discarded":[{"from":7,"to":1}]}`), []byte(`{"number":0}`))
	f.Fuzz(func(t *testing.T, entry, latest []byte) {
		var x logEntry
		_ = decodeRecord("log", frame("log", entry), &x)
		var l latestRecord
		_ = decodeRecord("latest", frame("latest", latest), &l)
		_ = decodeTraces(entry)
	})
}
