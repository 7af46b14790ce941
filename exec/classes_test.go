package exec_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors/memory"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/diag"
)

// TestErrorClasses: what a failure is decides whether the job is started again: a failure of the outside, or a fault that
// need not repeat, as often as the strategy says; a user's mistake and a lost outcome never.
func TestErrorClasses(t *testing.T) {
	two := exec.DefaultRestart(exec.RestartFixedDelay)
	two.Attempts, two.Delay = 2, time.Millisecond
	rate := exec.DefaultRestart(exec.RestartFailureRate)
	rate.MaxFailures, rate.Delay, rate.RateInterval = 1, time.Millisecond, time.Hour
	limited := exec.DefaultRestart(exec.RestartExponentialDelay)
	limited.InitialBackoff, limited.MaxBackoff, limited.AttemptsBeforeReset = time.Millisecond, 2*time.Millisecond, 3
	for _, tc := range []struct {
		err      error
		class    exec.ErrorClass
		strategy exec.RestartStrategy
		restarts int
		says     string
	}{
		{errors.New("broken pipe"), exec.TransientError, two, 2, "the job failed again after 2 restart(s): to out (subtask 0): broken pipe\n  reason: 'restart-strategy.fixed-delay.attempts' = 2: no more restarts"},
		{errors.New("broken pipe"), exec.TransientError, rate, 1, "2 failures within 1h0m0s, 'restart-strategy.failure-rate.max-failures-per-interval' = 1: no more restarts"},
		{errors.New("broken pipe"), exec.TransientError, limited, 3, "'restart-strategy.exponential-delay.attempts-before-reset-backoff' = 3: no more restarts"},
		{errors.New("broken pipe"), exec.TransientError, exec.RestartStrategy{}, 0, "to out (subtask 0): broken pipe"},
		{diag.New(diag.External, diag.Pos{}, "broker is away").WithDetail("asked twice"), exec.TransientError, two, 2, "reason: asked twice; 'restart-strategy"},
		{diag.New(diag.Internal, diag.Pos{}, "index out of range"), exec.TransientError, two, 2, "index out of range"},
		{&checkpoint.FailpointError{Name: "x"}, exec.TransientError, two, 2, "failpoint x"},
		{diag.New(diag.Config, diag.Pos{}, "no such topic"), exec.UserError, two, 0, "no such topic"},
		{diag.New(diag.Data, diag.Pos{}, "value out of range"), exec.UserError, two, 0, "value out of range"},
		{diag.New(diag.Semantic, diag.Pos{}, "no such column"), exec.UserError, two, 0, "no such column"},
		{diag.New(diag.Conflict, diag.Pos{}, "another owner"), exec.FatalError, two, 0, "another owner"},
	} {
		t.Run(fmt.Sprintf("%s %s", tc.err, tc.strategy.Kind), func(t *testing.T) {
			if got := exec.ClassOf(tc.err); got != tc.class {
				t.Errorf("class %s, want %s", got, tc.class)
			}
			if got := exec.ClassOf(&exec.TaskError{Err: fmt.Errorf("wrapped: %w", tc.err)}); got != tc.class {
				t.Errorf("in a task: class %s, want %s", got, tc.class)
			}
			bus := memory.NewBus()
			fill(bus.Feed("in"), 1, 5)
			bus.Queue("out").Fail(memory.OpWrite, tc.err, tc.err, tc.err, tc.err, tc.err)
			g := newGraph(bus)
			g.sink("out", 1, hash(g.source("in", 1, nil)))
			j := start(t, g.g, exec.JobOptions{Restart: tc.strategy})
			err := j.wait()
			if !errors.Is(err, tc.err) || diag.CodeOf(err) != diag.CodeOf(tc.err) {
				t.Errorf("the job ends with %v", err)
			}
			if text := diag.Render(err, "", ""); !strings.Contains(text, tc.says) {
				t.Errorf("%q does not contain %q", text, tc.says)
			}
			if n := j.Status().Restarts; n != tc.restarts {
				t.Errorf("%d restarts, want %d", n, tc.restarts)
			}
		})
	}
}
