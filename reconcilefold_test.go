package streamsql

import (
	"slices"
	"testing"

	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// Goal: two tallies differ in exactly the groups whose rows differ, whatever changes led to them. Method: a table of changes
// for either side, by key and as a multiset.

type change struct {
	kind types.RowKind
	id   int64
	name string
}

func TestTally(t *testing.T) {
	schema := &types.Schema{Columns: []types.Column{{Name: "id", Type: types.BigIntType}, {Name: "name", Type: types.StringType}}}
	add := func(id int64, name string) change { return change{types.Insert, id, name} }
	for _, c := range []struct {
		name   string
		key    []string
		a, b   []change
		differ []string // ids, by which rows are grouped
	}{
		{name: "order", a: []change{add(1, "a"), add(2, "b"), add(1, "a")}, b: []change{add(2, "b"), add(1, "a"), add(1, "a")}},
		{name: "how often", a: []change{add(1, "a"), add(2, "b")}, b: []change{add(1, "a"), add(1, "a"), add(2, "b")}, differ: []string{"1"}},
		{name: "one missing", a: []change{add(1, "a"), add(2, "b")}, b: []change{add(2, "b")}, differ: []string{"1"}},
		{name: "another value, same count and sum", a: []change{add(1, "a")}, b: []change{add(1, "b")}, differ: []string{"1"}},
		{name: "taken back", a: []change{add(1, "a"), {types.UpdateBefore, 1, "a"}, {types.UpdateAfter, 1, "b"}}, b: []change{add(1, "b")}},
		{name: "all taken back", a: []change{add(1, "a"), {types.Delete, 1, "a"}}},
		{name: "values that could run together", a: []change{add(1, `a", id=2`)}, b: []change{add(1, "a")}, differ: []string{"1"}},
		{name: "key: the last one counts", key: []string{"id"}, a: []change{add(1, "a"), {types.UpdateAfter, 1, "b"}}, b: []change{add(1, "b"), add(1, "b")}},
		{name: "key: deleted", key: []string{"id"}, a: []change{add(1, "a"), add(2, "b"), {types.Delete, 1, ""}}, b: []change{add(2, "b")}},
		{name: "key: another value", key: []string{"id"}, a: []change{add(1, "a"), add(2, "b")}, b: []change{add(1, "a"), add(2, "c")}, differ: []string{"2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := newLayout(schema, c.key, "id", expr.Session{})
			if err != nil {
				t.Fatal(err)
			}
			var sides [2]*tally
			for i, changes := range [][]change{c.a, c.b} {
				sides[i] = newTally(l, nil)
				for _, x := range changes {
					sides[i].take(x.kind, []types.Datum{types.IntDatum(x.id), types.StrDatum(x.name)})
				}
			}
			if got := differing(sides[0], sides[1]); !slices.Equal(got, c.differ) {
				t.Errorf("differ in %v, want %v", got, c.differ)
			}
		})
	}
}

func TestReconcileGroups(t *testing.T) {
	ts := types.Column{Name: "at", Type: types.Type{Kind: types.Timestamp, Precision: 3}}
	for _, c := range []struct {
		cols []types.Column
		by   string
		want string
	}{
		{cols: []types.Column{{Name: "id", Type: types.BigIntType}}, want: "hash"},
		{cols: []types.Column{{Name: "id", Type: types.BigIntType}, ts}, want: "at (hours)"},
		{cols: []types.Column{ts, {Name: "window_end", Type: types.Type{Kind: types.Timestamp, Precision: 3}}}, want: "window_end"},
		{cols: []types.Column{ts, {Name: "id", Type: types.BigIntType}}, by: "id", want: "id"},
	} {
		l, err := newLayout(&types.Schema{Columns: c.cols}, nil, c.by, expr.Session{})
		if err != nil || l.String() != c.want {
			t.Errorf("%v by %q: %v, %v, want %s", c.cols, c.by, l, err, c.want)
		}
	}
	if _, err := newLayout(&types.Schema{Columns: []types.Column{ts}}, nil, "nothing", expr.Session{}); err == nil {
		t.Error("a column that is not there is taken")
	}
}
