package checkpoint

import (
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// SyncFigures are how long the disk took to make files and directories of a state directory durable (fsync): checkpoints, what
// Pebble writes, checkpoint storage that is a directory. They are since the directory was taken.
type SyncFigures struct {
	Count    int64
	Total    time.Duration
	P50, P99 time.Duration // over the last ones
	Samples  int           // how many those are
}

// syncMeter times the fsyncs of a file system. It is safe for concurrent use.
type syncMeter struct {
	mu    sync.Mutex
	last  [512]time.Duration // some minutes' worth, at a checkpoint every few seconds
	count int64
	total time.Duration
}

// timed calls f, which makes something durable. One that fails counts as well: a disk that hangs and then fails is slow.
func (m *syncMeter) timed(f func() error) error {
	began := time.Now()
	err := f()
	took := time.Since(began)
	m.mu.Lock()
	m.last[m.count%int64(len(m.last))] = took
	m.count++
	m.total += took
	m.mu.Unlock()
	return err
}

func (m *syncMeter) figures() SyncFigures {
	m.mu.Lock()
	f := SyncFigures{Count: m.count, Total: m.total, Samples: int(min(m.count, int64(len(m.last))))}
	last := slices.Clone(m.last[:f.Samples])
	m.mu.Unlock()
	f.P50, f.P99 = Quantile(last, 50), Quantile(last, 99)
	return f
}

// timedFS is a file system whose fsyncs m times.
type timedFS struct {
	vfs.FS
	m *syncMeter
}

// Unwrap implements vfs.FS.
func (t timedFS) Unwrap() vfs.FS { return t.FS }

func (t timedFS) file(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return timedFile{f, t.m}, nil
}

// Create implements vfs.FS.
func (t timedFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return t.file(t.FS.Create(name, c))
}

// OpenReadWrite implements vfs.FS.
func (t timedFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return t.file(t.FS.OpenReadWrite(name, c, opts...))
}

// ReuseForWrite implements vfs.FS.
func (t timedFS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return t.file(t.FS.ReuseForWrite(oldname, newname, c))
}

// OpenDir implements vfs.FS.
func (t timedFS) OpenDir(name string) (vfs.File, error) { return t.file(t.FS.OpenDir(name)) }

// Open implements vfs.FS: a file that is read can be synced, too, after a restore.
func (t timedFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	return t.file(t.FS.Open(name, opts...))
}

// timedFile is a file of a timedFS. SyncTo is not timed: it only asks the system to begin.
type timedFile struct {
	vfs.File
	m *syncMeter
}

// Sync implements vfs.File.
func (f timedFile) Sync() error { return f.m.timed(f.File.Sync) }

// SyncData implements vfs.File.
func (f timedFile) SyncData() error { return f.m.timed(f.File.SyncData) }
