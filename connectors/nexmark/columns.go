package nexmark

import (
	"math"

	"github.com/streamsql/streamsql/sql/batch"
)

// run is a run of events of one kind that are neighbours in a group: their fields follow from the first one and the place.
type run struct {
	first event
	row   int // of the first in the batch
	n     int
}

// at is event i of the run.
func (r *run) at(i int) event {
	e := r.first
	e.n += int64(i)
	switch e.kind {
	case aPerson:
		e.person += int64(i)
	case anAuction:
		e.auction += int64(i)
	}
	return e
}

// runsOf appends the runs of events from place from to before place to of a group; row is the place of the first in the batch.
func (g *generator) runsOf(runs []run, group, from, to int64, row int) []run {
	for from < to {
		end := g.total
		switch {
		case from < g.person:
			end = g.person
		case from < g.person+g.auction:
			end = g.person + g.auction
		}
		end = min(end, to)
		e := g.in(group, from)
		e.ms = 0 // not every column needs it
		runs = append(runs, run{first: e, row: row, n: int(end - from)})
		row += int(end - from)
		from = end
	}
	return runs
}

// numbers appends a field of type BIGINT, INT or TIMESTAMP of the batch's events; NULL for events of another kind than
// only, if that is one.
func (r *reader) numbers(f field, only kind, col *batch.ColBuilder) {
	base := col.AppendN(r.rows)
	eachRun(r, f, only, col, base, col.I64[base:], (*generator).numbers)
}

// texts is numbers for fields of type STRING.
func (r *reader) texts(f field, only kind, col *batch.ColBuilder) {
	base := col.AppendN(r.rows)
	eachRun(r, f, only, col, base, col.Str[base:], (*generator).texts)
}

// eachRun has fill write the rows of each run to dst, those of col from base on.
func eachRun[T any](r *reader, f field, only kind, col *batch.ColBuilder, base int, dst []T, fill func(*generator, field, *run, []T)) {
	for i := range r.runs {
		u := &r.runs[i]
		part := dst[u.row : u.row+u.n]
		if only != noKind && u.first.kind != only {
			clear(part)
			col.NullifyRange(base+u.row, base+u.row+u.n)
			continue
		}
		fill(r.s.gen, f, u, part)
	}
}

// numbers is number of the events of a run. The fields of bids, nearly all events, have loops of their own, without branches
// on random numbers: a wrong guess costs more than a second draw.
func (g *generator) numbers(f field, u *run, dst []int64) {
	n, person, auction := u.first.n, u.first.person, u.first.auction
	switch {
	case f == eventType:
		for i := range dst {
			dst[i] = int64(u.first.kind)
		}
	case f == eventTime:
		for i := range dst {
			dst[i] = g.millis(n+int64(i)) * 1000
		}
	case f == bidPrice:
		for i := range dst {
			r := g.of(bidPrice, n+int64(i))
			dst[i] = g.price(&r)
		}
	case f == bidAuction:
		low := max(auction-inFlight, 0)
		g.hotOr(f, n, dst, uint64(g.hotAuctions), firstID+auction/hotBatch*hotBatch, firstID+low, uint64(auction-low+1+idLead))
	case f == bidBidder: // hot bidders are not hot sellers
		few := min(person+1, activePeople)
		g.hotOr(f, n, dst, uint64(g.hotBidders), firstID+person/hotBatch*hotBatch+1, firstID+person+1-few, uint64(few+idLead))
	default:
		for i := range dst {
			e := u.at(i)
			e.ms = g.millis(e.n)
			dst[i] = g.number(f, &e)
		}
	}
}

// hotOr is the hot number, but for one event of ratio one of count numbers from low on.
func (g *generator) hotOr(f field, n int64, dst []int64, ratio uint64, hot, low int64, count uint64) {
	for i := range dst {
		r := g.of(f, n+int64(i))
		cold := r.below(ratio) == 0
		v := low + int64(r.below(count))
		if !cold {
			v = hot
		}
		dst[i] = v
	}
}

// texts is text of the events of a run.
func (g *generator) texts(f field, u *run, dst []string) {
	n := u.first.n
	switch f {
	case bidChannel, bidURL:
		names, hot := g.channels, hotNames
		if f == bidURL {
			names, hot = g.urls, g.hotURLs
		}
		for i := range dst {
			r := g.of(bidChannel, n+int64(i))
			from := names
			if r.below(hotChannels) > 0 {
				from = hot
			}
			dst[i] = from[r.below(uint64(len(from)))]
		}
	case bidExtra:
		g.fills(n, dst, bidUsed, g.bidSize)
	default:
		for i := range dst {
			e := u.at(i)
			dst[i] = g.text(f, &e)
		}
	}
}

// fills is fill of bids that all use as many bytes.
func (g *generator) fills(n int64, dst []string, used, size int64) {
	if used > size {
		clear(dst)
		return
	}
	size -= used
	delta := int64(math.Round(float64(size) * 0.2))
	letters := g.letters
	for i := range dst {
		r := g.of(bidExtra, n+int64(i))
		k := size - delta
		if delta > 0 {
			k += int64(r.below(uint64(2 * delta)))
		}
		at := int64(r.below(uint64(poolSize - k)))
		dst[i] = letters[at : at+k]
	}
}
