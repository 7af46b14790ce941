package op

// Goal: the joins' exact changes, and the right final table. Method: Flink's table of emitted kinds row by row; random
// changes on both sides against a nested loop over what the sides hold.

import (
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
	"github.com/streamsql/streamsql/tests/short"
)

// joinSide columns of the tests: k BIGINT (join key), v BIGINT, s STRING.
func joinTestSchema(prefix string) *types.Schema {
	return types.NewSchema(types.Column{Name: prefix + "k", Type: types.BigIntType}, types.Column{Name: prefix + "v", Type: types.BigIntType},
		types.Column{Name: prefix + "s", Type: types.StringType})
}

func joinTestSpec(kind JoinKind) JoinSpec {
	l, r := joinTestSchema("l"), joinTestSchema("r")
	s := JoinSpec{Kind: kind, Left: JoinInput{Schema: l, Keys: []int{0}}, Right: JoinInput{Schema: r, Keys: []int{0}}, NullSafe: []bool{false}, Output: l}
	if !kind.HalfJoin() {
		s.Output = &types.Schema{Columns: slices.Concat(l.Columns, r.Columns)}
	}
	return s
}

// residual is l.v < r.v.
func residual(t testing.TB) expr.Expr {
	t.Helper()
	c, err := expr.NewBinary("<", &expr.Column{Index: 1, Name: "lv", T: types.BigIntType}, &expr.Column{Index: 4, Name: "rv", T: types.BigIntType})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var kindOf = map[string]types.RowKind{"+I": types.Insert, "-U": types.UpdateBefore, "+U": types.UpdateAfter, "-D": types.Delete}

// joinBatch makes a batch of rows such as "+I 1 10 a"; "-" is NULL.
func joinBatch(s *types.Schema, rows ...string) *batch.Batch {
	b := batch.NewBuilder(s)
	for _, r := range rows {
		f := strings.Fields(r)
		for i, c := range b.Cols {
			switch x := f[i+1]; {
			case x == "-":
				c.AppendNull()
			case s.Columns[i].Type.IsString():
				c.AppendStr(x)
			default:
				n, _ := strconv.ParseInt(x, 10, 64)
				c.AppendI64(n)
			}
		}
		b.RowKindDone(kindOf[f[0]])
	}
	return b.Finish()
}

func TestJoinChanges(t *testing.T) {
	type step struct{ side, row, want string }
	l := func(row, want string) step { return step{"L", row, want} }
	r := func(row, want string) step { return step{"R", row, want} }
	for _, c := range []struct {
		name  string
		kind  JoinKind
		alter func(*JoinSpec)
		steps []step
	}{
		{"inner keeps kinds", InnerJoin, nil, []step{
			l("+I 1 1 a", ""), r("+I 1 2 x", "+I 1 1 a 1 2 x"), r("+U 1 3 y", "+U 1 1 a 1 3 y"), r("-U 1 9 unknown", "-U 1 1 a 1 9 unknown"),
			l("-D 1 1 a", "-D 1 1 a 1 2 x; -D 1 1 a 1 3 y"),
		}},
		{"inner counts equal rows", InnerJoin, nil, []step{
			l("+I 1 1 a", ""), l("+I 1 1 a", ""), r("+I 1 2 x", "+I 1 1 a 1 2 x; +I 1 1 a 1 2 x"), l("-D 1 1 a", "-D 1 1 a 1 2 x"),
			r("-D 1 2 x", "-D 1 1 a 1 2 x"),
		}},
		{"left pads until matched", LeftJoin, nil, []step{ // traps 22, 23, 24
			l("+I 1 1 a", "+I 1 1 a - - -"), r("+I 1 2 x", "-D 1 1 a - - -; +I 1 1 a 1 2 x"),
			r("-U 1 2 x", "-U 1 1 a 1 2 x; +I 1 1 a - - -"), r("+U 1 3 y", "-D 1 1 a - - -; +I 1 1 a 1 3 y"),
			l("-U 1 1 a", "-D 1 1 a 1 3 y"), l("+U 1 5 b", "+I 1 5 b 1 3 y"), l("+U 2 5 c", "+I 2 5 c - - -"), l("-D 2 5 c", "-D 2 5 c - - -"),
		}},
		{"left: only the first match removes the pad", LeftJoin, nil, []step{ // trap 26
			l("+I 1 1 a", "+I 1 1 a - - -"), r("+I 1 2 x", "-D 1 1 a - - -; +I 1 1 a 1 2 x"), r("+I 1 3 y", "+I 1 1 a 1 3 y"),
			r("-D 1 2 x", "-D 1 1 a 1 2 x"), r("-D 1 3 y", "-D 1 1 a 1 3 y; +I 1 1 a - - -"),
		}},
		{"left: a NULL key is padded and never matches", LeftJoin, nil, []step{ // trap 27
			l("+I - 1 a", "+I - 1 a - - -"), r("+I - 2 x", ""), l("-D - 1 a", "-D - 1 a - - -"),
		}},
		{"inner: NULL matches NULL when asked", InnerJoin, func(s *JoinSpec) { s.NullSafe[0] = true }, []step{ // trap 28
			l("+I - 1 a", ""), r("+I - 2 x", "+I - 1 a - 2 x"),
		}},
		{"right", RightJoin, nil, []step{
			r("+I 1 2 x", "+I - - - 1 2 x"), l("+I 1 1 a", "-D - - - 1 2 x; +I 1 1 a 1 2 x"), l("+U 1 3 b", "+I 1 3 b 1 2 x"),
			r("-U 1 2 x", "-D 1 1 a 1 2 x; -D 1 3 b 1 2 x"), r("+U 1 4 y", "+I 1 1 a 1 4 y; +I 1 3 b 1 4 y"), l("-D 1 1 a", "-D 1 1 a 1 4 y"),
			l("-D 1 3 b", "-D 1 3 b 1 4 y; +I - - - 1 4 y"),
		}},
		{"full", FullJoin, nil, []step{
			l("+I 1 1 a", "+I 1 1 a - - -"), r("+I 1 2 x", "-D 1 1 a - - -; +I 1 1 a 1 2 x"), l("-D 1 1 a", "-D 1 1 a 1 2 x; +I - - - 1 2 x"),
			r("-U 1 2 x", "-D - - - 1 2 x"), r("+U 1 3 y", "+I - - - 1 3 y"), r("+I - 9 n", "+I - - - - 9 n"),
		}},
		{"semi", SemiJoin, nil, []step{ // trap 30
			l("+I 1 1 a", ""), r("+U 1 2 x", "+U 1 1 a"), r("+I 1 3 y", ""), l("+U 1 2 b", "+U 1 2 b"), r("-U 1 2 x", ""),
			r("-D 1 3 y", "-D 1 1 a; -D 1 2 b"), l("-D 1 1 a", ""), l("+I - 1 n", ""), r("+I - 1 n", ""),
		}},
		{"anti", AntiJoin, nil, []step{
			l("+I 1 1 a", "+I 1 1 a"), r("+U 1 2 x", "-D 1 1 a"), r("+I 1 3 y", ""), l("+I 1 2 b", ""), r("-U 1 2 x", ""),
			r("-D 1 3 y", "+I 1 1 a; +I 1 2 b"), l("-U 1 1 a", "-U 1 1 a"), l("+I - 1 n", "+I - 1 n"), r("+I - 1 n", ""), l("-D - 1 n", "-D - 1 n"),
		}},
		{"left by upserts: a repeated row is no second match", LeftJoin, func(s *JoinSpec) { s.Left.Unique, s.Right.Unique = []int{0}, []int{0} }, []step{ // trap 31
			l("+I 1 1 a", "+I 1 1 a - - -"), r("+I 1 2 x", "-D 1 1 a - - -; +I 1 1 a 1 2 x"), r("+U 1 3 y", "+I 1 1 a 1 3 y"),
			r("-D 1 3 y", "-D 1 1 a 1 3 y; +I 1 1 a - - -"), l("+U 1 2 b", "+I 1 2 b - - -"), r("-D 1 7 gone", "-D 1 2 b 1 7 gone"), r("+I 1 8 y", "-D 1 2 b - - -; +I 1 2 b 1 8 y"),
		}},
		{"unique key beside the join key", InnerJoin, func(s *JoinSpec) { s.Right.Unique = []int{0, 1} }, []step{
			r("+I 1 1 x", ""), r("+I 1 2 y", ""), r("+U 1 1 z", ""), l("+I 1 0 a", "+I 1 0 a 1 1 z; +I 1 0 a 1 2 y"), r("-D 1 1 z", "-D 1 0 a 1 1 z"),
		}},
		{"left with a condition", LeftJoin, func(s *JoinSpec) { s.Cond = residual(t) }, []step{
			l("+I 1 5 a", "+I 1 5 a - - -"), r("+I 1 5 x", ""), r("+I 1 6 y", "-D 1 5 a - - -; +I 1 5 a 1 6 y"), l("+I 1 4 b", "+I 1 4 b 1 5 x; +I 1 4 b 1 6 y"),
			r("-D 1 6 y", "-D 1 4 b 1 6 y; -D 1 5 a 1 6 y; +I 1 5 a - - -"), l("-D 1 5 a", "-D 1 5 a - - -"),
		}},
		{"anti with a condition", AntiJoin, func(s *JoinSpec) { s.Cond = residual(t) }, []step{
			l("+I 1 5 a", "+I 1 5 a"), r("+I 1 5 x", ""), r("+I 1 6 y", "-D 1 5 a"), r("-D 1 6 y", "+I 1 5 a"), l("+I - 5 n", "+I - 5 n"),
		}},
		{"cross", InnerJoin, func(s *JoinSpec) { s.Left.Keys, s.Right.Keys, s.NullSafe = nil, nil, nil }, []step{
			l("+I 1 1 a", ""), r("+I 2 2 x", "+I 1 1 a 2 2 x"), r("+I - 2 y", "+I 1 1 a - 2 y"), l("+I - 1 b", "+I - 1 b - 2 y; +I - 1 b 2 2 x"),
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := joinTestSpec(c.kind)
			if c.alter != nil {
				c.alter(&spec)
			}
			o := openOp(t, NewJoin(spec), newSubtask(t, 64<<20))
			out := &rowCollector{}
			for i, s := range c.steps {
				in, port := spec.Left.Schema, 0
				if s.side == "R" {
					in, port = spec.Right.Schema, 1
				}
				if err := o.Process(port, joinBatch(in, s.row), out); err != nil {
					t.Fatal(err)
				}
				got := strings.ReplaceAll(strings.ReplaceAll(strings.Join(out.take(), "; "), "|", " "), "NULL", "-")
				if sortedChanges(got) != sortedChanges(s.want) {
					t.Errorf("step %d, %s %s:\n got %s\nwant %s", i, s.side, s.row, got, s.want)
				}
			}
		})
	}
}

// sortedChanges orders the changes of different pairs, which the state's order decides; a pad stays beside its pair.
func sortedChanges(s string) string {
	parts := strings.Split(s, "; ")
	if strings.Contains(s, "- - -") {
		return s
	}
	slices.Sort(parts)
	return strings.Join(parts, "; ")
}

// joinModel holds the rows of both sides and joins them by nested loops.
type joinModel struct {
	kind     JoinKind
	cond     bool
	nullSafe bool
	cross    bool
	sides    [2][]joinTestRow
}

type joinTestRow struct {
	k, v int // k < 0 = NULL
	s    string
}

func (r joinTestRow) String() string {
	k := strconv.Itoa(r.k)
	if r.k < 0 {
		k = "-"
	}
	return fmt.Sprintf("%s %d %s", k, r.v, r.s)
}

func (m *joinModel) matches(l, r joinTestRow) bool {
	key := l.k == r.k && (l.k >= 0 || m.nullSafe) || m.cross
	return key && (!m.cond || l.v < r.v)
}

func (m *joinModel) result() map[string]int {
	out := map[string]int{}
	add := func(l, r string) { out[strings.ReplaceAll(strings.TrimSpace(l+" "+r), " ", "|")]++ }
	const pad = "- - -"
	matched := make([]bool, len(m.sides[1]))
	for _, l := range m.sides[0] {
		n := 0
		for j, r := range m.sides[1] {
			if m.matches(l, r) {
				n++
				matched[j] = true
				if !m.kind.HalfJoin() {
					add(l.String(), r.String())
				}
			}
		}
		switch {
		case m.kind == SemiJoin && n > 0, m.kind == AntiJoin && n == 0:
			add(l.String(), "")
		case m.kind.PadsLeft() && n == 0:
			add(l.String(), pad)
		}
	}
	for j, r := range m.sides[1] {
		if m.kind.PadsRight() && !matched[j] {
			add(pad, r.String())
		}
	}
	return out
}

func TestJoinRandom(t *testing.T) {
	for seed := range int64(short.Or(160, 40)) {
		rnd := rand.New(rand.NewSource(seed))
		m := &joinModel{kind: JoinKind(rnd.Intn(6)), cond: rnd.Intn(2) == 0, nullSafe: rnd.Intn(3) == 0, cross: rnd.Intn(8) == 0}
		spec := joinTestSpec(m.kind)
		spec.NullSafe[0] = m.nullSafe
		if m.cond {
			spec.Cond = residual(t)
		}
		if m.cross {
			spec.Left.Keys, spec.Right.Keys, spec.NullSafe = nil, nil, nil
		}
		// Per side: 0 no unique key, 1 unique on (k, v), 2 unique on k.
		unique := [2]int{rnd.Intn(3), rnd.Intn(3)}
		for i, in := range []*JoinInput{&spec.Left, &spec.Right} {
			in.Unique = [][]int{nil, {0, 1}, {0}}[unique[i]]
		}
		budget := int64(64 << 20)
		if seed%4 == 0 {
			budget = 1 << 14 // on disk
		}
		o := openOp(t, NewJoin(spec), newSubtask(t, budget))
		keys := 2 + rnd.Intn(30)
		got := map[string]int{}
		for range 30 {
			port := rnd.Intn(2)
			rows := randomJoinChanges(rnd, m, port, unique[port], keys, 1+rnd.Intn(60))
			out := &rowCollector{}
			if err := o.Process(port, joinBatch([]*types.Schema{spec.Left.Schema, spec.Right.Schema}[port], rows...), out); err != nil {
				t.Fatal(err)
			}
			log := out.take()
			for i := range log {
				log[i] = strings.ReplaceAll(log[i], "NULL", "-")
			}
			fold(t, got, log)
			if want := m.result(); !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, %v, condition %t, null safe %t, cross %t, unique %v, after %v on side %d:\n got %v\nwant %v", seed, m.kind, m.cond, m.nullSafe,
					m.cross, unique, rows, port, sorted(got), sorted(want))
			}
		}
	}
}

// randomJoinChanges changes a side of the model and returns the changes; updates come as -U and +U.
func randomJoinChanges(rnd *rand.Rand, m *joinModel, port, unique, keys, n int) []string {
	side := &m.sides[port]
	var log []string
	free := func(r joinTestRow) bool {
		for _, x := range *side {
			if unique == 2 && x.k == r.k || unique == 1 && x.k == r.k && x.v == r.v {
				return false
			}
		}
		return true
	}
	for range n {
		r := joinTestRow{rnd.Intn(keys) - 1, rnd.Intn(6), string(rune('a' + rnd.Intn(3)))}
		switch i := 0; {
		case len(*side) > 0 && rnd.Intn(3) == 0:
			i = rnd.Intn(len(*side))
			log = append(log, "-D "+(*side)[i].String())
			*side = slices.Delete(*side, i, i+1)
		case len(*side) > 0 && rnd.Intn(3) == 0:
			i = rnd.Intn(len(*side))
			old := (*side)[i]
			*side = slices.Delete(*side, i, i+1)
			if !free(r) {
				r = old
			}
			log = append(log, "-U "+old.String(), "+U "+r.String())
			*side = append(*side, r)
		case free(r):
			log = append(log, "+I "+r.String())
			*side = append(*side, r)
		}
	}
	if log == nil {
		return randomJoinChanges(rnd, m, port, unique, keys, n)
	}
	return log
}

// A key with more rows than a batch: output leaves in parts, and counts stay right.
func TestJoinManyMatches(t *testing.T) {
	for _, cond := range []bool{false, true} {
		spec := joinTestSpec(FullJoin)
		if cond {
			spec.Cond = residual(t)
		}
		o := openOp(t, NewJoin(spec), newSubtask(t, 64<<20))
		const n = 3*batch.Size + 7
		var left, drop []string
		for i := range n {
			left = append(left, fmt.Sprintf("+I 1 %d a%d", i%10, i))
			drop = append(drop, fmt.Sprintf("-D 1 %d a%d", i%10, i))
		}
		got := map[string]int{}
		for _, s := range []struct {
			port int
			rows []string
			want int
		}{{0, left, n}, {1, []string{"+I 1 100 x", "+I 1 200 y", "-U 1 200 y", "+U 1 300 y"}, 2 * n}, {0, drop, 2}} {
			out := &rowCollector{}
			if err := o.Process(s.port, joinBatch([]*types.Schema{spec.Left.Schema, spec.Right.Schema}[s.port], s.rows...), out); err != nil {
				t.Fatal(err)
			}
			fold(t, got, out.take())
			if len(got) != s.want {
				t.Fatalf("condition %t: %d rows, want %d", cond, len(got), s.want)
			}
		}
	}
}

// BenchmarkJoin joins rows one to one in the steady state: every row replaces its predecessor and finds its partner.
func BenchmarkJoin(b *testing.B) {
	for _, c := range []struct {
		name   string
		kind   JoinKind
		unique []int
		cond   bool
	}{{"Inner", InnerJoin, []int{0}, false}, {"Left", LeftJoin, []int{0}, false}, {"LeftWhere", LeftJoin, []int{0}, true}, {"Semi", SemiJoin, []int{0}, false}} {
		for _, n := range []int{1000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				s, bs := benchBatches(n)
				spec := JoinSpec{Kind: c.kind, Left: JoinInput{Schema: s, Keys: []int{0}, Unique: c.unique}, Right: JoinInput{Schema: s, Keys: []int{0}, Unique: c.unique},
					NullSafe: []bool{false}, Output: s}
				if !c.kind.HalfJoin() {
					spec.Output = &types.Schema{Columns: slices.Concat(s.Columns, s.Columns)}
				}
				if c.cond {
					spec.Cond, _ = expr.NewBinary("<=", &expr.Column{Index: 1, T: types.BigIntType}, &expr.Column{Index: 4, T: types.BigIntType})
				}
				o := openOp(b, NewJoin(spec), newSubtask(b, 512<<20))
				for _, x := range bs {
					if err := o.Process(1, x, &countRows{}); err != nil {
						b.Fatal(err)
					}
				}
				process(b, o, bs)
			})
		}
	}
}

var _ exec.Operator = (*join)(nil)
