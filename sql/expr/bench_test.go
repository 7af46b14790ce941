package expr

import (
	"fmt"
	"testing"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// bids is a batch of Nexmark bids: auction, bidder, price, channel, date_time.
func bids(n int) (*batch.Batch, map[string]*Column) {
	cols := map[string]*Column{}
	b := &batch.Batch{N: n}
	add := func(name string, t types.Type) *batch.Vec {
		cols[name] = &Column{Index: len(b.Cols), Name: name, T: t}
		b.Cols = append(b.Cols, batch.NewVec(t, n))
		return b.Cols[len(b.Cols)-1]
	}
	auction, bidder, price := add("auction", types.BigIntType), add("bidder", types.BigIntType), add("price", types.BigIntType)
	channel, at := add("channel", types.StringType), add("date_time", types.TimestampMs)
	names := []string{"Google", "Facebook", "Baidu", "Apple", "channel-1234"}
	for i := 0; i < n; i++ {
		h := uint64(i+1) * 0x9e3779b97f4a7c15
		auction.I64[i] = 1000 + int64(h>>40%5000)
		bidder.I64[i] = 1000 + int64(h>>20%1000)
		price.I64[i] = 100 + int64(h>>33%30000)
		channel.Str[i] = names[h>>50%5]
		at.I64[i] = int64(1700000000000000 + i*1000)
	}
	return b, cols
}

func mustParse(tb testing.TB, text string, cols map[string]*Column) Expr {
	tb.Helper()
	e, err := parseExpr(text, cols)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

var projections = []struct{ name, text string }{
	{"Q1_decimal", "0.908 * price"},
	{"Q1_int", "price * 908 / 1000"},
	{"add_col_col", "auction + price"},
	{"decimal_add", "CAST(price AS DECIMAL(15,2)) + 1.25"},
	{"compare", "price >= 10000"},
	{"case", "CASE WHEN price < 10000 THEN 0 WHEN price < 20000 THEN 1 ELSE 2 END"},
	{"logic", "price > 100 AND bidder < 1500 OR auction = 7"},
	{"mixed", "(price * 908 / 1000 > 5000 AND auction % 123 < 60) OR bidder + price > 90000"},
	{"timestamp", "date_time + INTERVAL '1' HOUR"},
	{"in", "auction IN (1001, 1002, 1003)"},
}

var filters = []struct{ name, text string }{
	{"Q2", "auction % 123 = 0"},
	{"QS", "channel = 'Google' AND price >= 10000"},
	{"QH", "price >= 10000"},
}

func BenchmarkProject(b *testing.B) {
	for _, q := range append(projections, struct{ name, text string }{"to_string", "CAST(price AS STRING)"},
		struct{ name, text string }{"concat", "channel || channel"}, struct{ name, text string }{"like", "channel LIKE '%oo%'"},
		struct{ name, text string }{"decimal_div", "CAST(price AS DECIMAL(15,2)) / 3"}) {
		b.Run(q.name, func(b *testing.B) {
			in, cols := bids(batch.Size)
			p, err := Compile([]Expr{mustParse(b, q.text, cols)}, Session{})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Eval(in); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch.Size, "ns/row")
		})
	}
}

func BenchmarkFilter(b *testing.B) {
	for _, q := range filters {
		b.Run(q.name, func(b *testing.B) {
			in, cols := bids(batch.Size)
			f, err := CompileFilter(mustParse(b, q.text, cols), Session{})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.Apply(in); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch.Size, "ns/row")
		})
	}
}

// TestNoAllocations: arithmetic, comparison, logic and filters reuse their memory from batch to batch.
func TestNoAllocations(t *testing.T) {
	in, cols := bids(batch.Size)
	in.Cols[1].SetNull(5, in.N) // bidder has NULLs
	sparse := *in
	for i := 0; i < in.N; i += 7 {
		sparse.Sel = append(sparse.Sel, int32(i))
	}
	for _, b := range []*batch.Batch{in, &sparse} {
		for _, q := range projections {
			p, err := Compile([]Expr{mustParse(t, q.text, cols), mustParse(t, "bidder > 5 OR bidder + price < 3", cols)}, Session{})
			if err != nil {
				t.Fatal(err)
			}
			if n := testing.AllocsPerRun(20, func() {
				if _, err := p.Eval(b); err != nil {
					t.Fatal(err)
				}
			}); n > 0 {
				t.Errorf("%s: %v allocations per batch", q.text, n)
			}
		}
		for _, q := range filters {
			f, err := CompileFilter(mustParse(t, q.text, cols), Session{})
			if err != nil {
				t.Fatal(err)
			}
			if n := testing.AllocsPerRun(20, func() {
				if _, err := f.Apply(b); err != nil {
					t.Fatal(err)
				}
			}); n > 0 {
				t.Errorf("%s: %v allocations per batch", q.text, n)
			}
		}
	}
}

// TestArenaPerBatch: strings of a batch stay good after the next one, and cost a fixed number of allocations.
func TestArenaPerBatch(t *testing.T) {
	in, cols := bids(batch.Size)
	p, err := Compile([]Expr{mustParse(t, "CAST(price AS STRING) || channel", cols)}, Session{})
	if err != nil {
		t.Fatal(err)
	}
	out, _ := p.Eval(in)
	kept := out[0].Str[77]
	want := fmt.Sprintf("%d%s", in.Cols[2].I64[77], in.Cols[3].Str[77])
	for i := 0; i < 3; i++ {
		if _, err := p.Eval(in); err != nil {
			t.Fatal(err)
		}
	}
	if kept != want {
		t.Errorf("kept %q, want %q", kept, want)
	}
	if n := testing.AllocsPerRun(20, func() { _, _ = p.Eval(in) }); n > 4 {
		t.Errorf("%v allocations per batch", n)
	}
}
