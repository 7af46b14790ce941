package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/streamsql/streamsql/sql/diag"
)

// A barrier's rows on their way to disk:
//
//	Seal (subtask)    copy dirty rows and tombstones into a sealSet; they count as clean and stay resident
//	cut  (async)      all rows in memory: write one segment per set, link the segments into chk-<id>/<name> (segments.go)
//	                  else: sort, write one SST per set, ingest it; link Pebble's files into chk-<id>/<name>
//	     (async)      checksum Pebble's files that are new
//
// When the subtask runs out of memory before the asynchronous part got to cut, it cuts itself and then writes its newer
// rows: they enter Pebble after the links were made, never in an older checkpoint.

// sealSet are the rows of one seal, or of one early write.
type sealSet struct {
	seq    uint16
	num    uint64      // of all sets; names the segment
	early  bool        // not of a seal: durable when a checkpoint lists it
	drop   uint64      // the segments of sets before this one are of no use behind this set
	tables []sealTable // ascending id
	// catalog is the list of tables, written with the first set and whenever it changed.
	catalog []byte
}

type sealTable struct {
	t *table // for its options; its rows belong to the subtask
	// records are the rows as a segment has them; nil: they are in a, for a segment at locs, for Pebble at ents.
	records *segmentBuf
	a       arena
	locs    []uint32 // with locDeleted
	ents    []sealEnt
	end     func() // gives back a, which is a view of the table's arena; nil: a holds copies
}

// locDeleted marks the location of a tombstone, which has 31 bits: the flags of a row that was not copied belong to the subtask.
const locDeleted = 1 << 31

func (st *sealTable) close() {
	if st.records != nil {
		st.records.close()
		return
	}
	if st.end != nil {
		st.end()
		return
	}
	st.a.close()
}

type sealEnt struct {
	hash    uint64
	loc     uint32
	deleted bool // a tombstone
}

func (s *sealSet) close() {
	for i := range s.tables {
		s.tables[i].close()
	}
	s.tables = nil
}

// takeDirty moves the table's changes into a sealTable: one memory copy per row, none of rows that will not change until it
// is closed: inPlace says so of all, TableOptions.WriteOnce of a table's.
func (t *table) takeDirty(seq uint16, inPlace bool) (sealTable, error) {
	st := sealTable{t: t}
	inPlace = inPlace || t.o.WriteOnce
	switch {
	case inPlace:
		st.a, st.end = t.a.view()
	case t.b.db == nil:
		st.records = &segmentBuf{budget: t.b.budget}
	default:
		st.a = newArena(t.b.budget)
	}
	if inPlace && t.b.db == nil {
		st.locs = t.dirty[:0] // in its place: what is read there is ahead
	} else if st.records == nil {
		st.ents = make([]sealEnt, 0, len(t.dirty))
	}
	for _, loc := range t.dirty {
		h := t.a.head(loc)
		if h.flags&(rowDead|rowMoved) != 0 || h.flags&rowDirty == 0 {
			continue
		}
		deleted := h.flags&rowDeleted != 0
		switch {
		case inPlace && t.b.db == nil:
			at := loc
			if deleted {
				at |= locDeleted
			}
			st.locs = append(st.locs, at)
		case inPlace:
			st.ents = append(st.ents, sealEnt{h.hash, loc, deleted})
		case st.records != nil:
			st.records.add(t, loc, deleted)
		default:
			to, err := t.copyRow(&st, loc)
			if err != nil {
				return sealTable{}, err
			}
			st.ents = append(st.ents, sealEnt{h.hash, to, deleted})
		}
		if deleted {
			t.tombs = append(t.tombs, loc)
		}
		h.flags = h.flags&^rowDirty&(1<<rowSeqShift-1) | rowDisk | uint32(seq)<<rowSeqShift
	}
	if t.dirtyBytes = 0; st.locs != nil {
		t.dirty = nil // it is the set's now
	} else {
		t.dirty = t.dirty[:0]
	}
	return st, nil
}

// copyRow copies the row at loc into the arena of st.
func (t *table) copyRow(st *sealTable, loc uint32) (uint32, error) {
	row := t.a.bytesOf(loc)
	to, ok := st.a.alloc(len(row))
	if !ok {
		st.close()
		t.err = errorf(diag.External, "state table %s: its changes since the last checkpoint exceed %d GiB", t.name, maxChunks*hugePage>>30)
		return 0, t.err
	}
	copy(st.a.span(to, len(row)), row)
	return to, nil
}

// sealJob is a checkpoint's seal until its files are known.
type sealJob struct {
	id       ID
	once     sync.Once
	finished chan struct{}
	cut      bool
	pebble   bool        // dir has Pebble's files
	files    []StateFile // the segments in dir
	err      error
	dir      string
}

func (j *sealJob) running() bool {
	if j == nil {
		return false
	}
	select {
	case <-j.finished:
		return false
	default:
		return true
	}
}

// Seal is the synchronous part of checkpoint id, called at the barrier on the subtask's goroutine: it copies the changed
// rows. The function returned is the asynchronous part, to be called exactly once, on any goroutine, while the subtask
// goes on: it writes the rows and returns the files of the snapshot, durable. When its context ends, it gives up the
// checkpoint but still keeps the rows for the next one; after an error, too, the backend can go on and seal again.
// ErrSealing while the function of an earlier Seal has not returned. Refs end with Seal.
func (b *Backend) Seal(id ID) (func(context.Context) ([]StateFile, error), error) {
	return b.seal(id, false)
}

// SealLast is Seal at a barrier after which no row is read or changed any more: nothing is copied. The tables can still be
// sealed again.
func (b *Backend) SealLast(id ID) (func(context.Context) ([]StateFile, error), error) {
	return b.seal(id, true)
}

func (b *Backend) seal(id ID, last bool) (func(context.Context) ([]StateFile, error), error) {
	if err := b.failed(); err != nil {
		return nil, err
	}
	if b.job.running() {
		return nil, ErrSealing
	}
	if err := b.checkRestored(); err != nil {
		return nil, err
	}
	if err := b.upkeep(); err != nil {
		return nil, err
	}
	b.seq++
	b.sets++
	set := &sealSet{seq: b.seq, num: b.sets, catalog: b.encodeCatalog()}
	if b.ended = b.ended || last; b.db == nil && !b.ended {
		if err := b.rebaseStep(set); err != nil {
			set.close()
			return nil, err
		}
	}
	for _, t := range b.tables {
		if t == nil || len(t.dirty) == 0 {
			continue
		}
		st, err := t.takeDirty(b.seq, b.ended)
		if err != nil {
			set.close()
			return nil, err
		}
		set.tables = append(set.tables, st)
	}
	job := &sealJob{id: id, finished: make(chan struct{}), dir: b.fs.PathJoin(b.owner.dir, chkName(id), b.name)}
	b.cutMu.Lock()
	hasFiles := b.db != nil || len(b.segments) > 0
	if len(set.tables) > 0 || set.drop > 0 || hasFiles && !bytes.Equal(set.catalog, b.catalog) {
		b.unwritten = append(b.unwritten, set)
		b.notePending()
	}
	b.job = job
	b.cutMu.Unlock()
	return func(ctx context.Context) ([]StateFile, error) {
		files, err := []StateFile(nil), errors.New("the snapshot was taken before")
		job.once.Do(func() {
			defer close(job.finished)
			files, err = b.finish(ctx, job)
		})
		return files, err
	}, nil
}

// upkeep readies the tables for a seal. Those that are not probed now hold memory too; between batches they can give it up.
func (b *Backend) upkeep() error {
	for _, t := range b.tables {
		if t == nil {
			continue // an id whose rows got another one
		}
		if t.err != nil {
			return t.err
		}
		t.refsOut = false
		if b.budget.over() > 0 && !b.ended {
			if err := t.begin(); err != nil {
				return err
			}
		}
	}
	return nil
}

// finish is the asynchronous part of a seal.
func (b *Backend) finish(ctx context.Context, job *sealJob) ([]StateFile, error) {
	b.cutMu.Lock()
	b.cutJob(ctx, job)
	err := job.err
	if err == nil && b.db == nil && !b.closed {
		// What is joined is written and linked already: without room for the copy the checkpoint is good all the same.
		// There may be many new ones, if changed rows had to be written early.
		var e error
		for e == nil && len(b.segments) > b.limits.files && ctx.Err() == nil {
			e = b.joinSegments()
		}
		if errors.Is(e, errDamaged) {
			err = e
		} else if e != nil {
			b.log.Warn("state segments cannot be joined; they stay apart until a later checkpoint", "task", b.name, "error", e)
		}
	}
	b.cutMu.Unlock()
	if err == nil {
		err = ctx.Err()
	}
	files := job.files // none: no keyed state yet
	if err == nil && job.pebble {
		files, err = b.checksum(ctx, job)
	}
	if err != nil {
		b.fs.RemoveAll(job.dir)
		if e := (*diag.Error)(nil); errors.As(err, &e) {
			return nil, err
		}
		return nil, b.ioError("cannot write", err)
	}
	return files, nil
}

// cutJob writes what is sealed and links the files of the checkpoint, once. cutMu is held.
func (b *Backend) cutJob(ctx context.Context, job *sealJob) {
	if job.cut {
		return
	}
	job.cut = true
	if b.closed {
		job.err = errors.New("the task has ended")
		return
	}
	if job.err = b.writeSets(); job.err != nil || b.db == nil && len(b.segments) == 0 {
		return
	}
	if job.err = ctx.Err(); job.err != nil {
		return
	}
	// A directory of that name is of an attempt that died before it published.
	if job.err = b.fs.RemoveAll(job.dir); job.err != nil {
		return
	}
	if job.err = mkdirAllSynced(b.fs, b.fs.PathDir(job.dir)); job.err != nil {
		return
	}
	if b.db == nil {
		job.err = b.linkSegments(job)
		return
	}
	if job.err = b.guard(func() error { return b.db.Checkpoint(job.dir) }); job.err == nil {
		job.pebble = true
		b.paceCompactions()
	}
}

// writeSets puts sealed rows into segments or Pebble, oldest seal first. A set that fails stays for the next try. cutMu is held.
func (b *Backend) writeSets() error {
	for len(b.unwritten) > 0 {
		if err := b.writeSet(b.unwritten[0]); err != nil {
			return err
		}
		b.unwritten[0].close()
		b.unwritten = slices.Delete(b.unwritten, 0, 1)
		b.notePending()
	}
	return nil
}

// writeEarly writes the changed rows of t before the barrier. A seal under way is cut first: its checkpoint does not have them.
func (b *Backend) writeEarly(t *table) error {
	b.cutMu.Lock()
	defer b.cutMu.Unlock()
	if err := b.cutNow(); err != nil {
		return err
	}
	if len(t.dirty) == 0 {
		return nil
	}
	b.rebase.again += t.dirtyBytes
	st, err := t.takeDirty(b.oldSeq(), true)
	if err != nil {
		return err
	}
	b.sets++
	set := &sealSet{num: b.sets, early: true, tables: []sealTable{st}, catalog: b.encodeCatalog()}
	defer set.close()
	if err := b.writeSet(set); err != nil {
		return b.fail(b.ioError("cannot write rows to", err))
	}
	return nil
}

// cutNow ends the part of a seal under way that holds copies of rows. cutMu is held.
func (b *Backend) cutNow() error {
	if b.job.running() {
		b.cutJob(context.Background(), b.job)
	}
	if err := b.writeSets(); err != nil {
		return b.fail(b.ioError("cannot write rows to", err))
	}
	return nil
}

// endSeal writes what is sealed now, so that its copies are given back.
func (b *Backend) endSeal() error {
	if !b.pendingSeal() {
		return nil
	}
	b.cutMu.Lock()
	defer b.cutMu.Unlock()
	return b.cutNow()
}

// writeSet writes the set as a segment, or as one SST that it ingests. cutMu is held.
func (b *Backend) writeSet(set *sealSet) error {
	if b.db == nil {
		return b.writeSegment(set)
	}
	w, err := b.newSST()
	if err != nil {
		return err
	}
	defer w.abandon()
	if !bytes.Equal(set.catalog, b.catalog) {
		if err := w.set(catalogKey, set.catalog); err != nil {
			return err
		}
	}
	for i := range set.tables {
		if err := w.table(&set.tables[i]); err != nil {
			return err
		}
	}
	if err := w.ingest(); err != nil {
		return err
	}
	b.catalog = set.catalog
	return nil
}

// sstWriter writes sorted rows into files that one Ingest then adds.
type sstWriter struct {
	b        *Backend
	w        *sstable.Writer
	paths    []string
	size     int64
	key, val []byte
	touched  uint32 // means nothing: keeps reads ahead from being optimised away
	ingested bool
}

const sstBytes = 64 << 20 // a file is ended after this many bytes of rows

func (b *Backend) newSST() (*sstWriter, error) {
	w := &sstWriter{b: b}
	return w, w.next()
}

func (w *sstWriter) next() error {
	b := w.b
	if w.w != nil {
		if err := w.close(); err != nil {
			return err
		}
	}
	b.ssts++
	path := b.fs.PathJoin(b.dir, fmt.Sprintf("ingest-%06d.sst", b.ssts))
	f, err := b.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	w.paths = append(w.paths, path)
	po := b.pebbleOptions()
	po.EnsureDefaults()
	// Not the lowest level's options: those mark tombstones as obsolete, and readers then skip them.
	o := po.MakeWriterOptions(0, b.db.TableFormat())
	// What compaction rewrites is compressed; what may be replaced by the next barrier is not worth the processor time.
	o.Compression = sstable.NoCompression
	w.w, w.size = sstable.NewWriter(objstorageprovider.NewFileWritable(f), o), 0
	return nil
}

func (w *sstWriter) close() error {
	sw := w.w
	w.w = nil
	return w.b.guard(sw.Close)
}

func (w *sstWriter) set(key, val []byte) error {
	if w.size > sstBytes {
		if err := w.next(); err != nil {
			return err
		}
	}
	w.size += int64(len(key) + len(val))
	return w.w.Set(key, val)
}

// table writes the rows of one table.
func (w *sstWriter) table(st *sealTable) error {
	t := st.t
	view := table{a: st.a, head: t.head, ttl: t.ttl} // the copied rows have the table's layout
	ents := view.sortEnts(st.ents)
	for i, e := range ents {
		if i%ahead == 0 {
			w.touched += view.touch(ents[i:])
		}
		w.key = diskKey(w.key[:0], t.id, e.hash, view.rowKey(e.loc))
		var err error
		if e.deleted {
			err = w.w.Delete(w.key)
		} else {
			val := view.rowValue(e.loc)
			if t.ttl {
				w.val = encodeDisk(w.val[:0], true, *view.rowStamp(e.loc), val)
				val = w.val
			}
			err = w.set(w.key, val)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ingest ends the last file and adds all to Pebble.
func (w *sstWriter) ingest() error {
	if err := w.close(); err != nil {
		return err
	}
	err := w.b.guard(func() error { return w.b.db.Ingest(context.Background(), w.paths) })
	w.ingested = err == nil
	return err
}

// abandon removes the files unless they were ingested.
func (w *sstWriter) abandon() {
	if w.w != nil {
		_ = w.close()
	}
	if !w.ingested {
		for _, p := range w.paths {
			_ = w.b.fs.Remove(p)
		}
	}
}

// checksum lists the files of the checkpoint. SSTs do not change: one known from an earlier checkpoint is not read
// again.
func (b *Backend) checksum(ctx context.Context, job *sealJob) ([]StateFile, error) {
	names, err := b.fs.List(job.dir)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	known := map[string]StateFile{}
	var files []StateFile
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		name = strings.TrimSuffix(name, "/")
		f, ok := b.crcs[name]
		if !ok {
			f.Size, f.CRC32C, err = crcFile(b.fs, b.fs.PathJoin(job.dir, name))
			if err != nil {
				return nil, err
			}
		}
		if strings.HasSuffix(name, ".sst") {
			known[name] = StateFile{Size: f.Size, CRC32C: f.CRC32C}
		}
		f.Path = b.fs.PathJoin(chkName(job.id), b.name, name)
		files = append(files, f)
	}
	b.crcs = known
	return files, nil
}
