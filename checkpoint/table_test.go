package checkpoint

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/streamsql/streamsql/sql/diag"
)

var tableSeeds = flag.Int("table.seeds", 6, "seeds per case of TestTableAgainstMap")

func testOwner(t testing.TB) *Owner {
	t.Helper()
	o, err := Own(vfs.NewCrashableMem(), "/job")
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func addKey(k *Keys, key []byte) {
	k.Buf = append(k.Buf, key...)
	k.Ends = append(k.Ends, int32(len(k.Buf)))
	k.Hashes = append(k.Hashes, HashKey(key))
}

// model is what a table must look like: a Go map, with the time of the last change for TTL.
type model map[string]modelRow

type modelRow struct {
	value string
	at    int64
}

// tableFuzz drives a table and a model through the same random steps.
type tableFuzz struct {
	t     testing.TB
	r     *rand.Rand
	owner *Owner
	b     *Backend
	tb    Table
	m     model
	ttl   int64
	now   int64
	limit int64
	space int // number of distinct keys
	id    ID
	// durable is the model at the last finished seal, and its files.
	durable model
	files   []StateFile
	// async is a seal whose second part has not run.
	async    func(context.Context) ([]StateFile, error)
	asyncM   model
	spilled  bool
	keyBytes int
	small    bool // segments are joined and rebased all the time
	noCold   bool // rows that leave memory go to Pebble
}

func (f *tableFuzz) open() {
	f.t.Helper()
	var err error
	f.b, err = OpenBackend(f.owner, "agg-0", BackendOptions{Budget: NewMemoryBudget(f.limit), Now: func() int64 { return f.now }})
	if err != nil {
		f.t.Fatal(err)
	}
	if f.small {
		f.b.limits = segmentLimits{files: 4, join: 3, garbage: 1, rebase: 4 << 10}
	}
	f.b.limits.noCold = f.noCold
	if len(f.files) > 0 {
		c := &Checkpoint{ID: f.id, Subtasks: []Snapshot{{Files: f.files}}}
		if err := VerifyFiles(context.Background(), f.owner.fs, f.owner.dir, c); err != nil {
			f.t.Fatal(err)
		}
		if err := f.b.Restore(context.Background(), f.files); err != nil {
			f.t.Fatal(err)
		}
	}
	f.tb, err = f.b.Table("agg", TableOptions{Name: "acc", Format: "v1", TTL: f.ttl})
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *tableFuzz) key() []byte {
	i := f.r.IntN(f.space)
	k := fmt.Appendf(nil, "%c%d", 'a'+i%3, i)
	if f.keyBytes > 0 && i%7 == 0 {
		k = append(k, bytes.Repeat([]byte{'k'}, i%f.keyBytes)...)
	}
	return k
}

func (f *tableFuzz) value() []byte {
	n := f.r.IntN(40)
	if f.r.IntN(50) == 0 {
		n = f.r.IntN(6000)
	}
	v := make([]byte, n)
	randomBytes(f.r, v)
	return v
}

// randomBytes fills v.
func randomBytes(r *rand.Rand, v []byte) {
	var word [8]byte
	for len(v) > 0 {
		binary.LittleEndian.PutUint64(word[:], r.Uint64())
		v = v[copy(v, word[:]):]
	}
}

func (f *tableFuzz) get(k string) (modelRow, bool) {
	row, ok := f.m[k]
	if ok && f.ttl > 0 && row.at+f.ttl <= f.now {
		return modelRow{}, false
	}
	return row, ok
}

// batch is what an operator does: probe, then read, change, insert and delete through Refs, with equal keys in one
// batch.
func (f *tableFuzz) batch() {
	var keys Keys
	for range 1 + f.r.IntN(60) {
		addKey(&keys, f.key())
	}
	refs := make([]Ref, keys.Len())
	if err := f.tb.Probe(&keys, refs); err != nil {
		f.t.Fatal(err)
	}
	byKey := map[string]Ref{}
	for i := range refs {
		k := string(keys.Key(i))
		row, ok := f.get(k)
		if r, seen := byKey[k]; seen {
			refs[i] = r // changed earlier in this batch
		} else if (refs[i] != NoRow) != ok {
			f.t.Fatalf("probe %q: found %v, want %v", k, refs[i] != NoRow, ok)
		}
		switch f.r.IntN(7) {
		case 6: // make longer
			if refs[i] != NoRow {
				more := f.value()
				end, err := f.tb.Extend(refs[i], len(more), f.r.IntN(2000))
				if err != nil || len(end) != len(more) {
					f.t.Fatalf("extend %q by %d: %d bytes, %v", k, len(more), len(end), err)
				}
				copy(end, more)
				f.m[k] = modelRow{row.value + string(more), f.now}
			}
		case 0, 1: // insert or update in place
			if refs[i] == NoRow {
				r, created, err := f.tb.Insert(&keys, i, 8)
				if err != nil {
					f.t.Fatal(err)
				}
				if !created {
					f.t.Fatalf("insert %q: not created", k)
				}
				if v := f.tb.Value(r); !bytes.Equal(v, make([]byte, 8)) {
					f.t.Fatalf("insert %q: value %x is not zero", k, v)
				}
				if r2, again, err := f.tb.Insert(&keys, i, 8); r2 != r || again || err != nil {
					f.t.Fatalf("second insert %q: %v %v %v", k, r2, again, err)
				}
				refs[i] = r
				row.value = string(make([]byte, 8))
			}
			v := f.tb.Mutable(refs[i])
			if string(v) != row.value {
				f.t.Fatalf("mutable %q = %x, want %x", k, v, row.value)
			}
			if len(v) >= 8 {
				binary.LittleEndian.PutUint64(v, f.r.Uint64())
			}
			f.m[k] = modelRow{string(v), f.now}
		case 2: // replace
			if refs[i] != NoRow {
				v := f.value()
				f.tb.Set(refs[i], v)
				f.m[k] = modelRow{string(v), f.now}
			}
		case 3:
			if refs[i] != NoRow {
				f.tb.Delete(refs[i])
				delete(f.m, k)
				refs[i] = NoRow
			}
		default:
			if refs[i] != NoRow {
				if v := f.tb.Value(refs[i]); string(v) != row.value {
					f.t.Fatalf("value %q = %x, want %x", k, v, row.value)
				}
			}
		}
		byKey[k] = refs[i]
	}
}

func (f *tableFuzz) single() {
	k := f.key()
	switch f.r.IntN(5) {
	case 4:
		r, err := f.tb.Find(HashKey(k), k)
		want, ok := f.get(string(k))
		if err != nil || (r != NoRow) != ok {
			f.t.Fatalf("find %q = %v %v, want a row: %v", k, r, err, ok)
		}
		if ok && string(f.tb.Value(r)) != want.value {
			f.t.Fatalf("find %q = %x, want %x", k, f.tb.Value(r), want.value)
		}
	case 0:
		v := f.value()
		if err := f.tb.Put(k, v); err != nil {
			f.t.Fatal(err)
		}
		f.m[string(k)] = modelRow{string(v), f.now}
	case 1:
		if err := f.tb.Remove(k); err != nil {
			f.t.Fatal(err)
		}
		delete(f.m, string(k))
	default:
		v, ok, err := f.tb.Get(k)
		want, wantOK := f.get(string(k))
		if err != nil || ok != wantOK || string(v) != want.value {
			f.t.Fatalf("get %q = %x %v %v, want %x %v", k, v, ok, err, want.value, wantOK)
		}
	}
}

func (f *tableFuzz) scan() {
	prefix := ""
	if f.r.IntN(2) == 0 {
		prefix = string(f.key()[:1+f.r.IntN(2)])
	}
	var want []string
	for k := range f.m {
		if row, ok := f.get(k); ok && strings.HasPrefix(k, prefix) {
			want = append(want, k+"="+row.value)
		}
	}
	slices.SortFunc(want, func(a, b string) int {
		ka, _, _ := strings.Cut(a, "=")
		kb, _, _ := strings.Cut(b, "=")
		return strings.Compare(ka, kb)
	})
	var got []string
	if err := f.tb.Scan([]byte(prefix), func(k, v []byte) bool {
		got = append(got, string(k)+"="+string(v))
		return true
	}); err != nil {
		f.t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		f.t.Fatalf("scan %q: %d rows, want %d", prefix, len(got), len(want))
	}
	got = got[:0]
	if err := f.tb.Visit(func(k, v []byte) bool {
		if strings.HasPrefix(string(k), prefix) {
			got = append(got, string(k)+"="+string(v))
		}
		return true
	}); err != nil {
		f.t.Fatal(err)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		f.t.Fatalf("visit %q: %d rows, want %d", prefix, len(got), len(want))
	}
	if n := f.tb.Len(); f.ttl == 0 && n != int64(len(f.m)) {
		f.t.Fatalf("len %d, want %d", n, len(f.m))
	}
}

func (f *tableFuzz) clone() model {
	c := model{}
	for k, v := range f.m {
		c[k] = v
	}
	return c
}

func (f *tableFuzz) seal() {
	if f.async != nil {
		if _, err := f.b.Seal(f.id + 1); err != ErrSealing {
			f.t.Fatalf("second seal: %v, want %v", err, ErrSealing)
		}
		f.finish()
	}
	f.id++
	async, err := f.b.Seal(f.id)
	if err != nil {
		f.t.Fatal(err)
	}
	f.async, f.asyncM = async, f.clone()
	if f.r.IntN(2) == 0 {
		f.finish()
	}
}

func (f *tableFuzz) finish() {
	if f.async == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	giveUp := f.r.IntN(5) == 0
	if giveUp {
		cancel()
	}
	files, err := f.async(ctx)
	f.async = nil
	if giveUp {
		if err == nil && len(files) > 0 {
			f.t.Fatal("a cancelled snapshot was reported complete")
		}
		return
	}
	if err != nil {
		f.t.Fatal(err)
	}
	f.durable, f.files = f.asyncM, files
	keepOnly(f.t, f.owner, f.id)
}

// keepOnly removes the checkpoints before one, so that a crash has less to copy.
func keepOnly(t testing.TB, owner *Owner, id ID) {
	t.Helper()
	all, err := listIDs(owner.fs, owner.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, old := range all {
		if old < id {
			if err := owner.fs.RemoveAll(owner.fs.PathJoin(owner.dir, chkName(old))); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// crash loses everything but the newest finished seal, keeping what was synced.
func (f *tableFuzz) crash() {
	mem := vfs.Root(f.owner.fs).(*vfs.MemFS).CrashClone(vfs.CrashCloneCfg{})
	f.async = nil
	f.b.Close()
	f.owner.Close()
	var err error
	if f.owner, err = Own(mem, "/job"); err != nil {
		f.t.Fatal(err)
	}
	f.m = model{}
	for k, v := range f.durable {
		f.m[k] = v
	}
	f.open()
}

func (f *tableFuzz) step() {
	switch n := f.r.IntN(100); {
	case n < 70:
		f.batch()
	case n < 85:
		f.single()
	case n < 90:
		f.scan()
	case n < 96:
		f.seal()
	case n < 98:
		f.finish()
	case n == 98:
		f.crash()
	default:
		f.now += int64(f.r.IntN(40))
	}
	if tb := f.tb.(*table); tb.absent > 0 {
		f.spilled = true
	}
}

// TestTableAgainstMap compares a table with a Go map over random batches, single-key calls, scans, seals, given-up
// seals, crashes and restores: all in memory, with most rows spilled, and with TTL.
func TestTableAgainstMap(t *testing.T) {
	seeds, part := *tableSeeds, 1
	if testing.Short() {
		seeds, part = min(seeds, 3), 4
	}
	for _, c := range []struct {
		name         string
		limit        int64
		space, steps int
		ttl          int64
		keyBytes     int
	}{
		{name: "resident", limit: 1 << 30, space: 2000, steps: 1500},
		{name: "spilled", limit: 64 << 10, space: 4000, steps: 1500, keyBytes: 40},
		{name: "tiny", limit: 1 << 10, space: 500, steps: 400},
		{name: "ttl resident", limit: 1 << 30, space: 1000, steps: 1500, ttl: 60},
		{name: "cold", limit: 256 << 10, space: 4000, steps: 1500, keyBytes: 40},
		{name: "ttl cold", limit: 192 << 10, space: 4000, steps: 1500, ttl: 200},
		{name: "ttl spilled", limit: 64 << 10, space: 4000, steps: 1500, ttl: 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			spilled := false
			for seed := range seeds {
				f := &tableFuzz{t: t, r: rand.New(rand.NewPCG(uint64(seed), 7)), owner: testOwner(t), m: model{}, durable: model{},
					limit: c.limit, space: c.space, ttl: c.ttl, keyBytes: c.keyBytes, small: seed%2 == 1, noCold: seed%3 == 2}
				f.open()
				for range c.steps / part {
					f.step()
					if t.Failed() {
						t.Fatalf("seed %d", seed)
					}
				}
				f.finish()
				f.crash()
				f.scan()
				budget := f.b.budget
				if err := f.b.Close(); err != nil {
					t.Fatal(err)
				}
				if n := budget.Used(); n != 0 {
					t.Fatalf("seed %d: %d bytes of the budget are not given back", seed, n)
				}
				spilled = spilled || f.spilled
			}
			if want := c.limit < 1<<20; spilled != want {
				t.Fatalf("rows were evicted: %v, want %v", spilled, want)
			}
		})
	}
}

func TestTableRescale(t *testing.T) {
	// Goal: 1 → 3 → 2 subtasks keep every row exactly once, each at its owner. Method: fill, seal, restore.
	// Rows are in memory, on disk, and change between the two.
	for _, limits := range [][4]int64{{1 << 30, 1 << 30, 1 << 30, 1 << 30}, {16 << 10, 16 << 10, 16 << 10, 16 << 10}, {1 << 30, 16 << 10, 1 << 30, 16 << 10}, {16 << 10, 1 << 30, 1 << 30, 16 << 10}} {
		owner := testOwner(t)
		want := map[string]string{}
		var files []StateFile
		id := ID(0)
		for round, p := range []int{1, 3, 2, 2} {
			var next []StateFile
			got := map[string]string{}
			id++
			for i := range p {
				b, err := OpenBackend(owner, fmt.Sprintf("join-%d", i), BackendOptions{Budget: NewMemoryBudget(limits[round]),
					OwnsKeyGroup: func(g int) bool { return SubtaskOf(g, p) == i }})
				if err != nil {
					t.Fatal(err)
				}
				if err := b.Restore(context.Background(), files); err != nil {
					t.Fatal(err)
				}
				var tabs []Table
				for _, name := range []string{"left", "right"} {
					tb, err := b.Table("join", TableOptions{Name: name, Format: "f"})
					if err != nil {
						t.Fatal(err)
					}
					tabs = append(tabs, tb)
					n := 0
					if err := tb.Scan(nil, func(k, v []byte) bool {
						if g := KeyGroup(HashKey(k)); SubtaskOf(g, p) != i {
							t.Errorf("round %d: key %q of group %d at subtask %d", round, k, g, i)
						}
						if _, dup := got[name+string(k)]; dup {
							t.Errorf("round %d: key %q at two subtasks", round, k)
						}
						got[name+string(k)] = string(v)
						n++
						return true
					}); err != nil {
						t.Fatal(err)
					}
					if tb.Len() != int64(n) {
						t.Errorf("len %d, %d rows", tb.Len(), n)
					}
				}
				for j := range 1500 {
					k := fmt.Appendf(nil, "k%d", (j+round*750)%3000)
					if SubtaskOf(KeyGroup(HashKey(k)), p) != i {
						continue
					}
					for s, tb := range tabs {
						name, v := []string{"left", "right"}[s], fmt.Sprintf("%d/%d", round, j)
						if j%5 == 0 {
							if err := tb.Remove(k); err != nil {
								t.Fatal(err)
							}
							got[name+string(k)] = ""
							continue
						}
						if err := tb.Put(k, []byte(v)); err != nil {
							t.Fatal(err)
						}
						got[name+string(k)] = v
					}
				}
				async, err := b.Seal(id)
				if err != nil {
					t.Fatal(err)
				}
				fs, err := async(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				next = append(next, fs...)
				if err := b.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if round > 0 {
				for k := range want {
					if _, ok := got[k]; !ok {
						t.Fatalf("round %d: row %q lost", round, k)
					}
				}
			}
			for k, v := range got {
				if v == "" {
					delete(got, k)
				}
			}
			want, files = got, next
		}
	}
}

func TestTableFormatAndLeftoverState(t *testing.T) {
	owner := testOwner(t)
	b, _ := OpenBackend(owner, "a-0", BackendOptions{})
	for _, name := range []string{"x", "y"} {
		tb, err := b.Table("op1", TableOptions{Name: name, Format: "bigint:v1"})
		if err != nil {
			t.Fatal(err)
		}
		if err := tb.Put([]byte("k"), []byte("v")); err != nil {
			t.Fatal(err)
		}
	}
	async, err := b.Seal(1)
	if err != nil {
		t.Fatal(err)
	}
	files, err := async(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	b.Close()

	b, _ = OpenBackend(owner, "a-0", BackendOptions{})
	defer b.Close()
	if err := b.Restore(context.Background(), files); err != nil {
		t.Fatal(err)
	}
	_, err = b.Table("op1", TableOptions{Name: "x", Format: "string:v1"})
	if diag.CodeOf(err) != diag.Config || !strings.Contains(err.Error(), `operator op1, table x, has format "bigint:v1"`) {
		t.Fatalf("another format: %v", err)
	}
	// TTL switched on: rows are kept and rewritten.
	tb, err := b.Table("op1", TableOptions{Name: "x", Format: "bigint:v1", TTL: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if v, ok, err := tb.Get([]byte("k")); !ok || string(v) != "v" || err != nil {
		t.Fatalf("after TTL was added: %q %v %v", v, ok, err)
	}
	if _, err := b.Seal(2); diag.CodeOf(err) != diag.Config || !strings.Contains(err.Error(), "operator op1, table y") {
		t.Fatalf("unused state: %v", err)
	}
	if _, err := b.Table("op1", TableOptions{Name: "y", Format: "bigint:v1"}); err != nil {
		t.Fatal(err)
	}
	if async, err = b.Seal(2); err != nil {
		t.Fatal(err)
	}
	if files, err = async(context.Background()); err != nil {
		t.Fatal(err)
	}
	// The rewritten table restores once more, and nothing of its old id is left.
	b2, _ := OpenBackend(owner, "b-0", BackendOptions{})
	defer b2.Close()
	if err := b2.Restore(context.Background(), files); err != nil {
		t.Fatal(err)
	}
	for name, ttl := range map[string]int64{"x": 1000, "y": 0} {
		tb, err := b2.Table("op1", TableOptions{Name: name, Format: "bigint:v1", TTL: ttl})
		if err != nil {
			t.Fatal(err)
		}
		if v, ok, err := tb.Get([]byte("k")); !ok || string(v) != "v" || err != nil || tb.Len() != 1 {
			t.Fatalf("%s restored: %q %v %v", name, v, ok, err)
		}
	}
}
