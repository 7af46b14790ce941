package nexmark

import (
	"math"
	"math/bits"
	"strconv"
)

// What the specification fixes.
const (
	firstID       = 1000 // of people and auctions
	firstCategory = 10
	categories    = 5
	inFlight      = 100  // auctions that may get bids
	activePeople  = 1000 // that may open auctions and bid
	idLead        = 10   // ids that may be named before they exist
	hotBatch      = 100  // one hot auction, seller and bidder of so many
	hotChannels   = 2    // one bid of so many is not by a hot channel
	channelCount  = 10000
	minText       = 3
	maxSize       = 64 << 10
	bidUsed       = 4 * 8 // bytes of a bid without its extra
)

var (
	cities     = []string{"Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne"}
	states     = []string{"AZ", "CA", "ID", "OR", "WA", "WY"}
	firstNames = []string{"Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"}
	lastNames  = []string{"Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"}
	hotNames   = []string{"Google", "Facebook", "Baidu", "Apple"}
)

// tables are the texts and numbers that values are taken from, made once for a seed. They are the same on every machine.
type tables struct {
	letters  string // texts are pieces of it
	words    string // with spaces
	hotURLs  []string
	channels []string
	urls     []string
	names    []string
	prices   []float64 // 10^(6i/priceSteps) * 100
}

const (
	poolSize   = 256 << 10
	priceSteps = 4096
)

func newTables(seed uint64) *tables {
	r := rng(mix(seed))
	t := &tables{}
	b := make([]byte, poolSize)
	for i := range b {
		b[i] = 'a' + byte(r.below(26))
	}
	t.letters = string(b)
	for i := range b {
		if r.below(13) == 0 {
			b[i] = ' '
		}
	}
	t.words = string(b)
	for range hotNames {
		t.hotURLs = append(t.hotURLs, baseURL(&r))
	}
	for i := range channelCount {
		t.channels = append(t.channels, "channel-"+strconv.Itoa(i))
		url := baseURL(&r)
		if r.below(10) > 0 {
			id := int32(bits.Reverse32(uint32(i)))
			url += "&channel_id=" + strconv.FormatInt(max(int64(id), -int64(id)), 10)
		}
		t.urls = append(t.urls, url)
	}
	for _, f := range firstNames {
		for _, l := range lastNames {
			t.names = append(t.names, f+" "+l)
		}
	}
	for i := range priceSteps + 1 {
		t.prices = append(t.prices, math.Pow(10, 6*float64(i)/priceSteps)*100)
	}
	return t
}

func baseURL(r *rng) string {
	b := []byte("https://www.nexmark.com/")
	for range 3 {
		for range minText + int(r.below(5-minText)) {
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

// rng is splitmix64.
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

// below is a number in [0,n) for 0 < n < 2^32.
func (r *rng) below(n uint64) uint64 { return (r.next() >> 32) * n >> 32 }

// generator makes the fields of events by event number.
type generator struct {
	config
	*tables
}

// of is the source of the random numbers of field f of event n.
func (g *generator) of(f field, n int64) rng { return rng(mix(g.seed ^ mix(uint64(n)<<8|uint64(f)))) }

// event is an event and what its fields are made from.
type event struct {
	n       int64 // its number
	kind    kind
	ms      int64 // its time, since 1970
	person  int64 // the number of the newest person, from 0
	auction int64 // and auction; -1 when there is none
}

// at is event n.
func (g *generator) at(n int64) event { return g.in(n/g.total, n%g.total) }

// in is the event at place off of a group.
func (g *generator) in(group, off int64) event {
	e := g.untimed(group, off)
	e.ms = g.millis(e.n)
	return e
}

// untimed is in without the time.
func (g *generator) untimed(group, off int64) event {
	n := group*g.total + off
	e := event{n: n, kind: aBid, person: group*g.person + min(off, g.person-1)}
	switch {
	case off < g.person:
		e.kind, e.auction = aPerson, group*g.auction-1
	case off < g.person+g.auction:
		e.kind, e.auction = anAuction, group*g.auction+off-g.person
	default:
		e.auction = (group+1)*g.auction - 1
	}
	return e
}

// millis is the time of event n in ms since 1970. The product is cut before it is divided, as in the specification.
func (g *generator) millis(n int64) int64 { return g.baseMs + int64(float64(n)*g.usPer)/1000 }

// someone is one of the active people at event e, or one who will register soon.
func (g *generator) someone(r *rng, e *event) int64 {
	people := e.person + 1
	active := min(people, activePeople)
	return people - active + int64(r.below(uint64(active+idLead)))
}

// someAuction is one of the auctions in flight at event e, or one that will be opened soon.
func (g *generator) someAuction(r *rng, e *event) int64 {
	last := e.auction
	low := max(last-inFlight, 0)
	return low + int64(r.below(uint64(last-low+1+idLead)))
}

// price is 10^(6u) * 100 for a uniform u: half the prices are below 100,000.
func (g *generator) price(r *rng) int64 {
	u := r.next() >> 20
	i := u >> 32
	part := float64(u&math.MaxUint32) / (1 << 32)
	// The conversion keeps the product from being fused with the sum: all machines have to give the same price.
	return int64(g.prices[i] + float64((g.prices[i+1]-g.prices[i])*part) + 0.5)
}

// number is a field of type BIGINT, INT or TIMESTAMP of event e.
func (g *generator) number(f field, e *event) int64 {
	r := g.of(f, e.n)
	switch f {
	case eventType:
		return int64(e.kind)
	case eventTime:
		return e.ms * 1000
	case personID:
		return firstID + e.person
	case auctionID:
		return firstID + e.auction
	case auctionInitial:
		return g.price(&r)
	case auctionReserve:
		first := g.of(auctionInitial, e.n)
		return g.price(&first) + g.price(&r)
	case auctionExpires:
		horizon := g.millis(e.n+inFlight*g.total/g.auction) - e.ms
		return (e.ms + 1 + int64(r.below(uint64(max(2*horizon, 1))))) * 1000
	case auctionSeller:
		if r.below(uint64(g.sellers)) > 0 {
			return firstID + e.person/hotBatch*hotBatch
		}
		return firstID + g.someone(&r, e)
	case auctionCategory:
		return firstCategory + int64(r.below(categories))
	case bidAuction:
		if r.below(uint64(g.hotAuctions)) > 0 {
			return firstID + e.auction/hotBatch*hotBatch
		}
		return firstID + g.someAuction(&r, e)
	case bidBidder:
		if r.below(uint64(g.hotBidders)) > 0 {
			return firstID + e.person/hotBatch*hotBatch + 1 // hot bidders are not hot sellers
		}
		return firstID + g.someone(&r, e)
	}
	return g.price(&r) // bidPrice
}

// text is a field of type STRING of event e.
func (g *generator) text(f field, e *event) string {
	r := g.of(f, e.n)
	switch f {
	case personName:
		return g.names[r.below(uint64(len(g.names)))]
	case personEmail:
		return g.piece(&r, 7) + "@" + g.piece(&r, 5) + ".com"
	case personCard:
		b := make([]byte, 0, 19)
		for i := range 4 {
			if i > 0 {
				b = append(b, ' ')
			}
			d := r.below(10000)
			b = append(b, byte('0'+d/1000), byte('0'+d/100%10), byte('0'+d/10%10), byte('0'+d%10))
		}
		return string(b)
	case personCity:
		return cities[r.below(uint64(len(cities)))]
	case personState:
		return states[r.below(uint64(len(states)))]
	case personExtra:
		used := 8 + 19 + len(g.text(personName, e)) + len(g.text(personEmail, e)) + len(g.text(personCity, e)) + 2
		return g.fill(&r, int64(used), g.personSize)
	case auctionName:
		return g.phrase(&r, 20)
	case auctionDescription:
		return g.phrase(&r, 100)
	case auctionExtra:
		used := 6*8 + len(g.text(auctionName, e)) + len(g.text(auctionDescription, e))
		return g.fill(&r, int64(used), g.auctionSize)
	case bidChannel, bidURL:
		return g.channel(f, e)
	}
	return g.fill(&r, bidUsed, g.bidSize) // bidExtra
}

// channel is the channel of bid e, or its URL: both follow from one draw.
func (g *generator) channel(f field, e *event) string {
	r := g.of(bidChannel, e.n)
	names, urls := g.channels, g.urls
	if r.below(hotChannels) > 0 {
		names, urls = hotNames, g.hotURLs
	}
	i := r.below(uint64(len(names)))
	if f == bidURL {
		return urls[i]
	}
	return names[i]
}

// piece is a random word of at least three and less than limit letters.
func (g *generator) piece(r *rng, limit uint64) string {
	n := minText + r.below(limit-minText)
	at := r.below(poolSize - n)
	return g.letters[at : at+n]
}

// phrase is piece with spaces, none at its ends.
func (g *generator) phrase(r *rng, limit uint64) string {
	n := minText + r.below(limit-minText)
	at := r.below(poolSize - n)
	s := g.words[at : at+n]
	for len(s) > 0 && s[0] == ' ' {
		s = s[1:]
	}
	for len(s) > 0 && s[len(s)-1] == ' ' {
		s = s[:len(s)-1]
	}
	return s
}

// fill is the text that brings an event of used bytes to size bytes, give or take a fifth.
func (g *generator) fill(r *rng, used, size int64) string {
	if used > size {
		return ""
	}
	size -= used
	delta := int64(math.Round(float64(size) * 0.2))
	n := size - delta
	if delta > 0 {
		n += int64(r.below(uint64(2 * delta)))
	}
	at := int64(r.below(uint64(poolSize - n)))
	return g.letters[at : at+n]
}
