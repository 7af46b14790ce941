package op

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// A page is an ordered list of entries, as a multimap keeps it in one table row: the entries one after another, the
// offset of each, and two bytes with their number. An entry is a uvarint with the length of the sub-key, the sub-key,
// with pageStamped six bytes of time (ms), and the value, which goes on to the next entry. Offsets have two bytes, in
// pages of 64 KiB and more four. The empty page has no bytes.
type page []byte

const (
	pageStamped = 1 << 15 // in the number of entries: each entry has a stamp
	stampSize   = 6
)

func (p page) n() int {
	if len(p) == 0 {
		return 0
	}
	return int(binary.LittleEndian.Uint16(p[len(p)-2:])) &^ pageStamped
}

func (p page) stamped() bool { return len(p) > 0 && p[len(p)-1]&(pageStamped>>8) != 0 }

// pageView is a page with what is needed to find its entries.
type pageView struct {
	page
	count, end int // number of entries, where they end and the offsets begin
	wide       bool
	stamps     bool
}

func (p page) view() pageView {
	v := pageView{page: p, count: p.n(), wide: len(p) >= 1<<16, stamps: p.stamped()}
	if v.count > 0 {
		v.end = len(p) - 2 - 2*v.count
		if v.wide {
			v.end -= 2 * v.count
		}
	}
	return v
}

// offset is where entry i begins; for i = count where the last one ends.
func (v *pageView) offset(i int) int {
	switch {
	case i == v.count:
		return v.end
	case v.wide:
		return int(binary.LittleEndian.Uint32(v.page[v.end+4*i:]))
	}
	return int(binary.LittleEndian.Uint16(v.page[v.end+2*i:]))
}

func (v *pageView) sub(i int) []byte {
	at := v.offset(i)
	if n := int(v.page[at]); n < 0x80 {
		return v.page[at+1 : at+1+n]
	}
	n, w := binary.Uvarint(v.page[at:])
	return v.page[at+w : at+w+int(n)]
}

// entry is sub-key, value and stamp (0 without) of entry i.
func (v *pageView) entry(i int) (sub, val []byte, stamp int64) {
	at, end := v.offset(i), v.offset(i+1)
	n, w := int(v.page[at]), 1
	if n >= 0x80 {
		var x uint64
		x, w = binary.Uvarint(v.page[at:])
		n = int(x)
	}
	at += w
	sub = v.page[at : at+n]
	at += n
	if v.stamps {
		stamp = getStamp(v.page[at:])
		at += stampSize
	}
	return sub, v.page[at:end], stamp
}

func (p page) sub(i int) []byte {
	v := p.view()
	return v.sub(i)
}

// entry is sub-key, value and stamp (0 without) of entry i.
func (p page) entry(i int) (sub, val []byte, stamp int64) {
	v := p.view()
	return v.entry(i)
}

func getStamp(b []byte) int64 {
	return int64(binary.BigEndian.Uint16(b))<<32 | int64(binary.BigEndian.Uint32(b[2:]))
}

func appendStamp(dst []byte, ms int64) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(ms>>32))
	return binary.BigEndian.AppendUint32(dst, uint32(ms))
}

// find is the first entry whose sub-key is not less than sub, and whether it is sub.
func (p page) find(sub []byte) (int, bool) {
	v := p.view()
	lo, hi := 0, v.count
	if hi > 0 { // ascending input goes to the end
		if c := bytes.Compare(v.sub(hi-1), sub); c < 0 {
			return hi, false
		} else if c == 0 {
			return hi - 1, true
		}
		hi--
	}
	for lo < hi {
		mid := (lo + hi) / 2
		switch c := bytes.Compare(v.sub(mid), sub); {
		case c == 0:
			return mid, true
		case c < 0:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return lo, false
}

// child is the entry of an inner page whose range holds sub: the last one not greater, or the first.
func (p page) child(sub []byte) int {
	i, ok := p.find(sub)
	if ok || i == 0 {
		return i
	}
	return i - 1
}

// pageWriter builds a page. Its memory is reused.
type pageWriter struct {
	buf   []byte
	offs  []uint32
	stamp bool // entries have stamps
}

func (w *pageWriter) reset(stamp bool) {
	w.buf, w.offs, w.stamp = w.buf[:0], w.offs[:0], stamp
}

func (w *pageWriter) add(sub, val []byte, stamp int64) {
	w.offs = append(w.offs, uint32(len(w.buf)))
	w.buf = binary.AppendUvarint(w.buf, uint64(len(sub)))
	w.buf = append(w.buf, sub...)
	if w.stamp {
		w.buf = appendStamp(w.buf, stamp)
	}
	w.buf = append(w.buf, val...)
}

// addRange adds the entries from ≤ i < to of p, which has stamps as the page being written has.
func (w *pageWriter) addRange(p page, from, to int) {
	if from >= to {
		return
	}
	v := p.view()
	start, end, dataEnd := v.offset(from), v.offset(to), v.end
	shift := uint32(len(w.buf) - start) // wraps as it should
	w.buf = append(w.buf, p[start:end]...)
	if !v.wide {
		for o := p[dataEnd+2*from : dataEnd+2*to]; len(o) > 0; o = o[2:] {
			w.offs = append(w.offs, uint32(binary.LittleEndian.Uint16(o))+shift)
		}
		return
	}
	for o := p[dataEnd+4*from : dataEnd+4*to]; len(o) > 0; o = o[4:] {
		w.offs = append(w.offs, binary.LittleEndian.Uint32(o)+shift)
	}
}

// size is the size of the page being written.
func (w *pageWriter) size() int { return len(w.buf) + 2 + 2*len(w.offs) }

// sub is the sub-key of entry i of the page being written.
func (w *pageWriter) sub(i int) []byte {
	n, l := binary.Uvarint(w.buf[w.offs[i]:])
	at := int(w.offs[i]) + l
	return w.buf[at : at+int(n)]
}

// appendPart appends a page of the entries from ≤ i < to to dst.
func (w *pageWriter) appendPart(dst []byte, from, to int) []byte {
	n := to - from
	if n == 0 {
		return dst
	}
	start, end := w.offs[from], uint32(len(w.buf))
	if to < len(w.offs) {
		end = w.offs[to]
	}
	dst = append(dst, w.buf[start:end]...)
	if int(end-start)+2+2*n < 1<<16 {
		for _, o := range w.offs[from:to] {
			dst = binary.LittleEndian.AppendUint16(dst, uint16(o-start))
		}
	} else {
		for _, o := range w.offs[from:to] {
			dst = binary.LittleEndian.AppendUint32(dst, o-start)
		}
	}
	if w.stamp {
		n |= pageStamped
	}
	return binary.LittleEndian.AppendUint16(dst, uint16(n))
}

// appendTo appends the page to dst.
func (w *pageWriter) appendTo(dst []byte) []byte { return w.appendPart(dst, 0, len(w.offs)) }

// middle is where to split the page when entry changed has made it too large. Pages that grow at an end leave a full one
// behind; others are halved.
func (w *pageWriter) middle(changed int) int {
	n := len(w.offs)
	switch changed {
	case n - 1:
		return n - 1
	case 0:
		return 1
	}
	half := uint32(len(w.buf) / 2)
	i, _ := slices.BinarySearch(w.offs, half)
	return min(max(i, 1), n-1)
}

// separator is a short sub-key that is greater than left and not greater than right.
func separator(left, right []byte) []byte {
	i := 0
	for i < len(left) && left[i] == right[i] {
		i++
	}
	return right[:i+1]
}
