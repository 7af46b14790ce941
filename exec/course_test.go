package exec

import (
	"math/rand/v2"
	"testing"
)

// oldSubtask is a subtask in front of which barriers overtake: it has processed some of its messages.
type oldSubtask struct {
	at   Watermark           // when the barrier overtook
	f    *flight             // the rest
	then map[int64]Watermark // per row of the rest: the watermark that it would have found
}

// brokenOff sends the same watermarks, and different rows, to n subtasks and stops each somewhere.
func brokenOff(r *rand.Rand, n int) []oldSubtask {
	channels := 1 + r.IntN(4)
	marks, id := make([]Watermark, channels), int64(0)
	inputs := make([][][]message, n) // per subtask, per channel
	for s := range inputs {
		inputs[s] = make([][]message, channels)
	}
	for range 20 + r.IntN(60) {
		ch := r.IntN(channels)
		if r.IntN(3) > 0 {
			id++
			s := r.IntN(n)
			inputs[s][ch] = append(inputs[s][ch], message{kind: msgRows, input: ch, rows: numbered(id)})
			continue
		}
		marks[ch] += Watermark(1 + r.IntN(9))
		for s := range inputs {
			inputs[s][ch] = append(inputs[s][ch], message{kind: msgWatermark, input: ch, watermark: marks[ch]})
		}
	}
	out := make([]oldSubtask, n)
	for s := range out {
		g, o := newGate(ExactlyOnce, make([]int, channels)), &out[s]
		var all []message
		for left := true; left; {
			left = false
			for _, ch := range r.Perm(channels) {
				if q := inputs[s][ch]; len(q) > 0 {
					k := r.IntN(len(q) + 1)
					all, inputs[s][ch], left = append(all, q[:k]...), q[k:], true
				}
			}
		}
		cut := r.IntN(len(all) + 1)
		for _, m := range all[:cut] {
			g.accept(m)
		}
		o.at, o.f, o.then = g.out, &flight{messages: all[cut:]}, map[int64]Watermark{}
		for i := range g.inputs {
			o.f.channels = append(o.f.channels, flightChannel{wm: g.inputs[i].wm})
		}
		for _, m := range all[cut:] {
			if g.accept(m); m.kind == msgRows {
				o.then[m.rows.Cols[0].I64[0]] = g.out
			}
		}
	}
	return out
}

// TestRowsInFlightKeepTheirTime: after a restore with another parallelism each row that was in flight finds exactly the watermark
// that it would have found at its old subtask: what was late there is late now, and what was not is not. With a gate and,
// chained, without.
func TestRowsInFlightKeepTheirTime(t *testing.T) {
	ahead := 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 5))
		olds := brokenOff(r, 2+r.IntN(3))
		var courses []course
		then := map[int64]Watermark{}
		for i, o := range olds {
			c := course{old: i, wm: o.at}
			c.play(o.f)
			courses = append(courses, c)
			for id, w := range o.then {
				then[id] = w
			}
		}
		low := slowest(courses)
		gated := &task{gate: newGate(ExactlyOnce, make([]int, 1+r.IntN(4)))}
		gated.gate.out = low
		chained, m := &task{}, &member{}
		err := mergeCourses(courses, func(_ *course, e gateEvent) error {
			gated.refly(m, true, e)
			chained.refly(m, false, e)
			return nil
		}, func(w Watermark) {
			e := gateEvent{kind: msgWatermark, watermark: w}
			gated.refly(m, true, e)
			chained.refly(m, false, e)
		})
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		check := func(what string, e gateEvent, now Watermark) {
			id := e.rows.Cols[0].I64[0]
			if seen++; now != then[id] {
				t.Fatalf("seed %d: %s: row %d finds watermark %d, not %d", seed, what, id, now, then[id])
			}
			if now > low {
				ahead++
			}
		}
		now := low
		for _, x := range chained.replay {
			if x.event.kind == msgWatermark {
				now = x.event.watermark
			} else {
				check("chained", x.event, now)
			}
		}
		for {
			msg, ok := gated.gate.replayed()
			if !ok {
				break
			}
			for _, e := range gated.gate.accept(msg) {
				if e.kind == msgRows {
					check("gated", e, gated.gate.out)
				}
			}
		}
		if seen != 2*len(then) {
			t.Fatalf("seed %d: %d of %d rows", seed, seen, 2*len(then))
		}
	}
	if ahead == 0 {
		t.Error("no row was in flight to a subtask that was ahead of another: the test shows nothing")
	}
}
