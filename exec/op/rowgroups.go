package op

import "github.com/streamsql/streamsql/checkpoint"

// rowGroups brings rows of a batch with equal keys together, so that an operator reads and writes a key's state once for
// all of them. Groups are in the order of their first rows, the rows of a group in the order of arrival.
type rowGroups struct {
	rows  []rowGroup
	next  []int32 // of each row the next one of its group, -1 = none
	slots []int32 // hash table: group + 1
}

type rowGroup struct{ first, last int32 }

// find groups the given rows, which are places in keys.
func (g *rowGroups) find(keys *checkpoint.Keys, rows []int32) {
	size := 16
	for size < 2*len(rows) {
		size *= 2
	}
	g.slots = resize(g.slots, size)
	clear(g.slots)
	g.rows, g.next = g.rows[:0], resize(g.next, keys.Len())
	for _, i := range rows {
		g.next[i] = -1
		h := keys.Hashes[i]
		for p := int(h) & (size - 1); ; p = (p + 1) & (size - 1) {
			at := g.slots[p] - 1
			if at < 0 {
				g.rows = append(g.rows, rowGroup{i, i})
				g.slots[p] = int32(len(g.rows))
				break
			}
			x := &g.rows[at]
			if keys.Hashes[x.first] == h && string(keys.Key(int(x.first))) == string(keys.Key(int(i))) {
				g.next[x.last], x.last = i, i
				break
			}
		}
	}
}
