package exec

import (
	"context"
	"slices"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// replayed is something that was in flight to a member which is behind another one of its task now.
type replayed struct {
	m     *member
	event gateEvent // rows or a watermark
}

// loadFlights reads what the restored checkpoint has of rows in flight to the task's members. With the same channels as then
// the gate goes on exactly where it was, watermarks and idleness of the channels included. With others, the rows go where
// the exchange sends such rows now, in the event time in which the old subtasks would have seen them (course.go).
func (t *task) loadFlights(ctx context.Context) error {
	for _, m := range t.all {
		if !slices.ContainsFunc(m.restore.snapshots, hasFlight) {
			continue
		}
		if err := t.loadFlight(ctx, m); err != nil {
			return m.wrap(err)
		}
		t.at.hasState(m)
	}
	return nil
}

func hasFlight(s checkpoint.Snapshot) bool {
	return slices.ContainsFunc(s.Files, checkpoint.StateFile.InFlight)
}

func (t *task) loadFlight(ctx context.Context, m *member) error {
	gated := m == t.head && t.gate != nil
	parallelism := len(m.restore.snapshots)
	same := parallelism == m.node.Parallelism
	var courses []course
	for old, s := range m.restore.snapshots {
		if same && old != m.id.Index {
			continue
		}
		c := course{old: old}
		c.wm, _ = unframeState(s.State)
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
				return nil
			}
			c.play(f)
		}
		courses = append(courses, c)
	}
	return mergeCourses(courses, func(c *course, e gateEvent) error {
		rows, err := m.mine(m.node.Inputs[e.port], e.rows, c.old, parallelism)
		if err == nil && rows != nil && rows.N > 0 {
			t.refly(m, gated, gateEvent{kind: msgRows, port: e.port, rows: rows})
		}
		return err
	}, func(w Watermark) { t.refly(m, gated, gateEvent{kind: msgWatermark, watermark: w}) })
}

// refly queues e, which was in flight to m.
func (t *task) refly(m *member, gated bool, e gateEvent) {
	switch {
	case !gated:
		t.replay = append(t.replay, replayed{m: m, event: e})
	case e.kind == msgRows:
		t.gate.arrive(message{kind: msgRows, input: t.gate.channelOf(e.port), rows: e.rows})
	default:
		for i := range t.gate.inputs {
			t.gate.arrive(message{kind: msgWatermark, input: i, watermark: e.watermark})
		}
	}
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
	case e.Ship == Rebalance || rows.Kinds == nil:
		// Barriers do not overtake on a forward edge without keys: it was another one when the checkpoint was taken, round robin
		// because parallelism differed. Rows without changes may go anywhere on it.
		if old%now == m.id.Index {
			return rows, nil
		}
		return nil, nil
	default:
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
			var err error
			if r.event.kind == msgRows {
				err = m.process(r.event.port, &r.event.rows.Batch)
			} else {
				err = m.watermark(r.event.watermark)
			}
			if err != nil {
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

// resume makes the channels what they were when the barrier overtook, with the messages that were in flight. Behind them each
// channel begins anew: its producer repeats its watermark, and says that it is idle when it is. It may read other splits than
// before, which are behind what the channel had reached.
func (g *gate) resume(f *flight) {
	for i, c := range f.channels {
		in := &g.inputs[i]
		in.wm, in.idle, in.catching = c.wm, c.idle, c.catching
	}
	for _, m := range f.messages {
		g.arrive(m)
	}
	for i := range g.inputs {
		g.arrive(message{kind: msgAfresh, input: i})
	}
}
