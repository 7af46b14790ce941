package planner

import (
	"time"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
)

// Server is a table whose rows are on another machine, as a plan uses it.
type Server struct {
	Table     *catalog.Table
	Connector *connectors.Connector
	Written   bool // in two phases, or at all: the server has a part in each checkpoint
}

// Servers are the tables of the plan that have endpoints, written ones first.
func (plan *Plan) Servers() (out []Server) {
	for _, r := range plan.roots {
		if n := plan.Graph.Nodes[r.index]; n.Sink != nil && n.Sink.Connector.Endpoints != nil {
			out = append(out, Server{n.Sink.Spec.Table, n.Sink.Connector, true})
		}
	}
	for _, r := range plan.roots {
		for _, p := range treeOf(r) {
			switch n := p.op.(type) {
			case *Scan:
				if c := n.Info.Connector; c.Endpoints != nil {
					out = append(out, Server{n.Info.Table, c, false})
				}
			case *LookupJoin:
				if c := n.Info.Connector; c.Endpoints != nil {
					out = append(out, Server{n.Info.Table, c, false})
				}
			}
		}
	}
	return out
}

// CheckpointInterval is how often the job takes checkpoints, 0 = never by itself.
func (plan *Plan) CheckpointInterval() time.Duration { return plan.conf.Duration(keyInterval) }

// Storage is where the job's checkpoints count.
func (plan *Plan) Storage() Storage { return plan.conf.Storage() }
