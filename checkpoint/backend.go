package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/streamsql/streamsql/sql/diag"
)

// BackendOptions configure a Backend.
type BackendOptions struct {
	// Budget is shared by all backends of the job; nil means NewMemoryBudget(0).
	Budget *MemoryBudget
	// OwnsKeyGroup tells which key groups the subtask owns; nil = all.
	OwnsKeyGroup func(group int) bool
	// RestoredAs is the operator's id in the restored checkpoint where it is another; "" = the same. Only for a backend with
	// the tables of one operator.
	RestoredAs OperatorID
	// Now is the processing time in ms, for TTL; nil = the wall clock.
	Now func() int64
	// Log receives Pebble's warnings; nil discards.
	Log *slog.Logger
	// Disk is how rows on disk are laid out.
	Disk DiskOptions
	// Meter reads the backend's figures until it is closed; nil = nobody does.
	Meter *Meter
}

// ErrSealing is returned by Seal while an earlier seal is still being written: decline the checkpoint (not ready).
var ErrSealing = errors.New("the state of an earlier checkpoint is still being written")

// Backend is the keyed state of one task: the tables of all operators in a chain, in one Pebble. Its directory
// local/<name> is worthless after the process; what survives are the hard links in chk-<id>/<name>.
//
// All methods but the function that Seal returns are for the subtask's goroutine. Pebble is opened when rows outgrow memory;
// until then what changed is in segments (segments.go).
type Backend struct {
	owner  *Owner
	fs     vfs.FS
	name   string
	dir    string // local/<name>
	budget *MemoryBudget
	log    *slog.Logger
	now    func() int64
	groups groupSet
	was    OperatorID // BackendOptions.RestoredAs

	tables  []*table // by id-1; nil = restored, not opened
	keyBuf  []byte
	chunk   []uint64  // to read a cold chunk into; nil while one is being read
	sources []*source // what Restore brought, until its tables are opened
	adopted *source   // the source whose Pebble this backend goes on with

	// cutMu is held while sealed rows are written and Pebble's files are linked into a checkpoint: by the asynchronous
	// part of a seal, or by the subtask when it needs room first.
	cutMu sync.Mutex
	db    *pebble.DB // changed on the subtask's goroutine only
	dbDir string
	disk  DiskOptions
	cache *pebble.Cache
	// figures are read beside everything else, through meter.
	figures figures
	meter   *Meter
	// compactions are those of db; spilled tells them that rows are on disk only.
	compactions *compactions
	spilled     atomic.Bool
	unwritten   []*sealSet // sealed, not yet in a segment or Pebble; oldest first
	// segments hold all rows while db is nil; segmentBytes are theirs.
	segments     []segment
	segmentBytes atomic.Int64
	limits       segmentLimits
	ssts         int // names of ingested files
	crcs         map[string]StateFile
	catalog      []byte // as last written

	sets   uint64 // number of the newest set
	rebase rebase
	ended  bool // SealLast was called

	seq  uint16        // number of the newest seal
	pend atomic.Uint64 // unwritten seals: count<<16 | first number
	job  *sealJob
	// closed is set by Close under cutMu: a late asynchronous part finds nothing to do.
	closed bool
	fatal  atomic.Pointer[error]
}

// groupSet is a set of key groups.
type groupSet [KeyGroups / 64]uint64

func (g *groupSet) has(i int) bool { return g[i/64]>>(i%64)&1 != 0 }

// OpenBackend opens an empty backend for the task called name (unique in the job, e.g. "agg-0": file name characters)
// in the directory that owner holds. Working files of an earlier process under that name are removed.
func OpenBackend(owner *Owner, name string, o BackendOptions) (*Backend, error) {
	if o.Budget == nil {
		o.Budget = NewMemoryBudget(0)
	}
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixMilli() }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	fs := owner.fs
	b := &Backend{
		owner: owner, fs: fs, name: name, dir: fs.PathJoin(owner.localDir(), name),
		budget: o.Budget, log: o.Log, now: o.Now, was: o.RestoredAs, crcs: map[string]StateFile{},
		limits: defaultSegmentLimits, disk: o.Disk,
	}
	for g := range KeyGroups {
		if o.OwnsKeyGroup == nil || o.OwnsKeyGroup(g) {
			b.groups[g/64] |= 1 << (g % 64)
		}
	}
	if err := fs.RemoveAll(b.dir); err != nil {
		return nil, b.ioError("cannot clear", err)
	}
	if err := fs.MkdirAll(b.dir, 0o755); err != nil {
		return nil, b.ioError("cannot create", err)
	}
	if b.meter = o.Meter; b.meter != nil {
		b.meter.add(b)
	}
	return b, nil
}

func (b *Backend) ioError(what string, err error) error {
	return errorf(diag.External, "state of task %s: %s %q", b.name, what, b.dir).Wrap(err).
		WithHint("check free space and permissions of the state directory")
}

// Table opens a table of an operator. A table in the restored checkpoint with another Format is an error that names
// operator and table.
func (b *Backend) Table(op OperatorID, o TableOptions) (Table, error) {
	for _, t := range b.tables {
		if t != nil && t.op == op && t.o.Name == o.Name {
			return nil, errorf(diag.Internal, "state table %s.%s is opened twice", op, o.Name)
		}
	}
	if o.TTL < 0 {
		return nil, errorf(diag.Config, "state table %s.%s has a TTL of %d ms", op, o.Name, o.TTL)
	}
	for _, s := range b.sources {
		if e := s.entry(b.old(op), o.Name); e != nil && e.Format != o.Format {
			return nil, errorf(diag.Config, "state of operator %s, table %s, has format %q in the checkpoint, this plan needs %q", op, o.Name, e.Format, o.Format).
				WithHint("start without the checkpoint, or with the query and streamsql release that wrote it")
		}
	}
	t, err := b.restoreTable(op, o)
	if err != nil {
		return nil, err // Close releases what it holds
	}
	return t, nil
}

// addTable gives the table a new id.
func (b *Backend) addTable(op OperatorID, o TableOptions) *table {
	t := newTable(b, uint16(len(b.tables)+1), op, o)
	b.tables = append(b.tables, t)
	return t
}

// Close releases memory and removes the working files. It waits for the asynchronous part of a seal that has begun.
func (b *Backend) Close() error {
	b.cutMu.Lock()
	defer b.cutMu.Unlock()
	b.closed = true
	b.figures.show(nil)
	if b.meter != nil {
		b.meter.remove(b)
	}
	var err error
	for _, t := range b.tables {
		if t != nil {
			err = errors.Join(err, t.close())
		}
	}
	b.tables = nil
	for _, set := range b.unwritten {
		set.close()
	}
	b.unwritten = nil
	b.notePending()
	b.budget.add(-8 * int64(len(b.chunk)))
	b.chunk = nil
	err = errors.Join(err, b.closeSources())
	if b.db != nil {
		err = errors.Join(err, b.guard(b.db.Close))
		b.db = nil
	}
	if b.cache != nil {
		b.cache = nil
		b.budget.releaseBlocks(b.disk.CacheBytes)
	}
	if rerr := b.fs.RemoveAll(b.dir); rerr != nil {
		err = errors.Join(err, b.ioError("cannot remove", rerr))
	}
	return err
}

// failed is the error that ended this backend, nil while it works.
func (b *Backend) failed() error {
	if p := b.fatal.Load(); p != nil {
		return *p
	}
	return nil
}

func (b *Backend) fail(err error) error {
	b.fatal.CompareAndSwap(nil, &err)
	return *b.fatal.Load()
}

// guard calls into Pebble, whose rare internal panics must not end the process, and reports what its logger was told
// is fatal.
func (b *Backend) guard(f func() error) (err error) {
	defer func() {
		if x := recover(); x != nil {
			cause, ok := x.(error)
			if !ok {
				cause = fmt.Errorf("%v", x)
			}
			err = b.fail(b.ioError("the store gave up in", cause))
		}
	}()
	if err := f(); err != nil {
		return err
	}
	return b.failed()
}

// pebbleLog turns Pebble's fatal conditions (it cannot write its own manifest) into the backend's error instead of the
// process's end. The working directory is given up with the backend, so that its state does not matter.
type pebbleLog struct{ b *Backend }

func (l pebbleLog) Infof(string, ...any) {}
func (l pebbleLog) Errorf(format string, args ...any) {
	l.b.log.Warn("pebble: "+fmt.Sprintf(format, args...), "task", l.b.name)
}
func (l pebbleLog) Fatalf(format string, args ...any) {
	l.b.fail(l.b.ioError("the store failed in", fmt.Errorf(format, args...)))
}

// pebbleOptions are part of no format: any Pebble of the same major version reads the files.
func (b *Backend) pebbleOptions() *pebble.Options {
	if b.cache == nil {
		b.cache = b.budget.acquireBlocks(b.disk.CacheBytes)
	}
	o := &pebble.Options{
		FS:                          b.fs,
		Cache:                       b.cache,
		DisableWAL:                  true, // a crash falls back to the checkpoint anyway
		MemTableSize:                256 << 10,
		MemTableStopWritesThreshold: 2,
		L0CompactionThreshold:       l0Files,
		L0StopWritesThreshold:       1000,
		FormatMajorVersion:          pebble.FormatTableFormatV6,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 1 },
		Logger:                      pebbleLog{b},
		EventListener:               b.figures.listener(),
	}
	b.disk.apply(o)
	return o
}

// open opens Pebble in dir. It compacts nothing until it is told.
func (b *Backend) open(dir string) (db *pebble.DB, c *compactions, err error) {
	c = newCompactions()
	err = b.guard(func() (err error) {
		o := b.pebbleOptions()
		o.Experimental.CompactionScheduler = c
		db, err = pebble.Open(dir, o)
		return err
	})
	if err != nil {
		return nil, nil, b.ioError("cannot open", err)
	}
	return db, c, nil
}

// ensureDB opens the backend's own Pebble. cutMu is held.
func (b *Backend) ensureDB() error {
	if b.db != nil {
		return nil
	}
	b.dbDir = b.fs.PathJoin(b.dir, "db")
	db, c, err := b.open(b.dbDir)
	if err != nil {
		return err
	}
	b.db, b.compactions = db, c
	b.figures.show(db)
	return nil
}

// iter is an iterator over the rows of a table on disk.
func (b *Backend) iter(id uint16) (*pebble.Iterator, error) { return tableIter(b.db, id) }

func tableIter(db *pebble.DB, id uint16) (*pebble.Iterator, error) {
	return db.NewIter(&pebble.IterOptions{
		LowerBound: binary.BigEndian.AppendUint16(nil, id),
		UpperBound: binary.BigEndian.AppendUint16(nil, id+1),
	})
}

// pendingSeal tells whether sealed rows are not in Pebble yet.
func (b *Backend) pendingSeal() bool { return b.pend.Load()>>16 > 0 }

// sealing tells whether the rows of seal number seq are not in Pebble yet.
func (b *Backend) sealing(seq uint16) bool {
	p := b.pend.Load()
	return uint64(seq-uint16(p)) < p>>16
}

// oldSeq is a seal number that is never pending.
func (b *Backend) oldSeq() uint16 { return b.seq - 1<<15 }

// notePending publishes the range of unwritten seals. cutMu is held.
func (b *Backend) notePending() {
	var p uint64
	if n := len(b.unwritten); n > 0 {
		first := b.unwritten[0].seq
		p = uint64(b.unwritten[n-1].seq-first+1)<<16 | uint64(first)
	}
	b.pend.Store(p)
}

// closeSources drops what Restore brought.
func (b *Backend) closeSources() error {
	var errs []error
	for _, s := range b.sources {
		if s != b.adopted {
			errs = append(errs, s.close(b))
		}
	}
	b.sources, b.adopted = nil, nil
	b.tables = slices.Clip(b.tables)
	return errors.Join(errs...)
}
