package format

import (
	"strings"

	"github.com/streamsql/streamsql/sql/types"
)

// container reads an object or array. A value of the wrong shape is skipped as a whole, so that the fields behind it
// are read from where they are.
func (r *reader) container(p int, c *conv, depth int) (int, status) {
	r.badTo = 0
	isArray := r.b[p] == '['
	switch c.kind {
	case types.Array:
		if isArray {
			return r.array(p, c, depth)
		}
	case types.Map, types.Multiset:
		if !isArray {
			return r.mapping(p, c, depth)
		}
	case types.Row:
		if !isArray {
			return r.rowDatum(p, c.obj, depth)
		}
	case types.Char, types.Varchar:
		next := skipValue(r.b, p, depth-1)
		if next < 0 {
			return -1, bad
		}
		r.scratch = appendCompact(r.scratch[:0], r.b[p:next])
		r.v.Str = r.strs.keep(r.scratch)
		return next, good
	}
	what := "an object"
	if isArray {
		what = "an array"
	}
	return skipValue(r.b, p, depth-1), r.fail(what + " where " + shape(c.kind) + " is expected")
}

// element reads a value inside a container and puts it on the stack. Under ignore-parse-errors a bad element is NULL
// and leaves the others alone.
func (r *reader) element(p int, c *conv, depth int) (int, status) {
	r.v = types.Datum{}
	p, st := r.value(p, c, depth)
	if p < 0 {
		return -1, bad
	}
	if st == bad && r.ignoreErrors {
		r.lenient++
		st = null
	}
	if st == null {
		r.v = types.NullDatum
	}
	r.stack = append(r.stack, r.v)
	return p, st
}

// seal moves the stack above base to memory that lives as long as the value.
func (r *reader) seal(base int) []types.Datum {
	n := len(r.stack) - base
	if n > cap(r.lists)-len(r.lists) {
		r.lists = make([]types.Datum, 0, max(64, 2*cap(r.lists), n))
	}
	at := len(r.lists)
	r.lists = append(r.lists, r.stack[base:]...)
	r.stack = r.stack[:base]
	return r.lists[at:len(r.lists):len(r.lists)]
}

func (r *reader) array(p int, c *conv, depth int) (int, status) {
	base := len(r.stack)
	p = skipSpace(r.b, p+1)
	more := true
	if p < len(r.b) && r.b[p] == ']' {
		p, more = p+1, false
	}
	for more {
		var st status
		if p, st = r.element(p, c.elem, depth); st == bad {
			return p, bad
		}
		if p, more = r.comma(p, ']'); p < 0 {
			return -1, bad
		}
	}
	r.v = types.Datum{List: r.seal(base)}
	return p, good
}

// comma reads "," or end, and the space after a comma.
func (r *reader) comma(p int, end byte) (next int, more bool) {
	p = skipSpace(r.b, p)
	if p >= len(r.b) {
		return -1, false
	}
	switch r.b[p] {
	case ',':
		return skipSpace(r.b, p+1), true
	case end:
		return p + 1, false
	}
	return -1, false
}

// mapping reads MAP and MULTISET. Of equal keys the last wins.
func (r *reader) mapping(p int, c *conv, depth int) (int, status) {
	base := len(r.stack)
	var index map[string]int // of large maps
	p = skipSpace(r.b, p+1)
	if p < len(r.b) && r.b[p] == '}' {
		r.v = types.Datum{List: r.seal(base)}
		return p + 1, good
	}
	for more := true; more; {
		from := p
		if p = skipKey(r.b, p); p < 0 {
			return -1, bad
		}
		key := types.StrDatum(r.keyText(from))
		var at int
		if at, index = r.findKey(base, key.Str, index); at < 0 {
			r.stack = append(r.stack, key)
		}
		var st status
		if p, st = r.element(p, c.elem, depth); st == bad {
			return p, bad
		}
		if at >= 0 {
			last := len(r.stack) - 1
			r.stack[at+1] = r.stack[last]
			r.stack = r.stack[:last]
		}
		if p, more = r.comma(p, '}'); p < 0 {
			return -1, bad
		}
	}
	r.v = types.Datum{List: r.seal(base)}
	return p, good
}

// findKey is the place of key among those since base, -1 when it is new. Beyond a few dozen keys it keeps an index.
func (r *reader) findKey(base int, key string, index map[string]int) (int, map[string]int) {
	if index == nil {
		for i := base; i < len(r.stack); i += 2 {
			if r.stack[i].Str == key {
				return i, nil
			}
		}
		if len(r.stack)-base < 128 {
			return -1, nil
		}
		index = make(map[string]int, 256)
		for i := base; i < len(r.stack); i += 2 {
			index[r.stack[i].Str] = i
		}
	}
	if at, ok := index[key]; ok {
		return at, index
	}
	index[key] = len(r.stack)
	return -1, index
}

// keyText is the name of the checked key at p.
func (r *reader) keyText(p int) string {
	next, plain := skipString(r.b, p+1)
	s := r.b[p+1 : next-1]
	if plain {
		return text(s)
	}
	r.scratch = appendUnescaped(r.scratch[:0], s)
	return r.strs.keep(r.scratch)
}

// absent marks a field of a nested ROW that was not there; it is NULL to everybody else.
var absent = types.Datum{IsNull: true, Bool: true}

// rowDatum reads a nested ROW.
func (r *reader) rowDatum(p int, o *object, depth int) (int, status) {
	base := len(r.stack)
	for range o.fields {
		r.stack = append(r.stack, absent)
	}
	p = skipSpace(r.b, p+1)
	more := true
	if p < len(r.b) && r.b[p] == '}' {
		p, more = p+1, false
	}
	o.began()
	for next := 0; more; {
		var s *slot
		if p, s = r.key(p, o, &next); p < 0 {
			return -1, bad
		}
		if s == nil || s.f < 0 {
			p = skipValue(r.b, p, depth)
		} else {
			f := &o.fields[s.f]
			var st status
			if p, st = r.element(p, f.c, depth); st == bad {
				r.field = joinPath(f.name, r.field)
				return p, bad
			}
			last := len(r.stack) - 1
			r.stack[base+s.f] = r.stack[last]
			r.stack = r.stack[:last]
		}
		if p < 0 {
			return -1, bad
		}
		if p, more = r.comma(p, '}'); p < 0 {
			return -1, bad
		}
	}
	o.ended()
	if r.failOnMissing {
		for i, d := range r.stack[base:] {
			if d.IsNull && d.Bool {
				r.badFrom, r.badTo, r.field = p-1, p, o.fields[i].name
				return p, r.fail("the field is missing")
			}
		}
	}
	r.v = types.Datum{List: r.seal(base)}
	return p, good
}

func joinPath(outer, inner string) string {
	if inner == "" {
		return outer
	}
	return outer + "." + inner
}

// key reads a member's name with its colon and the space behind. slot is nil for a name nobody expects.
func (r *reader) key(p int, o *object, next *int) (int, *slot) {
	b := r.b
	if *next < len(o.slots) {
		s := o.slots[*next]
		if k := s.key; len(b)-p > len(k) && string(b[p:p+len(k)]) == k {
			p += len(k)
			*next++
			if o.learned != nil {
				o.learned = append(o.learned, s)
			}
			if space(b[p]) {
				p = skipSpace(b, p)
			}
			return p, s
		}
	}
	return r.keySlow(p, o, next)
}

// keySlow looks the name up and lets the plan learn: names nobody needs get a place too, so that they cost one
// comparison from then on, and after many misses the order of a whole object is adopted.
func (r *reader) keySlow(p int, o *object, next *int) (int, *slot) {
	if o.learned == nil {
		// Writers leave NULL members out, so the key is often one of the following.
		for i := *next + 1; i < len(o.slots) && i <= *next+lookAhead; i++ {
			if k := o.slots[i].key; len(r.b)-p > len(k) && string(r.b[p:p+len(k)]) == k {
				*next = i + 1
				return skipSpace(r.b, p+len(k)), o.slots[i]
			}
		}
	}
	from := p
	if p = skipKey(r.b, p); p < 0 {
		return -1, nil
	}
	name := r.keyText(from)
	s := o.byName[name]
	o.misses++
	if s == nil && len(o.slots) < maxSlots && len(name) < 256 {
		s = o.add(strings.Clone(name), -1)
	}
	if s == nil {
		return p, nil
	}
	*next = s.pos + 1
	if o.learned != nil {
		o.learned = append(o.learned, s)
	}
	return p, s
}

// began and ended frame an object for learning its order.
func (o *object) began() {
	if o.misses >= relearnAfter && o.relearns < maxRelearns {
		o.misses = 0
		o.relearns++
		o.learned = make([]*slot, 0, len(o.slots))
	}
}

func (o *object) ended() {
	if o.learned != nil {
		o.adopt()
	}
}
