package main

// hotItems is q5: the auctions with the most bids in ten seconds, every two seconds. Bids are counted in slices of two.
type hotItems struct {
	slices, free []*slice
	next         int64 // end of the window that fires next
	all          *table
	sum          []int64
}

type slice struct {
	start int64
	t     *table
	count []int64
}

const hop = 2000 // ms

func newHotItems() query           { return &hotItems{all: newTable()} }
func (*hotItems) columns() columns { return bidAuction | bidTime }
func (q *hotItems) batch(b *events, o *output) {
	spans(b.bid.time, hop, func(start int64, from, to int) {
		if q.next == 0 {
			q.next = start + hop
		}
		s := q.slice(start)
		found := s.t.find(b.bid.auction[from:to])
		s.count = extend(s.count, s.t.len())
		for _, g := range found {
			s.count[g]++
		}
	})
	if n := len(b.bid.time); n > 0 {
		q.fire(b.bid.time[n-1]-late, o)
	}
}

func (q *hotItems) slice(start int64) *slice {
	for _, s := range q.slices {
		if s.start == start {
			return s
		}
	}
	s := &slice{t: newTable()}
	if n := len(q.free); n > 0 {
		s, q.free = q.free[n-1], q.free[:n-1]
		s.t.reset()
		s.count = s.count[:0]
	}
	s.start = start
	q.slices = append(q.slices, s)
	return s
}

func (q *hotItems) fire(watermark int64, o *output) {
	for ; len(q.slices) > 0 && q.next <= watermark; q.next += hop {
		q.all.reset()
		q.sum = q.sum[:0]
		top := int64(0)
		for _, s := range q.slices {
			if s.start < q.next {
				for i, k := range s.t.a {
					q.add(k, s.count[i], &top)
				}
			}
		}
		for i, n := range q.sum {
			if n == top {
				o.add(0, int64(q.all.a[i]), n)
			}
		}
		kept := q.slices[:0]
		for _, s := range q.slices {
			if s.start+tumble > q.next {
				kept = append(kept, s)
			} else {
				q.free = append(q.free, s)
			}
		}
		q.slices = kept
	}
}

func (q *hotItems) add(key uint64, n int64, top *int64) {
	g := q.all.find([]int64{int64(key)})[0]
	q.sum = extend(q.sum, q.all.len())
	q.sum[g] += n
	*top = max(*top, q.sum[g])
}

func (q *hotItems) end(o *output) { q.fire(1<<62, o) }

// rank is the place of a price among the three classes of q15 and q17.
func rank(price int64) int {
	switch {
	case price < 10_000:
		return 0
	case price < 1_000_000:
		return 1
	}
	return 2
}

const day = 24 * 3600 * 1000 // ms

// days is q15: bids, and different bidders and auctions, by day and class of price. Which classes a bidder was seen in is a bit mask.
type days struct {
	start             int64
	bidders, auctions *table
	seen              [2][]uint8
	n                 [12]int64
	mask              []uint8
}

func newDays() query           { return &days{bidders: newTable(), auctions: newTable(), start: -1} }
func (*days) columns() columns { return bidNumbers }
func (*days) end(*output)      {}
func (q *days) batch(b *events, o *output) {
	spans(b.bid.time, day, func(start int64, from, to int) {
		kind := byte(2)
		if start != q.start {
			q.start, q.n, kind = start, [12]int64{}, 0
			q.bidders.reset()
			q.auctions.reset()
			q.seen = [2][]uint8{}
		} else {
			o.add(1, q.n[:]...)
		}
		q.mask = q.mask[:0]
		for _, p := range b.bid.price[from:to] {
			r := rank(p)
			q.n[0]++
			q.n[1+r]++
			q.mask = append(q.mask, 1|2<<r)
		}
		q.distinct(q.bidders, b.bid.bidder[from:to], 0)
		q.distinct(q.auctions, b.bid.auction[from:to], 1)
		o.add(kind, q.n[:]...)
	})
}

func (q *days) distinct(t *table, keys []int64, of int) {
	found := t.find(keys)
	seen := extend(q.seen[of], t.len())
	n := q.n[4+4*of:]
	for i, g := range found {
		if more := q.mask[i] &^ seen[g]; more != 0 {
			seen[g] |= more
			for f := range 4 {
				n[f] += int64(more >> f & 1)
			}
		}
	}
	q.seen[of] = seen
}

// auctionStats is q17: bids on each auction by day: how many, by class, the least, the greatest, the average and the sum.
type auctionStats struct {
	t     *table
	rows  chunks[stats]
	turn  uint64
	dirty []uint32
	keys  []int64
}

type stats struct {
	n             int64
	class         [3]int64
	min, max, sum int64
	turn          uint64
	left          bool // a row of it has left
}

func newAuctionStats() query           { return &auctionStats{t: newTable()} }
func (*auctionStats) columns() columns { return bidAuction | bidPrice | bidTime }
func (*auctionStats) end(*output)      {}
func (q *auctionStats) batch(b *events, o *output) {
	q.turn++
	q.dirty, q.keys = q.dirty[:0], q.keys[:0]
	spans(b.bid.time, day, func(start int64, from, to int) {
		for _, a := range b.bid.auction[from:to] {
			q.keys = append(q.keys, a|start/day<<40)
		}
	})
	for i, g := range q.t.find(q.keys) {
		s := q.rows.upTo(g)
		p := b.bid.price[i]
		if s.turn != q.turn {
			s.turn = q.turn
			q.dirty = append(q.dirty, g)
			if s.left {
				q.emit(o, 1, g, s)
			} else {
				s.min = p
			}
		}
		s.n++
		s.class[rank(p)]++
		s.min, s.max, s.sum = min(s.min, p), max(s.max, p), s.sum+p
	}
	for _, g := range q.dirty {
		s := q.rows.at(g)
		kind := byte(0)
		if s.left {
			kind = 2
		}
		s.left = true
		q.emit(o, kind, g, s)
	}
}

func (q *auctionStats) emit(o *output, kind byte, g uint32, s *stats) {
	o.add(kind, int64(q.t.a[g]), s.n, s.class[0], s.class[1], s.class[2], s.min, s.max, s.sum/s.n, s.sum)
}
