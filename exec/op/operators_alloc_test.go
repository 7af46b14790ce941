package op

// Goal: no operator allocates for a row in the steady state. Method: those of BenchmarkOperators, with the allocations of whole batches counted.
// What tables and lists need to grow is a fraction of an allocation for a row.

import (
	"testing"

	"github.com/streamsql/streamsql/sql/batch"
)

// allocating are operators that are no hot path, and what they may allocate for a row.
var allocating = map[string]float64{
	"lookup-join": 2, // a row of the cache is a list of values
}

// perRow is the usual bound: chunks of state, slots, timers.
const perRow = 0.02

func TestOperatorsAllocateNothingPerRow(t *testing.T) {
	if testing.Short() {
		t.Skip("puts 200,000 rows through every operator: run without -short")
	}
	const batches = 8
	check := func(t *testing.T, rows int, f func()) {
		t.Helper()
		most, ok := allocating[t.Name()[len("TestOperatorsAllocateNothingPerRow/"):]]
		if !ok {
			most = perRow
		}
		if n := testing.AllocsPerRun(2, f) / float64(rows); n > most {
			t.Errorf("%.4f allocations a row, at most %.2f are expected", n, most)
		} else {
			t.Logf("%.4f allocations a row", n)
		}
	}
	for _, c := range operatorCases(t) {
		t.Run(c.name, func(t *testing.T) {
			e := c.rows()
			turn := turns(t, openOp(t, c.make, newSubtask(t, 1<<30)), c.ports, batches, e)
			for range len(e.bs) / batches {
				turn()
			}
			check(t, batches*batch.Size*c.ports, turn)
		})
	}
	for name, make := range repeatedCases {
		t.Run(name, func(t *testing.T) {
			o, bs, rows := make(t)
			defer o.Close()
			out := &countRows{}
			turn := func() {
				for i := range batches {
					if err := o.Process(0, bs[i%len(bs)], out); err != nil {
						t.Fatal(err)
					}
				}
			}
			turn()
			check(t, batches*rows, turn)
		})
	}
}
