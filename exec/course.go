package exec

// A barrier that overtakes finds the subtasks of an operator at different watermarks: each has processed another part of what
// was sent to all. A restore with another parallelism puts their state together at the lowest of these watermarks. What was
// late for a subtask that was farther ahead would be in time there, and its window, say, would come twice. So their
// rows in flight are replayed in the order of event time: the subtask that is farthest behind goes first, and the watermark
// rises to what all have reached. As the same watermarks are on their way to all of them, each row finds the watermark that
// it would have found at its old subtask.

// course is what an old subtask would have seen next.
type course struct {
	old   int         // index of the subtask
	wm    Watermark   // that it has reached
	steps []gateEvent // rows and watermarks
}

// play appends what the subtask's gate makes of f.
func (c *course) play(f *flight) {
	ports := make([]int, len(f.channels))
	for i, ch := range f.channels {
		ports[i] = ch.port
	}
	g := newGate(ExactlyOnce, ports)
	g.out = c.wm
	for i, ch := range f.channels {
		in := &g.inputs[i]
		in.wm, in.idle, in.catching = ch.wm, ch.idle, ch.catching
	}
	for _, m := range f.messages {
		for _, e := range g.accept(m) {
			if e.kind == msgRows || e.kind == msgWatermark {
				c.steps = append(c.steps, e)
			}
		}
	}
}

// mergeCourses hands out the steps of all courses in the order of event time, and each watermark once all have reached it.
func mergeCourses(cs []course, rows func(c *course, e gateEvent) error, watermark func(w Watermark)) error {
	reached := slowest(cs)
	for {
		var next *course
		for i := range cs {
			if c := &cs[i]; len(c.steps) > 0 && (next == nil || c.wm < next.wm) {
				next = c
			}
		}
		if next == nil {
			return nil
		}
		e := next.steps[0]
		next.steps = next.steps[1:]
		if e.kind == msgRows {
			if err := rows(next, e); err != nil {
				return err
			}
			continue
		}
		next.wm = e.watermark
		if w := slowest(cs); w > reached {
			reached = w
			watermark(w)
		}
	}
}

// slowest is the watermark that all courses have reached.
func slowest(cs []course) Watermark {
	low := MaxWatermark
	for i := range cs {
		low = min(low, cs[i].wm)
	}
	return low
}
