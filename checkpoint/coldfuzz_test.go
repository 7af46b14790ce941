package checkpoint

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

var coldSeeds = flag.Int("cold.seeds", 4, "seeds of TestColdAgainstMaps")

// coldFuzz drives the tables of several backends and maps through the same steps.
type coldFuzz struct {
	t        *testing.T
	r        *rand.Rand
	owner    *Owner
	budget   *MemoryBudget
	backends []*Backend
	tables   [][]Table // by backend
	options  []TableOptions
	m        []map[string]string
	durable  []map[string]string
	files    []StateFile
	id       ID
	space    int
	limit    int64 // at least
	noCold   bool  // some backends have no cold chunks
	now      int64
	async    []func(context.Context) ([]StateFile, error)
	asyncM   []map[string]string
	cold     int // steps with rows in cold chunks and in Pebble
	pebble   int
}

func (f *coldFuzz) check(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func cloneMaps(m []map[string]string) (c []map[string]string) {
	for _, x := range m {
		y := make(map[string]string, len(x))
		for k, v := range x {
			y[k] = v
		}
		c = append(c, y)
	}
	return c
}

func (f *coldFuzz) open() {
	p := 1 + f.r.IntN(3)
	f.budget = NewMemoryBudget(f.limit << f.r.IntN(3))
	f.backends, f.tables = nil, nil
	order := f.r.Perm(len(f.options))
	for i := range p {
		b, err := OpenBackend(f.owner, fmt.Sprintf("join-%d", i), BackendOptions{Budget: f.budget, Now: func() int64 { return f.now },
			OwnsKeyGroup: func(g int) bool { return SubtaskOf(g, p) == i }})
		f.check(err)
		b.limits = segmentLimits{files: 4 + f.r.IntN(60), join: 3, garbage: int64(1) << f.r.IntN(20), rebase: 1 << (10 + f.r.IntN(8))}
		b.limits.noCold = f.noCold && f.r.IntN(4) == 0
		f.check(b.Restore(context.Background(), f.files))
		tabs := make([]Table, len(f.options))
		for _, j := range order {
			tabs[j], err = b.Table("join", f.options[j])
			f.check(err)
		}
		f.backends, f.tables = append(f.backends, b), append(f.tables, tabs)
	}
}

func (f *coldFuzz) batch() {
	bi, ti := f.r.IntN(len(f.backends)), f.r.IntN(len(f.options))
	tb, m, once := f.tables[bi][ti], f.m[ti], f.options[ti].WriteOnce
	var keys Keys
	base := f.r.IntN(f.space)
	for range 1 + f.r.IntN(200) {
		i := f.r.IntN(f.space)
		if f.r.IntN(3) > 0 {
			i = (base + f.r.IntN(300)) % f.space
		}
		k := binary.BigEndian.AppendUint64(nil, uint64(i))
		if SubtaskOf(KeyGroup(HashKey(k)), len(f.backends)) == bi {
			addKey(&keys, k)
		}
	}
	refs := make([]Ref, keys.Len())
	f.check(tb.Probe(&keys, refs))
	seen := map[string]bool{}
	write := f.r.IntN(4) > 0
	for i, r := range refs {
		k := string(keys.Key(i))
		if seen[k] {
			continue
		}
		seen[k] = true
		want, ok := m[k]
		if (r != NoRow) != ok {
			f.t.Fatalf("table %d, key %x: found %v, want %v", ti, k, r != NoRow, ok)
		}
		if ok && string(tb.Value(r)) != want {
			f.t.Fatalf("table %d, key %x: %x, want %x", ti, k, tb.Value(r), want)
		}
		if !write {
			continue
		}
		n := f.r.IntN(400)
		if f.r.IntN(300) == 0 {
			n = f.r.IntN(9000)
		}
		v := make([]byte, n)
		randomBytes(f.r, v)
		switch {
		case !ok:
			r, _, err := tb.Insert(&keys, i, 8)
			f.check(err)
			tb.Set(r, v)
			m[k] = string(v)
		case once:
		case f.r.IntN(4) == 0:
			tb.Delete(r)
			delete(m, k)
		case f.r.IntN(3) == 0:
			tb.Set(r, v)
			m[k] = string(v)
		}
	}
	if t := tb.(*table); t.absent > 0 {
		if t.b.db != nil {
			f.pebble++
		} else {
			f.cold++
		}
	}
}

func (f *coldFuzz) scan() {
	for ti, m := range f.m {
		n, rows := int64(0), 0
		for bi := range f.backends {
			tb := f.tables[bi][ti]
			n += tb.Len()
			f.check(tb.Visit(func(k, v []byte) bool {
				rows++
				if want, ok := m[string(k)]; !ok || want != string(v) {
					f.t.Fatalf("table %d: visit has %x = %x, want %x %v", ti, k, v, want, ok)
				}
				return true
			}))
		}
		if rows != len(m) || n != int64(len(m)) {
			f.t.Fatalf("table %d: %d rows, len %d, want %d", ti, rows, n, len(m))
		}
	}
}

func (f *coldFuzz) seal(last bool) {
	f.finish()
	f.id++
	for _, b := range f.backends {
		take := b.Seal
		if last {
			take = b.SealLast
		}
		a, err := take(f.id)
		f.check(err)
		f.async = append(f.async, a)
	}
	f.asyncM = cloneMaps(f.m)
	if last || f.r.IntN(2) == 0 {
		f.finish()
	}
}

func (f *coldFuzz) finish() {
	if f.async == nil {
		return
	}
	var files []StateFile
	complete := true
	for _, a := range f.async {
		ctx, cancel := context.WithCancel(context.Background())
		giveUp := f.r.IntN(8) == 0
		if giveUp {
			cancel()
		}
		got, err := a(ctx)
		cancel()
		if giveUp {
			complete = false
			continue
		}
		f.check(err)
		files = append(files, got...)
	}
	f.async = nil
	if complete {
		f.files, f.durable = files, f.asyncM
		keepOnly(f.t, f.owner, f.id)
	}
}

func (f *coldFuzz) crash() {
	fs := vfs.Root(f.owner.fs).(*vfs.MemFS).CrashClone(vfs.CrashCloneCfg{})
	f.async = nil
	for _, b := range f.backends {
		f.check(b.Close())
	}
	if n := f.budget.Used(); n != 0 {
		f.t.Fatalf("%d bytes of the budget are not given back", n)
	}
	f.owner.Close()
	var err error
	f.owner, err = Own(fs, "/job")
	f.check(err)
	f.m = cloneMaps(f.durable)
	f.open()
	f.scan()
}

// TestColdAgainstMaps compares several tables in several backends of one budget with Go maps over batches, seals, given-up seals,
// last seals, crashes and restores at another parallelism.
func TestColdAgainstMaps(t *testing.T) {
	seeds, steps := *coldSeeds, 1500
	if testing.Short() {
		seeds, steps = min(seeds, 1), 600
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			f := &coldFuzz{t: t, r: rand.New(rand.NewPCG(uint64(seed), 11)), owner: testOwner(t), now: 1,
				space: 2500, limit: 600 << 10,
				options: []TableOptions{{Name: "a", Format: "v"}, {Name: "b", Format: "v", WriteOnce: true}, {Name: "c", Format: "v", TTL: 1 << 40}, {Name: "d", Format: "v"}}}
			if seed%3 == 2 {
				f.space, f.limit, f.noCold = 2000<<(seed%4), 128<<10, true
			}
			for range f.options {
				f.m, f.durable = append(f.m, map[string]string{}), append(f.durable, map[string]string{})
			}
			f.open()
			for range steps {
				switch n := f.r.IntN(1000); {
				case n < 930:
					f.batch()
				case n < 935:
					f.scan()
				case n < 980:
					f.seal(false)
				case n < 990:
					f.finish()
				case n < 993:
					f.seal(true)
					f.crash()
				case n < 997:
					f.crash()
				}
			}
			f.seal(true)
			f.crash()
			t.Logf("%d steps with cold rows, %d with rows in Pebble", f.cold, f.pebble)
			for _, b := range f.backends {
				f.check(b.Close())
			}
		})
	}
}
