package main

// Goal: the programs by hand do the queries' work. Method: the number of rows that their changes leave over 100,000 events is that of
// Flink's recorded answer.

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestRowsAsFlink(t *testing.T) {
	for name := range queries {
		t.Run(name, func(t *testing.T) {
			golden, err := os.ReadFile(fmt.Sprintf("../../flink/testdata/nexmark/q%02s.golden", strings.TrimPrefix(name, "q")))
			if err != nil {
				t.Fatal(err)
			}
			_, rest, _ := strings.Cut(string(golden), "rows: ")
			want := -1
			fmt.Sscan(rest, &want)
			out, err := run(name, 100_000, 1000)
			if err != nil {
				t.Fatal(err)
			}
			if out.table != want {
				t.Errorf("%d rows, Flink has %d", out.table, want)
			}
		})
	}
	if _, err := run("q99", 1, 1); err == nil {
		t.Error("q99 runs")
	}
}

func TestTable(t *testing.T) {
	one, two := newTable(), newTable()
	numbers, pairs := map[int64]uint32{}, map[[2]int64]uint32{}
	r := rng(1)
	for range 50 {
		var as, bs []int64
		for range 1000 {
			as, bs = append(as, int64(r.below(5000))), append(bs, int64(r.below(3)))
		}
		for i, g := range one.find(as) {
			if want, ok := numbers[as[i]]; ok && want != g || !ok && int(g) != len(numbers) {
				t.Fatalf("key %d: number %d, of %d keys", as[i], g, len(numbers))
			}
			numbers[as[i]] = g
		}
		for i, g := range two.find2(as, bs) {
			k := [2]int64{as[i], bs[i]}
			if want, ok := pairs[k]; ok && want != g || !ok && int(g) != len(pairs) {
				t.Fatalf("key %v: number %d, of %d keys", k, g, len(pairs))
			}
			pairs[k] = g
		}
	}
	if one.has(4711) < 0 || one.has(5001) >= 0 {
		t.Error("has")
	}
}
