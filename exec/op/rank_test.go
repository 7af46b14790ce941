package op

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
	"github.com/streamsql/streamsql/tests/short"
)

// The rows of the rank tests: k STRING (partition), v BIGINT (order), id BIGINT, n BIGINT (limit), written "[kind] k v id n".
var rankInput = types.NewSchema(types.Column{Name: "k", Type: types.StringType}, types.Column{Name: "v", Type: types.BigIntType},
	types.Column{Name: "id", Type: types.BigIntType}, types.Column{Name: "n", Type: types.BigIntType})

func rankRow(t testing.TB, b *batch.Builder, text string) {
	t.Helper()
	f := strings.Fields(text)
	kind := types.Insert
	if k, ok := map[string]types.RowKind{"+I": types.Insert, "-U": types.UpdateBefore, "+U": types.UpdateAfter, "-D": types.Delete}[f[0]]; ok {
		kind, f = k, f[1:]
	}
	b.Cols[0].AppendStr(f[0])
	for i := 1; i < 4; i++ {
		x := int64(0)
		if i < len(f) {
			if f[i] == "-" {
				b.Cols[i].AppendNull()
				continue
			}
			var err error
			if x, err = strconv.ParseInt(f[i], 10, 64); err != nil {
				t.Fatal(err)
			}
		}
		b.Cols[i].AppendI64(x)
	}
	b.RowKindDone(kind)
}

func rankSpec(s RankStrategy, from, to int64, number bool) RankSpec {
	out := slices.Clone(rankInput.Columns)
	if number {
		out = append(out, types.Column{Name: "rn", Type: types.BigIntType.NotNull()})
	}
	return RankSpec{Input: rankInput, Partition: []int{0}, Order: []SortKey{{Col: 1}}, Strategy: s, UniqueKey: []int{0, 2},
		From: from, To: to, ToColumn: -1, Number: number, EmitUpdateBefore: true, Mini: MiniBatch{Size: 1}, Output: types.NewSchema(out...)}
}

// rankLog runs rows one by one and gives the changes of each as "k|v|id|n[|place]" without the columns not asked for.
func rankLog(t *testing.T, spec RankSpec, rows ...string) []string {
	t.Helper()
	o := openOp(t, NewRank(spec), newSubtask(t, 1<<20))
	c := &rowCollector{}
	var log []string
	for _, r := range rows {
		b := batch.NewBuilder(rankInput)
		rankRow(t, b, r)
		if err := o.Process(0, b.Finish(), c); err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, x := range c.take() {
			f := strings.Split(x, "|")
			s := f[0] + " " + f[2]
			if spec.Number {
				s += "@" + f[5]
			}
			out = append(out, s)
		}
		log = append(log, strings.Join(out, ", "))
	}
	return log
}

// TestRankKinds: the changes of each row of single runs, as in Flink's tests of its Top-N functions.
func TestRankKinds(t *testing.T) {
	noBefore := func(s RankSpec) RankSpec { s.EmitUpdateBefore = false; return s }
	limit := func(s RankSpec) RankSpec { s.ToColumn, s.To = 3, 0; return s }
	unordered := func(s RankSpec) RankSpec { s.Order = nil; return s }
	nullsFirst := func(s RankSpec) RankSpec { s.Order[0].NullsFirst = true; return s }
	for _, c := range []struct {
		name string
		spec RankSpec
		in   []string
		want []string
	}{
		{"append top 2", rankSpec(RankAppend, 1, 2, false), []string{"a 12", "a 19", "a 11", "a 20", "b 5"},
			[]string{"+I 12", "+I 19", "-D 19, +I 11", "", "+I 5"}},
		{"append top 2 with the place", rankSpec(RankAppend, 1, 2, true), []string{"a 12", "a 19", "a 11"},
			[]string{"+I 12@1", "+I 19@2", "-U 12@1, +U 11@1, -U 19@2, +U 12@2"}},
		{"append top 2 with the place, no -U", noBefore(rankSpec(RankAppend, 1, 2, true)), []string{"a 12", "a 19", "a 11"},
			[]string{"+I 12@1", "+I 19@2", "+U 11@1, +U 12@2"}},
		{"append, second place only", rankSpec(RankAppend, 2, 2, false), []string{"a 12", "a 19", "a 11", "a 30"},
			[]string{"", "+I 19", "-U 19, +U 12", ""}},
		{"append, places 2 to 3", rankSpec(RankAppend, 2, 3, true), []string{"a 5", "a 6", "a 4", "a 1"},
			[]string{"", "+I 6@2", "-U 6@2, +U 5@2, +I 6@3", "-U 5@2, +U 4@2, -U 6@3, +U 5@3"}},
		{"append, equal rows keep the order of arrival", rankSpec(RankAppend, 1, 2, false), []string{"a 7 1", "a 7 2", "a 7 3", "a 6 4"},
			[]string{"+I 7", "+I 7", "", "-D 7, +I 6"}},
		{"append, NULL sorts first", nullsFirst(rankSpec(RankAppend, 1, 2, false)), []string{"a 1", "a 2", "a -"}, []string{"+I 1", "+I 2", "-D 2, +I NULL"}},
		{"append, variable limit: the first one counts", limit(rankSpec(RankAppend, 1, 0, false)),
			[]string{"a 1 1 2", "a 3 2 5", "a 2 3 5", "b 1 1 0", "b 1 1 3", "c 1 1 -"},
			[]string{"+I 1", "+I 3", "-D 3, +I 2", "", "", ""}},
		{"top 1", rankSpec(RankAppend, 1, 1, false), []string{"a 5", "a 5", "a 6", "a 4"}, []string{"+I 5", "", "", "-U 5, +U 4"}},
		{"top 1 with the place", rankSpec(RankAppend, 1, 1, true), []string{"a 5", "a 4"}, []string{"+I 5@1", "-U 5@1, +U 4@1"}},
		{"first 2", unordered(rankSpec(RankAppend, 1, 2, true)), []string{"a 5", "a 4", "a 3", "b 1"}, []string{"+I 5@1", "+I 4@2", "", "+I 1@1"}},
		{"second", unordered(rankSpec(RankAppend, 2, 2, false)), []string{"a 5", "a 4", "a 3"}, []string{"", "+I 4", ""}},
		{"first by a variable limit", unordered(limit(rankSpec(RankAppend, 1, 0, false))), []string{"a 5 1 1", "a 4 1 2"}, []string{"+I 5", ""}},
		{"update top 1, another version of the row", rankSpec(RankUpdate, 1, 1, false), []string{"a 5 1", "+U a 5 1 9", "+U a 5 2"},
			[]string{"+I 5", "-U 5, +U 5", ""}},
		{"update top 2", rankSpec(RankUpdate, 1, 2, false), []string{"a 5 1", "a 6 2", "+U a 4 2", "+U a 3 3", "+U a 3 3 7", "+U a 9 4"},
			[]string{"+I 5", "+I 6", "-U 6, +U 4", "-D 5, +I 3", "-U 3, +U 3", ""}},
		{"update top 3 with the place", rankSpec(RankUpdate, 1, 3, true), []string{"a 5 1", "a 6 2", "a 7 3", "+U a 4 3", "+U a 4 3 1", "+U a 1 4"},
			[]string{"+I 5@1", "+I 6@2", "+I 7@3", "-U 5@1, -U 7@3, +U 4@1, -U 6@2, +U 5@2, +U 6@3", "-U 4@1, +U 4@1",
				"-U 4@1, +U 1@1, -U 5@2, +U 4@2, -U 6@3, +U 5@3"}},
		{"update, a row gets worse", rankSpec(RankUpdate, 1, 3, true), []string{"a 5 1", "a 6 2", "a 7 3", "+U a 8 1"},
			[]string{"+I 5@1", "+I 6@2", "+I 7@3", "-U 5@1, +U 6@1, -U 6@2, +U 7@2, -U 7@3, +U 8@3"}},
		{"retract top 1", rankSpec(RankRetract, 1, 1, false), []string{"a 5", "a 4", "a 6", "-D a 4", "-U a 5", "-D a 5", "-D a 6"},
			[]string{"+I 5", "-D 5, +I 4", "", "-D 4, +I 5", "-D 5, +I 6", "", "-D 6"}},
		{"retract top 2 with the place", rankSpec(RankRetract, 1, 2, true), []string{"a 11", "a 12", "a 19", "-U a 12", "-D a 11", "-D a 19"},
			[]string{"+I 11@1", "+I 12@2", "", "-U 12@2, +U 19@2", "-U 11@1, +U 19@1, -D 19@2", "-D 19@1"}},
		{"retract, second place only", rankSpec(RankRetract, 2, 2, false), []string{"a 1", "a 2", "a 3", "-D a 1", "-D a 3", "-D a 2"},
			[]string{"", "+I 2", "", "-U 2, +U 3", "-D 3", ""}},
		{"retract, of equal rows the oldest", rankSpec(RankRetract, 1, 1, false), []string{"a 5 1", "a 5 2", "a 5 1", "-D a 5 1", "-D a 5 2"},
			[]string{"+I 5", "", "", "-D 5, +I 5", "-D 5, +I 5"}},
		{"retract in the order of arrival (LIMIT)", unordered(rankSpec(RankRetract, 1, 2, false)),
			[]string{"a 5", "a 4", "a 4", "a 3", "-D a 4", "-D a 9", "-D a 5", "-D a 3"},
			[]string{"+I 5", "+I 4", "", "", "-D 4, +I 4", "", "-D 5, +I 3", "-D 3"}},
	} {
		if got := rankLog(t, c.spec, c.in...); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%q, want\n%q", c.name, got, c.want)
		}
	}
}

type rankModelRow struct {
	text string
	v    int64
	id   int64
}

// top is what the output must be: the rows of every partition by order and arrival, those from place from to to.
func rankTop(model map[string][]rankModelRow, desc bool, from, to int64, number bool) map[string]int {
	out := map[string]int{}
	for _, rows := range model {
		rows = slices.Clone(rows)
		sort.SliceStable(rows, func(i, j int) bool {
			if desc {
				return rows[i].v > rows[j].v
			}
			return rows[i].v < rows[j].v
		})
		for i, r := range rows {
			if p := int64(i + 1); p >= from && p <= to {
				text := r.text
				if number {
					text += "|" + fmt.Sprint(p)
				}
				out[text]++
			}
		}
	}
	return out
}

// TestRankAgainstSort: random changes, random batches; the folded output is the top of the sorted input after each batch,
// over checkpoints and restores, with state in memory and on disk.
func TestRankAgainstSort(t *testing.T) {
	for _, strategy := range []RankStrategy{RankAppend, RankUpdate, RankRetract} {
		for _, number := range []bool{false, true} {
			for _, r := range [][2]int64{{1, 1}, {1, 4}, {2, 2}, {3, 30}, {1, 500}} {
				for _, order := range []string{"asc", "desc", "none"} {
					if strategy == RankUpdate && order == "none" {
						continue
					}
					name := fmt.Sprintf("%d/number=%v/%d-%d/%s", strategy, number, r[0], r[1], order)
					t.Run(name, func(t *testing.T) {
						spec := rankSpec(strategy, r[0], r[1], number)
						spec.Order[0].Desc = order == "desc"
						if order == "none" {
							spec.Order = nil
						}
						if r[1] == 4 {
							spec.TTL = 1 << 40
						}
						budget := int64(64 << 20)
						if r[1] == 500 {
							budget = 32 << 10
						}
						(&rankFuzz{t: t, r: rand.New(rand.NewPCG(uint64(len(name)), 3)), spec: spec, s: newStateHarness(t, budget), order: order,
							model: map[string][]rankModelRow{}, table: map[string]int{}}).run()
					})
				}
			}
		}
	}
}

type rankFuzz struct {
	t     *testing.T
	r     *rand.Rand
	spec  RankSpec
	s     *stateHarness
	o     exec.Operator
	order string
	model map[string][]rankModelRow
	table map[string]int
	id    int64
}

func (f *rankFuzz) run() {
	f.o = openOp(f.t, NewRank(f.spec), f.s)
	c := &rowCollector{}
	for step := range short.Or(60, 20) {
		b := batch.NewBuilder(rankInput)
		for range 1 + f.r.IntN(60) {
			f.change(b)
		}
		if err := f.o.Process(0, b.Finish(), c); err != nil {
			f.t.Fatal(err)
		}
		fold(f.t, f.table, c.take())
		want := rankTop(f.model, f.order == "desc", f.spec.From, f.spec.To, f.spec.Number)
		if got, want := sorted(f.table), sorted(want); !slices.Equal(got, want) {
			f.t.Fatalf("step %d: the output is\n%q, want\n%q", step, got, want)
		}
		if f.r.IntN(10) == 0 {
			st, err := f.o.OnBarrier(checkpoint.Barrier{}, c)
			if err != nil {
				f.t.Fatal(err)
			}
			f.s.seal()
			f.s.restart()
			f.s.restored = [][]byte{st}
			f.o = openOp(f.t, NewRank(f.spec), f.s)
		}
	}
}

// change adds a change that the strategy allows to b and the model.
func (f *rankFuzz) change(b *batch.Builder) {
	k := string(rune('a' + f.r.IntN(3)))
	rows := f.model[k]
	v := int64(f.r.IntN(100))
	switch {
	case f.spec.Strategy == RankUpdate && len(rows) > 0 && f.r.IntN(2) == 0:
		// A better version of a row, or one as good; it stays in its place in the order of arrival when the order says so.
		i := f.r.IntN(len(rows))
		x := rows[i]
		better := int64(f.r.IntN(3))
		if f.order == "desc" {
			better = -better
		}
		f.id++
		n := rankModelRow{fmt.Sprintf("%s|%d|%d|%d", k, x.v-better, x.id, f.id), x.v - better, x.id}
		if better == 0 {
			rows[i] = n
		} else {
			rows = append(slices.Delete(rows, i, i+1), n)
		}
		f.model[k] = rows
		rankRow(f.t, b, fmt.Sprintf("+U %s", strings.ReplaceAll(n.text, "|", " ")))
		return
	case f.spec.Strategy == RankRetract && len(rows) > 0 && f.r.IntN(100) < 48:
		i := f.r.IntN(len(rows))
		i = slices.IndexFunc(rows, func(r rankModelRow) bool { return r.text == rows[i].text }) // the oldest of equal ones
		rankRow(f.t, b, []string{"-U ", "-D "}[f.r.IntN(2)]+strings.ReplaceAll(rows[i].text, "|", " "))
		f.model[k] = slices.Delete(rows, i, i+1)
		return
	}
	f.id++
	id := f.id
	if f.spec.Strategy == RankRetract && f.r.IntN(3) == 0 {
		id = int64(f.r.IntN(4)) // equal rows
		v = int64(f.r.IntN(4))
	}
	n := rankModelRow{fmt.Sprintf("%s|%d|%d|0", k, v, id), v, id}
	if f.order == "none" {
		n.v = 0
	}
	f.model[k] = append(rows, n)
	rankRow(f.t, b, strings.ReplaceAll(n.text, "|", " "))
}
