package main

// channelStats is q16: what q15 counts, by channel and day, and the last minute. The distinct values of all channels are in one table by the
// number of the channel and the value.
type channelStats struct {
	names             map[string]uint32
	numbers           []int64 // of the channels of the batch's bids
	groups            *table
	rows              chunks[channelRow]
	bidders, auctions *table
	seen              [2][]uint8
	mask              []uint8
	turn              uint64
	dirty             []uint32
	keys              []int64
	texts             []string // channels by number
}

type channelRow struct {
	n      [12]int64
	minute int64
	turn   uint64
	left   bool // a row of it has left
}

func newChannelStats() query {
	return &channelStats{names: map[string]uint32{}, groups: newTable(), bidders: newTable(), auctions: newTable()}
}
func (*channelStats) columns() columns { return bidNumbers | bidChannel }
func (*channelStats) end(*output)      {}

func (q *channelStats) batch(b *events, o *output) {
	q.turn++
	q.dirty, q.keys, q.mask = q.dirty[:0], q.keys[:0], q.mask[:0]
	for i, ch := range b.bid.channel {
		n, ok := q.names[ch]
		if !ok {
			n = uint32(len(q.texts))
			q.names[ch] = n
			q.texts = append(q.texts, ch)
		}
		q.keys = append(q.keys, int64(n)|b.bid.time[i]/day<<32)
		q.mask = append(q.mask, 1|2<<rank(b.bid.price[i]))
	}
	q.numbers = q.numbers[:0]
	for i, g := range q.groups.find(q.keys) {
		q.numbers = append(q.numbers, int64(g))
		r := q.rows.upTo(g)
		if r.turn != q.turn {
			r.turn = q.turn
			q.dirty = append(q.dirty, g)
			if r.left {
				q.emit(o, 1, g, r)
			}
		}
		r.n[0]++
		r.n[1+rank(b.bid.price[i])]++
		r.minute = max(r.minute, b.bid.time[i]/60_000%(24*60))
	}
	q.distinct(q.bidders, b.bid.bidder, 0)
	q.distinct(q.auctions, b.bid.auction, 1)
	for _, g := range q.dirty {
		r := q.rows.at(g)
		kind := byte(0)
		if r.left {
			kind = 2
		}
		r.left = true
		q.emit(o, kind, g, r)
	}
}

func (q *channelStats) distinct(t *table, values []int64, of int) {
	found := t.find2(q.numbers, values)
	seen := extend(q.seen[of], t.len())
	for i, g := range found {
		if more := q.mask[i] &^ seen[g]; more != 0 {
			seen[g] |= more
			n := q.rows.at(uint32(q.numbers[i])).n[4+4*of:]
			for f := range 4 {
				n[f] += int64(more >> f & 1)
			}
		}
	}
	q.seen[of] = seen
}

func (q *channelStats) emit(o *output, kind byte, g uint32, r *channelRow) {
	o.add(kind, r.n[:]...)
	o.s[0] = append(o.s[0], q.texts[uint32(q.groups.a[g])])
	o.s[1] = append(o.s[1], minuteText(r.minute))
}

var minuteTexts [24 * 60]string

func minuteText(m int64) string {
	if minuteTexts[m] == "" {
		minuteTexts[m] = string([]byte{'0' + byte(m/600), '0' + byte(m/60%10), ':', '0' + byte(m%60/10), '0' + byte(m%10)})
	}
	return minuteTexts[m]
}
