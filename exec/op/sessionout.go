package op

import (
	"bytes"
	"slices"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
)

// sessionPageOut collects sessions that have ended and emits them column by column, by their end and group.
type sessionPageOut struct {
	w       *sessionAccs
	keys    []byte // of the sessions, back to back
	images  []byte
	ends    []int32 // of the keys
	order   []int32
	keyRows [][]byte
	rows    [][]byte
	decoder keyColumns
	out     *batch.Builder
}

func (p *sessionPageOut) open(w *sessionAccs) { p.w, p.out = w, batch.NewBuilder(w.spec.Output) }

// add adds the session s of the group with that key.
func (p *sessionPageOut) add(key, s []byte) {
	p.order = append(p.order, int32(len(p.ends)))
	p.keys = append(p.keys, key...)
	p.images = append(p.images, s...)
	p.ends = append(p.ends, int32(len(p.keys)))
}

func (p *sessionPageOut) key(i int32) []byte {
	from := int32(0)
	if i > 0 {
		from = p.ends[i-1]
	}
	return p.keys[from:p.ends[i]]
}

func (p *sessionPageOut) image(i int32) []byte { return p.images[int(i)*p.w.size:][:p.w.size] }

// emit emits what was added.
func (p *sessionPageOut) emit(out exec.Emitter) error {
	slices.SortFunc(p.order, func(a, b int32) int {
		if c := compare(p.w.end(p.image(a)), p.w.end(p.image(b))); c != 0 {
			return c
		}
		return bytes.Compare(p.key(a), p.key(b))
	})
	p.keyRows, p.rows = p.keyRows[:0], p.rows[:0]
	for _, i := range p.order {
		p.keyRows, p.rows = append(p.keyRows, p.key(i)), append(p.rows, p.image(i))
	}
	nk := len(p.w.spec.Keys)
	for at := 0; at < len(p.rows); {
		n := min(len(p.rows)-at, batch.Size)
		rows := p.rows[at : at+n]
		if err := p.decoder.decode(p.keyRows[at:at+n], p.out.Cols[:nk]); err != nil {
			return err
		}
		at += n
		for i := range p.w.core.accs {
			p.w.core.accs[i].appendResults(p.out.Cols[nk+i], rows, p.w.core.fixed)
		}
		for _, s := range rows {
			appendWindow(p.out, nk+len(p.w.core.accs), &p.w.clock, p.w.start(s), p.w.end(s))
		}
		p.out.RowsDone(n)
		if err := flush(p.out, out); err != nil {
			return err
		}
	}
	p.order, p.ends, p.keys, p.images = p.order[:0], p.ends[:0], p.keys[:0], p.images[:0]
	return nil
}
