package op

import (
	"errors"
	"fmt"
	"math"
	"math/rand"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// values replays what an aggregate over one argument holds: retractions remove the first equal value, DISTINCT takes a
// value when its count leaves zero and gives it back when it returns there.
func values(log []aggEvent, distinct, filter, nulls bool, text func(aggRow) string) []string {
	var out []string
	counts := map[string]int{}
	for _, e := range log {
		v := text(e.row)
		if v == "NULL" && !nulls || filter && e.row.f != 1 {
			continue
		}
		if e.retract {
			counts[v]--
			if !distinct || counts[v] == 0 {
				if i := slices.Index(out, v); i >= 0 {
					out = slices.Delete(out, i, i+1)
				}
			}
			continue
		}
		counts[v]++
		if !distinct || counts[v] == 1 {
			out = append(out, v)
		}
	}
	return out
}

func orderCases(t testing.TB) []orderCase {
	t.Helper()
	str := func(r aggRow) string {
		if r.null&4 != 0 {
			return "NULL"
		}
		return r.s
	}
	num := func(r aggRow) string {
		if r.null&1 != 0 {
			return "NULL"
		}
		return fmt.Sprint(r.i)
	}
	big := func(r aggRow) string {
		if r.null&2 != 0 {
			return "NULL"
		}
		return string(types.AppendDecimal(nil, types.Mul64(r.d, 1_000_000_007), 3))
	}
	mk := func(kind expr.AggKind, arg int, distinct bool, filter int, keepNulls bool) expr.Agg {
		a := expr.Agg{Kind: kind, Arg: arg, Distinct: distinct, Filter: filter, ArgType: aggInput.Columns[arg].Type, KeepNulls: keepNulls, Separator: "; "}
		var err error
		if a.Type, err = expr.AggType(kind, a.ArgType); err != nil {
			t.Fatal(err)
		}
		return a
	}
	join := func(open, sep, end, empty string) func(v []string) string {
		return func(v []string) string {
			if len(v) == 0 {
				return empty
			}
			return open + strings.Join(v, sep) + end
		}
	}
	bag := func(v []string) string {
		n := map[string]int{}
		for _, x := range v {
			n[x]++
		}
		var out []string
		for x, k := range n {
			out = append(out, fmt.Sprintf("%s=%d", x, k))
		}
		sort.Strings(out)
		return "{" + strings.Join(out, ", ") + "}"
	}
	end := func(i int) func(v []string) string {
		return func(v []string) string {
			if len(v) == 0 {
				return "NULL"
			}
			return v[(i+len(v))%len(v)]
		}
	}
	mkCase := func(a expr.Agg, text func(aggRow) string, show func([]string) string) orderCase {
		return orderCase{a, func(log []aggEvent) string {
			return show(values(log, a.Distinct, a.Filter >= 0, a.KeepNulls, text))
		}}
	}
	list, array, json := join("", "; ", "", "NULL"), join("[", ", ", "]", "NULL"), join("[", ",", "]", "[]")
	cases := []orderCase{
		mkCase(mk(expr.AggList, 3, false, -1, false), str, list),
		mkCase(mk(expr.AggList, 3, true, 4, false), str, list),
		mkCase(mk(expr.AggArray, 1, false, -1, true), num, array),
		mkCase(mk(expr.AggArray, 1, true, -1, true), num, array),
		mkCase(mk(expr.AggArray, 3, false, 4, false), str, array),
		mkCase(mk(expr.AggCollect, 3, false, -1, false), str, bag),
		mkCase(mk(expr.AggCollect, 3, true, -1, false), str, bag),
		mkCase(mk(expr.AggJSONArray, 3, false, -1, false), str, json),
		mkCase(mk(expr.AggJSONArray, 3, false, 4, true), func(r aggRow) string { return strings.ReplaceAll(str(r), "NULL", "null") }, json),
	}
	for _, f := range []struct {
		kind expr.AggKind
		at   int
	}{{expr.AggFirst, 0}, {expr.AggLast, -1}} {
		cases = append(cases, mkCase(mk(f.kind, 3, false, -1, false), str, end(f.at)),
			mkCase(mk(f.kind, 1, false, 4, false), num, end(f.at)),
			mkCase(mk(f.kind, 1, true, -1, false), num, end(f.at)),
			mkCase(mk(f.kind, 5, false, -1, false), big, end(f.at)))
	}
	return cases
}

// spread is the variance or deviation by the definition.
func spread(k expr.AggKind, xs []float64) (float64, bool) {
	n := float64(len(xs))
	mean, sum := 0.0, 0.0
	for _, x := range xs {
		mean += x / n
	}
	for _, x := range xs {
		sum += (x - mean) * (x - mean)
	}
	div := n
	if k == expr.AggVarSamp || k == expr.AggStddevSamp {
		div--
	}
	if len(xs) == 0 || div == 0 {
		return 0, false
	}
	if k == expr.AggStddevPop || k == expr.AggStddevSamp {
		return math.Sqrt(sum / div), true
	}
	return sum / div, true
}

// Variances under insertions and retractions are those of the values that are left.
func TestVariance(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	for _, k := range []expr.AggKind{expr.AggVarPop, expr.AggVarSamp, expr.AggStddevPop, expr.AggStddevSamp} {
		accs, fixed, _ := layout([]expr.Agg{{Kind: k, Filter: -1, ArgType: types.DoubleType, Type: types.DoubleType}})
		a := &accs[0]
		v := batch.NewVec(types.DoubleType, 1)
		row := make([]byte, fixed)
		var live []float64
		for step := range 3000 {
			if n := len(live); n > 0 && rnd.Intn(9) < 4 {
				j := rnd.Intn(n)
				v.F64[0] = live[j]
				live = slices.Delete(live, j, j+1)
				a.add(row, v, 0, -1)
			} else {
				v.F64[0] = rnd.NormFloat64()*100 + 1e4
				live = append(live, v.F64[0])
				a.add(row, v, 0, 1)
			}
			want, some := spread(k, live)
			lo, _, ok := a.value(row)
			got := math.Float64frombits(uint64(lo))
			if ok != some || ok && math.Abs(got-want) > 1e-4*max(1, want) {
				t.Fatalf("%s step %d: %v %v, want %v %v", k, step, got, ok, want, some)
			}
		}
	}
	// The integers of Flink's documentation of these functions: TINYINT 1, 2, 3 and INT 256, 512, 768.
	for _, c := range []struct {
		kind expr.AggKind
		t    types.Type
		xs   []int64
		want int64
	}{
		{expr.AggStddevPop, types.Of(types.TinyInt), []int64{1, 2, 3}, 0}, {expr.AggStddevSamp, types.Of(types.TinyInt), []int64{1, 2, 3}, 1},
		{expr.AggStddevSamp, types.IntType, []int64{256, 512, 768}, 256}, {expr.AggVarPop, types.IntType, []int64{1, 4}, 2},
	} {
		accs, fixed, _ := layout([]expr.Agg{{Kind: c.kind, Filter: -1, ArgType: c.t, Type: c.t}})
		row, v := make([]byte, fixed), batch.NewVec(c.t, 1)
		for _, x := range c.xs {
			v.I64[0] = x
			accs[0].add(row, v, 0, 1)
		}
		if got, _, ok := accs[0].value(row); !ok || got != c.want {
			t.Errorf("%s of %v = %d, want %d", c.kind, c.xs, got, c.want)
		}
	}
}

// oneAgg feeds rows of a single column to an aggregate without keys.
func oneAgg(t *testing.T, a expr.Agg, mode types.ChangelogMode) (push func(kind types.RowKind, d types.Datum) ([]string, error)) {
	t.Helper()
	in := types.NewSchema(types.Column{Name: "x", Type: a.ArgType})
	a.Filter, a.Text = -1, a.Kind.String()
	var err error
	if a.Type, err = expr.AggType(a.Kind, a.ArgType); err != nil {
		t.Fatal(err)
	}
	out := types.NewSchema(types.Column{Name: "r", Type: a.Type})
	o := openOp(t, NewGroupAggregate(GroupAggSpec{Input: in, Aggs: []expr.Agg{a}, InputMode: mode, EmitUpdateBefore: true, Output: out}), newSubtask(t, 0))
	var em rowCollector
	return func(kind types.RowKind, d types.Datum) ([]string, error) {
		b := batch.NewBuilder(in)
		b.Cols[0].AppendDatum(d)
		b.RowKindDone(kind)
		err := o.Process(0, b.Finish(), &em)
		return em.take(), err
	}
}

// A scalar subquery has one value: a second row fails, an update does not; without rows and of NULL it is NULL.
func TestSingleValue(t *testing.T) {
	for _, ty := range []types.Type{types.IntType, types.StringType, types.DecimalOf(30, 0), types.ArrayOf(types.IntType)} {
		val := map[types.Phys]types.Datum{types.PhysI64: types.IntDatum(7), types.PhysI128: types.I128Datum(types.I128(7)), types.PhysStr: types.StrDatum("7")}[ty.Phys()]
		text := "7"
		if ty.IsNested() {
			val, text = types.ListDatum(types.IntDatum(7)), "[7]"
		}
		push := oneAgg(t, expr.Agg{Kind: expr.AggSingle, ArgType: ty}, types.Retract)
		steps := []struct {
			kind types.RowKind
			d    types.Datum
			want string
		}{
			{types.Insert, val, "+I|" + text}, {types.Delete, val, "-D|" + text}, {types.Insert, types.NullDatum, "+I|NULL"},
			{types.UpdateBefore, types.NullDatum, "-D|NULL"}, {types.UpdateAfter, val, "+I|" + text},
		}
		for i, s := range steps {
			got, err := push(s.kind, s.d)
			if err != nil || strings.Join(got, " ") != s.want {
				t.Fatalf("%s step %d: %v, %v; want %s", ty, i, got, err, s.want)
			}
		}
		var at *expr.RowError
		if _, err := push(types.Insert, types.NullDatum); !errors.As(err, &at) || !strings.Contains(at.Err.Error(), "more than one row") {
			t.Errorf("%s: a second row gives %v", ty, err)
		}
	}
}

func TestJSONObjectAgg(t *testing.T) {
	ty := types.RowOf(types.Field{Name: "k", Type: types.StringType}, types.Field{Name: "v", Type: types.StringType})
	push := oneAgg(t, expr.Agg{Kind: expr.AggJSONObject, ArgType: ty, KeepNulls: true}, types.Retract)
	pair := func(k, v string) types.Datum { return types.ListDatum(types.StrDatum(k), types.StrDatum(v)) }
	steps := []struct {
		kind types.RowKind
		d    types.Datum
		want string
	}{
		{types.Insert, pair("b", "1"), `+I|{"b":1}`},
		{types.Insert, types.ListDatum(types.StrDatum(`a"`), types.NullDatum), `-U|{"b":1} +U|{"a\"":null,"b":1}`},
		{types.Delete, pair("b", "1"), `-U|{"a\"":null,"b":1} +U|{"a\"":null}`},
		{types.Insert, pair("b", `"x"`), `-U|{"a\"":null} +U|{"a\"":null,"b":"x"}`},
	}
	for i, s := range steps {
		got, err := push(s.kind, s.d)
		if err != nil || strings.Join(got, " ") != s.want {
			t.Fatalf("step %d: %v, %v; want %s", i, got, err, s.want)
		}
	}
	for _, bad := range []struct {
		d    types.Datum
		want string
	}{{pair("b", "2"), `key "b" is in the JSON object already`}, {types.ListDatum(types.NullDatum, types.StrDatum("1")), "the key of a JSON object is NULL"}} {
		var at *expr.RowError
		if _, err := push(types.Insert, bad.d); !errors.As(err, &at) || !strings.Contains(at.Err.Error(), bad.want) {
			t.Errorf("got %v, want %s", err, bad.want)
		}
	}
}

// COLLECT of no value is the empty multiset while the group has rows, LISTAGG and ARRAY_AGG are NULL.
func TestEmptyLists(t *testing.T) {
	for kind, want := range map[expr.AggKind]string{expr.AggCollect: "+I|{}", expr.AggList: "+I|NULL", expr.AggArray: "+I|NULL", expr.AggJSONArray: "+I|[]"} {
		got, err := oneAgg(t, expr.Agg{Kind: kind, ArgType: types.StringType}, types.AppendOnly)(types.Insert, types.NullDatum)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %v %v, want %s", kind, got, err, want)
		}
	}
}

// A mini-batch is due its latency after the first row, and then nothing is.
func TestMiniBatchTimer(t *testing.T) {
	in := types.NewSchema(types.Column{Name: "k", Type: types.IntType})
	out := types.NewSchema(in.Columns[0], types.Column{Name: "n", Type: types.BigIntType})
	o := openOp(t, NewGroupAggregate(GroupAggSpec{Input: in, Keys: []int{0}, Output: out, Mini: MiniBatch{Size: 3, Latency: 500},
		Aggs: []expr.Agg{{Kind: expr.AggCountStar, Arg: -1, Filter: -1, Type: types.BigIntType}}}), newSubtask(t, 0))
	var em rowCollector
	push := func(n int) {
		b := batch.NewBuilder(in)
		for range n {
			b.Cols[0].AppendI64(1)
			b.RowDone()
		}
		if err := o.Process(0, b.Finish(), &em); err != nil {
			t.Fatal(err)
		}
	}
	timer := o.(exec.ProcessingTimer)
	check := func(what, want string, due bool) {
		t.Helper()
		at, ok := timer.NextTimer()
		if got := strings.Join(em.take(), " "); got != want || ok != due || due && at != 500 {
			t.Errorf("%s: emitted %q, timer %d %v", what, got, at, ok)
		}
	}
	check("start", "", false)
	push(2)
	check("two rows", "", true)
	if err := timer.OnTimer(500, &em); err != nil {
		t.Fatal(err)
	}
	check("timer", "+I|1|2", false)
	push(1)
	check("one more", "", true)
	push(2)
	check("full", "+U|1|5", false)
	if err := o.OnWatermark(exec.MaxWatermark, &em); err != nil {
		t.Fatal(err)
	}
	check("end", "", false)
}
