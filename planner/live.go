package planner

import (
	"context"
	"errors"
	"fmt"

	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/diag"
)

// UsedTable is a table that a plan reads, writes or looks up.
type UsedTable struct {
	Name string
	Use  string // "read", "written", "looked up"
	Pos  diag.Pos

	inspect func(ctx context.Context) (connectors.Inspection, error)
}

// Inspect asks the table's system what a job asks before its first row, and changes nothing there. The error is what would
// keep the job from starting.
func (t UsedTable) Inspect(ctx context.Context) (connectors.Inspection, error) { return t.inspect(ctx) }

// Tables are the tables of the plan, written ones first.
func (plan *Plan) Tables() []UsedTable {
	var out []UsedTable
	for _, r := range plan.roots {
		if t := r.op.(*Sink).Target; !t.Collect {
			n := plan.Graph.Nodes[r.index]
			out = append(out, UsedTable{t.Table.Name, "written", t.Pos.Pos, func(ctx context.Context) (connectors.Inspection, error) { return plan.askSink(ctx, n) }})
		}
	}
	for _, r := range plan.roots {
		for _, p := range treeOf(r) {
			switch n := p.op.(type) {
			case *Scan:
				x := plan.Graph.Nodes[p.index]
				out = append(out, UsedTable{n.Info.Table.Name, "read", n.Info.Pos, func(ctx context.Context) (connectors.Inspection, error) { return plan.askSource(ctx, x) }})
			case *LookupJoin:
				spec := connectors.LookupSpec{Table: n.Info.Table, Columns: n.Cols, Schema: schemaOf(n.rightFields()), Requests: 1}
				for _, k := range n.Keys {
					spec.Keys = append(spec.Keys, k.Col)
				}
				out = append(out, UsedTable{n.Info.Table.Name, "looked up", n.Pos, func(ctx context.Context) (connectors.Inspection, error) {
					return askLookup(ctx, n.Info.Connector, spec)
				}})
			}
		}
	}
	return out
}

// askSink opens the sink as a job does and asks it; without an Inspector, whether it would start.
func (plan *Plan) askSink(ctx context.Context, n *exec.Node) (in connectors.Inspection, err error) {
	spec := n.Sink.Spec
	spec.Job, spec.Parallel = plan.jobInfo(), n.Parallelism
	spec.Job.ID = plan.Name
	s, err := n.Sink.Connector.NewSink(ctx, spec)
	if err != nil {
		return in, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if i, ok := s.(connectors.Inspector); ok {
		return i.Inspect(ctx)
	}
	return in, s.Preflight(ctx)
}

// askSource opens the source and lists its splits, as a job does first.
func (plan *Plan) askSource(ctx context.Context, n *exec.Node) (in connectors.Inspection, err error) {
	spec := n.Source.Spec
	spec.Job, spec.Parallel = plan.jobInfo(), n.Parallelism
	s, err := n.Source.Connector.NewSource(ctx, spec)
	if err != nil {
		return in, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	splits, err := s.Splits(ctx)
	if err != nil {
		return in, err
	}
	in.Facts = append(in.Facts, fmt.Sprintf("%d splits, read by %d subtasks", len(splits), n.Parallelism))
	return in, nil
}

func askLookup(ctx context.Context, c *connectors.Connector, spec connectors.LookupSpec) (in connectors.Inspection, err error) {
	l, err := c.NewLookup(ctx, spec)
	if err != nil {
		return in, err
	}
	in.Facts = append(in.Facts, "the table can be looked up")
	return in, l.Close()
}
