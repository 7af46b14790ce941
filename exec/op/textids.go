package op

import (
	"math"
	"unsafe"

	"github.com/zeebo/xxh3"

	"github.com/streamsql/streamsql/sql/batch"
)

// textIDs gives numbers to texts: 0 to the empty one, which also stands for NULL, to others the next when they are first seen. The collector
// sees no pointer for a text.
type textIDs struct {
	slots  hashSlots // of numbers
	ends   []int     // where texts end in room, by number
	room   []byte    // what is written in it stays; as it grows it is another one
	hashes []uint64  // of the rows of a batch
	first  []uint64  // and what their slots had at first
}

const maxTextBytes = 1 << 20 // kept from one time the table is emptied to the next

func newTextIDs() *textIDs {
	t := &textIDs{ends: make([]int, 1)}
	t.slots.empty(minSlots)
	return t
}

// size is about the bytes that it takes.
func (t *textIDs) size() int { return len(t.room) + 32*(len(t.ends)-1) }

// text is the text with a number.
func (t *textIDs) text(id uint64) string {
	if id == 0 {
		return ""
	}
	from, to := t.ends[id-1], t.ends[id]
	return unsafe.String(unsafe.SliceData(t.room[from:to]), to-from)
}

// number stores the numbers of the texts of v as words. As in findEach, hashes and first slots have passes of their own.
func (t *textIDs) number(b *batch.Batch, v *batch.Vec, words []uint64, stride int) {
	n := b.Len()
	t.hashes, t.first = resize(t.hashes, n), resize(t.first, n)
	var last string
	for i := range n {
		// Texts that are one in memory, such as those of a day, need no look.
		x := v.Str[v.Idx(b.Row(i))]
		if i > 0 && len(x) == len(last) && unsafe.StringData(x) == unsafe.StringData(last) {
			t.hashes[i] = t.hashes[i-1]
			continue
		}
		t.hashes[i], last = xxh3.HashString(x), x
	}
	t.slots.firsts(t.hashes, t.first)
	last = ""
	for i, h := range t.hashes {
		x := v.Str[v.Idx(b.Row(i))]
		switch id := t.first[i] & math.MaxUint32; {
		case len(x) == 0:
			words[i*stride] = 0
		case i > 0 && h == t.hashes[i-1] && x == last:
			words[i*stride] = words[(i-1)*stride]
		case id != 0 && (t.first[i]^h)>>32 == 0 && t.text(id) == x:
			words[i*stride] = id
		default:
			words[i*stride] = t.find(h, x)
		}
		last = x
	}
}

// id is the number of s.
func (t *textIDs) id(s string) uint64 {
	if len(s) == 0 {
		return 0
	}
	return t.find(xxh3.HashString(s), s)
}

// find is id for a text that is not empty, with its hash.
func (t *textIDs) find(h uint64, s string) uint64 {
	slots, mask := t.slots.all, uint64(len(t.slots.all)-1)
	p := t.slots.home(h)
	for ; slots[p] != 0; p = (p + 1) & mask {
		if id := slots[p] & math.MaxUint32; (slots[p]^h)>>32 == 0 && t.text(id) == s {
			return id
		}
	}
	id := uint64(len(t.ends))
	slots[p] = h&^math.MaxUint32 | id
	t.room = append(grown(t.room, len(s)), s...)
	t.ends = append(grown(t.ends, 1), len(t.room))
	if 2*len(t.ends) > len(slots) {
		t.slots.double() // which are in no other memory
	}
	return id
}

// decode appends to c the texts whose numbers are in the words r·stride, r of rows.
func (t *textIDs) decode(words []uint64, stride int, rows []int32, c *batch.ColBuilder) {
	first := c.AppendN(len(rows))
	for i, r := range rows {
		c.Str[first+i] = t.text(words[int(r)*stride])
	}
}

// forget makes all numbers invalid. Texts that were given out stay as they are.
func (t *textIDs) forget() { *t = *newTextIDs() }

// rename gives the texts new numbers, and forgets those of no table that tables gives: the tables of keys k made.
func (k *keyWords) rename(tables func(func(*wordTable))) {
	news, maps := make([]*textIDs, len(k.ids)), make([][]uint64, len(k.ids))
	for j, old := range k.ids {
		if old != nil {
			news[j], maps[j] = newTextIDs(), make([]uint64, len(old.ends))
		}
	}
	tables(func(t *wordTable) {
		for j, to := range maps {
			if to == nil {
				continue
			}
			for at := k.at[j]; at < len(t.words); at += t.stride {
				id := t.words[at]
				if id != 0 && to[id] == 0 {
					to[id] = news[j].id(k.ids[j].text(id))
				}
				t.words[at] = to[id]
			}
		}
		t.place()
	})
	for j, ids := range news {
		if ids != nil {
			*k.ids[j] = *ids
		}
	}
}

// textRoom has copies of texts, many in one piece of memory.
type textRoom struct{ free []byte }

// keep is a copy of s.
func (t *textRoom) keep(s string) string {
	if len(s) == 0 {
		return ""
	}
	if len(s) > cap(t.free)-len(t.free) {
		t.free = make([]byte, 0, max(len(s), 16<<10))
	}
	at := len(t.free)
	t.free = append(t.free, s...)
	return unsafe.String(&t.free[at], len(s)) // these bytes are never written again
}
