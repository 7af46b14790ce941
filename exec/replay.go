package exec

import (
	"context"
	"slices"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// replayed are rows that were in flight to a member which is behind another one of its task now.
type replayed struct {
	m    *member
	port int
	rows *pooled
}

// loadFlights reads what the restored checkpoint has of rows in flight to the task's members. With the same channels as then
// the gate goes on exactly where it was, watermarks and idleness of the channels included. With others, the rows go where
// the exchange sends such rows now, and watermarks come again from the sources.
func (t *task) loadFlights(ctx context.Context) error {
	for _, m := range t.all {
		if !slices.ContainsFunc(m.restore.snapshots, hasFlight) {
			continue
		}
		if err := t.loadFlight(ctx, m); err != nil {
			return m.wrap(err)
		}
	}
	return nil
}

func hasFlight(s checkpoint.Snapshot) bool {
	return slices.ContainsFunc(s.Files, checkpoint.StateFile.InFlight)
}

func (t *task) loadFlight(ctx context.Context, m *member) error {
	gated := m == t.head && t.gate != nil
	parallelism := len(m.restore.snapshots)
	for old, s := range m.restore.snapshots {
		same := parallelism == m.node.Parallelism
		if same && old != m.id.Index {
			continue
		}
		for _, file := range s.Files {
			if !file.InFlight() {
				continue
			}
			data, err := checkpoint.ReadInFlight(ctx, t.at.job.o.Owner, file)
			if err != nil {
				return err
			}
			f, err := readFlight(data, m.inputs(t.at.job.g))
			if err != nil {
				return err
			}
			if same && gated && t.gate.has(f.channels) {
				t.gate.resume(f)
				continue
			}
			if err := t.redistribute(m, f, old, parallelism, gated); err != nil {
				return err
			}
		}
	}
	return nil
}

// inputs tells what the rows of m's input ports are.
func (m *member) inputs(g *Graph) ports {
	return func(port int) (*types.Schema, uint64) {
		if port < 0 || port >= len(m.node.Inputs) {
			return nil, 0
		}
		e := m.node.Inputs[port]
		return g.Nodes[e.From].Output, shapeOf(g, e)
	}
}

// redistribute takes the rows that were in flight to subtask old and are this subtask's now.
func (t *task) redistribute(m *member, f *flight, old, parallelism int, gated bool) error {
	for _, msg := range f.messages {
		if msg.kind != msgRows {
			continue
		}
		port := f.channels[msg.input].port
		rows, err := m.mine(m.node.Inputs[port], msg.rows, old, parallelism)
		if err != nil {
			return err
		}
		if rows == nil || rows.N == 0 {
			continue
		}
		if gated {
			t.gate.arrive(message{kind: msgRows, input: t.gate.channelOf(port), rows: rows})
		} else {
			t.replay = append(t.replay, replayed{m: m, port: port, rows: rows})
		}
	}
	return nil
}

// mine are those of rows, in flight to subtask old of so many, that edge e sends to m now.
func (m *member) mine(e Edge, rows *pooled, old, parallelism int) (*pooled, error) {
	switch now := m.node.Parallelism; {
	case now == 1 || now == parallelism && old == m.id.Index:
		return rows, nil // all are its own, or what was sent to it stays its own
	case len(e.Keys) > 0:
		var keys checkpoint.Keys
		var own []int32
		for i, h := range NewKeyEncoder(e.Keys).Hashes(&rows.Batch, &keys) {
			if checkpoint.SubtaskOf(checkpoint.KeyGroup(h), now) == m.id.Index {
				own = append(own, int32(i))
			}
		}
		out := newPooled(rowsSchema(rows), nil)
		out.add(&rows.Batch, own)
		return out, nil
	case e.Ship == Rebalance:
		if old%now == m.id.Index {
			return rows, nil
		}
		return nil, nil
	default:
		// Barriers do not overtake on such an edge: it was another kind of edge when the checkpoint was taken.
		return nil, diag.New(diag.Unsupported, diag.Pos{}, "the checkpoint holds rows in flight to %d subtasks of %q, which is fed forward now and has %d",
			parallelism, m.node.Name, now).
			WithDetail("rows on a forward edge belong to the subtask they were sent to; which of the new ones that is cannot be told").
			WithHint("restore with the parallelism of the checkpoint, or from a savepoint: savepoints hold no rows in flight")
	}
}

func rowsSchema(p *pooled) *types.Schema {
	cols := make([]types.Column, len(p.Cols))
	for i, v := range p.Cols {
		cols[i].Type = v.Type
	}
	return types.NewSchema(cols...)
}

// replayChained processes rows that were in flight to members which have no gate any more, the last member first: what they
// emit is behind what was in flight farther down.
func (t *task) replayChained() error {
	for _, m := range slices.Backward(t.all) {
		for _, r := range t.replay {
			if r.m != m {
				continue
			}
			if err := m.process(r.port, &r.rows.Batch); err != nil {
				return err
			}
		}
	}
	t.replay = nil
	return nil
}

// has tells whether the gate has exactly the channels that a checkpoint's gate had.
func (g *gate) has(channels []flightChannel) bool {
	if len(channels) != len(g.inputs) {
		return false
	}
	for i, c := range channels {
		if in := &g.inputs[i]; in.port != c.port || in.from != c.from {
			return false
		}
	}
	return true
}

// channelOf is the first channel of a port.
func (g *gate) channelOf(port int) int {
	return slices.IndexFunc(g.inputs, func(in gateInput) bool { return in.port == port })
}

// resume makes the channels what they were when the barrier overtook, with the messages that were in flight. Idleness ends
// behind them: whether a channel is idle now is for its producer to say, which says so only when it is.
func (g *gate) resume(f *flight) {
	for i, c := range f.channels {
		in := &g.inputs[i]
		in.wm, in.idle, in.catching = c.wm, c.idle, c.catching
	}
	for _, m := range f.messages {
		g.arrive(m)
	}
	for i := range g.inputs {
		g.arrive(message{kind: msgStatus, input: i})
	}
}
