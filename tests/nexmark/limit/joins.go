package main

// categories is q4: the greatest bid on each auction while it was open, and the average of those by category.
type categories struct {
	t     *table
	rows  chunks[openAuction]
	bids  chunks[pricedBid]
	turn  uint64
	dirty []uint32
	sum   [16]int64
	count [16]int64
	last  [16]int64
}

type openAuction struct {
	time, expires, category int64 // category 0: the auction is not there yet
	bids                    uint32
	top, counted            int64
	turn                    uint64
}

type pricedBid struct {
	price, time int64
	next        uint32
}

func newCategories() query { return &categories{t: newTable()} }
func (*categories) columns() columns {
	return auctionID | auctionTime | auctionExpires | auctionCategory | bidAuction | bidPrice | bidTime
}
func (*categories) end(*output) {}
func (q *categories) batch(b *events, o *output) {
	q.turn++
	q.dirty = q.dirty[:0]
	for i, g := range q.t.find(b.auction.id) {
		a := q.rows.upTo(g)
		a.time, a.expires, a.category = b.auction.time[i], b.auction.expires[i], b.auction.category[i]
		for x := a.bids; x != 0; {
			bid := q.bids.at(x - 1)
			q.bid(g, a, bid.price, bid.time)
			x = bid.next
		}
	}
	for i, g := range q.t.find(b.bid.auction) {
		a := q.rows.upTo(g)
		bid, at := q.bids.add()
		*bid = pricedBid{b.bid.price[i], b.bid.time[i], a.bids}
		a.bids = at + 1
		if a.category != 0 {
			q.bid(g, a, bid.price, bid.time)
		}
	}
	q.averages(o)
}

func (q *categories) bid(g uint32, a *openAuction, price, time int64) {
	if price <= a.top || time < a.time || time > a.expires {
		return
	}
	a.top = price
	if a.turn != q.turn {
		a.turn = q.turn
		q.dirty = append(q.dirty, g)
	}
}

func (q *categories) averages(o *output) {
	touched := 0
	for _, g := range q.dirty {
		a := q.rows.at(g)
		touched |= 1 << a.category
		if a.counted == 0 {
			q.count[a.category]++
		}
		q.sum[a.category] += a.top - a.counted
		a.counted = a.top
	}
	for c := range q.sum {
		if touched>>c&1 == 0 {
			continue
		}
		switch avg := q.sum[c] / q.count[c]; {
		case q.last[c] == 0:
			o.add(0, int64(c), avg)
			q.last[c] = avg
		case q.last[c] != avg:
			o.add(1, int64(c), q.last[c])
			o.add(2, int64(c), avg)
			q.last[c] = avg
		}
	}
}

// highest is q7: the bids of the greatest price in ten seconds. The text joins the maxima with all bids, which are kept.
type highest struct {
	t       *table
	head    []uint64
	bids    arena
	windows map[int64]int64 // start: the greatest price
	seen    int64
}

const tumble = 10_000 // ms

func newHighest() query           { return &highest{t: newTable(), windows: map[int64]int64{}} }
func (*highest) columns() columns { return bidNumbers | bidExtra }
func (q *highest) batch(b *events, o *output) {
	spans(b.bid.time, tumble, func(start int64, from, to int) {
		top := q.windows[start]
		for _, p := range b.bid.price[from:to] {
			top = max(top, p)
		}
		q.windows[start] = top
	})
	found := q.t.find(b.bid.price)
	q.head = extend(q.head, q.t.len())
	for i, g := range found {
		q.head[g] = keepBid(&q.bids, b, i, q.head[g], false) + 1
	}
	if n := len(b.bid.time); n > 0 {
		q.fire(b.bid.time[n-1]-late, o)
	}
}

func (q *highest) fire(watermark int64, o *output) {
	for start, top := range q.windows {
		if start+tumble > watermark {
			continue
		}
		for x := q.head[q.t.has(top)]; x != 0; {
			p := q.bids.at(x - 1)
			if t := int64(le.Uint64(p[32:])); t >= start && t <= start+tumble {
				o.addKept(0, p)
			}
			x = le.Uint64(p)
		}
		delete(q.windows, start)
	}
}

func (q *highest) end(o *output) { q.fire(1<<62, o) }

// users is q8: people who registered and opened an auction in the same ten seconds.
type users struct {
	people, sellers *table
	names           []string
	start           int64
}

func newUsers() query { return &users{people: newTable(), sellers: newTable()} }
func (*users) columns() columns {
	return personID | personName | personTime | auctionSeller | auctionTime
}
func (q *users) batch(b *events, o *output) {
	next := 0 // person
	take := func(to int) {
		old := q.people.len()
		for i, g := range q.people.find(b.person.id[next:to]) {
			if int(g) >= old {
				q.names = append(q.names, b.person.name[next+i])
			}
		}
		next = to
	}
	spans(b.auction.time, tumble, func(start int64, from, to int) {
		if start != q.start {
			for to := next; ; to++ { // people of the window that is over
				if to == len(b.person.id) || b.person.time[to] >= start {
					take(to)
					break
				}
			}
			q.end(o)
			q.start = start
		}
		to2 := next
		for to2 < len(b.person.id) && b.person.time[to2] < start+tumble {
			to2++
		}
		take(to2)
		q.sellers.find(b.auction.seller[from:to])
	})
}

func (q *users) end(o *output) {
	for _, k := range q.sellers.a {
		if g := q.people.has(int64(k)); g >= 0 {
			o.add(0, int64(k), q.start)
			o.s[0] = append(o.s[0], q.names[g])
		}
	}
	q.people.reset()
	q.sellers.reset()
	q.names = q.names[:0]
}

// expand is q20: bids with their auction, of one category.
type expand struct {
	t    *table
	rows chunks[expanded]
	kept arena
	ids  []int64
	at   []int
}

type expanded struct{ auction, bids uint64 } // places plus one

func newExpand() query           { return &expand{t: newTable()} }
func (*expand) columns() columns { return wholeAuction | wholeBid }
func (*expand) end(*output)      {}
func (q *expand) batch(b *events, o *output) {
	q.ids, q.at = q.ids[:0], q.at[:0]
	for i, c := range b.auction.category {
		if c == 10 {
			q.ids, q.at = append(q.ids, b.auction.id[i]), append(q.at, i)
		}
	}
	for i, g := range q.t.find(q.ids) {
		r := q.rows.upTo(g)
		r.auction = keepAuction(&q.kept, b, q.at[i]) + 1
		for x := r.bids; x != 0; {
			p := q.kept.at(x - 1)
			o.addKept(0, p)
			o.addAuction(q.kept.at(r.auction - 1))
			x = le.Uint64(p)
		}
	}
	for i, g := range q.t.find(b.bid.auction) {
		r := q.rows.upTo(g)
		r.bids = keepBid(&q.kept, b, i, r.bids, true) + 1
		if r.auction != 0 {
			o.addBid(0, b, i)
			o.addAuction(q.kept.at(r.auction - 1))
		}
	}
}
