package op

import (
	"fmt"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// newSessionAggregate is the window aggregate over SESSION. Sessions hold accumulators where those can be merged, else
// their rows, which are aggregated when the session ends.
func newSessionAggregate(spec WindowAggSpec) exec.Operator {
	result := &sessionResult{spec: spec}
	var p sessionPayload
	if result.mergeable() {
		p = &sessionAccs{sessionResult: result}
	} else {
		p = &sessionRows{input: spec.Input, sink: result}
	}
	w := newSessionWindow(spec.Window, spec.Input, spec.Keys, spec.Session, p)
	w.nullError = true
	result.clock = &w.clock
	return w
}

// sessionResult makes output rows of groups of an aggCore.
type sessionResult struct {
	spec  WindowAggSpec
	clock *windowClock
	core  aggCore
	out   *batch.Builder
	res   []types.Datum
}

// mergeable reports that the aggregates need no state beside their rows.
func (a *sessionResult) mergeable() bool {
	if a.spec.InputMode != types.AppendOnly {
		return false
	}
	c := aggCore{}
	c.accs, c.fixed, c.tails = layout(a.spec.Aggs)
	for _, g := range a.spec.Aggs {
		if g.Distinct {
			return false
		}
	}
	return c.mergeable()
}

func (a *sessionResult) open(s exec.Subtask) error {
	a.out = batch.NewBuilder(a.spec.Output)
	a.res = make([]types.Datum, len(a.spec.Aggs))
	err := a.core.open(s, coreSpec{aggs: a.spec.Aggs, retract: a.spec.InputMode != types.AppendOnly, state: "windows"})
	if err != nil {
		return err
	}
	// Values are in state while their session fires; a checkpoint has none.
	return a.core.openIndexes(s, "windows", func([]byte) uint64 { return 0 })
}

// result appends the output row of a session, whose group in the core has this key, hash and row; none when retractions
// have emptied it.
func (a *sessionResult) result(f firedSession, key []byte, hash uint64, row []byte, out exec.Emitter) error {
	if word(row, rowCount) <= 0 {
		return nil
	}
	if err := a.core.resultsFor(key, hash, row, a.res); err != nil {
		return err
	}
	nk := len(a.spec.Keys)
	if _, err := exec.DecodeKey(f.group, a.out.Cols[:nk]); err != nil {
		return fmt.Errorf("window state: %w", err)
	}
	for i := range a.res {
		a.out.Cols[nk+i].AppendDatum(a.res[i])
	}
	appendWindow(a.out, nk+len(a.res), a.clock, f.start, f.end)
	a.out.RowDone()
	if a.out.Full() {
		return flush(a.out, out)
	}
	return nil
}

// sessionAccs is the payload of sessions that hold accumulators: a row of the core per session.
type sessionAccs struct {
	*sessionResult
	in   batch.Batch
	sel  []int32
	keys checkpoint.Keys // 8 bytes id, then the group
	refs []checkpoint.Ref
	row  []byte
}

func (p *sessionAccs) begin(b *batch.Batch) error {
	p.in = *b
	if p.sel == nil {
		p.sel = make([]int32, 0, batch.Size) // a nil selection is all rows
	}
	p.sel = p.sel[:0]
	p.keys.Reset()
	return nil
}

func (p *sessionAccs) add(r int, group []byte, hash uint64, id int64) error {
	p.sel = append(p.sel, int32(r))
	addCellKey(&p.keys, id, group, hash)
	return nil
}

func (p *sessionAccs) end() error {
	if len(p.sel) == 0 {
		return nil
	}
	p.in.Sel = p.sel
	p.refs = resize(p.refs, p.keys.Len())
	if err := p.core.groups.Probe(&p.keys, p.refs); err != nil {
		return err
	}
	if err := p.core.accumulate(&p.in, &p.keys, p.refs, nil); err != nil {
		return err
	}
	p.sel = p.sel[:0]
	p.keys.Reset()
	return p.core.doneLists()
}

// merge implements sessionPayload. The rows of the batch so far go first: they know the sessions by their old ids.
func (p *sessionAccs) merge(group []byte, hash uint64, from []int64, to int64) error {
	if err := p.end(); err != nil {
		return err
	}
	defer p.keys.Reset()
	addCellKey(&p.keys, to, group, hash)
	for _, id := range from {
		addCellKey(&p.keys, id, group, hash)
	}
	p.refs = resize(p.refs, p.keys.Len())
	if err := p.core.groups.Probe(&p.keys, p.refs); err != nil {
		return err
	}
	if err := p.core.createGroups(&p.keys, p.refs[:1]); err != nil {
		return err
	}
	for i, r := range p.refs[1:] {
		if r == checkpoint.NoRow {
			continue
		}
		p.row = append(p.row[:0], p.core.groups.Value(r)...)
		if err := p.core.remove(r, p.keys.Key(i+1), p.keys.Hashes[i+1]); err != nil {
			return err
		}
		p.core.merge(p.core.groups.Mutable(p.refs[0]), p.row)
	}
	return nil
}

func (p *sessionAccs) fire(list []firedSession, out exec.Emitter) error {
	p.keys.Reset()
	for _, f := range list {
		addCellKey(&p.keys, f.id, f.group, f.hash)
	}
	p.refs = resize(p.refs, p.keys.Len())
	if err := p.core.groups.Probe(&p.keys, p.refs); err != nil {
		return err
	}
	for i, r := range p.refs {
		if r == checkpoint.NoRow {
			continue // every row was a retraction of nothing
		}
		if err := p.result(list[i], p.keys.Key(i), p.keys.Hashes[i], p.core.groups.Value(r), out); err != nil {
			return err
		}
		if err := p.core.remove(r, p.keys.Key(i), p.keys.Hashes[i]); err != nil {
			return err
		}
	}
	p.keys.Reset()
	return flush(p.out, out)
}

func (p *sessionAccs) state(dst []byte) []byte { return dst }
func (p *sessionAccs) restore([][]byte)        {}

// session implements sessionSink: it aggregates the rows of an ended session.
func (a *sessionResult) session(f firedSession, rows *sessionReader, out exec.Emitter) error {
	var keys checkpoint.Keys
	var refs []checkpoint.Ref
	err := rows.each(func(b *batch.Batch) error {
		keys.Reset()
		for range b.Len() {
			addCellKey(&keys, f.id, f.group, f.hash)
		}
		refs = resize(refs, keys.Len())
		if err := a.core.groups.Probe(&keys, refs); err != nil {
			return err
		}
		if err := a.core.accumulate(b, &keys, refs, nil); err != nil {
			return err
		}
		return a.core.doneLists()
	})
	if err != nil {
		return err
	}
	keys.Reset()
	addCellKey(&keys, f.id, f.group, f.hash)
	refs = resize(refs, 1)
	if err := a.core.groups.Probe(&keys, refs); err != nil || refs[0] == checkpoint.NoRow {
		return err
	}
	if err := a.result(f, keys.Key(0), keys.Hashes[0], a.core.groups.Value(refs[0]), out); err != nil {
		return err
	}
	if err := a.core.remove(refs[0], keys.Key(0), keys.Hashes[0]); err != nil {
		return err
	}
	for _, d := range a.core.distinct {
		if err := d.dropWindow(f.id); err != nil {
			return err
		}
	}
	return nil
}

func (a *sessionResult) flush(out exec.Emitter) error { return flush(a.out, out) }
