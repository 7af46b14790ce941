package datagen

// Goal: values obey their options, a position determines the rows after it, and option faults are named.
// Method: the real source, with a rate so high that nothing waits.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

func table(cols []types.Column, kv ...string) *catalog.Table {
	t := &catalog.Table{Name: "gen", Options: catalog.NewOptions()}
	for _, c := range cols {
		t.Columns = append(t.Columns, catalog.Column{Name: c.Name, Type: c.Type})
	}
	t.Options.Set("connector", "datagen", diag.Pos{})
	for _, s := range kv {
		k, v, _ := strings.Cut(s, "=")
		t.Options.Set(k, v, diag.Pos{Line: 1, Col: 2})
	}
	return t
}

func spec(t *catalog.Table, parallel int) connectors.SourceSpec {
	s := connectors.SourceSpec{Table: t, Schema: t.PhysicalSchema(), Parallel: parallel}
	for i := range t.Columns {
		s.Columns = append(s.Columns, i)
	}
	return s
}

func open(t *testing.T, s connectors.SourceSpec, ps []checkpoint.Position) connectors.Reader {
	t.Helper()
	src, err := newSource(s)
	if err != nil {
		t.Fatal(err)
	}
	if ps == nil {
		names, _ := src.Splits(context.Background())
		for _, n := range names {
			ps = append(ps, checkpoint.Position{Split: n})
		}
	}
	r, err := src.Open(context.Background(), ps)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// drain reads up to limit calls with rows, or to the end, and returns rows as text and the last positions.
func drain(t *testing.T, r connectors.Reader, s *types.Schema, calls int) ([]string, map[checkpoint.Split][]byte) {
	t.Helper()
	var rows []string
	pos := map[checkpoint.Split][]byte{}
	b := batch.NewBuilder(s)
	for calls > 0 {
		b.Reset()
		p, err := r.Next(context.Background(), b)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if p.Position != nil {
			pos[p.Split] = p.Position
		}
		got := b.Finish()
		if got.N > 0 {
			calls--
		}
		for i := range got.N {
			var vs []string
			for _, c := range got.Cols {
				vs = append(vs, fmt.Sprintf("%+v", c.Datum(i)))
			}
			rows = append(rows, strings.Join(vs, "|"))
		}
	}
	return rows, pos
}

func TestSequenceOverSplits(t *testing.T) {
	tab := table([]types.Column{{Name: "id", Type: types.BigIntType}, {Name: "s", Type: types.StringType}},
		"fields.id.kind=SEQUENCE", "fields.id.start=5", "fields.id.end=14", "fields.s.kind=sequence", "fields.s.start=0", "fields.s.end=100", "rows-per-second=1000000")
	c := Connector()
	if bounded, err := c.Bounded(tab); err != nil || !bounded {
		t.Fatal(bounded, err)
	}
	for _, parallel := range []int{1, 3} {
		sp := spec(tab, parallel)
		b := batch.NewBuilder(sp.Schema)
		r := open(t, sp, nil)
		var ids []int64
		for {
			b.Reset()
			_, err := r.Next(context.Background(), b)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, b.Finish().Cols[0].I64[:b.Len()]...)
		}
		slices.Sort(ids)
		if fmt.Sprint(ids) != "[5 6 7 8 9 10 11 12 13 14]" {
			t.Fatalf("parallel %d: %v", parallel, ids)
		}
	}
}

// A restore at another parallelism repeats exactly the rows behind the checkpoint: nothing lost, nothing made twice.
func TestRestoreRepeatsRows(t *testing.T) {
	tab := table([]types.Column{{Name: "id", Type: types.IntType}, {Name: "s", Type: types.StringType}, {Name: "d", Type: types.DecimalOf(10, 2)}},
		"number-of-rows=5000", "rows-per-second=1000000000", "fields.s.null-rate=0.1")
	sp := spec(tab, 2)
	r := open(t, sp, nil)
	start := r.(connectors.Positioner).Positions()
	head, pos := drain(t, r, sp.Schema, 2)
	rest, _ := drain(t, r, sp.Schema, math.MaxInt)
	if len(head)+len(rest) != 5000 {
		t.Fatalf("%d + %d rows", len(head), len(rest))
	}
	sp.Parallel = 4
	var ps []checkpoint.Position
	for _, p := range start {
		if next, ok := pos[p.Split]; ok {
			p.Next = next
		}
		ps = append(ps, p)
	}
	r = open(t, sp, ps)
	for _, late := range []checkpoint.Split{"2", "3"} {
		if err := r.Add(context.Background(), checkpoint.Position{Split: late}); err != nil {
			t.Fatal(err)
		}
	}
	known := r.(connectors.Positioner).Positions() // of a checkpoint right behind the restore
	again, _ := drain(t, r, sp.Schema, math.MaxInt)
	slices.Sort(rest)
	slices.Sort(again)
	if !slices.Equal(rest, again) {
		t.Fatalf("%d rows the first time, %d after restore", len(rest), len(again))
	}
	// The next restore knows the splits without rows too, and none of them begins then.
	if len(known) != 4 {
		t.Fatalf("positions of %d splits, want 4", len(known))
	}
	sp.Parallel = 3
	third, _ := drain(t, open(t, sp, known), sp.Schema, math.MaxInt)
	slices.Sort(third)
	if !slices.Equal(rest, third) {
		t.Fatalf("%d rows the first time, %d after the second restore", len(rest), len(third))
	}
}

func TestSeed(t *testing.T) {
	cols := []types.Column{{Name: "a", Type: types.BigIntType}}
	read := func(seed string) string {
		tab := table(cols, "number-of-rows=3", "seed="+seed)
		rows, _ := drain(t, open(t, spec(tab, 1), nil), tab.PhysicalSchema(), 100)
		return strings.Join(rows, " ")
	}
	if read("1") != read("1") || read("1") == read("2") {
		t.Fatal("the seed does not decide the rows")
	}
}

func TestRandomObeysOptions(t *testing.T) {
	arr := types.ArrayOf(types.IntType)
	row := types.RowOf(types.Field{Name: "x", Type: types.IntType}, types.Field{Name: "y", Type: types.StringType})
	tab := table([]types.Column{
		{Name: "i", Type: types.IntType}, {Name: "t", Type: types.Of(types.TinyInt)}, {Name: "d", Type: types.DoubleType}, {Name: "p", Type: types.DecimalOf(5, 2)},
		{Name: "s", Type: types.StringType}, {Name: "v", Type: types.Lengthed(types.Varchar, 8)}, {Name: "c", Type: types.Lengthed(types.Char, 4)}, {Name: "b", Type: types.BytesType},
		{Name: "ts", Type: types.TimestampMs}, {Name: "a", Type: arr}, {Name: "m", Type: types.MapOf(types.IntType, types.StringType)}, {Name: "r", Type: row},
		{Name: "n", Type: types.IntType}, {Name: "big", Type: types.DecimalOf(30, 4)},
	}, "number-of-rows=500", "fields.i.min=10", "fields.i.max=12", "fields.d.min=0.5", "fields.d.max=1.5", "fields.p.min=-1", "fields.p.max=1", "fields.s.length=5",
		"fields.v.var-len=true", "fields.ts.max-past=1 h", "fields.a.element.min=7", "fields.a.element.max=7", "fields.m.key.min=0", "fields.m.key.max=1",
		"fields.r.x.min=3", "fields.r.x.max=3", "fields.r.y.length=2", "fields.n.null-rate=1", "fields.big.min=1e20", "fields.big.max=2e20")
	before := time.Now().Add(-time.Hour).UnixMicro() - 1000
	sp := spec(tab, 1)
	b := batch.NewBuilder(sp.Schema)
	r := open(t, sp, nil)
	seen := map[int64]bool{}
	lens := map[int]bool{}
	for {
		b.Reset()
		_, err := r.Next(context.Background(), b)
		if errors.Is(err, io.EOF) {
			break
		}
		rows := b.Finish()
		for i := range rows.N {
			v := func(c int) types.Datum { return rows.Cols[c].Datum(i) }
			seen[v(0).I64] = true
			lens[len(v(5).Str)] = true
			big := v(13).I128().Big()
			check := []bool{
				v(0).I64 >= 10 && v(0).I64 <= 12, v(1).I64 >= -128 && v(1).I64 <= 127, v(2).F64 >= 0.5 && v(2).F64 <= 1.5, v(3).I64 >= -100 && v(3).I64 <= 100,
				len(v(4).Str) == 5 && strings.Trim(v(4).Str, hexDigits) == "", len(v(5).Str) >= 1 && len(v(5).Str) <= 8, len(v(6).Str) == 4, len(v(7).Str) == 100,
				v(8).I64 >= before && v(8).I64 <= time.Now().UnixMicro(), len(v(9).List) == 3 && v(9).List[0].I64 == 7, len(v(10).List) <= 4,
				v(11).List[0].I64 == 3 && len(v(11).List[1].Str) == 2, v(12).IsNull, len(big.String()) == 25,
			}
			if k := slices.Index(check, false); k >= 0 {
				t.Fatalf("column %s: %+v", tab.Columns[k].Name, v(k))
			}
		}
	}
	if len(seen) != 3 || len(lens) != 8 {
		t.Fatalf("values seen %v, lengths %v", seen, lens)
	}
}

// The rate holds: rows are due one by one from the start on.
func TestPacing(t *testing.T) {
	now := time.Now()
	st := &splitState{rate: 100, limit: math.MaxInt64, due: now}
	total := 0
	for ms := 0; ms <= 1000; ms += 7 {
		at := now.Add(time.Duration(ms) * time.Millisecond)
		n := st.ready(at)
		st.due = st.due.Add(time.Duration(float64(n) / st.rate * float64(time.Second)))
		total += n
	}
	if total != 100 {
		t.Fatalf("%d rows in a second at 100 per second", total)
	}
	// A pause of a minute is made up for a second.
	if n := st.ready(now.Add(time.Minute)); n < 100 || n > 102 {
		t.Fatalf("%d rows after a pause", n)
	}
}

func TestFaults(t *testing.T) {
	cols := []types.Column{{Name: "id", Type: types.IntType}, {Name: "s", Type: types.Lengthed(types.Varchar, 10)}, {Name: "c", Type: types.Lengthed(types.Char, 10)},
		{Name: "d", Type: types.DateType}, {Name: "r", Type: types.RowOf(types.Field{Name: "x", Type: types.IntType})}}
	c := Connector()
	for _, f := range []struct{ opts, want string }{
		{"fields.id.kind=sequence|fields.id.start=1", "a sequence needs 'fields.id.end'"},
		{"fields.id.kind=sequence|fields.id.start=2|fields.id.end=1", "is before the start"},
		{"fields.id.kind=sequence|fields.id.start=-1|fields.id.end=9223372036854775807", "more numbers than can be counted"},
		{"fields.id.kind=sequence|fields.id.start=0|fields.id.end=9223372036854775807", "more numbers than can be counted"},
		{"fields.id.kind=sequence|fields.id.start=2|fields.id.end=9999999999", "leaves the range of INT"},
		{"fields.d.kind=sequence|fields.d.start=1|fields.d.end=2", "has no sequence"},
		{"fields.nope.kind=random", "does not support option 'fields.nope.kind'"},
		{"fields.id.length=3", "does not support option 'fields.id.length'"},
		{"fields.id.start=3", "does not support option 'fields.id.start'"},
		{"fields.s.length=11", "outside 1 to 10"},
		{"fields.c.length=5", "is fixed"},
		{"fields.c.var-len=true", "is fixed"},
		{"fields.id.min=3|fields.id.max=2", "is more than"},
		{"fields.id.null-rate=2", "not between 0 and 1"},
		{"fields.r.x.kind=sequence|fields.r.x.start=1|fields.r.x.end=2", "cannot be part of a nested value"},
		{"rows-per-second=0", "not positive"},
		{"number-of-rows=-1", "negative"},
		{"property-version=1", "does not support option 'property-version'"},
	} {
		err := c.Check(table(cols, strings.Split(f.opts, "|")...), connectors.UseSource)
		if err == nil || !strings.Contains(err.Error(), f.want) {
			t.Errorf("%s: %v", f.opts, err)
		}
	}
}

func TestDamagedPosition(t *testing.T) {
	tab := table([]types.Column{{Name: "id", Type: types.IntType}})
	src, _ := newSource(spec(tab, 1))
	for _, p := range []checkpoint.Position{{Split: "x"}, {Split: "0", Next: []byte{2, 0}}, {Split: "0", Next: []byte{1, 0, 0, 0, 0, 0, 0, 0, 0}}} {
		if _, err := src.Open(context.Background(), []checkpoint.Position{p}); err == nil {
			t.Errorf("%v accepted", p)
		}
	}
}

// FuzzPosition: a damaged position is an error; one that is not comes back as it was and can be read from.
func FuzzPosition(f *testing.F) {
	tab := table([]types.Column{{Name: "id", Type: types.BigIntType}}, "fields.id.kind=SEQUENCE", "fields.id.start=1", "fields.id.end=9", "rows-per-second=1000000")
	src, err := newSource(spec(tab, 2))
	if err != nil {
		f.Fatal(err)
	}
	f.Add("0", (&splitState{rows: rowSource{seed: 3, splits: 2, from: 1}}).position())
	f.Add("1", append(make([]byte, 9), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0))
	f.Fuzz(func(t *testing.T, split string, next []byte) {
		_, _ = DescribePosition(next)
		r := &reader{s: src}
		if len(next) == 0 || r.open(checkpoint.Position{Split: checkpoint.Split(split), Next: next}, false) != nil {
			return
		}
		st := r.splits[0]
		again := &reader{s: src}
		if err := again.open(checkpoint.Position{Split: st.name, Next: st.position()}, false); err != nil || again.splits[0].rows != st.rows {
			t.Fatalf("%+v, again %+v, %v", st.rows, again.splits[0].rows, err)
		}
		b := batch.NewBuilder(src.spec.Schema)
		if _, err := r.Next(context.Background(), b); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	})
}
