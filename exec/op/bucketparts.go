package op

import (
	"errors"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/batch"
)

// bucketParts reads the entries of one key of a multimap in order, a part at a time. What a multimap reads stays in memory
// until the next probe, and so would a key that is larger than memory: between two parts of such a key there is one.
//
// The multimap is then probed for this key alone. The operator reads and changes it only by bucket, and calls close before
// it goes on with the keys of its own probe; small keys cost none of that.
type bucketParts struct {
	m     *multimap
	i     int // of the operator's probe
	outer *checkpoint.Keys
	one   checkpoint.Keys // with the key, once the multimap was probed for it
	sub   []byte
	from  []byte // the next part begins here; nil at the start
	end   bool   // there is no next part
}

// open begins with key i of m's last probe.
func (p *bucketParts) open(m *multimap, i int) {
	p.m, p.i, p.outer = m, i, m.keys
	p.one.Reset()
	p.rewind()
}

// rewind goes back to the first part.
func (p *bucketParts) rewind() { p.from, p.end = p.from[:0], false }

// bucket is the key being read.
func (p *bucketParts) bucket() bucket {
	if p.one.Len() > 0 {
		return p.m.at(0)
	}
	return p.m.at(p.i)
}

// partBytes is about what a part takes.
const partBytes = 256 << 10

// next calls f with the entries of the next part, batch.Size at most, until it returns false; that ends the part too. The
// slices are valid for the call.
func (p *bucketParts) next(f func(sub, val []byte) bool) error {
	if len(p.from) > 0 {
		if err := p.probe(); err != nil {
			return err
		}
	}
	n, size := 0, 0
	p.end = true
	err := p.bucket().ascend(p.from, func(sub, val []byte) bool {
		if n == batch.Size || size >= partBytes {
			p.sub, p.end = append(p.sub[:0], sub...), false
			return false
		}
		n, size = n+1, size+len(sub)+len(val)
		if f(sub, val) {
			return true
		}
		p.sub, p.end = append(append(p.sub[:0], sub...), 0), false
		return false
	})
	p.from, p.sub = p.sub, p.from
	return err
}

// probe lets go of what was read.
func (p *bucketParts) probe() error {
	if p.one.Len() == 0 {
		appendKey(&p.one, p.outer.Key(p.i), p.outer.Hashes[p.i])
	}
	if err := p.m.done(); err != nil {
		return err
	}
	return p.m.probe(&p.one)
}

// clear removes all entries.
func (p *bucketParts) clear() error {
	for p.bucket().large() {
		p.rewind()
		if err := p.next(func(_, _ []byte) bool { return true }); err != nil || p.end {
			return errors.Join(err, p.bucket().clear())
		}
		if err := p.bucket().removeBelow(p.from); err != nil {
			return err
		}
		if err := p.probe(); err != nil {
			return err
		}
	}
	return p.bucket().clear()
}

// close gives the multimap back as the operator had probed it.
func (p *bucketParts) close() error {
	if p.one.Len() == 0 {
		return nil
	}
	if err := p.m.done(); err != nil {
		return err
	}
	return p.m.probe(p.outer)
}

// large reports that the entries are more than some hundred KiB, or may be.
func (b bucket) large() bool {
	h, _ := parseRoot(b.row())
	return h.level > 1
}
