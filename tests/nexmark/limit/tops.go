package main

// lastBid is q18: the last bid of each bidder on each auction.
type lastBid struct {
	t     *table
	rows  chunks[lastRow]
	kept  arena
	turn  uint64
	dirty []uint32
}

type lastRow struct {
	time int64
	kept uint64 // place plus one
	turn uint64
	i    int // in the batch
}

func newLastBid() query           { return &lastBid{t: newTable()} }
func (*lastBid) columns() columns { return wholeBid }
func (*lastBid) end(*output)      {}
func (q *lastBid) batch(b *events, o *output) {
	q.turn++
	q.dirty = q.dirty[:0]
	for i, g := range q.t.find2(b.bid.bidder, b.bid.auction) {
		r := q.rows.upTo(g)
		if r.kept != 0 && b.bid.time[i] < r.time {
			continue
		}
		r.time, r.i = b.bid.time[i], i
		if r.turn != q.turn {
			r.turn = q.turn
			q.dirty = append(q.dirty, g)
		}
	}
	for _, g := range q.dirty {
		r := q.rows.at(g)
		kind := byte(0)
		if r.kept != 0 {
			kind = 2
			o.addKept(1, q.kept.at(r.kept-1))
		}
		r.kept = keepBid(&q.kept, b, r.i, 0, true) + 1
		o.addBid(kind, b, r.i)
	}
}

// top10 is q19: the ten greatest bids on each auction with their places.
type top10 struct {
	t     *table
	rows  chunks[best]
	kept  arena
	turn  uint64
	dirty []uint32
}

type best struct {
	n, left, changed int // rows, those of them that left already, the first place that changed
	turn             uint64
	price            [10]int64
	kept             [10]uint64 // places
	sent             [10]uint64 // places of the rows that left
}

func newTop10() query           { return &top10{t: newTable()} }
func (*top10) columns() columns { return wholeBid }
func (*top10) end(*output)      {}
func (q *top10) batch(b *events, o *output) {
	q.turn++
	q.dirty = q.dirty[:0]
	for i, g := range q.t.find(b.bid.auction) {
		r := q.rows.upTo(g)
		p := b.bid.price[i]
		if r.n == len(r.price) && p <= r.price[r.n-1] {
			continue
		}
		at := min(r.n, len(r.price)-1)
		r.n = at + 1
		for ; at > 0 && r.price[at-1] < p; at-- {
			r.price[at], r.kept[at] = r.price[at-1], r.kept[at-1]
		}
		r.price[at], r.kept[at] = p, keepBid(&q.kept, b, i, 0, true)
		if r.turn != q.turn {
			r.turn, r.changed = q.turn, at
			q.dirty = append(q.dirty, g)
		}
		r.changed = min(r.changed, at)
	}
	for _, g := range q.dirty {
		r := q.rows.at(g)
		for at := r.changed; at < r.n; at++ {
			kind := byte(0)
			if at < r.left {
				kind = 2
				o.addKept(1, q.kept.at(r.sent[at]))
				o.n[4] = append(o.n[4], int64(at+1))
			}
			o.addKept(kind, q.kept.at(r.kept[at]))
			o.n[4] = append(o.n[4], int64(at+1))
			r.sent[at] = r.kept[at]
		}
		r.left = r.n
	}
}
