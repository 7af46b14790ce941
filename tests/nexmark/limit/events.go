package main

import (
	"math"
	"math/bits"
	"strconv"
)

// columns are the fields of events to make.
type columns uint32

const (
	personID columns = 1 << iota
	personName
	personCity
	personState
	personTime
	auctionID
	auctionItem
	auctionDescription
	auctionInitial
	auctionReserve
	auctionTime
	auctionExpires
	auctionSeller
	auctionCategory
	auctionExtra
	bidAuction
	bidBidder
	bidPrice
	bidChannel
	bidURL
	bidTime
	bidExtra

	wholeAuction = auctionID | auctionItem | auctionDescription | auctionInitial | auctionReserve | auctionTime | auctionExpires | auctionSeller | auctionCategory | auctionExtra
	bidNumbers   = bidAuction | bidBidder | bidPrice | bidTime
	wholeBid     = bidNumbers | bidChannel | bidURL | bidExtra
)

// events are a batch of events by kind. Times are milliseconds.
type events struct {
	person struct {
		n, id, time       []int64
		name, city, state []string
	}
	auction struct {
		n, id, initial, reserve, time, expires, seller, category []int64
		item, description, extra                                 []string
	}
	bid struct {
		rows                         int
		runs                         []bidRun
		auction, bidder, price, time []int64
		channel, url, extra          []string
	}
}

// The specification; connectors/nexmark has the meaning.
const (
	group, auctionsOf = 50, 3
	firstID           = 1000
	active, inFlight  = 1000, 100
	lead, hotBatch    = 10, 100
	poolSize          = 256 << 10
	priceSteps        = 4096
	baseMillis        = 1436918400000
)

// Numbers of fields in connectors/nexmark: they are part of the random numbers.
const (
	fCity, fState                                                                               = 7, 8
	fName, fItem, fDescription, fInitial, fReserve, fExpires, fSeller, fCategory, fAuctionExtra = 4, 11, 12, 13, 14, 15, 16, 17, 18
	fAuction, fBidder, fPrice, fChannel, fBidExtra                                              = 19, 20, 21, 22, 24
)

var (
	cities = []string{"Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne"}
	states = []string{"AZ", "CA", "ID", "OR", "WA", "WY"}
)

type rng uint64

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (r *rng) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	return mix(uint64(*r))
}

func (r *rng) below(n uint64) uint64 { return (r.next() >> 32) * n >> 32 }

type generator struct {
	seed            uint64
	usPer           float64
	columns         columns
	letters, words  string
	channels, urls  []string // the hot ones are behind the others
	hotNames, names []string
	prices          []float64
	out             events
}

func newGenerator(rate int64, c columns) *generator {
	g := &generator{seed: mix(1), usPer: 1e6 / float64(rate), columns: c, hotNames: []string{"Google", "Facebook", "Baidu", "Apple"}}
	r := rng(mix(g.seed))
	b := make([]byte, poolSize)
	for i := range b {
		b[i] = 'a' + byte(r.below(26))
	}
	g.letters = string(b)
	for i := range b {
		if r.below(13) == 0 {
			b[i] = ' '
		}
	}
	g.words = string(b)
	var hot []string
	for range g.hotNames {
		hot = append(hot, url(&r))
	}
	for i := range 10_000 {
		u := url(&r)
		if r.below(10) > 0 {
			id := int64(int32(bits.Reverse32(uint32(i))))
			u += "&channel_id=" + strconv.FormatInt(max(id, -id), 10)
		}
		g.channels, g.urls = append(g.channels, "channel-"+strconv.Itoa(i)), append(g.urls, u)
	}
	g.channels, g.urls = append(g.channels, g.hotNames...), append(g.urls, hot...)
	for _, f := range []string{"Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"} {
		for _, l := range []string{"Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"} {
			g.names = append(g.names, f+" "+l)
		}
	}
	for i := range priceSteps + 1 {
		g.prices = append(g.prices, math.Pow(10, 6*float64(i)/priceSteps)*100)
	}
	return g
}

func url(r *rng) string {
	b := []byte("https://www.nexmark.com/")
	for range 3 {
		for range 3 + int(r.below(2)) {
			if r.below(13) == 0 {
				b = append(b, '_')
			} else {
				b = append(b, 'a'+byte(r.below(26)))
			}
		}
		b = append(b, '/')
	}
	return string(append(b, "item.htm?query=1"...))
}

func (g *generator) of(f int, n int64) rng { return rng(mix(g.seed ^ mix(uint64(n)<<8|uint64(f)))) }

func (g *generator) millis(n int64) int64 { return baseMillis + int64(float64(n)*g.usPer)/1000 }

// lastAuction is of an auction or a bid: those of its group are there as far as its offset.
func lastAuction(n int64) int64 { return n/group*auctionsOf + min(n%group-1, auctionsOf-1) }

// make makes the events from from, the first of a group, to before to. They are valid until the next call.
func (g *generator) make(from, to int64) *events {
	p, a, b := &g.out.person, &g.out.auction, &g.out.bid
	p.n, a.n = p.n[:0], a.n[:0]
	b.rows, b.runs = 0, b.runs[:0]
	for n := from; n < to; n += group {
		p.n = append(p.n, n)
		for k := n + 1; k < min(n+1+auctionsOf, to); k++ {
			a.n = append(a.n, k)
		}
		if first, end := n+1+auctionsOf, min(n+group, to); first < end {
			b.runs = append(b.runs, bidRun{first, int(end - first)})
			b.rows += int(end - first)
		}
	}
	g.numbers()
	g.texts()
	g.bids()
	return &g.out
}

// column makes a column of a kind's events if it is wanted.
func column[T any](g *generator, c columns, to *[]T, ns []int64, f int, value func(n int64, r rng) T) {
	if g.columns&c == 0 {
		return
	}
	out := (*to)[:0]
	for _, n := range ns {
		out = append(out, value(n, g.of(f, n))) // by value: a pointer would move each to the heap
	}
	*to = out
}

func (g *generator) numbers() {
	p, a := &g.out.person, &g.out.auction
	millis := func(n int64, _ rng) int64 { return g.millis(n) }
	someone := func(n int64, r *rng) int64 {
		people := n/group + 1
		few := min(people, active)
		return firstID + people - few + int64(r.below(uint64(few+lead)))
	}
	price := func(_ int64, r rng) int64 { return g.price(&r) }
	column(g, personID, &p.id, p.n, 0, func(n int64, _ rng) int64 { return firstID + n/group })
	column(g, personTime, &p.time, p.n, 0, millis)
	column(g, auctionID, &a.id, a.n, 0, func(n int64, _ rng) int64 { return firstID + lastAuction(n) })
	column(g, auctionTime, &a.time, a.n, 0, millis)
	column(g, auctionInitial, &a.initial, a.n, fInitial, price)
	column(g, auctionReserve, &a.reserve, a.n, fReserve, func(n int64, r rng) int64 {
		first := g.of(fInitial, n)
		return g.price(&first) + g.price(&r)
	})
	column(g, auctionExpires, &a.expires, a.n, fExpires, func(n int64, r rng) int64 {
		at := g.millis(n)
		return at + 1 + int64(r.below(uint64(max(2*(g.millis(n+inFlight*group/auctionsOf)-at), 1))))
	})
	column(g, auctionSeller, &a.seller, a.n, fSeller, func(n int64, r rng) int64 {
		if r.below(4) > 0 {
			return firstID + n/group/hotBatch*hotBatch
		}
		return someone(n, &r)
	})
	column(g, auctionCategory, &a.category, a.n, fCategory, func(_ int64, r rng) int64 { return 10 + int64(r.below(5)) })
}

func (g *generator) price(r *rng) int64 {
	u := r.next() >> 20
	i := u >> 32
	return int64(g.prices[i] + float64((g.prices[i+1]-g.prices[i])*(float64(u&math.MaxUint32)/(1<<32))) + 0.5)
}

func (g *generator) texts() {
	p, a := &g.out.person, &g.out.auction
	phrase := func(r *rng, limit uint64) string {
		n := 3 + r.below(limit-3)
		at := r.below(poolSize - n)
		s := g.words[at : at+n]
		for s != "" && s[0] == ' ' {
			s = s[1:]
		}
		for s != "" && s[len(s)-1] == ' ' {
			s = s[:len(s)-1]
		}
		return s
	}
	fill := func(r *rng, size int64) string {
		delta := int64(math.Round(float64(size) * 0.2))
		n := size - delta + int64(r.below(uint64(2*delta)))
		at := int64(r.below(uint64(poolSize - n)))
		return g.letters[at : at+n]
	}
	column(g, personName, &p.name, p.n, fName, func(_ int64, r rng) string { return g.names[r.below(uint64(len(g.names)))] })
	column(g, personCity, &p.city, p.n, fCity, func(_ int64, r rng) string { return cities[r.below(uint64(len(cities)))] })
	column(g, personState, &p.state, p.n, fState, func(_ int64, r rng) string { return states[r.below(uint64(len(states)))] })
	column(g, auctionItem, &a.item, a.n, fItem, func(_ int64, r rng) string { return phrase(&r, 20) })
	column(g, auctionDescription, &a.description, a.n, fDescription, func(_ int64, r rng) string { return phrase(&r, 100) })
	column(g, auctionExtra, &a.extra, a.n, fAuctionExtra, func(n int64, r rng) string {
		item, text := g.of(fItem, n), g.of(fDescription, n)
		return fill(&r, 500-6*8-int64(len(phrase(&item, 20))+len(phrase(&text, 100))))
	})
}
