package exec

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/streamsql/streamsql/checkpoint"
)

// simTarget is a target system with the protocol that the job writes to it by.
type simTarget interface {
	committer(a *simAttempt) checkpoint.Committer
	// writers are opened after the restore.
	writers(a *simAttempt, n int) []simWriter
	// visible are the rows as a reader sees them in the end, in order.
	visible() []int
	// leftover is what a finished job left open, "" for nothing.
	leftover() string
}

// simWriter is a writer of one subtask. A write that fails ends the attempt.
type simWriter interface {
	write(row int)
	preCommit(id checkpoint.ID) []checkpoint.Committable
	committed(id checkpoint.ID)
}

func newSimTarget(w *simWorld) simTarget {
	switch w.sink {
	case "txn":
		return &simTxnTarget{w}
	case "ahead":
		return &simAheadTarget{w}
	case "prepared", "marker", "upsert", "at-least-once", "open":
		return &simServerTarget{w}
	case "files":
		return &simFileTarget{w}
	}
	panic(w.sink)
}

// committable is what subtask pre-committed at barrier id.
func (a *simAttempt) committable(id checkpoint.ID, subtask int, payload string) []checkpoint.Committable {
	return []checkpoint.Committable{{Sink: "s", Checkpoint: id, Subtask: subtask, Lineage: a.lineage, Payload: []byte(payload)}}
}

// mark is the marker of a committable.
func (w *simWorld) mark(c checkpoint.Committable) string {
	if w.wrong == "marker without lineage" {
		return fmt.Sprintf("%d/%d", c.Checkpoint, c.Subtask)
	}
	return fmt.Sprintf("%s/%d/%d", c.Lineage, c.Checkpoint, c.Subtask)
}

func rowsText(rows []int) string { return strings.Trim(fmt.Sprint(rows), "[]") }

func parseRows(text string) (rows []int) {
	for _, f := range strings.Fields(text) {
		n, err := strconv.Atoi(f)
		if err != nil {
			panic(err)
		}
		rows = append(rows, n)
	}
	return rows
}

// request sends a request and waits for the answer, false when none comes. The request may be carried out later, or twice.
func (a *simAttempt) request(request func()) (answered bool) {
	w := a.w
	if w.chance(9) {
		w.delay(request)
		return false
	}
	request()
	if w.chance(9) {
		w.delay(request) // a repeat of the client's, after a connection broke
	}
	a.step()
	return !w.chance(12)
}

// ids of nothing: the committer of sinks that commit nothing at a checkpoint.
type simNoCommitter struct{}

func (simNoCommitter) Classify(_ context.Context, cs []checkpoint.Committable) ([]checkpoint.Outcome, error) {
	return make([]checkpoint.Outcome, len(cs)), nil
}
func (simNoCommitter) Commit(context.Context, []checkpoint.Committable) error { return nil }
func (simNoCommitter) Abort(context.Context, []checkpoint.Committable) error  { return nil }
func (simNoCommitter) Close() error                                           { return nil }
