package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// operator is what a row costs in one operator, and what it would cost code written for the case by hand.
type operator struct {
	Name         string
	NanosPerRow  float64
	AllocsPerRow float64
	Limit        float64 `json:",omitempty"` // ns a row
	From         string  `json:",omitempty"` // what the limit is of
}

// limits are those of the hand-written programs behind docs/benchmarks.md, on an idle core of an AMD Milan at 2.45 GHz, for the case that is
// nearest to the benchmark's hundred thousand keys.
var limits = map[string]operator{
	"filter-project":   {Limit: 1.8, From: "columns, filter to a selection, three columns out"},
	"union":            {Limit: 0.1, From: "a batch through a channel"},
	"exchange-hash":    {Limit: 11.2, From: "hash, gather of four integer columns"},
	"exchange-forward": {Limit: 0.1, From: "a batch through a channel"},
	"distinct":         {Limit: 60, From: "batch-probed table, 1 k keys 14, 1 M keys 127"},
	"aggregate":        {Limit: 80, From: "three aggregates, changes per batch: 1 k keys 29, 1 M keys 198"},
	"window-tumble":    {Limit: 13, From: "Nexmark q12"},
	"window-hop":       {Limit: 26, From: "Nexmark q5"},
	"window-session":   {Limit: 18, From: "Nexmark q11"},
	"window-join":      {Limit: 8, From: "Nexmark q8"},
	"join":             {Limit: 197, From: "Nexmark q20, rows of 100 bytes"},
	"interval-join":    {Limit: 104, From: "Nexmark q9, rows of 100 bytes"},
	"dedup-first":      {Limit: 60, From: "as distinct"},
	"dedup-last":       {Limit: 160, From: "Nexmark q18, rows of 100 bytes"},
	"top10":            {Limit: 165, From: "Nexmark q19, rows of 100 bytes"},
	"sort":             {Limit: 88, From: "radix sort of 1 M pairs of hash and place"},
	"lookup-join":      {Limit: 29, From: "hit in a map of 1 k text keys"},
	"normalize":        {Limit: 160, From: "Nexmark q18, rows of 100 bytes"},
	"unnest":           {Limit: 2.7, From: "gather of a batch's rows"},
}

// benchmarks are run by make bench: package, pattern, what stands before the name that is printed, and how often.
var benchmarks = []struct{ pkg, pattern, prefix, time string }{
	{"./exec/op", "^BenchmarkOperators$", "BenchmarkOperators/", "20x"},
	{"./exec", "^BenchmarkShip$", "BenchmarkShip/", "10000x"},
}

// operators runs the benchmarks of the operators.
func operators(t *testing.T, root string) []operator {
	t.Helper()
	var all []operator
	for _, b := range benchmarks {
		cmd := exec.Command("go", "test", "-run", "^$", "-bench", b.pattern, "-benchtime", b.time, "-benchmem", "-timeout", "0", b.pkg)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
		}
		all = append(all, parseBenchmarks(out, b.prefix)...)
	}
	return all
}

// parseBenchmarks reads the output of go test -bench.
func parseBenchmarks(out []byte, prefix string) []operator {
	var all []operator
	for in := bufio.NewScanner(bytes.NewReader(out)); in.Scan(); {
		f := strings.Fields(in.Text())
		if len(f) < 2 || !strings.HasPrefix(f[0], prefix) {
			continue
		}
		name := strings.TrimPrefix(f[0], prefix)
		if i := strings.LastIndexByte(name, '-'); i > 0 { // the number of processors
			name = name[:i]
		}
		if prefix == "BenchmarkShip/" {
			name = "exchange-" + name
		}
		o := limits[name]
		o.Name = name
		for i := 2; i+1 < len(f); i += 2 {
			v, err := strconv.ParseFloat(f[i], 64)
			if err != nil {
				continue
			}
			switch f[i+1] {
			case "cpu-ns/row":
				o.NanosPerRow = v
			case "allocs/row":
				o.AllocsPerRow = v
			}
		}
		all = append(all, o)
	}
	return all
}

func operatorTable(all []operator) string {
	var s strings.Builder
	s.WriteString("\n**Operators**: processor time of a row in one operator alone, a hundred thousand keys (in windows a thousand), state in memory, a watermark each 65,536 rows; " +
		"a row of any input, of the output for unnest. Limits are of code written by hand for the nearest case.\n\n" +
		"| operator | ns/row | allocations/row | limit (ns) | share of the limit | limit of |\n|---|---|---|---|---|---|\n")
	for _, o := range all {
		limit, share := "", ""
		if o.Limit > 0 {
			limit, share = fmt.Sprintf("%.4g", o.Limit), fmt.Sprintf("%.0f %%", 100*o.Limit/o.NanosPerRow)
		}
		fmt.Fprintf(&s, "| %s | %s | %.2g | %s | %s | %s |\n", o.Name, digits(o.NanosPerRow), o.AllocsPerRow, limit, share, o.From)
	}
	return s.String()
}

func TestParseBenchmarks(t *testing.T) {
	const text = `goos: linux
BenchmarkOperators/window-hop-2             	       2	         0.7265 allocs/row	      3082 cpu-ns/row
BenchmarkOperators/new-16     	       2	         0 allocs/row	      1.5 cpu-ns/row
BenchmarkOther-2     	       2	         0 allocs/row	      1.5 cpu-ns/row
PASS
`
	got := parseBenchmarks([]byte(text), "BenchmarkOperators/")
	want := []operator{{"window-hop", 3082, 0.7265, limits["window-hop"].Limit, limits["window-hop"].From}, {Name: "new", NanosPerRow: 1.5}}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if got := parseBenchmarks([]byte("BenchmarkShip/hash-2 	1 	9 ns/op	 7.5 cpu-ns/row\n"), "BenchmarkShip/"); len(got) != 1 || got[0].Name != "exchange-hash" || got[0].NanosPerRow != 7.5 {
		t.Errorf("got  %v", got)
	}
	if s := operatorTable(want); !strings.Contains(s, "| window-hop | 3082 | 0.73 | 26 | 1 % | Nexmark q5 |") {
		t.Error(s)
	}
}

// digits is a number with three digits that count, the whole ones at least.
func digits(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
