package main

import "math"

// bidRun is the bids of a group: the number of the first event and how many they are. Nearly all events are bids, so each of their fields has
// a loop over the run, without a call for each event and without branches on random numbers, as connectors/nexmark has them.
type bidRun struct {
	n    int64
	bids int
}

// each has fill make a field of all the bids, if it is wanted.
func each[T any](g *generator, c columns, to *[]T, fill func(r bidRun, dst []T)) {
	if g.columns&c == 0 {
		return
	}
	b := &g.out.bid
	if cap(*to) < b.rows {
		*to = make([]T, b.rows)
	}
	*to = (*to)[:b.rows]
	at := 0
	for _, r := range b.runs {
		fill(r, (*to)[at:at+r.bids])
		at += r.bids
	}
}

func (g *generator) bids() {
	b := &g.out.bid
	each(g, bidTime, &b.time, func(r bidRun, dst []int64) {
		for i := range dst {
			dst[i] = g.millis(r.n + int64(i))
		}
	})
	each(g, bidPrice, &b.price, func(r bidRun, dst []int64) {
		for i := range dst {
			x := g.of(fPrice, r.n+int64(i))
			dst[i] = g.price(&x)
		}
	})
	each(g, bidAuction, &b.auction, func(r bidRun, dst []int64) {
		last := lastAuction(r.n)
		low := max(last-inFlight, 0)
		g.hotOr(fAuction, r.n, dst, 2, firstID+last/hotBatch*hotBatch, firstID+low, uint64(last-low+1+lead))
	})
	each(g, bidBidder, &b.bidder, func(r bidRun, dst []int64) {
		people := r.n/group + 1
		few := min(people, active)
		g.hotOr(fBidder, r.n, dst, 4, firstID+r.n/group/hotBatch*hotBatch+1, firstID+people-few, uint64(few+lead))
	})
	each(g, bidChannel, &b.channel, func(r bidRun, dst []string) { g.pick(r.n, dst, g.channels) })
	each(g, bidURL, &b.url, func(r bidRun, dst []string) { g.pick(r.n, dst, g.urls) })
	each(g, bidExtra, &b.extra, func(r bidRun, dst []string) { g.fills(r.n, dst) })
}

// hotOr is the hot number, but for one event of ratio one of count numbers from low on.
func (g *generator) hotOr(f int, n int64, dst []int64, ratio uint64, hot, low int64, count uint64) {
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

// pick is one of the first texts of a list, half the bids, or one of the hot ones behind them.
func (g *generator) pick(n int64, dst, texts []string) {
	hot := uint64(len(g.hotNames))
	others := uint64(len(texts)) - hot
	for i := range dst {
		r := g.of(fChannel, n+int64(i))
		isHot := r.below(2) > 0
		first, count := uint64(0), others
		if isHot {
			first, count = others, hot
		}
		dst[i] = texts[first+r.below(count)]
	}
}

// bidText is the bytes of a bid's text, give or take a fifth.
const bidText = 100 - 4*8

func (g *generator) fills(n int64, dst []string) {
	delta := int64(math.Round(float64(bidText) * 0.2))
	letters := g.letters
	for i := range dst {
		r := g.of(fBidExtra, n+int64(i))
		k := bidText - delta + int64(r.below(uint64(2*delta)))
		at := int64(r.below(uint64(poolSize - k)))
		dst[i] = letters[at : at+k]
	}
}
