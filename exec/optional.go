package exec

import "context"

// WatermarkDelayer is an operator whose output can hold rows older than its input's watermark: the event time behind
// it lags.
type WatermarkDelayer interface {
	// OutputWatermark is what the runtime forwards instead of w, once OnWatermark(w) has returned: not later than w, not
	// falling when w rises, and MaxWatermark for MaxWatermark. NoWatermark forwards nothing.
	OutputWatermark(w Watermark) Watermark
}

// IdleHandler is an operator that holds rows back which event time must not pass: while its subtask is idle, event time
// goes on without it.
type IdleHandler interface {
	// OnIdle is called before the runtime passes on that the input has become idle.
	OnIdle(out Emitter) error
}

// PortEnder is an operator with several inputs to which it matters that one of them has come to its end before the others.
type PortEnder interface {
	// OnPortEnd is called once when event time has ended on all channels of a port: it has brought all its rows. It comes before
	// the watermark that follows from it, and again after a restart.
	OnPortEnd(port int, out Emitter) error
}

// Waker is an operator that works outside the task's goroutine and emits what is ready there (WakeFunc).
type Waker interface {
	// OnWake is called on the subtask's goroutine some time after the operator called its wake function. Several calls
	// of that function may lead to one or to as many calls of OnWake.
	OnWake(out Emitter) error
}

// WakeFunc returns a function that makes the runtime call s's OnWake. It may be called from any goroutine and does not
// block; an operator calls it once per OnWake it still waits for, so that the task's mailbox stays short. A Subtask of a
// test, which has no runtime, gets a function that does nothing: there, results leave with the next batch, watermark
// or barrier.
func WakeFunc(s Subtask) func() {
	if t, ok := s.(*subtask); ok {
		return t.wake
	}
	return func() {}
}

// ContextOf is the context of the attempt that runs s: it ends when the job stops or restarts. It bounds an operator's
// requests to the outside. Of a Subtask without a runtime it is context.Background.
func ContextOf(s Subtask) context.Context {
	if t, ok := s.(*subtask); ok {
		return t.context()
	}
	return context.Background()
}

// AddWatermark is w plus ms, saturating: NoWatermark and MaxWatermark stay what they are.
func AddWatermark(w Watermark, ms int64) Watermark {
	if w == NoWatermark || w == MaxWatermark {
		return w
	}
	s := w + Watermark(ms)
	switch {
	case ms > 0 && s < w:
		return MaxWatermark
	case ms < 0 && s > w:
		return NoWatermark
	}
	return s
}
