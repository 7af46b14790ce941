package checkpoint

import (
	"context"
	"fmt"
	"testing"
)

func TestManyTablesOfColdRows(t *testing.T) {
	// Goal: many tables with cold rows keep within the memory that they share, and early segments stay few.
	budget := NewMemoryBudget(4 << 20)
	b, err := OpenBackend(testOwner(t), "agg-0", BackendOptions{Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var tabs []*table
	for i := range 24 {
		tb, err := b.Table("agg", TableOptions{Name: fmt.Sprint("t", i), Format: "v1"})
		if err != nil {
			t.Fatal(err)
		}
		tabs = append(tabs, tb.(*table))
	}
	val := make([]byte, 300)
	var keys Keys
	refs := make([]Ref, 500)
	for round := range 20 {
		for _, tb := range tabs {
			ints := make([]uint64, 0, 200)
			for i := range 100 {
				ints = append(ints, uint64(round*100+i))
			}
			intKeys(&keys, ints)
			if err := tb.Probe(&keys, refs[:keys.Len()]); err != nil {
				t.Fatal(err)
			}
			for i := range keys.Len() {
				r, _, err := tb.Insert(&keys, i, 0)
				if err != nil {
					t.Fatal(err)
				}
				tb.Set(r, val)
			}
		}
		if n := budget.Used(); n > budget.Limit()*3/2 {
			t.Errorf("round %d: %d bytes are taken of a budget of %d", round, n, budget.Limit())
		}
		if round%5 == 4 {
			async, err := b.Seal(ID(round))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := async(context.Background()); err != nil {
				t.Fatal(err)
			}
			if n := len(b.segments); n > b.limits.files {
				t.Errorf("round %d: %d segments are left", round, n)
			}
		}
	}
	if b.db != nil {
		t.Error("the rows went to Pebble")
	}
	for _, tb := range tabs {
		if tb.absent == 0 {
			t.Errorf("no row of table %s is in a cold chunk", tb.name)
		}
	}
}
