package main

import (
	"encoding/binary"
	"unsafe"
)

var le = binary.LittleEndian

// A bid that is kept: the place of the next one plus one, auction, bidder, price, time, the lengths of the texts, the texts.
const bidHead = 5*8 + 3*2

// keepBid copies bid i into the arena; texts that were not made are empty.
func keepBid(a *arena, b *events, i int, next uint64, channel bool) uint64 {
	extra, ch, u := b.bid.extra[i], "", ""
	if channel {
		ch, u = b.bid.channel[i], b.bid.url[i]
	}
	p, place := a.alloc(bidHead + len(extra) + len(ch) + len(u))
	le.PutUint64(p, next)
	for k, v := range [4]int64{b.bid.auction[i], b.bid.bidder[i], b.bid.price[i], b.bid.time[i]} {
		le.PutUint64(p[8+8*k:], uint64(v))
	}
	le.PutUint16(p[40:], uint16(len(extra)))
	le.PutUint16(p[42:], uint16(len(ch)))
	le.PutUint16(p[44:], uint16(len(u)))
	at := bidHead + copy(p[bidHead:], extra)
	at += copy(p[at:], ch)
	copy(p[at:], u)
	return place
}

// addKept appends a kept bid's numbers from column 0 on and its texts.
func (o *output) addKept(kind byte, p []byte) {
	o.kind = append(o.kind, kind)
	for k := range 4 {
		o.n[k] = append(o.n[k], int64(le.Uint64(p[8+8*k:])))
	}
	at := bidHead
	for k := range 3 {
		n := int(le.Uint16(p[40+2*k:]))
		o.s[k] = append(o.s[k], unsafe.String(unsafe.SliceData(p[at:]), n))
		at += n
	}
}

// addBid appends bid i of a batch as addKept does.
func (o *output) addBid(kind byte, b *events, i int) {
	o.kind = append(o.kind, kind)
	for k, v := range [4]int64{b.bid.auction[i], b.bid.bidder[i], b.bid.price[i], b.bid.time[i]} {
		o.n[k] = append(o.n[k], v)
	}
	for k, s := range [3][]string{b.bid.extra, b.bid.channel, b.bid.url} {
		if len(s) > i {
			o.s[k] = append(o.s[k], s[i])
		}
	}
}

// An auction that is kept: initial price, reserve, time, expiry, seller, category, the lengths of the texts, the texts.
const auctionHead = 6*8 + 3*2

func keepAuction(a *arena, b *events, i int) uint64 {
	x := &b.auction
	texts := [3]string{x.item[i], x.description[i], x.extra[i]}
	p, place := a.alloc(auctionHead + len(texts[0]) + len(texts[1]) + len(texts[2]))
	for k, v := range [6]int64{x.initial[i], x.reserve[i], x.time[i], x.expires[i], x.seller[i], x.category[i]} {
		le.PutUint64(p[8*k:], uint64(v))
	}
	at := auctionHead
	for k, s := range texts {
		le.PutUint16(p[48+2*k:], uint16(len(s)))
		at += copy(p[at:], s)
	}
	return place
}

// addAuction appends a kept auction to the row whose bid was appended: its numbers from column 4 on and its texts.
func (o *output) addAuction(p []byte) {
	for k := range 6 {
		o.n[4+k] = append(o.n[4+k], int64(le.Uint64(p[8*k:])))
	}
	at := auctionHead
	for k := range 3 {
		n := int(le.Uint16(p[48+2*k:]))
		o.s[k] = append(o.s[k], unsafe.String(unsafe.SliceData(p[at:]), n))
		at += n
	}
}

// spans calls f for the longest runs of ts, which ascend, that are in one window of size ms.
func spans(ts []int64, size int64, f func(start int64, from, to int)) {
	for i := 0; i < len(ts); {
		start := ts[i] / size * size
		j := i + 1
		for j < len(ts) && ts[j] < start+size {
			j++
		}
		f(start, i, j)
		i = j
	}
}
