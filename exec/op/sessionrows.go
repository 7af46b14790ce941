package op

import (
	"encoding/binary"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// newSessionTVF is SESSION on its own: the rows of a session leave, in the order they arrived, when it has ended.
func newSessionTVF(spec WindowTVFSpec) exec.Operator {
	sink := &sessionEmitter{output: spec.Output, width: len(spec.Input.Columns)}
	w := newSessionWindow(spec.Window, spec.Input, spec.Keys, spec.Session, &sessionRows{input: spec.Input, sink: sink})
	sink.clock = &w.clock
	return w
}

// sessionRows is the payload of sessions that hold their rows: per session (8 bytes id, group) an ordered map from the
// number of a row to its kind and columns.
type sessionRows struct {
	input *types.Schema
	sink  sessionSink

	rows      *multimap
	next      uint64 // number of the next row; numbers grow over all sessions, so that merged ones stay in order
	in        *batch.Batch
	at        []int32 // rows of the batch not yet stored
	keys      checkpoint.Keys
	moved     []byte // rows on their way from one session to another, each its number and value
	movedEnds []int
	sub, val  []byte
	reader    sessionReader
}

// sessionSink takes ended sessions.
type sessionSink interface {
	open(s exec.Subtask) error
	session(f firedSession, rows *sessionReader, out exec.Emitter) error
	flush(out exec.Emitter) error
}

func (p *sessionRows) open(s exec.Subtask) error {
	var err error
	if p.rows, err = openMultimap(s, "sessions.rows", "session-rows/1:"+rowFormat(p.input), 0); err != nil {
		return err
	}
	p.reader.build = batch.NewBuilder(p.input)
	return p.sink.open(s)
}

func (p *sessionRows) begin(b *batch.Batch) error {
	p.in, p.at = b, p.at[:0]
	p.keys.Reset()
	return nil
}

func (p *sessionRows) add(r int, group []byte, hash uint64, id int64) error {
	p.at = append(p.at, int32(r))
	addCellKey(&p.keys, id, group, hash)
	return nil
}

func (p *sessionRows) end() error {
	if len(p.at) == 0 {
		return nil
	}
	if err := p.rows.probe(&p.keys); err != nil {
		return err
	}
	for i, r := range p.at {
		p.sub = binary.BigEndian.AppendUint64(p.sub[:0], p.next)
		p.next++
		p.val = append(p.val[:0], byte(p.in.Kind(int(r))))
		p.val = appendRow(p.val, p.in, int(r))
		if err := p.rows.at(i).put(p.sub, p.val); err != nil {
			return err
		}
	}
	p.at = p.at[:0]
	p.keys.Reset()
	return nil
}

func (p *sessionRows) merge(group []byte, hash uint64, from []int64, to int64) error {
	if err := p.end(); err != nil {
		return err
	}
	defer p.keys.Reset()
	for _, id := range from {
		addCellKey(&p.keys, id, group, hash)
	}
	addCellKey(&p.keys, to, group, hash)
	if err := p.rows.probe(&p.keys); err != nil {
		return err
	}
	for i := range from {
		if err := p.move(p.rows.at(i), p.rows.at(len(from))); err != nil {
			return err
		}
	}
	return p.rows.done()
}

// move moves the rows of one session to another, some at a time.
func (p *sessionRows) move(from, to bucket) error {
	for {
		p.moved, p.movedEnds = p.moved[:0], p.movedEnds[:0]
		err := from.ascend(nil, func(sub, val []byte) bool {
			p.moved = append(append(p.moved, sub...), val...)
			p.movedEnds = append(p.movedEnds, len(p.moved))
			return len(p.movedEnds) < batch.Size
		})
		if err != nil || len(p.movedEnds) == 0 {
			return err
		}
		start := 0
		for _, end := range p.movedEnds {
			p.sub = append(p.sub[:0], p.moved[start:start+8]...)
			if err := to.put(p.sub, p.moved[start+8:end]); err != nil {
				return err
			}
			start = end
		}
		if err := from.removeBelow(append(p.sub, 0)); err != nil {
			return err
		}
	}
}

func (p *sessionRows) fire(list []firedSession, out exec.Emitter) error {
	p.keys.Reset()
	for _, f := range list {
		addCellKey(&p.keys, f.id, f.group, f.hash)
	}
	if err := p.rows.probe(&p.keys); err != nil {
		return err
	}
	for i, f := range list {
		parts := &p.reader.parts
		parts.open(p.rows, i)
		if err := p.sink.session(f, &p.reader, out); err != nil {
			return err
		}
		if err := parts.clear(); err != nil {
			return err
		}
		if err := parts.close(); err != nil {
			return err
		}
	}
	if err := p.rows.done(); err != nil {
		return err
	}
	p.keys.Reset()
	return p.sink.flush(out)
}

func (p *sessionRows) state(dst []byte) []byte { return binary.BigEndian.AppendUint64(dst, p.next) }

func (p *sessionRows) restore(states [][]byte) {
	for _, s := range states {
		if len(s) == 8 {
			p.next = max(p.next, binary.BigEndian.Uint64(s))
		}
	}
}

// sessionReader reads the rows of a session in the order they arrived.
type sessionReader struct {
	parts bucketParts
	build *batch.Builder
}

// each calls f with batches of the rows, borrowed for the call.
func (r *sessionReader) each(f func(b *batch.Batch) error) error {
	for r.parts.rewind(); ; {
		var failed error
		err := r.parts.next(func(_, val []byte) bool {
			failed = emitRow(r.build, val[1:], types.RowKind(val[0]))
			return failed == nil
		})
		if err == nil {
			err = failed
		}
		if err == nil && r.build.Len() > 0 {
			err = f(r.build.Finish())
			r.build.Reset()
		}
		if err != nil || r.parts.end {
			return err
		}
	}
}

// sessionEmitter emits the rows of ended sessions with their window.
type sessionEmitter struct {
	output *types.Schema
	width  int
	clock  *windowClock
	out    *batch.Builder
}

func (e *sessionEmitter) open(exec.Subtask) error {
	e.out = batch.NewBuilder(e.output)
	return nil
}

func (e *sessionEmitter) session(f firedSession, rows *sessionReader, out exec.Emitter) error {
	return rows.each(func(b *batch.Batch) error {
		for i := range b.Len() {
			copyWindowed(e.out, b, b.Row(i), e.clock, f.start, f.end)
			if e.out.Full() {
				if err := flush(e.out, out); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func (e *sessionEmitter) flush(out exec.Emitter) error { return flush(e.out, out) }
