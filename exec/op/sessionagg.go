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
	if result.mergeable() {
		return &sessionAccs{spec: spec}
	}
	w := newSessionWindow(spec.Window, spec.Input, spec.Keys, spec.Session, &sessionRows{input: spec.Input, sink: result})
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
	return a.core.openIndexes(s, "windows")
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
