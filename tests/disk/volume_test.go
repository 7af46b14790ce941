package disk

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// machine is the file system of the operating system.
var machine = vfs.Default

// The operations of a file system that faults name.
const (
	opOpen   = "open"
	opCreate = "create"
	opRead   = "read"
	opWrite  = "write"
	opSync   = "sync"
	opLink   = "link"
	opRename = "rename"
	opRemove = "remove"
	opMkdir  = "mkdir"
	opList   = "list"
	opStat   = "stat"
)

// writes tells which operations change the disk.
var writes = map[string]bool{opCreate: true, opWrite: true, opSync: true, opLink: true, opRename: true, opRemove: true, opMkdir: true}

// What a fault does.
const (
	fails = "EIO"             // the operation does not happen
	noRun = "ENOSPC"          // it does not happen, for want of room
	short = "short write"     // half of the bytes are written, then there is no room
	full  = "disk stays full" // all operations that need room fail, for a number of them
	slow  = "slow"            // it takes its time
)

// fault is something that happens once, to the operation number after+1 of a sort on files of a kind; kind "" is any.
type fault struct {
	op, kind string
	after    int
	what     string
	left     int // of full: operations that fail

	path string // where it happened, "" = not yet
}

func (f *fault) errno() syscall.Errno {
	if f.what == fails {
		return syscall.EIO
	}
	return syscall.ENOSPC
}

func (f *fault) String() string {
	s := fmt.Sprintf("%s of %s number %d: %s", f.op, f.kind, f.after+1, f.what)
	if f.path != "" {
		s += " at " + f.path
	}
	return s
}

// volume is the disk of a job: the machine's, or one in memory that can lose power. It does to the job what the plan says.
type volume struct {
	vfs.FS        // the disk without faults
	root   string // of all files of the job
	nap    time.Duration

	mu     sync.Mutex
	plan   []*fault
	fired  []*fault
	full   *fault
	writes int // operations that change the disk
	// dieAt is the number of such an operation at which the job is cut off from the disk: what it did is there, what it
	// wants to do fails. Where the disk is in memory, power is lost too, with what was not synced. 0 = never.
	dieAt int
	rnd   *rand.Rand
	spare bool // the power stays
	dead  bool
	died  chan struct{}
	after *vfs.MemFS // what a power cut left
}

func newVolume(root string, fs vfs.FS, rnd *rand.Rand) *volume {
	return &volume{FS: fs, root: root, rnd: rnd, nap: 20 * time.Millisecond, died: make(chan struct{})}
}

// check decides over an operation that is about to happen.
func (v *volume) check(op string, path string, paths ...string) (half bool, err error) {
	v.mu.Lock()
	half, nap, err := v.decide(op, path, paths)
	v.mu.Unlock()
	if nap {
		time.Sleep(v.nap)
	}
	return half, err
}

func (v *volume) decide(op, path string, paths []string) (half, nap bool, err error) {
	if !strings.HasPrefix(path, v.root) {
		return false, false, nil
	}
	if v.dead {
		return false, false, failed(op, path, paths, syscall.EIO)
	}
	if writes[op] {
		if v.writes++; v.writes == v.dieAt {
			v.die()
			return false, false, failed(op, path, paths, syscall.EIO)
		}
	}
	if v.full != nil && writes[op] && op != opRemove && op != opSync {
		if v.full.left--; v.full.left <= 0 {
			v.full = nil
		}
		return false, false, failed(op, path, paths, syscall.ENOSPC)
	}
	kind := kindOf(path)
	if len(paths) > 0 {
		kind = kindOf(paths[0])
	}
	for _, f := range v.plan {
		if f.path != "" || f.op != op || f.kind != "" && f.kind != kind {
			continue
		}
		if f.after--; f.after >= 0 {
			continue
		}
		f.after, f.path, f.kind = 0, path, kind
		v.fired = append(v.fired, f)
		switch f.what {
		case slow:
			return false, true, nil
		case short:
			return true, false, failed(op, path, paths, syscall.ENOSPC)
		case full:
			v.full = f
		}
		return false, false, failed(op, path, paths, f.errno())
	}
	return false, false, nil
}

func (v *volume) die() {
	v.dead = true
	if mem, ok := v.FS.(split); ok && !v.spare {
		v.after = mem.FS.(*vfs.MemFS).CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 50, 100}[v.rnd.IntN(3)], RNG: v.rnd})
	}
	close(v.died)
}

// heal ends all faults.
func (v *volume) heal() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.plan, v.full, v.fired, v.dieAt = nil, nil, nil, 0
}

// happened are the faults so far.
func (v *volume) happened() []*fault {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.fired)
}

// failed is the error as the operating system would put it.
func failed(op, path string, paths []string, errno syscall.Errno) error {
	if len(paths) > 0 {
		return &os.LinkError{Op: op, Old: path, New: paths[0], Err: errno}
	}
	return &os.PathError{Op: op, Path: path, Err: errno}
}

// split is a disk in memory beside the machine's, where the input is.
type split struct {
	vfs.FS
	input string
}

// Open implements vfs.FS.
func (s split) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	if strings.HasPrefix(name, s.input) {
		return machine.Open(name, o...)
	}
	return s.FS.Open(name, o...)
}

// Stat implements vfs.FS.
func (s split) Stat(name string) (vfs.FileInfo, error) {
	if strings.HasPrefix(name, s.input) {
		return machine.Stat(name)
	}
	return s.FS.Stat(name)
}

// The kinds of files.
const (
	manifests   = "manifest"
	segments    = "segment"
	pebbles     = "Pebble's file"
	colds       = "cold chunks"
	notes       = "note of the job"
	traces      = "trace"
	locks       = "lock"
	directories = "directory"
	progresses  = "file in progress"
	pendings    = "pending file"
	outputs     = "output"
	inputs      = "input"
	savepoints  = "savepoint"
	objects     = "object"
)

// kindOf tells what a file is for.
func kindOf(path string) string {
	base := strings.TrimSuffix(filepath.Base(path), ".tmp")
	switch {
	case base == "LOCK":
		return locks
	case strings.Contains(base, ".inprogress."):
		return progresses
	case strings.Contains(base, ".pending."):
		return pendings
	case strings.HasPrefix(base, "part-"):
		return outputs
	case strings.HasSuffix(base, ".jsonl"):
		return inputs
	case strings.Contains(path, "/save/") && (filepath.Ext(base) != "" || base == "MANIFEST"):
		return savepoints
	case strings.Contains(path, "/remote/") && !strings.HasSuffix(path, "/log") && !strings.HasSuffix(path, "/files"):
		return objects
	case base == "MANIFEST" || base == "MANIFEST.2":
		return manifests
	case strings.HasSuffix(base, ".seg"):
		return segments
	case strings.HasPrefix(base, "cold-"):
		return colds
	case base == "owner" || base == "confirmed" || base == "discarded" || base == "lineages":
		return notes
	case base == "trace":
		return traces
	case strings.HasSuffix(base, ".sst") || strings.HasPrefix(base, "MANIFEST-") || strings.HasPrefix(base, "OPTIONS-") || strings.HasPrefix(base, "marker.") ||
		strings.HasSuffix(base, ".dbtmp") || strings.HasSuffix(base, ".log"):
		return pebbles
	}
	return directories
}

// Create implements vfs.FS.
func (v *volume) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if _, err := v.check(opCreate, name); err != nil {
		return nil, err
	}
	f, err := v.FS.Create(name, c)
	return v.wrap(name, f, err)
}

// Open implements vfs.FS.
func (v *volume) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	if _, err := v.check(opOpen, name); err != nil {
		return nil, err
	}
	f, err := v.FS.Open(name, o...)
	return v.wrap(name, f, err)
}

// OpenReadWrite implements vfs.FS.
func (v *volume) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	if _, err := v.check(opOpen, name); err != nil {
		return nil, err
	}
	f, err := v.FS.OpenReadWrite(name, c, o...)
	return v.wrap(name, f, err)
}

// OpenDir implements vfs.FS.
func (v *volume) OpenDir(name string) (vfs.File, error) {
	if _, err := v.check(opOpen, name); err != nil {
		return nil, err
	}
	f, err := v.FS.OpenDir(name)
	return v.wrap(name, f, err)
}

// ReuseForWrite implements vfs.FS.
func (v *volume) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if _, err := v.check(opRename, from, to); err != nil {
		return nil, err
	}
	f, err := v.FS.ReuseForWrite(from, to, c)
	return v.wrap(to, f, err)
}

// Link implements vfs.FS.
func (v *volume) Link(from, to string) error {
	if _, err := v.check(opLink, from, to); err != nil {
		return err
	}
	return v.FS.Link(from, to)
}

// Rename implements vfs.FS.
func (v *volume) Rename(from, to string) error {
	if _, err := v.check(opRename, from, to); err != nil {
		return err
	}
	return v.FS.Rename(from, to)
}

// Remove implements vfs.FS.
func (v *volume) Remove(name string) error {
	if _, err := v.check(opRemove, name); err != nil {
		return err
	}
	return v.FS.Remove(name)
}

// RemoveAll implements vfs.FS. One that fails removes a part.
func (v *volume) RemoveAll(name string) error {
	if _, err := v.check(opRemove, name); err != nil {
		v.mu.Lock()
		dead := v.dead
		v.mu.Unlock()
		if names, lerr := v.FS.List(name); !dead && lerr == nil && len(names) > 0 {
			_ = v.FS.RemoveAll(v.PathJoin(name, names[0]))
		}
		return err
	}
	return v.FS.RemoveAll(name)
}

// MkdirAll implements vfs.FS.
func (v *volume) MkdirAll(name string, perm os.FileMode) error {
	if _, err := v.check(opMkdir, name); err != nil {
		return err
	}
	return v.FS.MkdirAll(name, perm)
}

// List implements vfs.FS.
func (v *volume) List(name string) ([]string, error) {
	if _, err := v.check(opList, name); err != nil {
		return nil, err
	}
	return v.FS.List(name)
}

// Stat implements vfs.FS.
func (v *volume) Stat(name string) (vfs.FileInfo, error) {
	if _, err := v.check(opStat, name); err != nil {
		return nil, err
	}
	return v.FS.Stat(name)
}

// Lock implements vfs.FS.
func (v *volume) Lock(name string) (io.Closer, error) {
	if _, err := v.check(opCreate, name); err != nil {
		return nil, err
	}
	return v.FS.Lock(name)
}

// Unwrap implements vfs.FS.
func (v *volume) Unwrap() vfs.FS { return v.FS }

func (v *volume) wrap(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &openFile{f, v, name}, nil
}

// openFile is a file of a volume.
type openFile struct {
	vfs.File
	v    *volume
	path string
}

// Read implements io.Reader.
func (f *openFile) Read(p []byte) (int, error) {
	if _, err := f.v.check(opRead, f.path); err != nil {
		return 0, err
	}
	return f.File.Read(p)
}

// ReadAt implements io.ReaderAt.
func (f *openFile) ReadAt(p []byte, at int64) (int, error) {
	if _, err := f.v.check(opRead, f.path); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, at)
}

// Write implements io.Writer.
func (f *openFile) Write(p []byte) (int, error) {
	half, err := f.v.check(opWrite, f.path)
	if err == nil {
		return f.File.Write(p)
	}
	n := 0
	if half {
		n, _ = f.File.Write(p[:len(p)/2])
	}
	return n, err
}

// WriteAt implements io.WriterAt.
func (f *openFile) WriteAt(p []byte, at int64) (int, error) {
	half, err := f.v.check(opWrite, f.path)
	if err == nil {
		return f.File.WriteAt(p, at)
	}
	n := 0
	if half {
		n, _ = f.File.WriteAt(p[:len(p)/2], at)
	}
	return n, err
}

// Sync implements vfs.File.
func (f *openFile) Sync() error {
	if _, err := f.v.check(opSync, f.path); err != nil {
		return err
	}
	return f.File.Sync()
}

// SyncData implements vfs.File.
func (f *openFile) SyncData() error {
	if _, err := f.v.check(opSync, f.path); err != nil {
		return err
	}
	return f.File.SyncData()
}

// SyncTo implements vfs.File.
func (f *openFile) SyncTo(n int64) (bool, error) {
	if _, err := f.v.check(opSync, f.path); err != nil {
		return false, err
	}
	return f.File.SyncTo(n)
}
