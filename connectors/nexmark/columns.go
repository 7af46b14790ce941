package nexmark

import (
	"math"
	"slices"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// run is a run of events of one kind that are neighbours in a group: their fields follow from the first one and the place.
type run struct {
	first event
	row   int // of the first in the batch
	n     int
}

// at is event i of the run.
func (r *run) at(i int) event {
	e := r.first
	e.n += int64(i)
	switch e.kind {
	case aPerson:
		e.person += int64(i)
	case anAuction:
		e.auction += int64(i)
	}
	return e
}

// list are events of one kind that are rows of a batch, in few places each: people and auctions.
type list struct {
	rows   []int32
	events []event // without their times: not every column needs them
}

// made are the events of a batch. Those of a group that are rows are neighbours: bids, nearly all events, are runs; of the others
// there are few in a row, and a loop goes over all of the batch.
type made struct {
	runs   []run
	rows   int
	only   kind // of all rows, noKind when there are several
	of     [aBid]list
	masked [len(specs)]bool
	masks  [len(specs)][]uint64 // a bit for every row: whether it is of the kind
}

func (m *made) reset() {
	m.runs, m.rows, m.only, m.masked = m.runs[:0], 0, noKind, [len(specs)]bool{}
	for i := range m.of {
		m.of[i].rows, m.of[i].events = m.of[i].rows[:0], m.of[i].events[:0]
	}
}

// add appends n events of a group, all of one kind, from place off on.
func (m *made) add(g *generator, group, off, n int64) {
	u := run{first: g.untimed(group, off), row: m.rows, n: int(n)}
	k := u.first.kind
	if m.rows == 0 {
		m.only = k
	} else if m.only != k {
		m.only = noKind
	}
	m.runs = append(m.runs, u)
	m.rows += u.n
	if k == aBid {
		return
	}
	l := &m.of[k]
	at := len(l.rows)
	l.rows = slices.Grow(l.rows, u.n)[:at+u.n]
	l.events = slices.Grow(l.events, u.n)[:at+u.n]
	rows, events := l.rows[at:], l.events[at:]
	for i := range rows {
		rows[i], events[i] = int32(u.row+i), u.at(i)
	}
}

// mask is which rows are of kind k.
func (m *made) mask(k kind) []uint64 {
	if m.masked[k] {
		return m.masks[k]
	}
	m.masked[k] = true
	words := (m.rows + 63) >> 6
	b := slices.Grow(m.masks[k][:0], words)[:words]
	m.masks[k] = b
	clear(b)
	if k != aBid {
		for _, r := range m.of[k].rows {
			b[r>>6] |= 1 << (r & 63)
		}
		return b
	}
	for i := range m.runs {
		if u := &m.runs[i]; u.first.kind == k {
			for r := u.row; r < u.row+u.n; r++ {
				b[r>>6] |= 1 << (r & 63)
			}
		}
	}
	return b
}

// fill appends a column's values of the batch's events. A field of a ROW is NULL for events of another kind.
func (r *reader) fill(c column, col *batch.ColBuilder) {
	m := &r.made
	text := c.typ.Phys() == types.PhysStr
	switch {
	case c.typ.Kind == types.Row:
		r.fillRows(c, col)
		return
	case m.rows == 0:
		return
	case m.only != noKind && col.Len() == 0 && (c.field == eventType || c.kind != noKind && c.kind != m.only):
		col.AppendConst(m.rows)
		if text {
			col.Str[0] = ""
		} else {
			col.I64[0] = int64(m.only)
		}
		if c.field != eventType {
			col.Nullify(0)
		}
		return
	}
	base := col.AppendN(m.rows)
	if text {
		fillEach(m, c, col.Str[base:], r.s.gen, (*generator).texts, (*generator).textsOf)
	} else {
		fillEach(m, c, col.I64[base:], r.s.gen, (*generator).numbers, (*generator).numbersOf)
	}
	switch {
	case c.kind == noKind || c.kind == m.only:
	case base == 0:
		col.KeepOnly(m.mask(c.kind))
	default:
		for _, u := range m.runs {
			if u.first.kind != c.kind {
				col.NullifyRange(base+u.row, base+u.row+u.n)
			}
		}
	}
}

// fillEach makes the values of a column, of bids by run and of others by list.
func fillEach[T any](m *made, c column, dst []T, g *generator, runs func(*generator, field, *run, []T), lists func(*generator, field, *list, []T)) {
	for k := range m.of {
		if len(m.of[k].rows) > 0 && (c.kind == noKind || c.kind == kind(k)) {
			lists(g, c.field, &m.of[k], dst)
		}
	}
	if m.only != noKind && m.only != aBid || c.kind != noKind && c.kind != aBid {
		return
	}
	for i := range m.runs {
		if u := &m.runs[i]; u.first.kind == aBid {
			runs(g, c.field, u, dst[u.row:u.row+u.n])
		}
	}
}

// numbersOf is numbers of the events of a list, in their rows of dst.
func (g *generator) numbersOf(f field, l *list, dst []int64) {
	switch f {
	case eventTime:
		for i, r := range l.rows {
			dst[r] = g.millis(l.events[i].n) * 1000
		}
	case personID:
		for i, r := range l.rows {
			dst[r] = firstID + l.events[i].person
		}
	case auctionID:
		for i, r := range l.rows {
			dst[r] = firstID + l.events[i].auction
		}
	case auctionCategory:
		for i, r := range l.rows {
			u := g.of(auctionCategory, l.events[i].n)
			dst[r] = firstCategory + int64(u.below(categories))
		}
	default:
		for i, r := range l.rows {
			e := &l.events[i]
			if f == auctionExpires {
				e.ms = g.millis(e.n)
			}
			dst[r] = g.number(f, e)
		}
	}
}

// textsOf is texts of the events of a list, in their rows of dst.
func (g *generator) textsOf(f field, l *list, dst []string) {
	var from []string
	switch f {
	case personName:
		from = g.names
	case personCity:
		from = cities
	case personState:
		from = states
	default:
		for i, r := range l.rows {
			dst[r] = g.text(f, &l.events[i])
		}
		return
	}
	for i, r := range l.rows {
		u := g.of(f, l.events[i].n)
		dst[r] = from[u.below(uint64(len(from)))]
	}
}

// numbers is number of the events of a run. The fields of bids, nearly all events, have loops of their own, without branches
// on random numbers: a wrong guess costs more than a second draw.
func (g *generator) numbers(f field, u *run, dst []int64) {
	n, person, auction := u.first.n, u.first.person, u.first.auction
	switch {
	case f == eventType:
		for i := range dst {
			dst[i] = int64(u.first.kind)
		}
	case f == eventTime:
		for i := range dst {
			dst[i] = g.millis(n+int64(i)) * 1000
		}
	case f == bidPrice:
		for i := range dst {
			r := g.of(bidPrice, n+int64(i))
			dst[i] = g.price(&r)
		}
	case f == bidAuction:
		low := max(auction-inFlight, 0)
		g.hotOr(f, n, dst, uint64(g.hotAuctions), firstID+auction/hotBatch*hotBatch, firstID+low, uint64(auction-low+1+idLead))
	case f == bidBidder: // hot bidders are not hot sellers
		few := min(person+1, activePeople)
		g.hotOr(f, n, dst, uint64(g.hotBidders), firstID+person/hotBatch*hotBatch+1, firstID+person+1-few, uint64(few+idLead))
	default:
		for i := range dst {
			e := u.at(i)
			e.ms = g.millis(e.n)
			dst[i] = g.number(f, &e)
		}
	}
}

// hotOr is the hot number, but for one event of ratio one of count numbers from low on.
func (g *generator) hotOr(f field, n int64, dst []int64, ratio uint64, hot, low int64, count uint64) {
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

// texts is text of the events of a run.
func (g *generator) texts(f field, u *run, dst []string) {
	n := u.first.n
	switch f {
	case bidChannel, bidURL:
		names, hot := g.channels, hotNames
		if f == bidURL {
			names, hot = g.urls, g.hotURLs
		}
		for i := range dst {
			r := g.of(bidChannel, n+int64(i))
			from := names
			if r.below(hotChannels) > 0 {
				from = hot
			}
			dst[i] = from[r.below(uint64(len(from)))]
		}
	case bidExtra:
		g.fills(n, dst, bidUsed, g.bidSize)
	default:
		for i := range dst {
			e := u.at(i)
			dst[i] = g.text(f, &e)
		}
	}
}

// fills is fill of bids that all use as many bytes.
func (g *generator) fills(n int64, dst []string, used, size int64) {
	if used > size {
		clear(dst)
		return
	}
	size -= used
	delta := int64(math.Round(float64(size) * 0.2))
	letters := g.letters
	for i := range dst {
		r := g.of(bidExtra, n+int64(i))
		k := size - delta
		if delta > 0 {
			k += int64(r.below(uint64(2 * delta)))
		}
		at := int64(r.below(uint64(poolSize - k)))
		dst[i] = letters[at : at+k]
	}
}
