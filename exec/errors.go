package exec

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/diag"
)

// TaskError is the failure of a subtask: where it happened, and in Err what. Its diag fields are those of Err, so that
// class, place, detail and hint survive.
type TaskError struct {
	Subtask checkpoint.SubtaskID
	Node    string           // Node.Name
	Split   checkpoint.Split // the split whose rows were being processed, when the task reads one
	Err     error
}

// Error is "node (subtask 0): cause".
func (e *TaskError) Error() string { return e.where() + ": " + e.Err.Error() }

func (e *TaskError) where() string {
	node := shortened(e.Node)
	if e.Split != "" {
		return fmt.Sprintf("%s (subtask %d, split %s)", node, e.Subtask.Index, e.Split)
	}
	return fmt.Sprintf("%s (subtask %d)", node, e.Subtask.Index)
}

// shortened bounds a node's name in an error: that of a query of a thousand columns lists them all.
func shortened(name string) string { return diag.Shorten(name, 300) }

// Unwrap returns the cause.
func (e *TaskError) Unwrap() error { return e.Err }

// As presents the failure as the one error type users read: place first, then the cause with its detail and hint.
func (e *TaskError) As(target any) bool {
	p, ok := target.(**diag.Error)
	if !ok {
		return false
	}
	out := &diag.Error{Code: diag.Internal, Message: e.where(), Err: e.Err}
	var cause *diag.Error
	if errors.As(e.Err, &cause) {
		out.Code, out.Pos, out.Detail, out.Hint = cause.Code, cause.Pos, cause.Detail, cause.Hint
	}
	*p = out
	return true
}

// wrap attributes err to this member unless a member further down the chain did.
func (m *member) wrap(err error) error {
	var te *TaskError
	if err == nil || errors.Is(err, errStopping) || errors.As(err, &te) {
		return err
	}
	return &TaskError{Subtask: m.id, Node: m.node.Name, Err: err}
}

// recovered turns a panic into an error of the task. The stack goes to the log, not to the user.
func (t *task) recovered(p any) error {
	stack := debug.Stack()
	t.at.job.o.Log.Error("a task panicked", "node", t.head.node.Name, "subtask", t.head.id.Index, "panic", p,
		"stack", string(stack))
	return &TaskError{Subtask: t.head.id, Node: t.head.node.Name, Err: (&diag.Error{
		Code: diag.Internal, Message: fmt.Sprintf("panic: %v", p),
	}).WithHint("this is a bug in streamsql; the log has the stack")}
}

// ErrorClass is whose fault a failure is. It decides whether running the job again can help.
type ErrorClass uint8

// The classes.
const (
	// TransientError is of the outside (a broker, a database, a disk), or a fault of the program that need not repeat: the
	// restart strategy decides.
	TransientError ErrorClass = iota
	// UserError is of the statement, the configuration, a record or where output is printed: it would come again.
	UserError
	// FatalError is an outcome that is lost, or another owner: going on by itself could lose or repeat rows.
	FatalError
)

// String is "transient", "user" or "fatal".
func (c ErrorClass) String() string { return [...]string{"transient", "user", "fatal"}[c] }

// ClassOf is the class of a job's failure.
func ClassOf(err error) ErrorClass {
	var e *diag.Error
	if !errors.As(err, &e) {
		return TransientError
	}
	switch e.Code {
	case diag.External, diag.Internal:
		return TransientError
	case diag.Lost, diag.Conflict:
		return FatalError
	}
	return UserError
}

// gaveUp is err with why the job is not started again: the restart strategy allows no more.
func gaveUp(err error, restarts int, why string) error {
	out := &diag.Error{Code: diag.Internal, Message: fmt.Sprintf("the job failed again after %d restart(s)", restarts), Err: err, Detail: why,
		Hint: "fix the cause, or let the restart strategy allow more; the next start resumes at the last checkpoint"}
	if restarts == 0 {
		out.Message = "the job failed"
	}
	var cause *diag.Error
	if errors.As(err, &cause) {
		out.Code, out.Pos = cause.Code, cause.Pos
		if cause.Detail != "" {
			out.Detail = cause.Detail + "; " + why
		}
		if cause.Hint != "" {
			out.Hint = cause.Hint
		}
	}
	return out
}
