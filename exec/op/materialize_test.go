package op

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// materializeModel is what a materialiser does, with one list per key: rows are (key, identity, value).
type materializeModel struct {
	lists map[int64][][3]int64
	ids   bool
}

// change applies a row and is the change for the sink, "" for none.
func (m *materializeModel) change(retract bool, r [3]int64) string {
	list := m.lists[r[0]]
	at := slices.IndexFunc(list, func(x [3]int64) bool { return x == r || m.ids && x[1] == r[1] })
	text := func(kind string, r [3]int64) string { return fmt.Sprintf("%s|%d|%d|%d", kind, r[0], r[1], r[2]) }
	switch {
	case !retract && at >= 0 && m.ids:
		list[at] = r
		return text("+U", r)
	case !retract:
		m.lists[r[0]] = append(list, r)
		if len(list) == 0 {
			return text("+I", r)
		}
		return text("+U", r)
	case at < 0:
		return ""
	}
	last := at == len(list)-1
	list = slices.Delete(list, at, at+1)
	m.lists[r[0]] = list
	switch {
	case len(list) == 0:
		return text("-D", r)
	case last:
		return text("+U", list[len(list)-1])
	}
	return ""
}

// Primary keys of few and of very many rows, in and beyond memory, have the changes that a plain list has.
func TestMaterializeLists(t *testing.T) {
	s := types.NewSchema(types.Column{Name: "k", Type: types.BigIntType}, types.Column{Name: "id", Type: types.BigIntType}, types.Column{Name: "v", Type: types.BigIntType})
	for _, ids := range []bool{true, false} {
		spec := MaterializeSpec{Input: s, Key: []int{0}}
		if ids {
			spec.InputKey = []int{1}
		}
		o := openOp(t, NewMaterialize(spec), newSubtask(t, 32<<10)).(*materialize)
		model := &materializeModel{lists: map[int64][][3]int64{}, ids: ids}
		rnd := rand.New(rand.NewPCG(7, 7))
		b := batch.NewBuilder(s)
		c := &rowCollector{}
		var want []string
		give := func(retract bool, r [3]int64) {
			if w := model.change(retract, r); w != "" {
				want = append(want, w)
			}
			for i, x := range r {
				b.Cols[i].AppendI64(x)
			}
			kind := types.UpdateAfter
			if retract {
				kind = types.UpdateBefore
			}
			b.RowKindDone(kind)
			if b.Len() == 300 {
				processOver(t, o, c, b.Finish())
				b.Reset()
			}
		}
		for step := range 30_000 {
			k := int64(rnd.IntN(3))
			list := model.lists[k]
			// Key 0 grows for long and shrinks to nothing at the end, the others have few rows.
			limit := []int{3000, 4, 40}[k]
			if k == 0 && step > 24_000 {
				limit = 0
			}
			if n := len(list); n > 0 && (n >= limit || rnd.IntN(3) == 0) {
				i := []int{0, n - 1, rnd.IntN(n)}[rnd.IntN(3)]
				give(true, list[i])
				continue
			}
			give(rnd.IntN(20) == 0, [3]int64{k, int64(rnd.IntN(6000)), int64(rnd.IntN(3))})
		}
		for k := range int64(3) {
			for len(model.lists[k]) > 0 {
				give(true, model.lists[k][len(model.lists[k])-1])
			}
		}
		processOver(t, o, c, b.Finish())
		if !slices.Equal(c.rows, want) {
			i := 0
			for i < min(len(want), len(c.rows)) && want[i] == c.rows[i] {
				i++
			}
			t.Fatalf("identities %t: change %d of %d and %d differs: got %v, want %v", ids, i, len(c.rows), len(want), c.rows[i:min(i+2, len(c.rows))], want[i:min(i+2, len(want))])
		}
		if n := o.table.Len() + o.large.m.roots.Len() + o.large.m.nodes.Len(); n != 0 {
			t.Errorf("identities %t: %d rows of state are left", ids, n)
		}
	}
}

// A row of a large list that is replaced in place lives on with all that finds it.
func TestMaterializeLargeListExpires(t *testing.T) {
	s := types.NewSchema(types.Column{Name: "k", Type: types.BigIntType}, types.Column{Name: "id", Type: types.BigIntType}, types.Column{Name: "v", Type: types.StringType})
	h := newStateHarness(t, 1<<20)
	o := openOp(t, NewMaterialize(MaterializeSpec{Input: s, Key: []int{0}, InputKey: []int{1}, TTL: 1000}), h).(*materialize)
	c := &rowCollector{}
	give := func(kind types.RowKind, id int64, v string) {
		b := batch.NewBuilder(s)
		b.Cols[0].AppendI64(1)
		b.Cols[1].AppendI64(id)
		b.Cols[2].AppendStr(v)
		b.RowKindDone(kind)
		processOver(t, o, c, b.Finish())
	}
	for id := range int64(12) {
		give(types.UpdateAfter, id, strings.Repeat("x", 600))
	}
	h.now += 700
	give(types.UpdateAfter, 7, "again")
	h.now += 700 // the other rows have expired
	c.rows = nil
	give(types.UpdateAfter, 7, "third")
	give(types.Delete, 7, "third")
	if want := []string{"+U|1|7|third", "-D|1|7|third"}; !slices.Equal(c.rows, want) {
		t.Fatalf("got %v, want %v", c.rows, want)
	}
	if n := o.missing.Load(); n != 0 {
		t.Errorf("%d rows were missed", n)
	}
}
