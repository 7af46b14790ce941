package nexmark

// Goal: events follow the specification, are the same whatever is read and however the table is split, and continue at a
// position. Method: the real source, checked against a plain second reading of the specification.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

func tableOf(cols []types.Column, kv ...string) *catalog.Table {
	t := &catalog.Table{Name: "n", Options: catalog.NewOptions()}
	for _, c := range cols {
		t.Columns = append(t.Columns, catalog.Column{Name: c.Name, Type: c.Type})
	}
	t.Options.Set("connector", "nexmark", diag.Pos{})
	for _, s := range kv {
		k, v, _ := strings.Cut(s, "=")
		t.Options.Set(k, v, diag.Pos{Line: 1, Col: 2})
	}
	return t
}

// flat are the columns of a table with 'event' = the kind's name.
func flat(k kind) []types.Column {
	var out []types.Column
	for _, s := range specs[k] {
		out = append(out, types.Column{Name: s.name, Type: s.typ})
	}
	return out
}

func rowOf(k kind) types.Type {
	var fs []types.Field
	for _, s := range specs[k] {
		fs = append(fs, types.Field{Name: s.name, Type: s.typ})
	}
	return types.RowOf(fs...)
}

var whole = []types.Column{{Name: "event_type", Type: types.IntType}, {Name: "person", Type: rowOf(aPerson)},
	{Name: "auction", Type: rowOf(anAuction)}, {Name: "bid", Type: rowOf(aBid)}}

func specOf(t *catalog.Table, parallel int, cols ...int) connectors.SourceSpec {
	s := connectors.SourceSpec{Table: t, Schema: &types.Schema{}, Columns: cols, Parallel: parallel}
	if len(cols) == 0 {
		for i := range t.Columns {
			s.Columns = append(s.Columns, i)
		}
	}
	for _, c := range s.Columns {
		s.Schema.Columns = append(s.Schema.Columns, types.Column{Name: t.Columns[c].Name, Type: t.Columns[c].Type})
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

// drain reads rows as text until the end, or until calls calls had rows, and the positions after them.
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
		if got.N > batch.Size {
			t.Fatalf("%d rows in a batch", got.N)
		}
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

const forever = 1 << 30

func TestSameEventsHoweverSplit(t *testing.T) {
	for _, tab := range []*catalog.Table{tableOf(whole, "events.num=3217"), tableOf(flat(aBid), "events.num=3217", "event=bid"),
		tableOf(flat(aPerson), "events.num=3217", "event=person"), tableOf(flat(anAuction), "events.num=3217", "event=auction")} {
		var want []string
		for _, parallel := range []int{1, 2, 7} {
			s := specOf(tab, parallel)
			rows, _ := drain(t, open(t, s, nil), s.Schema, forever)
			slices.Sort(rows)
			if want == nil {
				want = rows
			}
			if !slices.Equal(rows, want) {
				t.Fatalf("%d splits: %d rows, with one %d", parallel, len(rows), len(want))
			}
		}
	}
}

// Columns have the same values whichever others are read, and the fields of a ROW those of the columns.
func TestSameValuesWhateverIsRead(t *testing.T) {
	tab := tableOf(flat(anAuction), "events.num=5000", "event=auction")
	s := specOf(tab, 1)
	all, _ := drain(t, open(t, s, nil), s.Schema, forever)
	for c := range tab.Columns {
		s := specOf(tab, 1, c)
		one, _ := drain(t, open(t, s, nil), s.Schema, forever)
		for i, row := range all {
			if got := strings.Split(row, "|")[c]; got != one[i] {
				t.Fatalf("column %s alone: %s, with the others %s", tab.Columns[c].Name, one[i], got)
			}
		}
	}
	rows := specOf(tableOf(whole, "events.num=5000"), 1, 2)
	b := batch.NewBuilder(rows.Schema)
	r := open(t, rows, nil)
	n := 0
	for {
		b.Reset()
		if _, err := r.Next(context.Background(), b); errors.Is(err, io.EOF) {
			break
		}
		got := b.Finish()
		for i := range got.N {
			d := got.Cols[0].Datum(i)
			if d.IsNull {
				continue
			}
			var vs []string
			for _, e := range d.List {
				vs = append(vs, fmt.Sprintf("%+v", e))
			}
			if all[n] != strings.Join(vs, "|") {
				t.Fatalf("row %d: %s, as columns %s", n, vs, all[n])
			}
			n++
		}
	}
	if n != len(all) || n != 300 {
		t.Fatalf("%d auctions as ROWs, %d as columns", n, len(all))
	}
}

func TestRestoreRepeatsRows(t *testing.T) {
	tab := tableOf(flat(aBid), "events.num=20000", "event=bid")
	s := specOf(tab, 2)
	r := open(t, s, nil)
	start := r.(connectors.Positioner).Positions()
	head, pos := drain(t, r, s.Schema, 3)
	rest, _ := drain(t, r, s.Schema, forever)
	if len(head)+len(rest) != 20000*46/50 {
		t.Fatalf("%d + %d rows", len(head), len(rest))
	}
	var ps []checkpoint.Position
	for _, p := range start {
		if next, ok := pos[p.Split]; ok {
			p.Next = next
		}
		ps = append(ps, p)
	}
	s.Parallel = 5
	r = open(t, s, ps)
	for _, late := range []checkpoint.Split{"2", "3", "4"} {
		if err := r.Add(context.Background(), checkpoint.Position{Split: late}); err != nil {
			t.Fatal(err)
		}
	}
	known := r.(connectors.Positioner).Positions() // of a checkpoint right behind the restore
	again, _ := drain(t, r, s.Schema, forever)
	slices.Sort(rest)
	slices.Sort(again)
	if !slices.Equal(rest, again) {
		t.Fatalf("%d rows the first time, %d after the restore", len(rest), len(again))
	}
	// The next restore knows the splits without rows too, and none of them begins then.
	if len(known) != 5 {
		t.Fatalf("positions of %d splits, want 5", len(known))
	}
	s.Parallel = 3
	third, _ := drain(t, open(t, s, known), s.Schema, forever)
	slices.Sort(third)
	if !slices.Equal(rest, third) {
		t.Fatalf("%d rows the first time, %d after the second restore", len(rest), len(third))
	}
}

// What the specification promises of ids, times and shares.
func TestSpecification(t *testing.T) {
	p, err := parse(tableOf(whole, "first-event.rate=1000", "next-event.rate=1000"))
	if err != nil {
		t.Fatal(err)
	}
	g := &generator{config: p.config, tables: newTables(p.seed)}
	people, auctions, bids := int64(0), int64(0), int64(0)
	hot, hotBidders, channels, sizes := 0, 0, 0, 0
	const n = 100000
	for i := range int64(n) {
		ev := g.at(i)
		e := &ev
		if ms := g.number(eventTime, e) / 1000; ms != 1436918400000+i {
			t.Fatalf("event %d at %d", i, ms)
		}
		switch e.kind {
		case aPerson:
			if g.number(personID, e) != firstID+people {
				t.Fatalf("person %d has id %d", people, g.number(personID, e))
			}
			people++
		case anAuction:
			if g.number(auctionID, e) != firstID+auctions {
				t.Fatalf("auction %d has id %d", auctions, g.number(auctionID, e))
			}
			auctions++
			if s := g.number(auctionSeller, e); s < firstID || s > firstID+people+idLead {
				t.Fatalf("seller %d of %d", s, people)
			}
			if c := g.number(auctionCategory, e); c < 10 || c > 14 {
				t.Fatalf("category %d", c)
			}
			if g.number(auctionReserve, e) <= g.number(auctionInitial, e) || g.number(auctionExpires, e) <= g.number(eventTime, e) {
				t.Fatalf("auction %d: reserve or expiry", i)
			}
		case aBid:
			bids++
			a, b := g.number(bidAuction, e), g.number(bidBidder, e)
			if a < firstID || a > firstID+auctions+idLead || b < firstID || b > firstID+people+idLead {
				t.Fatalf("bid %d: auction %d of %d, bidder %d of %d", i, a, auctions, b, people)
			}
			if a%hotBatch == 0 {
				hot++
			}
			if b%hotBatch == 1 {
				hotBidders++
			}
			if slices.Contains(hotNames, g.text(bidChannel, e)) {
				channels++
			} else if !strings.HasPrefix(g.text(bidURL, e), "https://www.nexmark.com/") {
				t.Fatalf("url %s", g.text(bidURL, e))
			}
			if p := g.number(bidPrice, e); p < 100 || p > 1e8 {
				t.Fatalf("price %d", p)
			}
			sizes += 32 + len(g.text(bidExtra, e))
		}
	}
	if people != n/50 || auctions != 3*n/50 || bids != 46*n/50 {
		t.Fatalf("%d people, %d auctions, %d bids", people, auctions, bids)
	}
	for what, share := range map[string][2]float64{"hot auctions": {float64(hot) / float64(bids), 0.5}, "hot bidders": {float64(hotBidders) / float64(bids), 0.75},
		"hot channels": {float64(channels) / float64(bids), 0.5}, "bytes": {float64(sizes) / float64(bids) / 100, 1}} {
		if d := share[0] - share[1]; d < -0.02 || d > 0.02 {
			t.Errorf("%s: %.3f, want about %.3f", what, share[0], share[1])
		}
	}
}

// The events of a seed never change: recorded answers of other engines depend on them.
func TestEventsAreFixed(t *testing.T) {
	p, _ := parse(tableOf(whole))
	g := &generator{config: p.config, tables: newTables(p.seed)}
	var out []string
	for _, n := range []int64{0, 1, 4, 99999, 5000000} {
		ev := g.at(n)
		e := &ev
		for _, s := range specs[e.kind] {
			if s.typ.Phys() == types.PhysStr {
				v := g.text(s.field, e)
				out = append(out, v[:min(len(v), 24)])
			} else {
				out = append(out, fmt.Sprint(g.number(s.field, e)))
			}
		}
		out = append(out, "")
	}
	got := strings.Join(out, "\n")
	if want := fixedEvents; got != strings.TrimPrefix(want, "\n") {
		t.Errorf("got\n%s", got)
	}
}

func TestFaults(t *testing.T) {
	c := Connector()
	for _, f := range []struct{ opts, want string }{
		{"first-event.rate=5", "is not the 5 of 'first-event.rate'"},
		{"first-event.rate=0|next-event.rate=0", "is not between 1 and"},
		{"bid.proportion=0", "is not between 1 and"},
		{"events.num=-1", "negative"},
		{"keep-alive=true", "not supported"},
		{"stop-at=7", "is not -1"},
		{"base-time=noon", "not a timestamp"},
		{"bid.avg-size=1mb", "more than"},
		{"rate.shape=round", "rate.shape"},
		{"event=sale", "event"},
		{"bids.proportion=1", "bids.proportion"},
		{"event=bid", "have no field event_type"},
	} {
		err := c.Check(tableOf(whole, strings.Split(f.opts, "|")...), connectors.UseSource)
		if err == nil || !strings.Contains(err.Error(), f.want) {
			t.Errorf("%s: %v", f.opts, err)
		}
	}
	for _, f := range []struct {
		name string
		typ  types.Type
	}{{"price", types.IntType}, {"channel", types.Lengthed(types.Varchar, 10)}, {"dateTime", types.DateType}, {"seller", types.BigIntType}} {
		if err := c.Check(tableOf([]types.Column{{Name: f.name, Type: f.typ}}, "event=bid"), connectors.UseSource); err == nil {
			t.Errorf("%s %s accepted", f.name, f.typ)
		}
	}
	for _, col := range []types.Column{{Name: "bid", Type: types.IntType}, {Name: "event_type", Type: types.StringType}, {Name: "sale", Type: rowOf(aBid)}} {
		if err := c.Check(tableOf([]types.Column{col}), connectors.UseSource); err == nil {
			t.Errorf("%s %s accepted", col.Name, col.Type)
		}
	}
}

func TestDamagedPosition(t *testing.T) {
	src, _ := newSource(specOf(tableOf(whole), 1))
	for _, p := range []checkpoint.Position{{Split: "x"}, {Split: "0", Next: []byte{2, 1, 0}}, {Split: "0", Next: []byte{1, 0, 0}}, {Split: "0", Next: []byte{1}}} {
		if _, err := src.Open(context.Background(), []checkpoint.Position{p}); err == nil {
			t.Errorf("%v accepted", p)
		}
	}
	if s, err := DescribePosition((&splitState{splits: 3, next: 42}).position()); err != nil || s != "event 42 of the split" {
		t.Error(s, err)
	}
}

// Columns are made a run of neighbours at a time. Oracle: the fields of each event alone.
func TestRunsAreTheEvents(t *testing.T) {
	s := tableOf(flat(aBid), "event=bid", "bid.hot-ratio.bidders=3", "person.proportion=2", "auction.proportion=5", "bid.proportion=9")
	p, err := parse(s)
	if err != nil {
		t.Fatal(err)
	}
	g := &generator{config: p.config, tables: newTables(p.seed)}
	checked := 0
	for _, group := range []int64{0, 1, 700} {
		m := made{}
		m.add(g, group, 1, g.person-1)
		m.add(g, group, g.person, g.auction)
		m.add(g, group, g.person+g.auction, g.bid-1)
		for _, u := range m.runs {
			fields := []spec{{field: eventType, typ: types.IntType}, {field: eventTime, typ: types.TimestampMs}}
			for _, f := range append(fields, specs[u.first.kind]...) {
				ns, ss := make([]int64, u.n), make([]string, u.n)
				text := f.typ.Phys() == types.PhysStr
				if text {
					g.texts(f.field, &u, ss)
				} else {
					g.numbers(f.field, &u, ns)
				}
				for i := range u.n {
					e := g.at(group*g.total + 1 + int64(u.row+i))
					checked++
					if text && ss[i] != g.text(f.field, &e) || !text && ns[i] != g.number(f.field, &e) {
						t.Errorf("event %d, field %s: %q %d, alone %+v", e.n, f.name, ss[i], ns[i], e)
					}
				}
			}
		}
	}
	if checked < 3*14*7 {
		t.Errorf("only %d values compared", checked)
	}
}

func TestRowsAllocateNothing(t *testing.T) {
	s := specOf(tableOf(flat(aBid), "event=bid"), 1, 0, 1, 2, 3, 4, 5, 6)
	src, err := newSource(s)
	if err != nil {
		t.Fatal(err)
	}
	r, err := src.Open(context.Background(), []checkpoint.Position{{Split: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	out := batch.NewBuilder(s.Schema)
	next := func() {
		out.Reset()
		if _, err := r.Next(context.Background(), out); err != nil {
			t.Fatal(err)
		}
	}
	next()
	if n := testing.AllocsPerRun(20, next); n > 4 { // the position of the batch
		t.Errorf("%v allocations for a batch of %d rows", n, out.Len())
	}
}

func BenchmarkBids(b *testing.B) {
	for _, cols := range [][]int{{0, 1, 2, 5}, {0, 1, 2, 3, 4, 5, 6}} {
		b.Run(fmt.Sprint(len(cols)), func(b *testing.B) {
			s := specOf(tableOf(flat(aBid), "event=bid"), 1, cols...)
			src, err := newSource(s)
			if err != nil {
				b.Fatal(err)
			}
			r, _ := src.Open(context.Background(), []checkpoint.Position{{Split: "0"}})
			out := batch.NewBuilder(s.Schema)
			for n := 0; n < b.N; n += out.Len() {
				out.Reset()
				if _, err := r.Next(context.Background(), out); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

const fixedEvents = `
1000
Sarah Shultz
qpj@nntb.com
2105 1133 1081 6898
San Francisco
WY
1436918400000000
eeldmsolmnoxcrtvkcaljgax

1000
sf nxbb qhhdlclo
ufse s wa
83665
85375
1436918400000000
1436918400174000
1000
12
lellnanhmrwqyoorjezhznev

1003
1001
69268
Google
https://www.nexmark.com/
1436918400000000
cuwwgndwfbcrjsoqvwbjnese

6900
2901
109
channel-410
https://www.nexmark.com/
1436918409999000
ijfndlvrwhcgpmtnhbtudcjs

101000
Deiter Spencer
glsxj@cztg.com
9600 5006 2494 8898
Portland
WY
1436918900000000
dlibwebbcjolihmsstrzqpmy
`

// FuzzPosition: a damaged position is an error; one that is not comes back as it was.
func FuzzPosition(f *testing.F) {
	f.Add((&splitState{splits: 3, next: 120}).position())
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = DescribePosition(b)
		splits, next, err := readPosition(b)
		if err != nil {
			return
		}
		if s, n, err := readPosition((&splitState{splits: splits, next: next}).position()); err != nil || s != splits || n != next {
			t.Fatalf("%d %d, again %d %d %v", splits, next, s, n, err)
		}
	})
}
