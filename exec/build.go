package exec

import (
	"context"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
)

// build makes the tasks of the graph: members, chained where rows need not change goroutine, and the channels between
// the chains.
func (at *attempt) build(ctx context.Context, cp *checkpoint.Checkpoint, lineage string) error {
	g := at.job.g
	members := make([][]*member, len(g.Nodes))
	heads := make([][]*task, len(g.Nodes)) // tasks headed by the node, nil when chained
	for i, n := range g.Nodes {
		var perSubtask [][]*split
		if n.Source != nil {
			var err error
			if perSubtask, err = at.openSource(ctx, n, cp, lineage); err != nil {
				return at.nodeError(n, err)
			}
		}
		for k := range n.Parallelism {
			m := at.newMember(n, k, cp)
			members[i] = append(members[i], m)
			if chained(g, n) {
				up := members[n.Inputs[0].From][k]
				up.out.chained = append(up.out.chained, m)
				continue
			}
			t := &task{at: at, head: m, box: newMailbox(), acks: make(chan *cut, 2*at.job.o.Checkpoints.MaxConcurrent)}
			if n.Source != nil {
				s, err := at.newSourceReader(t, n, perSubtask[k], cp)
				if err != nil {
					return m.wrap(err)
				}
				t.source = s
			}
			heads[i] = append(heads[i], t)
			at.tasks = append(at.tasks, t)
		}
	}
	for i, n := range g.Nodes {
		if heads[i] != nil && n.Source == nil {
			at.connect(g, n, heads[i], members)
		}
	}
	for _, t := range at.tasks {
		t.head.each(func(m *member) {
			t.all = append(t.all, m)
			m.task = t
			for _, s := range m.out.ships {
				for _, c := range s.to {
					c.from = t
				}
			}
			if m.sink != nil {
				t.sinks = append(t.sinks, m)
			}
		})
	}
	return nil
}

// chained tells whether n runs on its input's goroutine.
func chained(g *Graph, n *Node) bool {
	return n.Source == nil && len(n.Inputs) == 1 && n.Inputs[0].Ship == Forward &&
		g.Nodes[n.Inputs[0].From].Parallelism == n.Parallelism
}

func (at *attempt) newMember(n *Node, k int, cp *checkpoint.Checkpoint) *member {
	id := checkpoint.SubtaskID{Operator: n.ID, Index: k}
	c := &at.job.counters
	m := &member{node: n, id: id, restore: at.restoredOf(cp, n.ID), rowsIn: c.counter(id, counterIn), wm: c.counter(id, counterWatermark)}
	m.out.rows, m.out.done = c.counter(id, counterOut), at.done
	m.wm.Set(int64(NoWatermark))
	switch {
	case n.Operator != nil:
		m.op = n.Operator()
	case n.Sink != nil:
		for _, s := range at.sinks {
			if s.node == n {
				m.sink = &sinkOperator{ctx: at.ctx, id: id, sink: s.sink, spec: s.spec, now: at.job.o.Now, meter: at.job.meterOf(s.id)}
			}
		}
		m.op = m.sink
	}
	m.delay, _ = m.op.(WatermarkDelayer)
	return m
}

// connect makes the input queues and gates of a node's tasks, and the shippers that feed them.
func (at *attempt) connect(g *Graph, n *Node, tasks []*task, members [][]*member) {
	ports := make([][]int, len(tasks)) // per task, per channel
	from := make([][]int, len(tasks))
	pinned := false // rows on an edge that is forward, and by no keys, could not be redistributed: there barriers stay aligned, too
	for _, t := range tasks {
		t.inbox = newInbox(0)
	}
	for port, e := range n.Inputs {
		producer := g.Nodes[e.From]
		pinned = pinned || e.Aligned || e.Ship == Forward && len(e.Keys) == 0
		for k, m := range members[e.From] {
			targets := tasks
			if e.Ship == Forward {
				targets = tasks[k : k+1]
			}
			var to []*channel
			for _, t := range targets {
				i := t.head.id.Index
				to = append(to, newChannel(t.inbox, len(ports[i]), producer.Output, at.job.o.poison))
				ports[i], from[i] = append(ports[i], port), append(from[i], k)
			}
			m.out.ships = append(m.out.ships, newShipper(e.Ship, e.Keys, to))
		}
	}
	for i, t := range tasks {
		t.inbox.last = make([]int, len(ports[i]))
		t.gate = newGate(at.job.o.Checkpoints.Mode, ports[i])
		t.gate.pinned = pinned
		for c := range t.gate.inputs {
			in := &t.gate.inputs[c]
			in.from = from[i][c]
			in.shape = shapeOf(g, n.Inputs[in.port])
		}
	}
}

// openSource opens a source and assigns its splits to the subtasks.
func (at *attempt) openSource(ctx context.Context, n *Node, cp *checkpoint.Checkpoint, lineage string) ([][]*split, error) {
	spec := n.Source.Spec
	spec.Job, spec.Embedded, spec.Parallel = at.info(lineage), at.job.o.Embedded, n.Parallelism
	src, err := n.Source.Connector.NewSource(ctx, spec)
	if err != nil {
		return nil, err
	}
	at.sources[n.ID] = src
	var known map[checkpoint.Split]*split
	if r := at.restoredOf(cp, n.ID); r.snapshots != nil {
		if known, err = restoreSplits(r.snapshots, n.Parallelism); err != nil {
			return nil, err
		}
	}
	listed, err := src.Splits(ctx)
	if err != nil {
		return nil, err
	}
	return assignSplits(listed, known, n.Parallelism), nil
}

func (at *attempt) newSourceReader(t *task, n *Node, splits []*split, cp *checkpoint.Checkpoint) (*sourceReader, error) {
	s := &sourceReader{t: t, m: t.head, node: n.Source, src: at.sources[n.ID], byName: map[checkpoint.Split]*split{},
		in: batch.NewBuilder(n.Source.Spec.Schema)}
	var err error
	if n.Source.Rows != nil {
		if s.rows, err = expr.Compile(n.Source.Rows, at.job.g.Session); err != nil {
			return nil, err
		}
	}
	if w := n.Source.Watermark; w != nil {
		s.marks = &watermarker{spec: w, rises: expr.RisesWith(w.Expr)}
		if w.MaxAhead > 0 {
			s.marks.ahead = &futureGuard{spec: w, held: at.job.counters.counter(s.m.id, CounterFuture)}
		}
		if s.marks.prog, err = expr.Compile([]expr.Expr{w.Expr}, at.job.g.Session); err != nil {
			return nil, err
		}
	}
	for _, sp := range splits {
		s.adopt(sp)
		sp.read = at.job.reread.at(cp, splitKey{n.ID, sp.name}, sp.meter.high.Load())
	}
	return s, nil
}
