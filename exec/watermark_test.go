package exec

import (
	"math/rand/v2"
	"testing"

	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// discovering is a source of which only the discovery interval is asked.
type discovering struct {
	connectors.Source
	interval int64
}

func (d discovering) DiscoveryInterval() int64 { return d.interval }

// TestSourceAtItsEndIsNotIdle: between the read that ends the last split and the one that tells the end of the source the
// watermark may be due. Then others must not be told to go on without the subtask: its last watermark is still to come.
func TestSourceAtItsEndIsNotIdle(t *testing.T) {
	for _, c := range []struct {
		name      string
		splits    []*split
		discovery int64
		idle      bool
	}{
		{"all done", []*split{{done: true, wm: 5}, {done: true, wm: 7}}, 0, false},
		{"one has rows", []*split{{done: true, wm: 5}, {wm: 7}}, 0, false},
		{"one is idle", []*split{{done: true, wm: 5}, {idle: true, wm: 7}}, 0, true},
		{"an idle one is done", []*split{{idle: true, done: true, wm: 5}}, 0, false},
		{"all done, others may come", []*split{{done: true, wm: 5}}, 1, true},
		{"none yet", nil, 1, true},
	} {
		s := &sourceReader{m: &member{}, src: discovering{interval: c.discovery}, splits: c.splits, emitted: NoWatermark}
		if err := s.advance(); err != nil {
			t.Fatal(err)
		}
		if s.idle != c.idle {
			t.Errorf("%s: idle %v", c.name, s.idle)
		}
	}
}

// The watermark of a batch is that of its greatest time, also when it is computed for that one row only.
func TestGreatestWatermark(t *testing.T) {
	ts := types.Type{Kind: types.Timestamp, Precision: 3, Nullable: true}
	interval := expr.NewIntervalLiteral(types.Type{Kind: types.IntervalDayTime}, 4000)
	minus, err := expr.NewBinary("-", &expr.Column{Index: 1, T: ts}, interval)
	if err != nil {
		t.Fatal(err)
	}
	s := types.NewSchema(types.Column{Name: "v", Type: types.BigIntType}, types.Column{Name: "ts", Type: ts})
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, e := range []expr.Expr{minus, &expr.Column{Index: 1, T: ts}} {
		prog, err := expr.Compile([]expr.Expr{e}, expr.Session{})
		if err != nil {
			t.Fatal(err)
		}
		all, one := &watermarker{prog: prog, rises: -1}, &watermarker{prog: prog, rises: expr.RisesWith(e)}
		if one.rises != 1 {
			t.Fatalf("%s does not rise with its column", e)
		}
		for turn := range 60 {
			b := batch.NewBuilder(s)
			for range rnd.IntN(20) {
				b.Cols[0].AppendI64(0)
				if turn%3 > 0 && rnd.IntN(3) < turn%3 {
					b.Cols[1].AppendNull()
				} else {
					b.Cols[1].AppendI64((rnd.Int64N(100) - 50) * 1000)
				}
				b.RowDone()
			}
			in := *b.Finish()
			if turn%2 > 0 && in.N > 4 {
				in.Sel = []int32{1, 3, 4}
			}
			want, some, err := all.greatest(&in)
			if err != nil {
				t.Fatal(err)
			}
			if got, ok, err := one.greatest(&in); err != nil || ok != some || got != want {
				t.Fatalf("%s: %d, %t, %v; want %d, %t", e, got, ok, err, want, some)
			}
		}
	}
	month, err := expr.NewBinary("-", &expr.Column{Index: 1, T: ts}, expr.NewIntervalLiteral(types.Type{Kind: types.IntervalYearMonth}, 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []expr.Expr{month, &expr.Column{Index: 0, T: types.BigIntType}, &expr.Cast{X: &expr.Column{Index: 0, T: types.StringType}, T: ts}} {
		if expr.RisesWith(e) >= 0 {
			t.Errorf("%s is said to rise with a time", e)
		}
	}
}
