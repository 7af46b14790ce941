package op

import "encoding/binary"

// Changes of a page where it lies: most change a few entries, and copying the others twice costs more than all the rest.

// entrySize is how large an entry is that pageWriter.add would write.
func entrySize(sub, val []byte, stamped bool) int {
	n := uvarintSize(uint64(len(sub))) + len(sub) + len(val)
	if stamped {
		n += stampSize
	}
	return n
}

// uvarintSize is the number of bytes of x as an uvarint.
func uvarintSize(x uint64) int {
	n := 1
	for ; x >= 0x80; x >>= 7 {
		n++
	}
	return n
}

// insertEntry puts an entry of size bytes in place of entry at of p, which is not wide and stays so: grown is p with
// size+2 bytes of room behind it.
func insertEntry(grown page, size, at int, sub, val []byte, stamped bool, stamp int64) {
	p := grown[:len(grown)-size-2]
	v := p.view()
	start, tail := v.offset(at), 2*v.count
	// From the end on, so that nothing is overwritten before it has moved.
	n := v.count + 1
	if stamped {
		n |= pageStamped
	}
	binary.LittleEndian.PutUint16(grown[len(grown)-2:], uint16(n))
	behind := grown[v.end+size+2*at+2 : len(grown)-2]
	copy(behind, p[v.end+2*at:v.end+tail])
	shiftOffsets(behind, size)
	copy(grown[v.end+size:], p[v.end:v.end+2*at])
	binary.LittleEndian.PutUint16(grown[v.end+size+2*at:], uint16(start))
	copy(grown[start+size:], p[start:v.end])
	e := grown[start : start+size]
	w := binary.PutUvarint(e, uint64(len(sub)))
	w += copy(e[w:], sub)
	if stamped {
		appendStamp(e[:w], stamp)
		w += stampSize
	}
	copy(e[w:], val)
}

// shiftOffsets adds d to each of the offsets in o.
func shiftOffsets(o []byte, d int) {
	for ; len(o) >= 2; o = o[2:] {
		binary.LittleEndian.PutUint16(o, binary.LittleEndian.Uint16(o)+uint16(d))
	}
}

// cutEntries removes the entries from ≤ i < to of p, which is not wide and has others, and returns what remains, where p is.
func (p page) cutEntries(from, to int) page {
	v := p.view()
	start, end := v.offset(from), v.offset(to)
	size := end - start
	n := v.count - (to - from)
	copy(p[start:], p[end:v.end])
	at := v.end - size // of the offsets
	copy(p[at:], p[v.end:v.end+2*from])
	behind := p[at+2*from : at+2*n]
	copy(behind, p[v.end+2*to:v.end+2*v.count])
	shiftOffsets(behind, -size)
	if v.stamps {
		n |= pageStamped
	}
	at += 2 * (n &^ pageStamped)
	binary.LittleEndian.PutUint16(p[at:], uint16(n))
	return p[:at+2]
}

// wide tells whether offsets have four bytes.
func (p page) wide() bool { return len(p) >= 1<<16 }
