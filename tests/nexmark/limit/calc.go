package main

import (
	"strconv"
	"strings"
)

// partition is q10: the columns of q0 with the day and the minute as texts, which are made when they change.
type partition struct {
	minute  int64
	day, at string
}

func (*partition) columns() columns { return bidNumbers | bidExtra }
func (*partition) end(*output)      {}
func (q *partition) batch(b *events, o *output) {
	for _, ms := range b.bid.time {
		if m := ms / 60_000; m != q.minute {
			q.minute, q.day, q.at = m, date(ms), string(appendTwo(append(appendTwo(nil, ms/3_600_000%24), ':'), m%60))
		}
		o.kind = append(o.kind, 0)
		o.s[0] = append(o.s[0], q.day)
		o.s[1] = append(o.s[1], q.at)
	}
}

func appendTwo(b []byte, v int64) []byte { return append(b, byte('0'+v/10), byte('0'+v%10)) }

// date is the day of a time as yyyy-MM-dd.
func date(ms int64) string {
	z := ms/86_400_000 + 719468 // days since 0000-03-01
	era := z / 146097
	d := z - era*146097
	y := (d - d/1460 + d/36524 - d/146096) / 365
	d -= 365*y + y/4 - y/100
	m := (5*d + 2) / 153
	d -= (153*m+2)/5 - 1
	y += era * 400
	if m += 3; m > 12 {
		m, y = m-12, y+1
	}
	return string(appendTwo(append(appendTwo(append(appendTwo(appendTwo(nil, y/100), y%100), '-'), m), '-'), d))
}

// calculation is q14: bids of middling prices, the time of their day by name, and how many letters c are in extra.
type calculation struct{}

func (*calculation) columns() columns { return bidNumbers | bidExtra }
func (*calculation) end(*output)      {}
func (*calculation) batch(b *events, o *output) {
	for i, p := range b.bid.price {
		if p *= 908; p <= 1_000_000_000 || p >= 50_000_000_000 { // thousandths
			continue
		}
		name := "otherTime"
		switch h := b.bid.time[i] / 3_600_000 % 24; {
		case h >= 8 && h <= 18:
			name = "dayTime"
		case h <= 6 || h >= 20:
			name = "nightTime"
		}
		extra := b.bid.extra[i]
		o.add(0, b.bid.auction[i], b.bid.bidder[i], p, b.bid.time[i], int64(strings.Count(extra, "c")))
		o.s[0] = append(o.s[0], name)
		o.s[1] = append(o.s[1], extra)
	}
}

// channels is q21: the numbers of channels, that of one without a name from its URL.
type channels struct{ low []byte }

func (*channels) columns() columns { return bidAuction | bidBidder | bidPrice | bidChannel | bidURL }
func (*channels) end(*output)      {}
func (q *channels) batch(b *events, o *output) {
	for i, c := range b.bid.channel {
		id, ok := q.named(c)
		if !ok {
			_, id, ok = strings.Cut(b.bid.url[i], "&channel_id=")
			id, _, _ = strings.Cut(id, "&")
		}
		if ok {
			o.add(0, b.bid.auction[i], b.bid.bidder[i], b.bid.price[i])
			o.s[0] = append(o.s[0], c)
			o.s[1] = append(o.s[1], id)
		}
	}
}

func (q *channels) named(c string) (id string, ok bool) {
	q.low = q.low[:0]
	for i := range len(c) {
		b := c[i]
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		q.low = append(q.low, b)
	}
	switch string(q.low) {
	case "apple":
		return "0", true
	case "google":
		return "1", true
	case "facebook":
		return "2", true
	case "baidu":
		return "3", true
	}
	return "", false
}

// directories is q22: three pieces of the URL.
type directories struct{}

func (*directories) columns() columns { return bidAuction | bidBidder | bidPrice | bidChannel | bidURL }
func (*directories) end(*output)      {}
func (*directories) batch(b *events, o *output) {
	for _, u := range b.bid.url {
		for range 3 {
			u = u[strings.IndexByte(u, '/')+1:]
		}
		o.kind = append(o.kind, 0)
		for k := range 3 {
			at := strings.IndexByte(u, '/')
			o.s[k] = append(o.s[k], u[:at])
			u = u[at+1:]
		}
	}
}

// sideInput is q13: bids with the text of their auction's number, of a table of ten thousand. The bids do not wait for the
// watermark: the versions are all of one old time, which a program by hand may know.
type sideInput struct {
	t     *table
	keys  []int64
	texts []string
}

func newSideInput() query {
	q := &sideInput{t: newTable()}
	for i := range int64(10_000) {
		q.keys, q.texts = append(q.keys, i), append(q.texts, strconv.FormatInt(i, 10))
	}
	q.t.find(q.keys)
	return q
}

func (*sideInput) columns() columns { return bidNumbers }
func (*sideInput) end(*output)      {}
func (q *sideInput) batch(b *events, o *output) {
	q.keys = q.keys[:0]
	for _, a := range b.bid.auction {
		q.keys = append(q.keys, a%10_000)
	}
	for i, k := range q.keys {
		if g := q.t.has(k); g >= 0 {
			o.add(0, b.bid.auction[i], b.bid.bidder[i], b.bid.price[i], b.bid.time[i])
			o.s[0] = append(o.s[0], q.texts[g])
		}
	}
}

// local is q3: auctions of a category with their sellers in three states, whichever comes first. Both are kept.
type local struct {
	t       *table
	sellers chunks[seller]
	opened  chunks[offer]
}

type seller struct {
	known             bool
	name, city, state string
	offers            uint32 // the newest of those that wait or have left
}

type offer struct {
	id   int64
	next uint32
}

func newLocal() query { return &local{t: newTable()} }
func (*local) columns() columns {
	return personID | personName | personCity | personState | auctionID | auctionSeller | auctionCategory
}
func (*local) end(*output) {}
func (q *local) batch(b *events, o *output) {
	for i, g := range q.t.find(b.person.id) {
		s := q.sellers.upTo(g)
		switch state := b.person.state[i]; state {
		case "OR", "ID", "CA":
			*s = seller{true, b.person.name[i], b.person.city[i], state, s.offers}
			for x := s.offers; x != 0; x = q.opened.at(x - 1).next {
				q.leave(s, q.opened.at(x-1).id, o)
			}
		}
	}
	for i, g := range q.t.find(b.auction.seller) {
		if b.auction.category[i] != 10 {
			continue
		}
		s := q.sellers.upTo(g)
		a, at := q.opened.add()
		*a = offer{b.auction.id[i], s.offers}
		s.offers = at + 1
		if s.known {
			q.leave(s, a.id, o)
		}
	}
}

func (*local) leave(s *seller, id int64, o *output) {
	o.add(0, id)
	o.s[0], o.s[1], o.s[2] = append(o.s[0], s.name), append(o.s[1], s.city), append(o.s[2], s.state)
}
