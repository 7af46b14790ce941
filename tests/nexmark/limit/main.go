package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
)

// query is a query by hand. It is given a batch after the other, then the end.
type query interface {
	// columns are the fields that are made.
	columns() columns
	batch(b *events, out *output)
	// end is the end of the input: what is left in windows leaves.
	end(out *output)
}

var queries = map[string]func() query{
	"q0": func() query { return &pass{} }, "q1": func() query { return &convert{} }, "q2": func() query { return &selection{} },
	"q4": func() query { return newCategories() }, "q5": func() query { return newHotItems() }, "q7": func() query { return newHighest() },
	"q8": func() query { return newUsers() }, "q11": func() query { return newSessions() }, "q12": func() query { return newClock() }, "q15": func() query { return newDays() }, "q16": func() query { return newChannelStats() },
	"q17": func() query { return newAuctionStats() }, "q18": func() query { return newLastBid() }, "q19": func() query { return newTop10() },
	"q20": func() query { return newExpand() },
	"q3":  func() query { return newLocal() }, "q10": func() query { return &partition{} }, "q13": func() query { return newSideInput() }, "q14": func() query { return &calculation{} },
	"q21": func() query { return &channels{} }, "q22": func() query { return &directories{} },
}

// output is the columns of the rows that leave; they are dropped after each batch, as a blackhole does.
type output struct {
	kind  []byte // 0 +I, 1 -U, 2 +U; none is deleted
	n     [12][]int64
	s     [3][]string
	rows  int    // that left
	table int    // that the changes leave
	check uint64 // of all that left: the work is not dropped
}

func (o *output) flush() {
	o.rows += len(o.kind)
	for _, k := range o.kind {
		if k == 0 {
			o.table++
		}
	}
	for i := range o.n {
		for _, v := range o.n[i] {
			o.check += uint64(v) * uint64(i+1)
		}
		o.n[i] = o.n[i][:0]
	}
	for i := range o.s {
		o.s[i] = o.s[i][:0]
	}
	o.kind = o.kind[:0]
}

func (o *output) add(kind byte, vs ...int64) {
	o.kind = append(o.kind, kind)
	for i, v := range vs {
		o.n[i] = append(o.n[i], v)
	}
}

// batchEvents is how many events a mini-batch has: those of whole groups.
const batchEvents = 80 * group

func run(name string, n, rate int64) (*output, error) {
	make, ok := queries[name]
	if !ok {
		var names []string
		for q := range queries {
			names = append(names, q)
		}
		slices.Sort(names)
		return nil, fmt.Errorf("no query %s by hand: there are %s", name, strings.Join(names, ", "))
	}
	q, out := make(), &output{}
	g := newGenerator(rate, q.columns())
	for at := int64(0); at < n; at += batchEvents {
		q.batch(g.make(at, min(at+batchEvents, n)), out)
		out.flush()
	}
	q.end(out)
	out.flush()
	return out, nil
}

func main() {
	name := flag.String("query", "q0", "`name` of the query")
	n := flag.Int64("events", 1_000_000, "`number` of events")
	rate := flag.Int64("rate", 10_000, "`events` in a second of event time")
	flag.Parse()
	out, err := run(*name, *n, *rate)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	fmt.Printf("%d changes, %d rows, sum %d\n", out.rows, out.table, out.check)
}
