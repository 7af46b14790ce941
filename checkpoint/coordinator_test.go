package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/streamsql/streamsql/sql/diag"
)

// TestCoordinator replays event → action transcripts. "new" makes a coordinator (arguments as in transcript.config),
// "steps" sends one event per line:
//
//	tick 10s | due 10s [savepoint] | ack <id> <op/i> [committables n] [at 3s] | decline <id> <op/i> [notready] [committables n]
//	published <id> | publish-failed <id> [conflict] | committed <id> | commit-failed <id> [lost] | confirmed <id>
//	confirm-failed <id> | finished <op/i> | stop now|suspend|drain
//
// Each event keeps the time of the last one unless it gives its own.
func TestCoordinator(t *testing.T) {
	datadriven.Walk(t, "testdata/coordinator", func(t *testing.T, path string) {
		var x transcript
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "new":
				return x.new(t, d)
			case "steps":
				return x.steps(t, d)
			}
			t.Fatalf("unknown command %q", d.Cmd)
			return ""
		})
	})
}

type transcript struct {
	c   *Coordinator
	now time.Duration
}

var epoch = time.Unix(0, 0).UTC()

func subtask(s string) SubtaskID {
	op, i, _ := strings.Cut(s, "/")
	n, _ := strconv.Atoi(i)
	return SubtaskID{OperatorID(op), n}
}

func (x *transcript) new(t *testing.T, d *datadriven.TestData) string {
	cfg := CoordinatorConfig{Lineage: "l", Identities: map[OperatorID]string{"agg": "1:fp"}, Fence: 3}
	var restored *Checkpoint
	confirmed := true
	dur := func(a datadriven.CmdArg) time.Duration {
		v, err := time.ParseDuration(a.Vals[0])
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	num := func(a datadriven.CmdArg) int {
		n, err := strconv.Atoi(a.Vals[0])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "interval":
			cfg.Interval = dur(a)
		case "first":
			cfg.First = dur(a)
		case "timeout":
			cfg.Timeout = dur(a)
		case "pause":
			cfg.MinPause = dur(a)
		case "concurrent":
			cfg.MaxConcurrent = num(a)
		case "tolerable":
			cfg.TolerableFailed = num(a)
		case "next":
			cfg.NextID = ID(num(a))
		case "subtasks":
			for _, s := range a.Vals {
				cfg.Subtasks = append(cfg.Subtasks, subtask(s))
			}
		case "sources":
			for _, s := range a.Vals {
				cfg.Sources = append(cfg.Sources, subtask(s))
			}
		case "restored":
			restored = &Checkpoint{ID: ID(num(a))}
		case "unconfirmed":
			confirmed = false
			for i := range num(a) {
				restored.Pending = append(restored.Pending, Committable{Sink: "s", Checkpoint: restored.ID, Subtask: i})
			}
		default:
			t.Fatalf("unknown argument %q", a.Key)
		}
	}
	x.now = 0
	x.c = NewCoordinator(cfg, restored, confirmed, epoch)
	return x.wake()
}

func (x *transcript) wake() string {
	at, ok := x.c.NextWake()
	if !ok {
		return "(no timer)\n"
	}
	return fmt.Sprintf("(wake at %s)\n", at.Sub(epoch))
}

func (x *transcript) steps(t *testing.T, d *datadriven.TestData) string {
	var sb strings.Builder
	for _, line := range strings.Split(d.Input, "\n") {
		e := x.event(t, strings.Fields(line))
		fmt.Fprintf(&sb, "%s\n", line)
		for _, a := range x.c.Step(e) {
			fmt.Fprintf(&sb, "  → %s\n", actionText(a))
		}
	}
	sb.WriteString(x.wake())
	return sb.String()
}

func (x *transcript) event(t *testing.T, f []string) Event {
	arg := func(i int) string {
		if i >= len(f) {
			t.Fatalf("%v: argument %d is missing", f, i)
		}
		return f[i]
	}
	id := func() ID {
		n, err := strconv.ParseUint(arg(1), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return ID(n)
	}
	has := func(word string) bool {
		for _, w := range f[1:] {
			if w == word {
				return true
			}
		}
		return false
	}
	after := func(word string) (string, bool) {
		for i, w := range f[:len(f)-1] {
			if w == word {
				return f[i+1], true
			}
		}
		return "", false
	}
	setTime := func(s string) {
		v, err := time.ParseDuration(s)
		if err != nil {
			t.Fatal(err)
		}
		x.now = v
	}
	if s, ok := after("at"); ok {
		setTime(s)
	}
	if f[0] == "tick" || f[0] == "due" {
		setTime(arg(1))
	}
	now := epoch.Add(x.now)
	committables := func() (cs []Committable) {
		if s, ok := after("committables"); ok {
			n, _ := strconv.Atoi(s)
			for range n {
				cs = append(cs, Committable{Sink: "s", Checkpoint: id(), Subtask: subtask(arg(2)).Index})
			}
		}
		return cs
	}
	switch f[0] {
	case "tick":
		return Tick{Now: now}
	case "due":
		return Due{Now: now, Savepoint: has("savepoint")}
	case "ack":
		return Acked{ID: id(), Snapshot: Snapshot{Subtask: subtask(arg(2)), Committables: committables()}, Now: now}
	case "decline":
		d := Declined{ID: id(), Subtask: subtask(arg(2)), Committables: committables(), Now: now}
		if d.NotReady = has("notready"); d.NotReady {
			d.Reason = "because"
		} else {
			d.Err = errors.New("because")
		}
		return d
	case "published":
		return Published{ID: id(), Now: now}
	case "publish-failed":
		err := error(errorf(diag.External, "no space left on device"))
		if has("conflict") {
			err = errorf(diag.Conflict, "state directory was taken over")
		}
		return PublishFailed{ID: id(), Err: err, Now: now}
	case "committed":
		return CommitDone{ID: id(), Now: now}
	case "commit-failed":
		err := errors.New("broker not there")
		if has("lost") {
			err = errorf(diag.Lost, "transaction was aborted")
		}
		return CommitFailed{ID: id(), Err: err, Now: now}
	case "confirmed":
		return Confirmed{ID: id(), Now: now}
	case "confirm-failed":
		return ConfirmFailed{ID: id(), Err: errors.New("disk full"), Now: now}
	case "finished":
		return TaskFinished{Subtask: subtask(arg(1)), Now: now}
	case "stop":
		m := map[string]StopMode{"now": StopNow, "suspend": StopSuspend, "drain": StopDrain}
		return StopRequested{Now: now, Mode: m[arg(1)]}
	}
	t.Fatalf("unknown event %v", f)
	return nil
}

func pendingText(cs []Committable) string {
	var out []string
	for _, c := range cs {
		out = append(out, fmt.Sprintf("%d/%d", c.Checkpoint, c.Subtask))
	}
	return "[" + strings.Join(out, " ") + "]"
}

func actionText(a Action) string {
	switch a := a.(type) {
	case Inject:
		s := fmt.Sprintf("inject %d", a.Barrier.ID)
		if a.Barrier.Final {
			s += " final"
		}
		if a.Savepoint {
			s += " savepoint"
		}
		return s
	case Publish:
		c := a.Checkpoint
		s := fmt.Sprintf("publish %d pending %s", c.ID, pendingText(c.Pending))
		if c.Final {
			s += " final"
		}
		if c.Savepoint {
			s += " savepoint"
		}
		return s
	case Commit:
		s := fmt.Sprintf("commit %d %s", a.ID, pendingText(a.Pending))
		if a.Attempt > 0 {
			s += fmt.Sprintf(" attempt %d after %s", a.Attempt, a.After)
		}
		return s
	case Confirm:
		return fmt.Sprintf("confirm %d", a.ID)
	case NotifyCommitted:
		return fmt.Sprintf("notify committed %d", a.ID)
	case Abort:
		return fmt.Sprintf("abort %d %s%s", a.ID, a.Cause, because(a.Reason, a.Subtasks))
	case Fail:
		return "fail: " + a.Err.Error()
	case Stop:
		return fmt.Sprintf("stop %s at %d", a.Mode, a.ID)
	}
	return fmt.Sprintf("%#v", a)
}

// The failure that ends a job because of its checkpoints says what failed, with the remedy for that.
func TestCheckpointFailureHasItsCause(t *testing.T) {
	cause := errorf(diag.External, "cannot write").Wrap(io.ErrShortWrite).WithHint("make room")
	s, now := SubtaskID{Operator: "op"}, time.Unix(0, 0)
	for _, e := range []Event{Declined{ID: 1, Subtask: s, Err: cause, Now: now}, PublishFailed{ID: 1, Err: cause, Now: now}} {
		c := NewCoordinator(CoordinatorConfig{Subtasks: []SubtaskID{s}}, nil, true, now)
		c.Step(Due{Now: now})
		if _, published := e.(PublishFailed); published {
			c.Step(Acked{ID: 1, Snapshot: Snapshot{Subtask: s}, Now: now})
		}
		out := c.Step(e)
		if len(out) != 2 || out[0].(Abort).Reason != cause.Error() {
			t.Fatalf("%T: %+v", e, out)
		}
		var got *diag.Error
		if err := out[1].(Fail).Err; !errors.Is(err, io.ErrShortWrite) || !errors.As(err, &got) || got.Hint != "make room" || strings.Count(err.Error(), "cannot write") != 1 {
			t.Errorf("%T: %v, hint %q", e, err, got.Hint)
		}
	}
}
