package op

import (
	"fmt"
	"math/big"
	"math/rand"
	"sort"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
	"github.com/streamsql/streamsql/tests/short"
)

// The input of the random tests: k STRING (key), i INT, d DECIMAL(10,2), s STRING, f BOOLEAN (filter).
var aggInput = types.NewSchema(
	types.Column{Name: "k", Type: types.StringType}, types.Column{Name: "i", Type: types.IntType},
	types.Column{Name: "d", Type: types.DecimalOf(10, 2)}, types.Column{Name: "s", Type: types.StringType},
	types.Column{Name: "f", Type: types.BoolType}, types.Column{Name: "big", Type: types.DecimalOf(25, 3)},
)

type aggRow struct {
	k, s string
	i    int64
	d    int64
	f    int // 0 false, 1 true, 2 NULL
	null int // bit 0: i is NULL, bit 1: d, bit 2: s
}

func (r aggRow) append(b *batch.Builder, k types.RowKind) {
	b.Cols[0].AppendStr(r.k)
	put := func(c int, null bool, f func(*batch.ColBuilder)) {
		if null {
			b.Cols[c].AppendNull()
			return
		}
		f(b.Cols[c])
	}
	put(1, r.null&1 != 0, func(c *batch.ColBuilder) { c.AppendI64(r.i) })
	put(2, r.null&2 != 0, func(c *batch.ColBuilder) { c.AppendI64(r.d) })
	put(3, r.null&4 != 0, func(c *batch.ColBuilder) { c.AppendStr(r.s) })
	put(4, r.f == 2, func(c *batch.ColBuilder) { c.AppendBool(r.f == 1) })
	put(5, r.null&2 != 0, func(c *batch.ColBuilder) { c.AppendI128(types.Mul64(r.d, 1_000_000_007)) })
	b.RowKindDone(k)
}

// aggCase is an aggregate of the test: how the operator computes it, and how a naive program does.
type aggCase struct {
	agg   expr.Agg
	naive func(rows []aggRow) string
}

// orderCase is an aggregate whose result depends on the order of arrival: the naive program replays the group's changes.
type orderCase struct {
	agg    expr.Agg
	replay func(log []aggEvent) string
}

// aggEvent is a change of a group's rows.
type aggEvent struct {
	row     aggRow
	retract bool
}

func aggCases(t testing.TB) []aggCase {
	t.Helper()
	mk := func(kind expr.AggKind, arg int, distinct bool, filter int) expr.Agg {
		a := expr.Agg{Kind: kind, Arg: arg, Distinct: distinct, Filter: filter, Type: types.BigIntType.NotNull()}
		if arg >= 0 {
			a.ArgType = aggInput.Columns[arg].Type
			ty, err := expr.AggType(kind, a.ArgType)
			if err != nil {
				t.Fatal(err)
			}
			a.Type = ty
		}
		return a
	}
	ints := func(rows []aggRow, distinct, filter bool) []int64 {
		var out []int64
		seen := map[int64]bool{}
		for _, r := range rows {
			if r.null&1 != 0 || filter && r.f != 1 || distinct && seen[r.i] {
				continue
			}
			seen[r.i] = true
			out = append(out, r.i)
		}
		return out
	}
	sum := func(v []int64) (s int64) {
		for _, x := range v {
			s += x
		}
		return s
	}
	decs := func(rows []aggRow) (v []int64) {
		for _, r := range rows {
			if r.null&2 == 0 {
				v = append(v, r.d)
			}
		}
		return v
	}
	orNull := func(n int, s string) string {
		if n == 0 {
			return "NULL"
		}
		return s
	}
	strs := func(rows []aggRow) (v []string) {
		for _, r := range rows {
			if r.null&4 == 0 {
				v = append(v, r.s)
			}
		}
		sort.Strings(v)
		return append(v, "")
	}
	extreme := func(v []int64, max bool) string {
		if len(v) == 0 {
			return "NULL"
		}
		s := append([]int64(nil), v...)
		sort.Slice(s, func(a, b int) bool { return s[a] < s[b] })
		if max {
			return fmt.Sprint(s[len(s)-1])
		}
		return fmt.Sprint(s[0])
	}
	scaled := func(v *big.Int, scale int) string {
		return new(big.Rat).SetFrac(v, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)).FloatString(scale)
	}
	return []aggCase{
		{mk(expr.AggCountStar, -1, false, -1), func(r []aggRow) string { return fmt.Sprint(len(r)) }},
		{mk(expr.AggCount, 1, false, -1), func(r []aggRow) string { return fmt.Sprint(len(ints(r, false, false))) }},
		{mk(expr.AggCount, 1, true, -1), func(r []aggRow) string { return fmt.Sprint(len(ints(r, true, false))) }},
		{mk(expr.AggCount, 1, true, 4), func(r []aggRow) string { return fmt.Sprint(len(ints(r, true, true))) }},
		{mk(expr.AggSum, 1, false, 4), func(r []aggRow) string { v := ints(r, false, true); return orNull(len(v), fmt.Sprint(int32(sum(v)))) }},
		{mk(expr.AggSum, 1, true, -1), func(r []aggRow) string { v := ints(r, true, false); return orNull(len(v), fmt.Sprint(int32(sum(v)))) }},
		{mk(expr.AggAvg, 1, false, -1), func(r []aggRow) string {
			v := ints(r, false, false)
			if len(v) == 0 {
				return "NULL"
			}
			return fmt.Sprint(sum(v) / int64(len(v)))
		}},
		{mk(expr.AggMin, 1, false, -1), func(r []aggRow) string { return extreme(ints(r, false, false), false) }},
		{mk(expr.AggMax, 1, false, 4), func(r []aggRow) string { return extreme(ints(r, false, true), true) }},
		{mk(expr.AggSum, 2, false, -1), func(r []aggRow) string { v := decs(r); return orNull(len(v), scaled(big.NewInt(sum(v)), 2)) }},
		{mk(expr.AggMin, 3, false, -1), func(r []aggRow) string { v := strs(r); return orNull(len(v)-1, v[0]) }},
		{mk(expr.AggMax, 3, true, -1), func(r []aggRow) string { v := strs(r); return orNull(len(v)-1, v[max(len(v)-2, 0)]) }},
		{mk(expr.AggMax, 5, false, -1), func(r []aggRow) string {
			v := decs(r)
			if len(v) == 0 {
				return "NULL"
			}
			s := append([]int64(nil), v...)
			sort.Slice(s, func(a, b int) bool { return s[a] < s[b] })
			return scaled(new(big.Int).Mul(big.NewInt(s[len(s)-1]), big.NewInt(1_000_000_007)), 3)
		}},
	}
}

// Random changelogs, in random batches: after every batch the folded output is what a naive program computes over the
// rows that are there. Run resident, and with a budget that keeps nearly all state on disk.
func TestGroupAggregateAgainstNaive(t *testing.T) {
	cases := 0 // every other one starts with mini batches, for each pair of the three
	for _, budget := range []int64{0, 64 << 10} {
		for _, mode := range []types.ChangelogMode{types.AppendOnly, types.Retract} {
			for _, updateBefore := range []bool{true, false} {
				t.Run(fmt.Sprintf("%v/-U=%v/budget=%d", mode, updateBefore, budget), func(t *testing.T) {
					for seed := range short.Or(8, 1) {
						randomAggregate(t, int64(seed), mode, updateBefore, budget, MiniBatch{Size: 100 * ((seed + cases + cases/2 + cases/4) % 2)})
					}
				})
				cases++
			}
		}
	}
}

func randomAggregate(t *testing.T, seed int64, mode types.ChangelogMode, updateBefore bool, budget int64, mini MiniBatch) {
	rnd := rand.New(rand.NewSource(seed))
	cases := aggCases(t)
	var aggs []expr.Agg
	out := types.NewSchema(types.Column{Name: "k", Type: types.StringType})
	for i, c := range cases {
		c.agg.Text = fmt.Sprintf("agg%d", i)
		aggs = append(aggs, c.agg)
		out.Columns = append(out.Columns, types.Column{Name: c.agg.Text, Type: c.agg.Type})
	}
	ordered := orderCases(t)
	for i, c := range ordered {
		c.agg.Text = fmt.Sprintf("list%d", i)
		aggs = append(aggs, c.agg)
		out.Columns = append(out.Columns, types.Column{Name: c.agg.Text, Type: c.agg.Type})
	}
	logs := map[string][]aggEvent{}
	o := openOp(t, NewGroupAggregate(GroupAggSpec{Input: aggInput, Keys: []int{0}, Aggs: aggs, InputMode: mode,
		EmitUpdateBefore: updateBefore, Output: out, Mini: mini}), newSubtask(t, budget))
	defer o.Close()
	live := map[string][]aggRow{}
	table := map[string]int{}
	byKey := map[string]string{}
	var em rowCollector
	for range 40 {
		b := batch.NewBuilder(aggInput)
		for range 1 + rnd.Intn(60) {
			k := fmt.Sprintf("k%d", rnd.Intn(7))
			if mode == types.Retract && rnd.Intn(5) < 2 && len(live[k]) > 0 {
				i := rnd.Intn(len(live[k]))
				kind := types.Delete
				if rnd.Intn(2) == 0 {
					kind = types.UpdateBefore
				}
				live[k][i].append(b, kind)
				if logs[k] = append(logs[k], aggEvent{live[k][i], true}); len(live[k]) == 1 {
					logs[k] = nil
				}
				live[k] = append(live[k][:i:i], live[k][i+1:]...)
				continue
			}
			if mode == types.Retract && rnd.Intn(20) == 0 && len(live[k]) == 0 {
				aggRow{k: k, s: "never"}.append(b, types.Delete) // leading retraction: ignored
				continue
			}
			r := aggRow{k: k, s: fmt.Sprintf("s%d", rnd.Intn(9)), i: int64(rnd.Intn(12) - 4), d: int64(rnd.Intn(2000) - 1000), f: rnd.Intn(3), null: rnd.Intn(8)}
			if rnd.Intn(2) == 0 {
				r.null = 0
			}
			r.append(b, []types.RowKind{types.Insert, types.UpdateAfter}[rnd.Intn(2)*int(mode/types.Retract)])
			live[k] = append(live[k], r)
			logs[k] = append(logs[k], aggEvent{r, false})
		}
		if err := o.Process(0, b.Finish(), &em); err != nil {
			t.Fatal(err)
		}
		switch rnd.Intn(3) * mini.Size {
		case mini.Size: // without mini-batch, too
			if _, err := o.OnBarrier(checkpoint.Barrier{}, &em); err != nil {
				t.Fatal(err)
			}
		case 2 * mini.Size:
			if err := o.OnWatermark(5, &em); err != nil {
				t.Fatal(err)
			}
		default:
			if o.(exec.ProcessingTimer).OnTimer(0, &em) != nil {
				t.Fatal("timer")
			}
		}
		want := map[string]int{}
		for k, rows := range live {
			if len(rows) == 0 {
				continue
			}
			parts := []string{k}
			for _, c := range cases {
				parts = append(parts, c.naive(rows))
			}
			for _, c := range ordered {
				parts = append(parts, c.replay(logs[k]))
			}
			want[strings.Join(parts, "|")]++
		}
		log := em.take()
		if updateBefore {
			fold(t, table, log)
		} else {
			table = upsertFold(t, byKey, log)
		}
		if g, w := strings.Join(sorted(table), "\n"), strings.Join(sorted(want), "\n"); g != w {
			t.Fatalf("seed %d: got\n%s\nwant\n%s\nlog\n%s", seed, g, w, strings.Join(log, "\n"))
		}
	}
}

// upsertFold applies an upsert changelog whose key is the first column.
func upsertFold(t *testing.T, byKey map[string]string, log []string) map[string]int {
	t.Helper()
	for _, c := range log {
		kind, row, _ := strings.Cut(c, "|")
		key, _, _ := strings.Cut(row, "|")
		_, has := byKey[key]
		switch kind {
		case "-U":
			t.Fatalf("-U without demand: %s", c)
		case "-D":
			if byKey[key] != row {
				t.Fatalf("%s deletes %q", c, byKey[key])
			}
			delete(byKey, key)
		default:
			if has != (kind == "+U") {
				t.Fatalf("%s although the key exists: %v", c, has)
			}
			byKey[key] = row
		}
	}
	table := map[string]int{}
	for _, r := range byKey {
		table[r]++
	}
	return table
}

// What leaves for single rows, as Flink's GroupAggFunction: traps 1, 4, 6 and 7 of the operator semantics.
func TestGroupAggregateKinds(t *testing.T) {
	out := types.NewSchema(types.Column{Name: "k", Type: types.StringType}, types.Column{Name: "n", Type: types.BigIntType}, types.Column{Name: "m", Type: types.IntType})
	spec := GroupAggSpec{Input: aggInput, Keys: []int{0}, InputMode: types.Retract, EmitUpdateBefore: true, Output: out, Aggs: []expr.Agg{
		{Kind: expr.AggCount, Arg: 1, ArgType: types.IntType, Filter: -1, Type: types.BigIntType}, {Kind: expr.AggMin, Arg: 1, ArgType: types.IntType, Filter: -1, Type: types.IntType}}}
	steps := []struct {
		kind types.RowKind
		i    int64
		null int
		want string
	}{
		{types.Delete, 5, 0, ""},
		{types.Insert, 5, 0, "+I|a|1|5"},
		{types.Insert, 7, 0, "-U|a|1|5 +U|a|2|5"},
		{types.Insert, 0, 1, ""}, // NULL: neither COUNT nor MIN changes
		{types.Delete, 5, 0, "-U|a|2|5 +U|a|1|7"},
		{types.Delete, 0, 1, ""},
		{types.Delete, 7, 0, "-D|a|1|7"},
		{types.UpdateAfter, 1, 0, "+I|a|1|1"},
	}
	o := openOp(t, NewGroupAggregate(spec), newSubtask(t, 0))
	var em rowCollector
	for i, s := range steps {
		b := batch.NewBuilder(aggInput)
		aggRow{k: "a", i: s.i, null: s.null}.append(b, s.kind)
		if err := o.Process(0, b.Finish(), &em); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(em.take(), " "); got != s.want {
			t.Fatalf("step %d: got %q, want %q", i, got, s.want)
		}
	}
}

// A global aggregate over no rows emits nothing; SELECT DISTINCT emits each row once.
func TestGlobalAndDistinct(t *testing.T) {
	n := types.NewSchema(types.Column{Name: "n", Type: types.BigIntType})
	o := openOp(t, NewGroupAggregate(GroupAggSpec{Input: aggInput, Output: n, EmitUpdateBefore: true,
		Aggs: []expr.Agg{{Kind: expr.AggCountStar, Arg: -1, Filter: -1, Type: types.BigIntType}}}), newSubtask(t, 0))
	var em rowCollector
	if err := o.Process(0, batch.NewBuilder(aggInput).Finish(), &em); err != nil || len(em.take()) > 0 {
		t.Fatal("rows for no input", err)
	}
	b := batch.NewBuilder(aggInput)
	for range 3 {
		aggRow{k: "a"}.append(b, types.Insert)
	}
	if err := o.Process(0, b.Finish(), &em); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(em.take(), " "); got != "+I|3" {
		t.Fatalf("got %q", got)
	}
	d := openOp(t, NewGroupAggregate(GroupAggSpec{Input: aggInput, Keys: []int{0, 1}, Output: types.NewSchema(aggInput.Columns[:2]...)}), newSubtask(t, 0))
	b = batch.NewBuilder(aggInput)
	for _, r := range []aggRow{{k: "a", i: 1}, {k: "a", i: 1}, {k: "a", null: 1}, {k: "a", null: 1}, {k: "b", i: 1}} {
		r.append(b, types.Insert)
	}
	if err := d.Process(0, b.Finish(), &em); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(em.take(), " "); got != "+I|a|1 +I|a|NULL +I|b|1" {
		t.Fatalf("got %q", got)
	}
}

// The steady state of a hot aggregate allocates nothing per row.
func TestAggregateAllocs(t *testing.T) {
	in := types.NewSchema(types.Column{Name: "k", Type: types.BigIntType}, types.Column{Name: "v", Type: types.BigIntType})
	out := types.NewSchema(in.Columns[0], types.Column{Name: "s", Type: types.BigIntType}, types.Column{Name: "c", Type: types.BigIntType})
	o := openOp(t, NewGroupAggregate(GroupAggSpec{Input: in, Keys: []int{0}, Output: out, Aggs: []expr.Agg{
		{Kind: expr.AggSum, Arg: 1, ArgType: types.BigIntType, Filter: -1, Type: types.BigIntType}, {Kind: expr.AggCountStar, Arg: -1, Filter: -1, Type: types.BigIntType}}}), newSubtask(t, 0))
	b := batch.NewBuilder(in)
	for i := range batch.Size {
		b.Cols[0].AppendI64(int64(i % 512))
		b.Cols[1].AppendI64(int64(i))
		b.RowDone()
	}
	bt := b.Finish()
	sink := discard{}
	run := func() {
		if err := o.Process(0, bt, sink); err != nil {
			t.Fatal(err)
		}
	}
	run()
	if n := testing.AllocsPerRun(50, run); n > 20 {
		t.Errorf("%.0f allocations for a batch of %d rows", n, batch.Size)
	}
}

type discard struct{}

func (discard) Emit(*batch.Batch) error { return nil }

func BenchmarkGroupAggregate(b *testing.B) {
	in := types.NewSchema(types.Column{Name: "k", Type: types.BigIntType}, types.Column{Name: "v", Type: types.BigIntType})
	out := types.NewSchema(in.Columns[0], types.Column{Name: "s", Type: types.BigIntType}, types.Column{Name: "c", Type: types.BigIntType}, types.Column{Name: "m", Type: types.BigIntType})
	for _, keys := range []int{1000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			o := openOp(b, NewGroupAggregate(GroupAggSpec{Input: in, Keys: []int{0}, Output: out, Aggs: []expr.Agg{
				{Kind: expr.AggSum, Arg: 1, ArgType: types.BigIntType, Filter: -1, Type: types.BigIntType}, {Kind: expr.AggCountStar, Arg: -1, Filter: -1, Type: types.BigIntType},
				{Kind: expr.AggMax, Arg: 1, ArgType: types.BigIntType, Filter: -1, Type: types.BigIntType}}}), newSubtask(b, 2<<30))
			rnd := rand.New(rand.NewSource(1))
			bld := batch.NewBuilder(in)
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; i < b.N; i += batch.Size {
				b.StopTimer()
				bld.Reset()
				for range batch.Size {
					bld.Cols[0].AppendI64(int64(rnd.Intn(keys)))
					bld.Cols[1].AppendI64(int64(rnd.Intn(1000)))
					bld.RowDone()
				}
				bt := bld.Finish()
				b.StartTimer()
				if err := o.Process(0, bt, discard{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

var _ exec.Emitter = discard{}
