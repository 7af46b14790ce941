package exec

import (
	"context"
	"errors"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql"
)

// settlers are sinks of lineage as an earlier run opened them: those of tables that a retained checkpoint lists output of, and that are
// written without transactions now ('sink.delivery-guarantee' was changed, or the job's mode). Their committers let the
// restore commit what the checkpoint lists and abort the rest, as always. They are closed before a writer opens. A table
// that has no other way to be written any more has none: its listed output is refused by name. Nor has one that settles
// what it wrote before by itself, with a committer for every delivery.
func (at *attempt) settlers(ctx context.Context, lineage string, sinks []*openSink, f found) (out []*openSink, err error) {
	if f.cp == nil && f.stale == nil && len(f.earlier) == 0 {
		return nil, nil
	}
	var wrote map[checkpoint.SinkID]bool
	for _, now := range sinks {
		if now.committer != nil {
			continue
		}
		spec, ok := inTransactions(now)
		if !ok {
			continue
		}
		if wrote == nil {
			if wrote, err = at.wroteInTransactions(ctx); err != nil {
				return out, err
			}
		}
		if !wrote[now.id] {
			continue
		}
		s := &openSink{id: now.id, node: now.node, spec: spec}
		if s.sink, err = now.node.Sink.Connector.NewSink(ctx, spec); err != nil {
			return out, at.nodeError(now.node, err)
		}
		out = append(out, s)
		if s.committer, err = s.sink.Committer(ctx); err != nil {
			return out, at.nodeError(now.node, err)
		}
		s.committer = ownedCommitter{s.committer, at.job.o.Owner}
		at.job.o.Log.Info("a table that is written without transactions now has output of earlier transactions; it is settled first",
			"job", at.job.o.Name, "sink", string(s.id), "lineage", lineage)
	}
	return out, nil
}

// wroteInTransactions are the sinks of which a retained checkpoint lists output.
func (at *attempt) wroteInTransactions(ctx context.Context) (map[checkpoint.SinkID]bool, error) {
	all, err := at.job.o.Store.List(ctx)
	var lost *checkpoint.UnreadableError
	switch {
	case errors.As(err, &lost):
		all = lost.Earlier // the restore decides whether it goes back to one of them
	case err != nil:
		return nil, err
	}
	out := map[checkpoint.SinkID]bool{}
	for _, c := range all {
		for _, p := range c.Pending {
			out[p.Sink] = true
		}
	}
	return out, nil
}

// inTransactions is how s would be written with a two-phase commit; false: not at all.
func inTransactions(s *openSink) (connectors.SinkSpec, bool) {
	spec, c := s.spec, s.node.Sink.Connector
	if c.SinkModes == nil || spec.Table == nil {
		return spec, false
	}
	spec.Table = spec.Table.WithOptions([]sql.Option{{Key: connectors.DeliveryOption, Value: "exactly-once"}})
	modes, err := c.SinkModes(spec.Table)
	if err != nil {
		return spec, false // options that go with the other delivery only; what is listed is then refused by name
	}
	for _, m := range modes {
		if m.Delivery == connectors.TwoPhaseCommit {
			spec.Mode = m
			return spec, true
		}
	}
	return spec, false
}
