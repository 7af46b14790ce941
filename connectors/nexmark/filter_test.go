package nexmark

// Goal: a source with a filter leaves out no row of the kinds that are wanted, makes the others' values as it would without, and its
// rows have the latest time of all events as far as its position. Method: the same table without a filter is the oracle.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// onlyKinds is event_type IN kinds over the columns of whole.
func onlyKinds(kinds ...kind) expr.Expr {
	in := &expr.In{X: &expr.Column{Index: 0, Name: "event_type", T: types.IntType}}
	for _, k := range kinds {
		in.List = append(in.List, &expr.Literal{T: types.IntType, Value: types.IntDatum(int64(k))})
	}
	return in
}

// times are the columns of whole with the time of each kind alone.
func times(s *connectors.SourceSpec) {
	s.Columns, s.Paths, s.Schema = []int{0, 1, 2, 3, 2, 1, 3}, [][]int{nil, {6}, {5}, {5}, {0}, {1}, {3}}, &types.Schema{}
	for i, p := range s.Paths {
		c := s.Table.Columns[s.Columns[i]]
		t := c.Type
		if p != nil {
			t = t.Fields[p[0]].Type
		}
		s.Schema.Columns = append(s.Schema.Columns, types.Column{Name: fmt.Sprint(c.Name, p), Type: t})
	}
}

func TestFilterKeepsRowsAndTime(t *testing.T) {
	for _, options := range [][]string{{"events.num=811"}, {"events.num=300", "person.proportion=3", "auction.proportion=2", "bid.proportion=1"},
		{"events.num=140100", "bid.proportion=70000"}, {"events.num=90", "bid.proportion=7"}} {
		for _, parallel := range []int{1, 2} {
			for _, kinds := range [][]kind{{aPerson}, {anAuction}, {aBid}, {aPerson, anAuction}, {aPerson, aBid}} {
				s := specOf(tableOf(whole, options...), parallel)
				times(&s)
				filtered := s
				filtered.Filter, filtered.Marked = onlyKinds(kinds...), true
				checkTime(t, filtered)
				if strings.Contains(options[len(options)-1], "0000") {
					continue // many rows, which take long as text
				}
				all, _ := drain(t, open(t, s, nil), s.Schema, forever)
				wanted := func(rows []string) (out []string) {
					for _, r := range rows {
						k, _ := strconv.Atoi(strings.TrimPrefix(strings.Split(r, " ")[1], "I64:"))
						if slices.Contains(kinds, kind(k)) {
							out = append(out, r)
						}
					}
					slices.Sort(out)
					return out
				}
				got, _ := drain(t, open(t, filtered, nil), s.Schema, forever)
				if want := wanted(all); !slices.Equal(wanted(got), want) || len(want) == 0 {
					t.Fatalf("%v %d %v, with a watermark: %d rows, want %d", options, parallel, kinds, len(got), len(want))
				}
				filtered.Marked = false
				got, _ = drain(t, open(t, filtered, nil), s.Schema, forever)
				slices.Sort(got)
				if want := wanted(all); !slices.Equal(got, want) || len(got) == 0 {
					t.Fatalf("%v %d %v: %d rows, want %d", options, parallel, kinds, len(got), len(want))
				}
			}
		}
	}
}

// checkTime compares the latest time of the rows of a split with that of its events, call by call.
func checkTime(t *testing.T, s connectors.SourceSpec) {
	t.Helper()
	r := open(t, s, nil).(*reader)
	latest := map[string]int64{}
	b := batch.NewBuilder(s.Schema)
	for {
		b.Reset()
		p, err := r.Next(context.Background(), b)
		if errors.Is(err, io.EOF) {
			return
		}
		got := b.Finish()
		for row := range got.N {
			for c := 1; c < 4; c++ {
				if v := got.Cols[c]; !v.IsNull(row) {
					latest[string(p.Split)] = max(latest[string(p.Split)], v.I64[v.Idx(row)])
				}
			}
		}
		splits, next, err := readPosition(p.Position)
		if err != nil {
			t.Fatal(err)
		}
		index, _ := strconv.ParseInt(string(p.Split), 10, 64)
		if next == 0 {
			continue // a split without events
		}
		g := r.s.gen
		if last := g.in((next-1)/g.total*splits+index, (next-1)%g.total); latest[string(p.Split)] != last.ms*1000 {
			t.Fatalf("split %s at event %d: the latest row is of %d, the event of %d", p.Split, next, latest[string(p.Split)], last.ms*1000)
		}
	}
}

// A field of every kind of event, alone and beside the kind, is what it is in rows that are made whole.
func TestFilteredValues(t *testing.T) {
	tab := tableOf(whole, "events.num=600", "person.proportion=2", "auction.proportion=3", "bid.proportion=5")
	for _, filter := range []expr.Expr{nil, onlyKinds(aPerson, anAuction), onlyKinds(anAuction, aBid), onlyKinds(aBid), onlyKinds(aPerson)} {
		for k := range specs {
			for f, sp := range specs[k] {
				s := connectors.SourceSpec{Table: tab, Filter: filter, Columns: []int{1 + k, 1 + k}, Paths: [][]int{nil, {f}}, Schema: &types.Schema{Columns: []types.Column{
					{Name: "whole", Type: rowOf(kind(k))}, {Name: sp.name, Type: sp.typ}}}}
				b := batch.NewBuilder(s.Schema)
				r := open(t, s, nil)
				for rows := 0; ; {
					b.Reset()
					if _, err := r.Next(context.Background(), b); errors.Is(err, io.EOF) {
						if rows == 0 {
							t.Fatal("no rows")
						}
						break
					}
					got := b.Finish()
					rows += got.N
					for i := range got.N {
						row, field := got.Cols[0].Datum(i), got.Cols[1].Datum(i)
						if row.IsNull != field.IsNull || !row.IsNull && fmt.Sprint(row.List[f]) != fmt.Sprint(field) {
							t.Fatalf("%s of row %d: %v, in the row %v", sp.name, i, field, row)
						}
					}
				}
			}
		}
	}
}

func BenchmarkPeopleAndAuctions(b *testing.B) {
	s := specOf(tableOf(whole), 1)
	times(&s)
	s.Filter, s.Marked = onlyKinds(aPerson, anAuction), true
	src, err := newSource(s)
	if err != nil {
		b.Fatal(err)
	}
	r, _ := src.Open(context.Background(), []checkpoint.Position{{Split: "0"}})
	out := batch.NewBuilder(s.Schema)
	for n := 0; n < b.N; {
		out.Reset()
		p, err := r.Next(context.Background(), out)
		if err != nil {
			b.Fatal(err)
		}
		n += p.Records
	}
}
