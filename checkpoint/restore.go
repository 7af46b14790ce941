package checkpoint

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/streamsql/streamsql/sql/diag"
)

// catalogKey is where a Pebble describes its tables; table ids start at 1.
var catalogKey = []byte{0, 0, 't', 'a', 'b', 'l', 'e', 's'}

// hashFormat names HashKey in the catalog.
const hashFormat = "words+xxh3-64/2"

type catalogRecord struct {
	Hash   string         `json:"hash"`
	Groups [2]string      `json:"groups"` // owned key groups as two hex words, low groups first
	Tables []catalogEntry `json:"tables"`
}

type catalogEntry struct {
	ID       uint16     `json:"id"`
	Operator OperatorID `json:"operator"`
	Name     string     `json:"name"`
	Format   string     `json:"format"`
	Stamped  bool       `json:"stamped,omitempty"` // values begin with a stamp
}

// checkHash refuses state whose rows are found by other hashes; from is where it is.
func (c *catalogRecord) checkHash(from string) error {
	if c.Hash == hashFormat {
		return nil
	}
	return errorf(diag.Config, "state in %q has hashes %q of its keys, this release of streamsql has %q", from, c.Hash, hashFormat).
		WithHint("start without the checkpoint, or with the streamsql release that wrote it")
}

func (b *Backend) encodeCatalog() []byte {
	c := catalogRecord{Hash: hashFormat, Groups: b.groups.words()}
	for _, t := range b.tables {
		if t != nil {
			c.Tables = append(c.Tables, catalogEntry{ID: t.id, Operator: t.op, Name: t.o.Name, Format: t.o.Format, Stamped: t.ttl})
		}
	}
	data, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return data
}

func (g *groupSet) words() [2]string {
	return [2]string{fmt.Sprintf("%016x", g[0]), fmt.Sprintf("%016x", g[1])}
}

// meet tells whether a key group of other, as written by words, is in g. What is not readable may be anything.
func (g *groupSet) meet(other [2]string) bool {
	for i, w := range other {
		n, err := strconv.ParseUint(w, 16, 64)
		if err != nil || n&g[i] != 0 {
			return true
		}
	}
	return false
}

// shared tells how many key groups of other, as written by words, are in g, and how many other has. 0, 0: it is not readable.
func (g *groupSet) shared(other [2]string) (in, all int) {
	for i, w := range other {
		n, err := strconv.ParseUint(w, 16, 64)
		if err != nil {
			return 0, 0
		}
		in, all = in+bits.OnesCount64(n&g[i]), all+bits.OnesCount64(n)
	}
	return in, all
}

// source is the state of one old subtask: a Pebble or segments.
type source struct {
	dir  string
	from string     // the checkpoint's directory
	db   *pebble.DB // nil: segments
	// segments are in the order they were written.
	segments []segment
	catalog  catalogRecord
	raw      []byte
	// compactions are those of db.
	compactions *compactions
	used        map[uint16]bool // entries whose tables were opened
}

// old is the operator's id in the restored checkpoint.
func (b *Backend) old(op OperatorID) OperatorID {
	if b.was != "" {
		return b.was
	}
	return op
}

func (s *source) entry(op OperatorID, name string) *catalogEntry {
	for i, e := range s.catalog.Tables {
		if e.Operator == op && e.Name == name {
			return &s.catalog.Tables[i]
		}
	}
	return nil
}

// Restore gives the backend the state files of all old subtasks of this chain, from the restored checkpoint, before the
// first Table. Rows of key groups that the subtask does not own are left out. The files must have been verified
// (DirStore.Verify); they are linked, not changed.
func (b *Backend) Restore(ctx context.Context, files []StateFile) error {
	if len(b.tables) > 0 || len(b.sources) > 0 {
		return errorf(diag.Internal, "state of task %s is restored twice or too late", b.name)
	}
	byDir := map[string][]StateFile{}
	var dirs []string
	for _, f := range files {
		d := b.fs.PathDir(f.Path)
		if byDir[d] == nil {
			dirs = append(dirs, d)
		}
		byDir[d] = append(byDir[d], f)
	}
	slices.Sort(dirs)
	for i, d := range dirs {
		s, err := b.openSource(ctx, fmt.Sprintf("src-%d", i), byDir[d])
		if err != nil {
			return err
		}
		if !b.groups.meet(s.catalog.Groups) {
			// All of it goes to other subtasks.
			if err := s.close(b); err != nil {
				return b.ioError("cannot close", err)
			}
			continue
		}
		b.sources = append(b.sources, s)
	}
	if len(b.sources) == 1 && b.sources[0].catalog.Groups == b.groups.words() {
		b.adopt(b.sources[0], byDir[b.sources[0].from])
	}
	return nil
}

// adopt goes on with the files of the only source.
func (b *Backend) adopt(s *source, files []StateFile) {
	b.adopted, b.catalog = s, s.raw
	if s.db != nil {
		b.db, b.dbDir, b.compactions = s.db, s.dir, s.compactions
		b.figures.show(b.db)
		for _, f := range files {
			if name := b.fs.PathBase(f.Path); strings.HasSuffix(name, ".sst") {
				b.crcs[name] = StateFile{Size: f.Size, CRC32C: f.CRC32C}
			}
		}
	} else {
		b.segments = slices.Clone(s.segments)
		b.sets = b.segments[len(b.segments)-1].last
		b.noteSegments()
	}
	for _, e := range s.catalog.Tables {
		for len(b.tables) < int(e.ID) {
			b.tables = append(b.tables, nil)
		}
	}
}

// close ends the use of what is not adopted.
func (s *source) close(b *Backend) error {
	var err error
	if s.db != nil {
		err = b.guard(s.db.Close)
	}
	return errors.Join(err, b.fs.RemoveAll(s.dir))
}

func (b *Backend) openSource(ctx context.Context, name string, files []StateFile) (*source, error) {
	s := &source{dir: b.fs.PathJoin(b.dir, name), from: b.fs.PathDir(files[0].Path), used: map[uint16]bool{}}
	if err := b.fs.MkdirAll(s.dir, 0o755); err != nil {
		return nil, b.ioError("cannot create", err)
	}
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		src, dst := b.fs.PathJoin(b.owner.dir, f.Path), b.fs.PathJoin(s.dir, b.fs.PathBase(f.Path))
		// SSTs and segments are immutable; Pebble may write to the others.
		put := copySynced
		first, last, isSegment := parseSegmentName(b.fs.PathBase(f.Path))
		if isSegment || strings.HasSuffix(f.Path, ".sst") {
			put = linkOrCopySynced
		}
		if err := put(b.fs, src, dst); err != nil {
			return nil, b.ioError("cannot restore "+f.Path+" into", err)
		}
		if isSegment {
			s.segments = append(s.segments, segment{first: first, last: last, name: b.fs.PathBase(dst), path: dst, size: f.Size, crc: f.CRC32C})
		}
	}
	err := s.open(b)
	if err != nil {
		return nil, errors.Join(errorf(diag.Data, "state files in %q have no readable table list", s.from).Wrap(err), s.close(b))
	}
	if err := s.catalog.checkHash(s.from); err != nil {
		return nil, errors.Join(err, s.close(b))
	}
	return s, nil
}

// open opens the files and reads the table list.
func (s *source) open(b *Backend) (err error) {
	if len(s.segments) > 0 {
		slices.SortFunc(s.segments, func(x, y segment) int { return cmp.Compare(x.first, y.first) })
		s.raw, err = readCatalog(b.fs, s.segments)
	} else if s.db, s.compactions, err = b.open(s.dir); err == nil {
		var v []byte
		var closer io.Closer
		if v, closer, err = s.db.Get(catalogKey); err == nil {
			s.raw = slices.Clone(v)
			err = closer.Close()
		}
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(s.raw, &s.catalog)
}

// checkRestored refuses to seal while state in the checkpoint has no table: it would be lost without a word.
func (b *Backend) checkRestored() error {
	for _, s := range b.sources {
		for _, e := range s.catalog.Tables {
			if !s.used[e.ID] {
				return errorf(diag.Config, "the checkpoint holds state of operator %s, table %s, that this plan does not use", e.Operator, e.Name).
					WithHint("start without the checkpoint, or with the query and the settings, such as table.exec.mini-batch.enabled, that wrote it")
			}
		}
	}
	if len(b.sources) > 0 {
		// An adopted Pebble may still have another table list in it; the next set corrects it.
		return b.closeSources()
	}
	return nil
}

// restoreTable opens a table with the rows that the sources have of it.
func (b *Backend) restoreTable(op OperatorID, o TableOptions) (*table, error) {
	if s := b.adopted; s != nil {
		e := s.entry(b.old(op), o.Name)
		if e != nil && s.db == nil && e.Stamped != (o.TTL > 0) {
			if err := b.disown(); err != nil {
				return nil, err
			}
			return b.restoreTable(op, o)
		}
		if e != nil {
			s.used[e.ID] = true
			if e.Stamped == (o.TTL > 0) {
				t := newTable(b, e.ID, op, o)
				b.tables[e.ID-1] = t
				if s.db == nil {
					defer t.x.fit()
					return t, t.replay(s, e)
				}
				return t, t.loadAll(b.db)
			}
			// TTL came or went: rewrite the rows under a new id.
			t := b.addTable(op, o)
			if err := t.importFrom(s, e); err != nil {
				return t, err
			}
			return t, b.dropRange(e.ID)
		}
		return b.addTable(op, o), nil
	}
	t := b.addTable(op, o)
	defer t.x.fit()
	for _, s := range b.sources {
		if e := s.entry(b.old(op), o.Name); e != nil {
			s.used[e.ID] = true
			take := t.importFrom
			if s.db == nil {
				take = t.replay
			}
			if err := take(s, e); err != nil {
				return t, err
			}
		}
	}
	return t, nil
}

// dropRange removes a table id from the backend's Pebble.
func (b *Backend) dropRange(id uint16) error {
	return b.guard(func() error {
		lo, hi := diskKey(nil, id, 0, nil)[:2], diskKey(nil, id+1, 0, nil)[:2]
		if err := b.db.DeleteRange(lo, hi, pebble.NoSync); err != nil {
			return err
		}
		return b.db.Flush() // without a WAL only flushed rows are in a checkpoint
	})
}

// loadAll counts the rows on disk and brings them into memory while the budget lasts.
func (t *table) loadAll(db *pebble.DB) error {
	it, err := tableIter(db, t.id)
	if err != nil {
		return t.readError(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			return t.readError(err)
		}
		hash, key := splitDiskKey(it.Key())
		if err := t.take(hash, key, v); err != nil {
			return err
		}
	}
	if err := it.Error(); err != nil {
		return t.readError(err)
	}
	return nil
}

// take counts a row that Pebble has, and keeps it in memory if there is room.
func (t *table) take(hash uint64, key, raw []byte) error {
	t.n++
	if t.b.budget.used.Load() > t.b.budget.limit/4*3 {
		t.absent++
		t.b.spilled.Store(true)
		t.filter.add(hash)
		return nil
	}
	stamp, v, err := t.decodeDisk(raw)
	if err != nil {
		return err
	}
	_, err = t.residentRow(hash, key, stamp, v)
	return err
}

// importFrom copies the owned rows of an old subtask's table into the backend's Pebble.
func (t *table) importFrom(s *source, e *catalogEntry) error {
	b := t.b
	b.cutMu.Lock()
	defer b.cutMu.Unlock()
	if b.db == nil {
		// Rows that were restored from the segments of another subtask may be in cold chunks and early segments.
		if err := b.toPebble(); err != nil {
			return b.fail(err)
		}
	}
	it, err := tableIter(s.db, e.ID)
	if err != nil {
		return t.readError(err)
	}
	defer it.Close()
	w, err := b.newSST()
	if err != nil {
		return b.ioError("cannot write rows to", err)
	}
	defer w.abandon()
	now := b.now()
	rows := 0
	for ok := it.First(); ok; {
		hash, key := splitDiskKey(it.Key())
		g := KeyGroup(hash)
		if !b.groups.has(g) {
			for g < KeyGroups && !b.groups.has(g) {
				g++
			}
			if g == KeyGroups {
				break
			}
			ok = it.SeekGE(diskKey(nil, e.ID, uint64(g)<<57, nil))
			continue
		}
		raw, err := it.ValueAndErr()
		if err != nil {
			return t.readError(err)
		}
		if e.Stamped != t.ttl {
			if t.ttl {
				raw = encodeDisk(nil, true, now, raw)
			} else if len(raw) >= 8 {
				raw = raw[8:]
			}
		}
		w.key = diskKey(w.key[:0], t.id, hash, key)
		if err := w.set(w.key, raw); err != nil {
			return b.ioError("cannot write rows to", err)
		}
		if err := t.take(hash, key, raw); err != nil {
			return err
		}
		rows++
		ok = it.Next()
	}
	if err := it.Error(); err != nil {
		return t.readError(err)
	}
	if rows == 0 {
		return nil
	}
	if err := w.ingest(); err != nil {
		return b.ioError("cannot write rows to", err)
	}
	return nil
}
