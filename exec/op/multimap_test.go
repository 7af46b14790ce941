package op

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/tests/short"
)

var multimapSeeds = flag.Int("multimap.seeds", 1, "seeds per case of TestMultimapAgainstMap")

// stateHarness is a subtask whose state goes through checkpoints: seal, close, restore.
type stateHarness struct {
	t        testing.TB
	owner    *checkpoint.Owner
	back     *checkpoint.Backend
	budget   int64
	now      int64
	id       checkpoint.ID
	restored [][]byte
	files    []checkpoint.StateFile
}

func (s *stateHarness) ID() checkpoint.SubtaskID { return checkpoint.SubtaskID{Operator: "op"} }
func (s *stateHarness) Parallelism() int         { return 1 }
func (s *stateHarness) Table(o checkpoint.TableOptions) (checkpoint.Table, error) {
	return s.back.Table("op", o)
}
func (s *stateHarness) Restored() [][]byte           { return s.restored }
func (s *stateHarness) OwnsKeyGroup(int) bool        { return true }
func (s *stateHarness) Now() int64                   { return s.now }
func (s *stateHarness) Log() *slog.Logger            { return slog.New(slog.DiscardHandler) }
func (s *stateHarness) Counter(string) *exec.Counter { return &exec.Counter{} }

func newStateHarness(t testing.TB, budget int64) *stateHarness {
	t.Helper()
	owner, err := checkpoint.Own(vfs.NewCrashableMem(), "/job")
	if err != nil {
		t.Fatal(err)
	}
	s := &stateHarness{t: t, owner: owner, budget: budget, now: 1_700_000_000_000}
	s.open()
	t.Cleanup(func() { s.back.Close(); owner.Close() })
	return s
}

func (s *stateHarness) open() {
	s.t.Helper()
	var err error
	s.back, err = checkpoint.OpenBackend(s.owner, "op-0", checkpoint.BackendOptions{
		Budget: checkpoint.NewMemoryBudget(s.budget), Now: func() int64 { return s.now },
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if len(s.files) > 0 {
		if err := s.back.Restore(context.Background(), s.files); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *stateHarness) seal() {
	s.t.Helper()
	s.id++
	async, err := s.back.Seal(s.id)
	if err != nil {
		s.t.Fatal(err)
	}
	if s.files, err = async(context.Background()); err != nil {
		s.t.Fatal(err)
	}
}

// restart closes the backend and opens the state of the last seal.
func (s *stateHarness) restart() {
	s.t.Helper()
	if err := s.back.Close(); err != nil {
		s.t.Fatal(err)
	}
	s.open()
}

type modelEntry struct {
	val string
	at  int64
}

type mapModel map[string]map[string]modelEntry

func (m mapModel) clone() mapModel {
	c := mapModel{}
	for k, es := range m {
		c[k] = map[string]modelEntry{}
		for s, e := range es {
			c[k][s] = e
		}
	}
	return c
}

// multimapFuzz drives a multimap and a model of Go maps through the same random steps.
type multimapFuzz struct {
	t     testing.TB
	r     *rand.Rand
	s     *stateHarness
	m     *multimap
	ttl   int64
	model mapModel
	saved mapModel
	subs  int // number of distinct sub-keys
	long  int // bytes all sub-keys begin with
	nkeys int
	vals  int // longest usual value
	keys  checkpoint.Keys
	names []string
}

func (f *multimapFuzz) check(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *multimapFuzz) open() {
	f.t.Helper()
	var err error
	f.m, err = openMultimap(f.s, "m", "test", f.ttl)
	f.check(err)
}

func (f *multimapFuzz) sub() []byte {
	i := f.r.IntN(f.subs)
	b := fmt.Appendf(bytes.Repeat([]byte{'p'}, f.long), "%06d", i)
	if f.long == 0 && i%5 == 0 {
		b = append(b, bytes.Repeat([]byte{'x'}, i%300)...)
	}
	if i == 0 {
		return nil
	}
	return b
}

func (f *multimapFuzz) val() []byte {
	n := f.r.IntN(f.vals)
	if f.r.IntN(100) == 0 {
		n = f.r.IntN(9000)
		if f.r.IntN(20) == 0 {
			n *= 20 // pages with wide offsets
		}
	}
	v := make([]byte, n)
	for i := range v {
		v[i] = byte(f.r.Uint32())
	}
	return v
}

// entries are the live entries of a key, sorted.
func (f *multimapFuzz) entries(key string) (subs []string) {
	for s, e := range f.model[key] {
		if f.ttl == 0 || e.at+f.ttl > f.s.now {
			subs = append(subs, s)
		}
	}
	sort.Strings(subs)
	return subs
}

func (f *multimapFuzz) batch() {
	f.t.Helper()
	f.keys.Reset()
	f.names = f.names[:0]
	for range 1 + f.r.IntN(40) {
		k := fmt.Sprintf("key%d", f.r.IntN(f.nkeys))
		f.names = append(f.names, k)
		f.keys.Buf = append(f.keys.Buf, k...)
		f.keys.Ends = append(f.keys.Ends, int32(len(f.keys.Buf)))
		f.keys.Hashes = append(f.keys.Hashes, checkpoint.HashKey([]byte(k)))
	}
	f.check(f.m.probe(&f.keys))
	for i, k := range f.names {
		for range 1 + f.r.IntN(30) {
			f.change(f.m.at(i), k)
		}
		f.read(f.m.at(i), k)
	}
	f.check(f.m.done())
}

func (f *multimapFuzz) change(b bucket, k string) {
	f.t.Helper()
	es := f.model[k]
	if es == nil {
		es = map[string]modelEntry{}
		f.model[k] = es
	}
	switch f.r.IntN(10) {
	case 0, 1, 2, 3:
		sub, val := f.sub(), f.val()
		if old, ok := es[string(sub)]; ok && f.r.IntN(2) == 0 {
			val = bytes.Repeat([]byte{'r'}, len(old.val)) // the same size: in place
		}
		if f.r.IntN(3) == 0 {
			f.add(b, es, sub, val)
			return
		}
		f.check(b.put(sub, val))
		es[string(sub)] = modelEntry{string(val), f.s.now}
	case 4, 5, 6:
		sub := f.sub()
		e, want := es[string(sub)]
		want = want && (f.ttl == 0 || e.at+f.ttl > f.s.now)
		got, err := b.remove(sub)
		f.check(err)
		if got != want {
			f.t.Fatalf("remove %q of %s: %v, want %v", sub, k, got, want)
		}
		delete(es, string(sub))
	case 7: // remove from an end, as buffers ordered by time do
		if sub, _, ok, err := b.first(); ok {
			f.check(err)
			sub = bytes.Clone(sub)
			_, err = b.remove(sub)
			f.check(err)
			delete(es, string(sub))
		}
	case 8:
		sub := f.sub()
		val, ok, err := b.get(sub)
		f.check(err)
		e, want := es[string(sub)]
		want = want && (f.ttl == 0 || e.at+f.ttl > f.s.now)
		if ok != want || ok && string(val) != e.val {
			f.t.Fatalf("get %q of %s: %v %d bytes, want %v %d", sub, k, ok, len(val), want, len(e.val))
		}
	case 9:
		if f.r.IntN(30) == 0 {
			to := f.sub()
			if f.r.IntN(4) > 0 { // most of the time a little
				if sub, _, ok, err := b.first(); ok && err == nil {
					to = append(bytes.Clone(sub), 'z')
				}
			}
			f.check(b.removeBelow(to))
			for s := range es {
				if s < string(to) {
					delete(es, s)
				}
			}
		}
		if f.r.IntN(60) == 0 {
			f.check(b.clear())
			clear(es)
		}
	}
}

// add puts an entry where there is none.
func (f *multimapFuzz) add(b bucket, es map[string]modelEntry, sub, val []byte) {
	f.t.Helper()
	e, there := es[string(sub)]
	there = there && (f.ttl == 0 || e.at+f.ttl > f.s.now)
	old, added, err := b.add(sub, val)
	f.check(err)
	if added == there || there && string(old) != e.val {
		f.t.Fatalf("add %q: %v %d bytes, want %v %d", sub, added, len(old), !there, len(e.val))
	}
	if added {
		es[string(sub)] = modelEntry{string(val), f.s.now}
	}
}

func (f *multimapFuzz) read(b bucket, k string) {
	f.t.Helper()
	want := f.entries(k)
	n, err := b.len()
	f.check(err)
	if n != len(want) {
		f.t.Fatalf("%s has %d entries, want %d", k, n, len(want))
	}
	from := f.sub()
	var got []string
	visit := func(sub, val []byte) bool {
		if e := f.model[k][string(sub)]; e.val != string(val) {
			f.t.Fatalf("value of %q in %s: %d bytes, want %d", sub, k, len(val), len(e.val))
		}
		got = append(got, string(sub))
		return true
	}
	f.check(b.ascend(from, visit))
	i, _ := slices.BinarySearch(want, string(from))
	if from == nil {
		i = 0
	}
	if !slices.Equal(got, want[i:]) {
		f.t.Fatalf("%s from %q up: %q, want %q", k, from, got, want[i:])
	}
	got = nil
	f.check(b.descend(from, visit))
	if from != nil {
		want = want[:i]
	}
	slices.Reverse(want)
	if !slices.Equal(got, want) {
		f.t.Fatalf("%s from %q down: %q, want %q", k, from, got, want)
	}
}

func (f *multimapFuzz) scan() {
	f.t.Helper()
	got := map[string]string{}
	f.check(f.m.scan(func(key, sub, val []byte) bool {
		id := string(key) + "/" + string(sub)
		if _, ok := got[id]; ok {
			f.t.Fatalf("scan shows %s twice", id)
		}
		got[id] = string(val)
		return true
	}))
	n := 0
	for k := range f.model {
		for _, s := range f.entries(k) {
			n++
			if v, ok := got[k+"/"+s]; !ok || v != f.model[k][s].val {
				f.t.Fatalf("scan of %s/%s: %v %d bytes, want %d", k, s, ok, len(v), len(f.model[k][s].val))
			}
		}
	}
	if n != len(got) {
		f.t.Fatalf("scan shows %d entries, want %d", len(got), n)
	}
}

// empty removes everything and looks at the tables.
func (f *multimapFuzz) empty() {
	f.t.Helper()
	for k := range f.model {
		f.keys.Reset()
		f.keys.Buf = append(f.keys.Buf, k...)
		f.keys.Ends = append(f.keys.Ends, int32(len(k)))
		f.keys.Hashes = append(f.keys.Hashes, checkpoint.HashKey([]byte(k)))
		f.check(f.m.probe(&f.keys))
		subs := f.entries(k)
		f.r.Shuffle(len(subs), func(i, j int) { subs[i], subs[j] = subs[j], subs[i] })
		for _, s := range subs {
			if ok, err := f.m.at(0).remove([]byte(s)); err != nil || !ok {
				f.t.Fatalf("remove %q: %v %v", s, ok, err)
			}
		}
		f.check(f.m.done())
		f.model[k] = nil
	}
	f.scan()
	if f.ttl == 0 && f.m.roots.Len()+f.m.nodes.Len() != 0 {
		f.t.Fatalf("%d roots, %d nodes are left of nothing", f.m.roots.Len(), f.m.nodes.Len())
	}
}

func TestMultimapAgainstMap(t *testing.T) {
	cases := []struct {
		name          string
		budget        int64
		ttl, tick     int64 // a batch every tick ms at most
		keys          int
		subs, vals    int
		long, batches int
	}{
		{"small", 64 << 20, 0, 30, 12, 10, 30, 0, 200},
		{"large", 64 << 20, 0, 30, 12, 4000, 60, 0, 200},
		{"deep", 64 << 20, 0, 30, 2, 6000, 60, 150, 200},
		{"spilled", 64 << 10, 0, 30, 12, 4000, 200, 0, 100},
		{"spilled small values", 64 << 10, 0, 30, 12, 9000, 3, 0, 100},
		{"spilled deep", 64 << 10, 0, 30, 2, 6000, 60, 150, 100},
		{"ttl", 64 << 20, 2000, 30, 12, 1000, 60, 0, 200},
		{"short ttl", 64 << 20, 60, 60, 3, 9000, 200, 0, 200},
		{"short ttl deep", 64 << 20, 60, 60, 1, 20000, 200, 150, 200},
		{"ttl spilled", 64 << 10, 1000, 30, 12, 3000, 100, 0, 100},
	}
	for _, c := range cases {
		c.batches /= short.Or(1, 3)
		for seed := range uint64(*multimapSeeds) {
			t.Run(fmt.Sprintf("%s/%d", c.name, seed), func(t *testing.T) {
				f := &multimapFuzz{t: t, r: rand.New(rand.NewPCG(seed, 7)), s: newStateHarness(t, c.budget), ttl: c.ttl,
					subs: c.subs, vals: c.vals, long: c.long, nkeys: c.keys, model: mapModel{}, saved: mapModel{}}
				f.open()
				for i := range c.batches {
					f.s.now += f.r.Int64N(c.tick)
					f.batch()
					switch x := f.r.IntN(40); {
					case x == 0:
						f.scan()
					case x < 3:
						f.s.seal()
						f.saved = f.model.clone()
					case x == 3 && f.s.id > 0:
						f.s.restart()
						f.open()
						f.model = f.saved.clone()
					case x == 4 && i > c.batches*3/4 || i == c.batches-1:
						f.empty()
					}
				}
			})
		}
	}
}

// TestMultimapChangesTTL restores state with another TTL than it was written with.
func TestMultimapChangesTTL(t *testing.T) {
	f := &multimapFuzz{t: t, r: rand.New(rand.NewPCG(1, 7)), s: newStateHarness(t, 1<<20), subs: 2000, vals: 60, nkeys: 12, model: mapModel{}}
	f.open()
	for _, ttl := range []int64{0, 1000, 0, 1000} {
		if f.ttl = ttl; f.s.id > 0 {
			f.s.restart()
			f.open()
			for _, es := range f.model {
				for s, e := range es {
					es[s] = modelEntry{e.val, f.s.now} // time begins when the TTL comes
				}
			}
		}
		for range short.Or(60, 15) {
			f.batch()
		}
		f.scan()
		f.s.seal()
	}
	f.s.now += 1000
	f.scan()
	f.batch()
}

func oneKey(keys *checkpoint.Keys, k string) {
	keys.Reset()
	keys.Buf = append(keys.Buf, k...)
	keys.Ends = append(keys.Ends, int32(len(k)))
	keys.Hashes = append(keys.Hashes, checkpoint.HashKey([]byte(k)))
}

// TestMultimapShape: a key with many entries stays in pages of a few KiB, full ones when the entries ascend.
func TestMultimapShape(t *testing.T) {
	s := newStateHarness(t, 64<<20)
	m, err := openMultimap(s, "m", "test", 0)
	if err != nil {
		t.Fatal(err)
	}
	var keys checkpoint.Keys
	oneKey(&keys, "k")
	if err := m.probe(&keys); err != nil {
		t.Fatal(err)
	}
	const n = 200_000
	for i := range n {
		if err := m.at(0).put(binary.BigEndian.AppendUint64(nil, uint64(i)), make([]byte, 32)); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.done(); err != nil {
		t.Fatal(err)
	}
	bytes, largest := 0, 0
	m.nodes.Visit(func(_, row []byte) bool {
		bytes, largest = bytes+len(row), max(largest, len(row))
		return true
	})
	if largest > nodeMax+16 || bytes > n*43*105/100 {
		t.Errorf("%d nodes of %d bytes, at most %d, for %d entries of 43 bytes", m.nodes.Len(), bytes, largest, n)
	}
	m.roots.Visit(func(_, row []byte) bool {
		if len(row) > inlineMax+headSize {
			t.Errorf("the root has %d bytes", len(row))
		}
		return true
	})
}

// BenchmarkMultimap: one operation on a key with n entries of 8 + 40 bytes.
func BenchmarkMultimap(b *testing.B) {
	for _, n := range []int{1, 20, 1000, 100_000} {
		for _, op := range []string{"append-drop", "random", "update", "get"} {
			b.Run(fmt.Sprintf("%s/%d", op, n), func(b *testing.B) { benchMultimap(b, op, n) })
		}
	}
}

func benchMultimap(b *testing.B, op string, n int) {
	s := newStateHarness(b, 1<<30)
	m, err := openMultimap(s, "m", "test", 0)
	if err != nil {
		b.Fatal(err)
	}
	var keys checkpoint.Keys
	oneKey(&keys, "some key")
	r := rand.New(rand.NewPCG(1, 2))
	sub, val := make([]byte, 8), make([]byte, 40)
	do := func(x uint64, put bool) {
		binary.BigEndian.PutUint64(sub, x)
		var err error
		if put {
			err = m.at(0).put(sub, val)
		} else if op == "get" || op == "update" {
			_, _, err = m.at(0).get(sub)
		} else {
			_, err = m.at(0).remove(sub)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := m.probe(&keys); err != nil {
		b.Fatal(err)
	}
	xs := make([]uint64, n)
	for i := range xs {
		xs[i] = uint64(i)
		if op == "random" {
			xs[i] = r.Uint64()
		}
		do(xs[i], true)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if i%2048 == 0 {
			if err := m.done(); err != nil {
				b.Fatal(err)
			}
			if err := m.probe(&keys); err != nil {
				b.Fatal(err)
			}
		}
		switch op {
		case "append-drop":
			do(uint64(i+n), true)
			do(uint64(i), false)
		case "random":
			j := i % n
			do(xs[j], false)
			xs[j] = r.Uint64()
			do(xs[j], true)
		case "update":
			val[0]++
			do(xs[r.IntN(n)], true)
		case "get":
			do(xs[r.IntN(n)], false)
		}
	}
}
