package planner

import (
	"fmt"
	"slices"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
)

// lowering turns the physical plan into the executor's graph.
type lowering struct {
	b    *builder
	g    *exec.Graph
	o    Options
	used map[string]bool
	// versions: somewhere in the plan a temporal join reads the changes of a row as its versions.
	versions bool
}

// lower makes the graph. Operator ids are made of the names of what stands between an operator and its sink, so they
// stay the same when the statement is planned again, also with other parallelism or another filter.
func (b *builder) lower(plan *Plan, o Options) *exec.Graph {
	l := &lowering{b: b, g: &exec.Graph{Session: b.session}, o: o, used: map[string]bool{}}
	for _, r := range plan.roots {
		l.versions = l.versions || joinsVersions(r)
	}
	for _, r := range plan.roots {
		l.node(r, "")
	}
	l.g.Identities, l.g.Former = identities(plan, b.session.Zone)
	l.g.Operators = operatorInfos(plan, l.g.Identities)
	return l.g
}

// joinsVersions reports a temporal join at or below p.
func joinsVersions(p *phys) bool {
	_, ok := p.op.(*TemporalJoin)
	return ok || slices.ContainsFunc(p.in, joinsVersions)
}

// ttl is the state time-to-live in ms, 0 = none.
func (l *lowering) ttl() int64 { return l.b.conf.StateTTL().Milliseconds() }

// node lowers p and what it reads, and returns p's place in the graph.
func (l *lowering) node(p *phys, path string) int {
	if p.index >= 0 {
		return p.index
	}
	if n, ok := p.op.(*normalize); ok && n.removed {
		p.index = l.node(p.in[0], path)
		return p.index
	}
	id, below := l.id(p, path)
	n := &exec.Node{ID: checkpoint.OperatorID(id), Name: p.op.label(), Parallelism: p.par}
	for i, in := range p.in {
		sub := below
		if len(p.in) > 1 {
			sub = fmt.Sprintf("%s.%d", below, i)
		}
		e := p.ship[i]
		e.From = l.node(in, sub)
		// Whether there are two phases is up to settings and the parallelism: a restore may find one.
		_, e.Aligned = in.op.(*localAggregate)
		n.Inputs = append(n.Inputs, e)
	}
	n.Output = schemaOf(p.fields)
	p.op.(operator).lower(l, n, p)
	p.id, p.index = id, len(l.g.Nodes)
	l.g.Nodes = append(l.g.Nodes, n)
	return p.index
}

// id names p, and gives the path that names what is below it. Operators without state do not lengthen the path: state
// survives when one appears or disappears.
func (l *lowering) id(p *phys, path string) (id, below string) {
	switch n := p.op.(type) {
	case *Scan:
		return "source[" + n.Info.ID + "]", ""
	case *Sink:
		id = "sink[" + n.Target.ID + "]"
		return id, id
	}
	id = path + "/" + p.op.(operator).slug()
	for l.used[id] {
		id += "+"
	}
	l.used[id] = true
	if stateful(p) || len(p.in) > 1 {
		return id, id
	}
	return id, path
}

// stateful reports an operator with state in checkpoints.
func stateful(p *phys) bool {
	n, ok := p.op.(operator)
	return ok && n.stateful()
}
