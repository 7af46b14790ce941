package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/streamsql/streamsql/sql/diag"
)

// segmentsOf are the segments among files.
func segmentsOf(files []StateFile) (names []string, bytes int64) {
	for _, f := range files {
		if strings.HasSuffix(f.Path, segmentSuffix) {
			names, bytes = append(names, f.Path[strings.LastIndex(f.Path, "/")+1:]), bytes+f.Size
		}
	}
	return names, bytes
}

// rowsOf are the rows of files, opened at a limit of memory.
func rowsOf(t *testing.T, owner *Owner, files []StateFile, limit int64) map[string]string {
	t.Helper()
	return ownedRows(t, owner, files, limit, nil)
}

func TestSegmentsStayFew(t *testing.T) {
	// Goal: however many barriers, the files are few, their bytes no more than a few times the rows, and their rows the
	// table's. Method: change and delete some of 2000 rows between 100 barriers.
	owner := testOwner(t)
	b, tb := openTable(t, owner, 1<<30)
	defer b.Close()
	b.limits = segmentLimits{files: 8, join: 4, garbage: 16 << 10, rebase: 4 << 10}
	want := map[string]string{}
	var files []StateFile
	joined := false
	for id := ID(1); id <= 100; id++ {
		for j := range 40 {
			k := fmt.Appendf(nil, "key %d", (int(id)*37+j*j*11)%2000)
			if j%8 == 0 {
				if err := tb.Remove(k); err != nil {
					t.Fatal(err)
				}
				delete(want, string(k))
				continue
			}
			v := fmt.Sprintf("value %d at %d", j, id)
			if err := tb.Put(k, []byte(v)); err != nil {
				t.Fatal(err)
			}
			want[string(k)] = v
		}
		async, err := b.Seal(id)
		if err != nil {
			t.Fatal(err)
		}
		if files, err = async(bg); err != nil {
			t.Fatal(err)
		}
		names, size := segmentsOf(files)
		if len(names) > b.limits.files+1 {
			t.Fatalf("checkpoint %d has %d segments: %v", id, len(names), names)
		}
		if most := 8*tb.a.live + 2*b.limits.garbage; size > most {
			t.Fatalf("checkpoint %d has segments of %d bytes, want at most %d: rows have %d", id, size, most, tb.a.live)
		}
		joined = joined || slices.ContainsFunc(names, func(n string) bool {
			first, last, ok := parseSegmentName(n)
			return ok && last > first
		})
	}
	if !joined {
		t.Error("no segments were joined")
	}
	if names, _ := segmentsOf(files); slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "000001-") }) {
		t.Errorf("nothing was rebased: %v", names)
	}
	for _, limit := range []int64{1 << 30, 32 << 10} {
		got := rowsOf(t, owner, files, limit)
		if len(got) != len(want) {
			t.Errorf("%d rows, want %d", len(got), len(want))
		}
		for k, v := range want {
			if got[k] != v {
				t.Fatalf("row %q = %q, want %q", k, got[k], v)
			}
		}
	}
}

func TestSealLastCopiesNothing(t *testing.T) {
	// Goal: the last barrier takes no memory, what it seals is all there, and rows cannot be used afterwards.
	owner := testOwner(t)
	b, tb := openTable(t, owner, 1<<30)
	defer b.Close()
	for i := range uint64(20_000) {
		if err := tb.Put(binary.BigEndian.AppendUint64(nil, i), make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
	}
	before := b.budget.Used()
	async, err := b.SealLast(1)
	if err != nil {
		t.Fatal(err)
	}
	if n := b.budget.Used(); n != before {
		t.Errorf("%d bytes were taken", n-before)
	}
	files, err := async(bg)
	if err != nil {
		t.Fatal(err)
	}
	if got := rowsOf(t, owner, files, 1<<30); len(got) != 20_000 {
		t.Errorf("%d rows", len(got))
	}
	if err := tb.Probe(&Keys{}, nil); diag.CodeOf(err) != diag.Internal {
		t.Errorf("used after the last barrier: %v", err)
	}
}

func TestDamagedSegment(t *testing.T) {
	// Goal: no byte of a segment that is gone or changed goes unnoticed by Verify, and a reader of one that was not verified
	// reports an error and reads nothing outside it. Method: cut and flip at many places.
	owner := testOwner(t)
	b, tb := openTable(t, owner, 1<<30)
	defer b.Close()
	for i := range 50 {
		if err := tb.Put(fmt.Append(nil, i), []byte("a value")); err != nil {
			t.Fatal(err)
		}
	}
	async, err := b.Seal(1)
	if err != nil {
		t.Fatal(err)
	}
	files, err := async(bg)
	if err != nil {
		t.Fatal(err)
	}
	mem := vfs.Root(owner.fs).(*vfs.MemFS)
	path := owner.dir + "/" + files[0].Path
	good, err := readFile(mem, path)
	if err != nil {
		t.Fatal(err)
	}
	c := &Checkpoint{ID: 1, Subtasks: []Snapshot{{Files: files}}}
	try := func(what string, data []byte) {
		t.Helper()
		overwrite(t, mem, path, data)
		if err := VerifyFiles(bg, mem, owner.dir, c); diag.CodeOf(err) != diag.Data {
			t.Errorf("%s: verified: %v", what, err)
		}
		s := segment{name: "s", path: path, size: int64(len(data))}
		for _, id := range []uint16{0, 1} {
			err := eachBlock(mem, s, id, func(block []byte, _ int) error {
				for id == 1 && len(block) > 0 {
					var ok bool
					if _, block, ok = takeRecord(block, false); !ok {
						return errDamaged
					}
				}
				return nil
			})
			if err != nil && !errors.Is(err, errDamaged) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	for at := 0; at < len(good); at += 1 + at/64 {
		try(fmt.Sprintf("cut at %d", at), good[:at])
		bad := slices.Clone(good)
		bad[at] ^= 0xff
		try(fmt.Sprintf("flipped at %d", at), bad)
	}
	// A segment that was damaged since it was written is not joined with others.
	overwrite(t, mem, path, good)
	b.limits = segmentLimits{files: 1, join: 2, garbage: 1 << 30}
	bad := slices.Clone(good)
	bad[len(bad)-1] ^= 1
	overwrite(t, mem, b.segments[0].path, bad)
	if err := tb.Put([]byte("more"), nil); err != nil {
		t.Fatal(err)
	}
	if async, err = b.Seal(2); err != nil {
		t.Fatal(err)
	}
	if _, err := async(bg); !errors.Is(err, errDamaged) {
		t.Errorf("joined: %v", err)
	}
}

// A barrier allocates nothing for a row that changed, neither while the subtask waits nor when the segment is written.
func TestSealAllocatesNothingPerRow(t *testing.T) {
	bk, tb := openTable(t, testOwner(t), 1<<30)
	defer bk.Close()
	const rows = 20_000
	var keys Keys
	refs, ks := make([]Ref, 1000), make([]uint64, 1000)
	id := ID(0)
	run := func() {
		for next := uint64(0); next < rows; {
			for j := range ks {
				ks[j], next = next, next+1
			}
			intKeys(&keys, ks)
			if err := count(tb, &keys, refs); err != nil {
				t.Fatal(err)
			}
		}
		id++
		async, err := bk.Seal(id)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := async(bg); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		run()
	}
	if n := testing.AllocsPerRun(5, run) / rows; n > 0.02 {
		t.Errorf("%.4f allocations a row", n)
	}
}

// BenchmarkSeal changes 100,000 of a million rows between barriers.
func BenchmarkSeal(b *testing.B) {
	owner, err := OwnDir(b.TempDir() + "/job")
	if err != nil {
		b.Fatal(err)
	}
	defer owner.Close()
	bk, tb := openTable(b, owner, 8<<30)
	defer bk.Close()
	var keys Keys
	refs, ks := make([]Ref, 1000), make([]uint64, 1000)
	next := uint64(0)
	change := func(rows int) {
		for range rows / len(ks) {
			for j := range ks {
				ks[j], next = next%1_000_000, next+7
			}
			intKeys(&keys, ks)
			if err := count(tb, &keys, refs); err != nil {
				b.Fatal(err)
			}
		}
	}
	change(1_000_000)
	id := ID(0)
	for b.Loop() {
		b.StopTimer()
		change(100_000)
		b.StartTimer()
		id++
		async, err := bk.Seal(id)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := async(bg); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/row")
}

func TestNewRowGetsItsValueInPlace(t *testing.T) {
	// Goal: a row that is inserted empty and then set or made longer is in memory once.
	b, tb := openTable(t, testOwner(t), 1<<30)
	defer b.Close()
	var keys Keys
	for i := range uint64(1000) {
		intKeys(&keys, []uint64{i})
		refs := make([]Ref, 1)
		if err := tb.Probe(&keys, refs); err != nil {
			t.Fatal(err)
		}
		r, created, err := tb.Insert(&keys, 0, 0)
		if err != nil || !created {
			t.Fatalf("insert %d: %v %v", i, created, err)
		}
		want := strings.Repeat("value ", int(i%50))
		if i%2 == 0 {
			tb.Set(r, []byte(want))
		} else {
			end, err := tb.Extend(r, len(want), 0)
			if err != nil {
				t.Fatal(err)
			}
			copy(end, want)
		}
		if got := string(tb.Value(r)); got != want {
			t.Fatalf("row %d = %q, want %q", i, got, want)
		}
	}
	used := 0
	for _, c := range tb.a.chunks {
		used += c.used
	}
	// The last row of a chunk may have to move.
	if dead := int64(used) - tb.a.live; dead > int64(len(tb.a.chunks))*(24+16) {
		t.Errorf("%d bytes of dead rows in %d chunks", dead, len(tb.a.chunks))
	}
	if tb.dirtyBytes != tb.a.live {
		t.Errorf("%d bytes are dirty, %d live", tb.dirtyBytes, tb.a.live)
	}
}
