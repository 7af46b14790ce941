package main

// pass is q0: five columns go on as they are.
type pass struct{}

func (*pass) columns() columns { return bidNumbers | bidExtra }
func (*pass) end(*output)      {}
func (*pass) batch(b *events, o *output) {
	o.kind = append(o.kind, make([]byte, b.bid.rows)...)
	o.check += uint64(b.bid.rows)
}

// convert is q1: the price times 0.908, as a DECIMAL(23, 3) in thousandths.
type convert struct{ price []int64 }

func (*convert) columns() columns { return bidNumbers | bidExtra }
func (*convert) end(*output)      {}
func (q *convert) batch(b *events, o *output) {
	q.price = q.price[:0]
	for _, p := range b.bid.price {
		q.price = append(q.price, p*908)
		o.kind = append(o.kind, 0)
	}
	o.n[0] = append(o.n[0], q.price...)
}

// selection is q2: bids on one auction of 123.
type selection struct{}

func (*selection) columns() columns { return bidAuction | bidPrice }
func (*selection) end(*output)      {}
func (*selection) batch(b *events, o *output) {
	for i, a := range b.bid.auction {
		if a%123 == 0 {
			o.add(0, a, b.bid.price[i])
		}
	}
}

// clock is q12 in one window of the clock: bids by bidder.
type clock struct {
	t     *table
	count []int64
}

func newClock() query           { return &clock{t: newTable()} }
func (*clock) columns() columns { return bidBidder }
func (q *clock) batch(b *events, _ *output) {
	found := q.t.find(b.bid.bidder)
	q.count = extend(q.count, q.t.len())
	for _, g := range found {
		q.count[g]++
	}
}

func (q *clock) end(o *output) {
	for i, n := range q.count {
		o.add(0, int64(q.t.a[i]), n)
	}
}

// extend makes s n long at least.
func extend[T any](s []T, n int) []T {
	for len(s) < n {
		var zero T
		s = append(s, zero)
	}
	return s
}

// sessions is q11: bids of a bidder with no ten seconds between them.
type sessions struct {
	t    *table
	rows chunks[session]
	seen int64 // second of event time when all were last looked at
}

type session struct{ start, last, n int64 }

const (
	gap  = 10_000 // ms
	late = 4_000  // ms the watermark is behind
)

func newSessions() query           { return &sessions{t: newTable()} }
func (*sessions) columns() columns { return bidBidder | bidTime }
func (q *sessions) batch(b *events, o *output) {
	ts := b.bid.time
	for i, g := range q.t.find(b.bid.bidder) {
		s := q.rows.upTo(g)
		if s.n > 0 && ts[i] > s.last+gap {
			o.add(0, b.bid.bidder[i], s.n, s.start, s.last+gap)
			s.n = 0
		}
		if s.n == 0 {
			s.start = ts[i]
		}
		s.n++
		s.last = max(s.last, ts[i])
	}
	if len(ts) > 0 {
		if w := ts[len(ts)-1] - late; w/1000 != q.seen {
			q.seen = w / 1000
			q.fire(w, o)
		}
	}
}

func (q *sessions) fire(watermark int64, o *output) {
	for i := range uint32(q.rows.n) {
		if s := q.rows.at(i); s.n > 0 && s.last+gap <= watermark {
			o.add(0, int64(q.t.a[i]), s.n, s.start, s.last+gap)
			s.n = 0
		}
	}
}

func (q *sessions) end(o *output) { q.fire(1<<62, o) }
