package op

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// Goal: windows hold exactly the rows Flink's would, whatever the aggregates, restarts and memory. Method: random rows and
// watermarks against a model that keeps every row of every window.

// windowModel keeps rows per window: aligned ones by rule, sessions by merging.
type windowModel struct {
	w    Window
	wm   int64
	open []*modelWindow
	late int
}

type modelWindow struct {
	start, end int64
	k          string
	vs         []int64
}

func (m *windowModel) windows(ts int64) (out [][2]int64) {
	w := m.w
	from := func(ts, step int64) int64 { return ts - ((ts-w.Offset)%step+step)%step }
	switch w.Kind {
	case Tumble:
		s := from(ts, w.Size)
		out = append(out, [2]int64{s, s + w.Size})
	case Hop:
		for s := from(ts, w.Slide); s > ts-w.Size; s -= w.Slide {
			out = append(out, [2]int64{s, s + w.Size})
		}
	case Cumulate:
		s := from(ts, w.Size)
		for e := from(ts, w.Slide) + w.Slide; e <= s+w.Size; e += w.Slide {
			out = append(out, [2]int64{s, e})
		}
	}
	return out
}

func (m *windowModel) add(k string, ts, v int64) {
	if m.w.Kind == Session {
		m.session(k, ts, v)
		return
	}
	none := true
	for _, w := range m.windows(ts) {
		if w[1]-1 <= m.wm {
			continue
		}
		none = false
		i := slices.IndexFunc(m.open, func(o *modelWindow) bool { return o.k == k && o.start == w[0] && o.end == w[1] })
		if i < 0 {
			i = len(m.open)
			m.open = append(m.open, &modelWindow{start: w[0], end: w[1], k: k})
		}
		m.open[i].vs = append(m.open[i].vs, v)
	}
	if none && len(m.windows(ts)) > 0 {
		m.late++
	}
}

func (m *windowModel) session(k string, ts, v int64) {
	s := &modelWindow{start: ts, end: ts + m.w.Size, k: k}
	var keep []*modelWindow
	for _, o := range m.open {
		if o.k == k && o.start <= s.end && o.end >= s.start {
			continue
		}
		keep = append(keep, o)
	}
	for _, o := range m.open {
		if o.k == k && o.start <= ts+m.w.Size && o.end >= ts {
			s.start, s.end, s.vs = min(s.start, o.start), max(s.end, o.end), append(s.vs, o.vs...)
		}
	}
	if s.end-1 <= m.wm {
		m.late++
		return
	}
	s.vs = append(s.vs, v)
	m.open = append(keep, s)
}

// fire gives what the watermark ends, as the operator's collector writes it.
func (m *windowModel) fire(wm int64) (out []string) {
	m.wm = max(m.wm, wm)
	var keep []*modelWindow
	for _, o := range m.open {
		if o.end-1 > m.wm {
			keep = append(keep, o)
			continue
		}
		sum, distinct := int64(0), map[int64]bool{}
		for _, v := range o.vs {
			sum += v
			distinct[v] = true
		}
		out = append(out, fmt.Sprintf("%s|%d|%d|%d|%d|%d|%d..%d", o.k, len(o.vs), sum, slices.Min(o.vs), slices.Max(o.vs), len(distinct), o.start, o.end))
	}
	m.open = keep
	slices.Sort(out)
	return out
}

func modelAggs(distinct bool) []expr.Agg {
	t := types.BigIntType
	aggs := []expr.Agg{{Kind: expr.AggCountStar, Arg: -1, Filter: -1, Type: t}}
	for _, k := range []expr.AggKind{expr.AggSum, expr.AggMin, expr.AggMax} {
		aggs = append(aggs, expr.Agg{Kind: k, Arg: 2, ArgType: t, Filter: -1, Type: t, Text: k.String()})
	}
	if distinct {
		aggs = append(aggs, expr.Agg{Kind: expr.AggCount, Arg: 2, ArgType: t, Filter: -1, Distinct: true, Type: t, Text: "D"})
	}
	return aggs
}

// windowRows are the collected rows of a window aggregate in the model's words.
func windowRows(out *timedCollector, distinct bool) (rows []string) {
	for _, r := range out.rows {
		f := strings.FieldsFunc(r, func(c rune) bool { return c == ' ' || c == '@' || c == ':' })[1:]
		d, span := "*", f[5:]
		if distinct {
			d, span = f[5], f[6:]
		}
		rows = append(rows, fmt.Sprintf("%s|%s|%s..%s", strings.Join(f[:5], "|"), d, span[0], span[1]))
	}
	out.rows = nil
	slices.Sort(rows)
	return rows
}

func TestWindowAggregateModel(t *testing.T) {
	windows := []Window{
		{Kind: Tumble, Size: 50}, {Kind: Tumble, Size: 30, Offset: 7},
		{Kind: Hop, Size: 60, Slide: 20}, {Kind: Hop, Size: 50, Slide: 20, Offset: -3}, {Kind: Hop, Size: 20, Slide: 30},
		{Kind: Cumulate, Size: 60, Slide: 10}, {Kind: Cumulate, Size: 40, Slide: 40, Offset: 5},
		{Kind: Session, Size: 15},
	}
	for _, w := range windows {
		for seed := range uint64(4) {
			run := func(name string, distinct bool, in *types.Schema) {
				t.Run(fmt.Sprintf("%d/%d/%d/%s/%d", w.Kind, w.Size, w.Offset, name, seed), func(t *testing.T) {
					runWindowModel(t, w, distinct, in, seed)
				})
			}
			run("false", false, timedSchema)
			run("true", true, timedSchema)
			run("numbers", false, numberedSchema)
		}
	}
}

// numberedSchema is timedSchema with numbers for keys.
var numberedSchema = types.NewSchema(types.Column{Name: "k", Type: types.BigIntType}, timedSchema.Columns[1], timedSchema.Columns[2])

// modelBatch are random rows, which m gets too.
func modelBatch(rnd *rand.Rand, in *types.Schema, keys int, now int64, m *windowModel) *batch.Batch {
	b := batch.NewBuilder(in)
	for range 1 + rnd.IntN(12) {
		i, ts, v := rnd.IntN(keys), now-20+rnd.Int64N(60), rnd.Int64N(4)
		k := string(rune('a' + i))
		if b.Cols[0].Type.Kind == types.BigInt {
			k = fmt.Sprint(i)
			b.Cols[0].AppendI64(int64(i))
		} else {
			b.Cols[0].AppendStr(k)
		}
		b.Cols[1].AppendI64(ts * 1000)
		b.Cols[2].AppendI64(v)
		b.RowDone()
		m.add(k, ts, v)
	}
	return b.Finish()
}

// disturb makes what is in memory end in the state, or lets it be brought back.
func disturb(t *testing.T, rnd *rand.Rand, o *timedOp) {
	w, ok := o.op.(*windowAggregate)
	if !ok || w.cache == nil {
		return
	}
	var err error
	switch rnd.IntN(8) {
	case 0:
		err = w.cache.evict()
	case 1:
		for end := range w.cache.cells {
			err = w.cache.evictCell(end)
			w.cache.pause = rnd.IntN(3)
			break
		}
	case 2:
		_, err = o.op.OnBarrier(checkpoint.Barrier{}, &o.out)
	case 3:
		w.cache.keepTexts()
		w.cache.texts = 0 // again when a cell is forgotten
	default:
		w.cache.pause = 0
	}
	if err != nil {
		t.Fatal(err)
	}
}

func runWindowModel(t *testing.T, w Window, distinct bool, in *types.Schema, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, uint64(w.Size)))
	w.Time = 1
	aggs := modelAggs(distinct)
	out := &types.Schema{Columns: []types.Column{in.Columns[0]}}
	for range aggs {
		out.Columns = append(out.Columns, timedSchema.Columns[2])
	}
	for range 3 {
		out.Columns = append(out.Columns, timedSchema.Columns[1])
	}
	budget := int64(1 << 20)
	if seed%2 == 1 {
		budget = 1 << 14 // state goes to disk
	}
	o := newTimedOp(t, NewWindowAggregate(WindowAggSpec{Input: in, Keys: []int{0}, Aggs: aggs, Window: w, Output: out}), budget)
	m := &windowModel{w: w, wm: -1 << 62}
	keys := 1 + rnd.IntN(6)
	now := int64(-200)
	for step := range 40 {
		if err := o.op.Process(0, modelBatch(rnd, in, keys, now, m), &o.out); err != nil {
			t.Fatal(err)
		}
		disturb(t, rnd, o)
		if rnd.IntN(4) == 0 {
			o.restart()
		}
		now += rnd.Int64N(25)
		wm := now - 10
		if step == 39 {
			wm = int64(exec.MaxWatermark)
		}
		if err := o.op.OnWatermark(exec.Watermark(wm), &o.out); err != nil {
			t.Fatal(err)
		}
		want := m.fire(wm)
		for i := range want {
			if f := strings.Split(want[i], "|"); !distinct {
				f[5] = "*"
				want[i] = strings.Join(f, "|")
			}
		}
		slices.Sort(want)
		if got := windowRows(&o.out, distinct); !slices.Equal(got, want) {
			t.Fatalf("step %d, watermark %d:\n got  %s\n want %s", step, wm, strings.Join(got, "  "), strings.Join(want, "  "))
		}
	}
	if n := o.sub.counters["late-dropped"].Load(); n != int64(m.late) {
		t.Errorf("%d rows counted as late, want %d", n, m.late)
	}
	if n := stateRows(t, o); n != 0 {
		t.Errorf("%d rows of state left", n)
	}
}

// stateRows counts what the windows left behind.
func stateRows(t *testing.T, o *timedOp) (n int64) {
	t.Helper()
	switch w := o.op.(type) {
	case *windowAggregate:
		if w.cache != nil {
			n = int64(len(w.cache.cells))
		}
		n += w.core.groups.Len() + w.index.table.Len()
		for _, d := range w.core.distinct {
			n += d.table.Len()
		}
	case *sessionAccs:
		n = w.groups.Len() + w.timers.far.m.roots.Len()
	case *sessionWindow:
		n = w.spans.roots.Len() + w.timers.roots.Len()
	default:
		t.Fatalf("no state known of %T", o.op)
	}
	return n
}

// TestWindowClock: DST of New York, 2024-03-10 02:00 to 03:00 does not exist, 2024-11-03 01:00 to 02:00 is twice.
func TestWindowClock(t *testing.T) {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	in := types.NewSchema(types.Column{Name: "ts", Type: types.TimestampOf(types.TimestampLTZ, 3)})
	ms := func(s string) int64 {
		x, err := time.Parse("2006-01-02 15:04", s)
		if err != nil {
			t.Fatal(err)
		}
		return x.UnixMilli()
	}
	for _, c := range []struct {
		w         Window
		at        string   // UTC
		ends, utc []string // wall clock, and the instant at which the window has ended
	}{
		{Window{Kind: Tumble, Size: 3600_000}, "2024-03-10 06:30", []string{"2024-03-10 02:00"}, []string{"2024-03-10 07:00"}},
		{Window{Kind: Tumble, Size: 3600_000}, "2024-11-03 05:30", []string{"2024-11-03 02:00"}, []string{"2024-11-03 07:00"}},
		{Window{Kind: Tumble, Size: 3600_000}, "2024-11-03 04:30", []string{"2024-11-03 01:00"}, []string{"2024-11-03 06:00"}},
		{Window{Kind: Hop, Size: 7200_000, Slide: 3600_000}, "2024-03-10 06:30", []string{"2024-03-10 02:00", "2024-03-10 03:00"},
			[]string{"2024-03-10 07:00", "2024-03-10 07:00"}},
		{Window{Kind: Cumulate, Size: 4 * 3600_000, Slide: 3600_000}, "2024-03-10 06:30",
			[]string{"2024-03-10 02:00", "2024-03-10 03:00", "2024-03-10 04:00"},
			[]string{"2024-03-10 07:00", "2024-03-10 07:00", "2024-03-10 08:00"}},
	} {
		clock := newWindowClock(c.w, in, expr.Session{Zone: zone})
		slice := clock.sliceEnd(clock.wall(ms(c.at)))
		var ends, utc []string
		for e := clock.first(slice); e <= clock.last(slice); e += clock.next() {
			ends = append(ends, time.UnixMilli(e).UTC().Format("2006-01-02 15:04"))
			utc = append(utc, time.UnixMilli(clock.fireTime(e)+1).UTC().Format("2006-01-02 15:04"))
		}
		if !slices.Equal(ends, c.ends) || !slices.Equal(utc, c.utc) {
			t.Errorf("%+v at %s: %v fire %v, want %v fire %v", c.w, c.at, ends, utc, c.ends, c.utc)
		}
	}
}
