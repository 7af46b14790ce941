package exec

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/streamsql/streamsql/checkpoint"
)

// Rows of a gate test are batches that carry their epoch in N.
func epochRows(epoch int) *pooled {
	p := &pooled{}
	p.N = epoch
	return p
}

// TestGateAlignment: with 2 to 8 skewed inputs that deliver rows of epoch e before barrier e, an exactly-once gate never
// lets a row of epoch e+1 pass before barrier e nor one of epoch e after it, and loses and reorders nothing.
func TestGateAlignment(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 2 + r.IntN(7)
		epochs := 1 + r.IntN(6)
		inputs := make([][]message, n)
		rows := 0
		for i := range inputs {
			for e := 1; e <= epochs; e++ {
				for range r.IntN(6) {
					inputs[i] = append(inputs[i], message{kind: msgRows, input: i, rows: epochRows(e)})
					rows++
				}
				if r.IntN(9) == 0 && i > 0 { // some inputs end early
					break
				}
				inputs[i] = append(inputs[i], message{kind: msgBarrier, input: i, barrier: checkpoint.Barrier{ID: checkpoint.ID(e)}})
			}
			inputs[i] = append(inputs[i], message{kind: msgEnd, input: i})
		}
		g := newGate(ExactlyOnce, make([]int, n))
		var passed checkpoint.ID
		seen, ended := 0, false
		left := n
		for {
			m, ok := g.replayed()
			if !ok {
				if left == 0 {
					break
				}
				i := r.IntN(n)
				if len(inputs[i]) == 0 {
					continue
				}
				m = inputs[i][0]
				if inputs[i] = inputs[i][1:]; len(inputs[i]) == 0 {
					left--
				}
			}
			for _, e := range g.accept(m) {
				switch e.kind {
				case msgRows:
					seen++
					if want := int(passed) + 1; e.rows.N != want {
						t.Fatalf("seed %d: a row of epoch %d between barriers %d and %d", seed, e.rows.N, passed, want)
					}
				case msgBarrier:
					if e.barrier.ID != passed+1 {
						t.Fatalf("seed %d: barrier %d after %d", seed, e.barrier.ID, passed)
					}
					passed = e.barrier.ID
				case msgEnd:
					ended = true
				}
			}
		}
		if seen != rows || int(passed) != epochs || !ended {
			t.Fatalf("seed %d: %d of %d rows, barrier %d of %d, ended %v", seed, seen, rows, passed, epochs, ended)
		}
	}
}

// TestGateAtLeastOnce: nothing is held, and the barrier passes when the last input delivered it.
func TestGateAtLeastOnce(t *testing.T) {
	g := newGate(AtLeastOnce, make([]int, 2))
	barrier := func(input int, id checkpoint.ID) message {
		return message{kind: msgBarrier, input: input, barrier: checkpoint.Barrier{ID: id}}
	}
	expect(t, g, barrier(0, 1), "")
	expect(t, g, message{kind: msgRows, input: 0, rows: epochRows(2)}, "rows 2;")
	expect(t, g, barrier(0, 2), "")
	expect(t, g, barrier(1, 1), "barrier 1;")
	expect(t, g, barrier(1, 1), "") // repeated
	expect(t, g, barrier(1, 2), "barrier 2;")
}

// TestGateOlderBarrier: a barrier that comes after a newer one, and the newer one's alignment, do not block.
func TestGateOlderBarrier(t *testing.T) {
	g := newGate(ExactlyOnce, make([]int, 3))
	barrier := func(input int, id checkpoint.ID) message {
		return message{kind: msgBarrier, input: input, barrier: checkpoint.Barrier{ID: id}}
	}
	expect(t, g, barrier(0, 1), "")
	expect(t, g, message{kind: msgRows, input: 0, rows: epochRows(2)}, "") // held
	expect(t, g, barrier(1, 2), "")                                        // checkpoint 1 was given up
	if m, ok := g.replayed(); !ok || m.rows.N != 2 {
		t.Fatal("the held row does not come back")
	}
	expect(t, g, barrier(2, 1), "")
	expect(t, g, barrier(0, 2), "")
	expect(t, g, barrier(2, 2), "barrier 2;")
}

func expect(t *testing.T, g *gate, m message, want string) {
	t.Helper()
	got := ""
	for _, e := range g.accept(m) {
		switch e.kind {
		case msgRows:
			got += fmt.Sprintf("rows %d;", e.rows.N)
		case msgWatermark:
			got += fmt.Sprintf("watermark %d;", e.watermark)
		case msgStatus:
			got += fmt.Sprintf("idle %v;", e.idle)
		case msgBarrier:
			got += fmt.Sprintf("barrier %d;", e.barrier.ID)
		case msgPortEnd:
			got += fmt.Sprintf("port %d;", e.port)
		case msgEnd:
			got += "end;"
		}
	}
	if got != want {
		t.Fatalf("after %+v: %q, want %q", m, got, want)
	}
}

// TestGateWatermark is the table of event time at a gate: minimum over active inputs, idleness, catching up, the end.
func TestGateWatermark(t *testing.T) {
	type step struct {
		m    message
		want string
	}
	wm := func(input int, w Watermark) message { return message{kind: msgWatermark, input: input, watermark: w} }
	idle := func(input int, v bool) message { return message{kind: msgStatus, input: input, idle: v} }
	end := func(input int) message { return message{kind: msgEnd, input: input} }
	for name, steps := range map[string][]step{
		"minimum":                       {{wm(0, 10), ""}, {wm(1, 5), "watermark 5;"}, {wm(1, 20), "watermark 10;"}, {wm(0, 15), "watermark 15;"}, {wm(0, 12), ""}},
		"idle input leaves the minimum": {{wm(0, 10), ""}, {idle(1, true), "watermark 10;"}, {wm(0, 20), "watermark 20;"}},
		"all idle gives the maximum":    {{wm(0, 10), ""}, {wm(1, 30), "watermark 10;"}, {idle(1, true), ""}, {idle(0, true), "watermark 30;idle true;"}},
		"a returning input catches up first": {{wm(0, 10), ""}, {wm(1, 10), "watermark 10;"}, {idle(1, true), ""}, {wm(0, 50), "watermark 50;"},
			{idle(1, false), ""}, {wm(0, 60), "watermark 60;"}, {wm(1, 55), ""}, {wm(0, 70), "watermark 70;"}, {wm(1, 75), ""}, {wm(0, 90), "watermark 75;"}},
		"a row makes active": {{idle(0, true), ""}, {idle(1, true), "idle true;"},
			{message{kind: msgRows, input: 1, rows: epochRows(7)}, "idle false;rows 7;"}},
		"the end of one input is the maximum there":     {{wm(0, 10), ""}, {end(1), "watermark 10;"}, {end(0), "watermark 9223372036854775807;end;"}},
		"a finished input does not end idle ones' time": {{wm(0, 10), ""}, {wm(1, MaxWatermark), "watermark 10;"}, {idle(0, true), "idle true;"}, {idle(0, false), "idle false;"}, {wm(0, 11), "watermark 11;"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGate(ExactlyOnce, make([]int, 2))
			for _, s := range steps {
				expect(t, g, s.m, s.want)
			}
		})
	}
}

// TestGatePortEnd: of several ports the end of each is passed on, once, before the watermark that follows from it.
func TestGatePortEnd(t *testing.T) {
	g := newGate(ExactlyOnce, []int{0, 1, 1})
	mark := func(input int, w Watermark) message { return message{kind: msgWatermark, input: input, watermark: w} }
	expect(t, g, mark(0, 3), "")
	expect(t, g, mark(1, MaxWatermark), "")
	expect(t, g, mark(2, MaxWatermark), "port 1;watermark 3;")
	expect(t, g, message{kind: msgEnd, input: 1}, "")
	expect(t, g, message{kind: msgEnd, input: 2}, "")
	expect(t, g, message{kind: msgEnd, input: 0}, "port 0;watermark 9223372036854775807;end;")
}

// TestGateRestoredWatermark: event time of before a restart is passed on once more, when all inputs have come to it again.
// Those behind were restarted too; without it an input that had ended would hold them back for ever.
func TestGateRestoredWatermark(t *testing.T) {
	for _, w := range []Watermark{7, MaxWatermark} {
		g := newGate(ExactlyOnce, make([]int, 2))
		g.out, g.again = w, true
		mark := func(input int, w Watermark) message { return message{kind: msgWatermark, input: input, watermark: w} }
		expect(t, g, mark(0, 5), "")
		expect(t, g, mark(1, w), "")
		expect(t, g, mark(0, 6), "")
		expect(t, g, mark(0, w), fmt.Sprintf("watermark %d;", w))
		expect(t, g, mark(0, w), "")
	}
}

// TestGateHoldsBoundedly: watermarks of a blocked input do not pile up.
func TestGateHoldsBoundedly(t *testing.T) {
	g := newGate(ExactlyOnce, make([]int, 2))
	expect(t, g, message{kind: msgBarrier, input: 0, barrier: checkpoint.Barrier{ID: 1}}, "")
	for w := range 1000 {
		expect(t, g, message{kind: msgWatermark, input: 0, watermark: Watermark(w)}, "")
	}
	if len(g.held) != 1 || g.held[0].watermark != 999 {
		t.Fatalf("%d messages held", len(g.held))
	}
}
