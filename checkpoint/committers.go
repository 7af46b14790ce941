package checkpoint

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/streamsql/streamsql/sql/diag"
)

// Committers are the committers of a job's sinks.
type Committers map[SinkID]Committer

// Commit commits once, sink by sink, each in checkpoint order.
func (m Committers) Commit(ctx context.Context, cs []Committable) error {
	return m.eachSink(cs, func(s SinkID, list []Committable) error { return m[s].Commit(ctx, list) })
}

// Abort undoes what the sinks left open, except keep.
func (m Committers) Abort(ctx context.Context, keep []Committable) error {
	_, groups, err := m.bySink(keep)
	if err != nil {
		return err
	}
	for _, s := range slices.Sorted(maps.Keys(m)) {
		if err := m[s].Abort(ctx, pick(keep, groups[s])); err != nil {
			return fmt.Errorf("sink %s: abort of what the last run left: %w", s, err)
		}
	}
	return nil
}

// eachSink calls commit with the committables of each sink, between the failpoints of a commit.
func (m Committers) eachSink(cs []Committable, commit func(SinkID, []Committable) error) error {
	cs = slices.Clone(cs)
	slices.SortStableFunc(cs, func(x, y Committable) int { return cmp.Compare(x.Checkpoint, y.Checkpoint) })
	sinks, groups, err := m.bySink(cs)
	if err != nil {
		return err
	}
	if err := Failpoint("commit.before"); err != nil {
		return err
	}
	for i, s := range sinks {
		if i > 0 {
			if err := Failpoint("commit.during"); err != nil {
				return err
			}
		}
		if err := commit(s, pick(cs, groups[s])); err != nil {
			return fmt.Errorf("sink %s: commit: %w", s, err)
		}
	}
	return Failpoint("commit.after")
}

// classify asks each sink's committer for the outcome of its committables.
func (m Committers) classify(ctx context.Context, cs []Committable) ([]Outcome, error) {
	sinks, groups, err := m.bySink(cs)
	if err != nil {
		return nil, err
	}
	out := make([]Outcome, len(cs))
	for _, s := range sinks {
		got, err := m[s].Classify(ctx, pick(cs, groups[s]))
		if err != nil {
			return nil, fmt.Errorf("sink %s: outcome of its transactions: %w", s, err)
		}
		if len(got) != len(groups[s]) {
			return nil, errorf(diag.Internal, "sink %s told %d outcomes of %d committables", s, len(got), len(groups[s]))
		}
		for j, i := range groups[s] {
			out[i] = got[j]
		}
	}
	return out, nil
}

// bySink finds the places of each sink's committables in cs, in order, and the sinks sorted.
func (m Committers) bySink(cs []Committable) (sinks []SinkID, groups map[SinkID][]int, err error) {
	groups = map[SinkID][]int{}
	for i, c := range cs {
		if m[c.Sink] == nil {
			return nil, nil, errorf(diag.Conflict, "the checkpoint lists uncommitted output of sink %q, which this job does not write", c.Sink).
				WithHint("start the job that wrote it once more, so that it commits; or give this job another state directory")
		}
		groups[c.Sink] = append(groups[c.Sink], i)
	}
	return slices.Sorted(maps.Keys(groups)), groups, nil
}

func pick(cs []Committable, at []int) []Committable {
	out := make([]Committable, len(at))
	for j, i := range at {
		out[j] = cs[i]
	}
	return out
}
