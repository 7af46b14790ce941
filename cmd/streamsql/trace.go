package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/diag"
)

// tracedByDefault is how many checkpoints of a job trace shows.
const tracedByDefault = 3

// traceCheckpoints prints the lives of the last checkpoints of the jobs below dir, newest first, or of checkpoint id.
func traceCheckpoints(out io.Writer, dir string, id uint, dump bool, now time.Time) error {
	jobs, err := jobsIn(dir)
	if err != nil {
		return err
	}
	found := false
	var sb strings.Builder
	for _, j := range jobs {
		ts, err := checkpoint.ReadTraces(vfs.Default, j)
		if err != nil {
			return diag.New(diag.External, diag.Pos{}, "the trace in %q cannot be read", j).Wrap(err)
		}
		if !dump {
			fmt.Fprintf(&sb, "%s\n", j)
		}
		for i := range ts {
			x := &ts[i]
			if id != 0 && x.ID != checkpoint.ID(id) || id == 0 && i >= tracedByDefault {
				continue
			}
			found = true
			if !dump {
				traceText(&sb, x, now)
				continue
			}
			b, err := json.Marshal(x)
			if err != nil {
				return err
			}
			sb.Write(b)
			sb.WriteByte('\n')
		}
	}
	if id != 0 && !found {
		return diag.New(diag.Config, diag.Pos{}, "the trace in %q holds no checkpoint %d", dir, id).
			WithHint("streamsql checkpoint trace %s shows the last ones", dir)
	}
	_, err = io.WriteString(out, sb.String())
	return err
}

// traceText is a checkpoint's life as a table of what happened, each with its time after the trigger.
func traceText(sb *strings.Builder, x *checkpoint.Trace, now time.Time) {
	fmt.Fprintf(sb, "  %s %d %s, taken %s", x.Kind, x.ID, x.State, x.Triggered.UTC().Format("2006-01-02 15:04:05.000"))
	if !x.Completed.IsZero() {
		fmt.Fprintf(sb, ", %d bytes, %d of them new", x.Bytes, x.NewBytes)
		if x.Unaligned {
			fmt.Fprintf(sb, ", unaligned with %d bytes in flight", x.InFlight)
		}
	}
	sb.WriteString("\n")
	line := func(at time.Time, what, text string) {
		if !at.IsZero() {
			fmt.Fprintf(sb, "    +%-9s %-11s %s\n", checkpoint.Short(at.Sub(x.Triggered)), what, text)
		}
	}
	if x.Restored != nil {
		fmt.Fprintf(sb, "    before it the job was %s\n", x.Restored)
	}
	line(x.Triggered, "barrier", "sent into the sources")
	line(x.PreCommitted, "pre-commit", fmt.Sprintf("all %d subtasks have answered: every sink has pre-committed", x.Of))
	line(x.Completed, "complete", fmt.Sprintf("the manifest is durable, it lists %d pending output(s): the commit point", x.Committables))
	line(x.CommitBegun, "commit", "begins")
	committed := "all output is visible"
	switch {
	case x.CommittedWith != 0:
		committed += fmt.Sprintf(", with checkpoint %d", x.CommittedWith)
	case x.Commits > 1:
		committed += fmt.Sprintf(", after %d attempts", x.Commits)
	case x.CommitBegun.IsZero() && !x.Committed.IsZero():
		committed += ": settled by the restore of a later start"
	}
	line(x.Committed, "committed", committed)
	if !x.Ended.IsZero() {
		line(x.Ended, strings.ToLower(string(x.State)), fmt.Sprintf("%d of %d subtasks had answered: %s", x.Answered, x.Of, x.Why(now)))
	} else if w := x.Why(now); w != "" {
		fmt.Fprintf(sb, "    %s\n", w)
	}
	for i, s := range x.Subtasks {
		if i > 0 && sameTask(&s, &x.Subtasks[i-1]) {
			continue
		}
		fmt.Fprintf(sb, "    %s (subtask %d) answered after %s: barrier arrived %s, aligned in %s, stood still %s, wrote %s, %d bytes\n", s.Name, s.Subtask.Index,
			checkpoint.Short(s.Total), checkpoint.Short(s.Travel), checkpoint.Short(s.Align), checkpoint.Short(s.Pause), checkpoint.Short(s.Write), s.Bytes)
	}
}

// sameTask tells whether two subtasks are chained into one task: a barrier goes through it once.
func sameTask(a, b *checkpoint.SubtaskTrace) bool {
	return a.Subtask.Index == b.Subtask.Index && a.Travel == b.Travel && a.Align == b.Align && a.Pause == b.Pause && a.Pause > 0
}

// lifeLine is a checkpoint's life on one line, "" when it is not remembered.
func lifeLine(ts []checkpoint.Trace, id checkpoint.ID) string {
	for i := range ts {
		x := &ts[i]
		if x.ID != id || x.Triggered.IsZero() {
			continue
		}
		s := "barrier " + x.Triggered.UTC().Format("15:04:05.000")
		for _, p := range []struct {
			what string
			at   time.Time
		}{{"pre-commit", x.PreCommitted}, {"complete", x.Completed}, {"committed", x.Committed}} {
			if !p.at.IsZero() {
				s += fmt.Sprintf(", %s +%s", p.what, checkpoint.Short(p.at.Sub(x.Triggered)))
			}
		}
		return s
	}
	return ""
}

// givenUpLines are the checkpoints among the last that did not come to an end or are under way.
func givenUpLines(sb *strings.Builder, ts []checkpoint.Trace, now time.Time) {
	for i := range ts {
		x := &ts[i]
		switch x.State {
		case checkpoint.TraceCompleted, checkpoint.TraceCommitted:
		case checkpoint.TraceInProgress:
			fmt.Fprintf(sb, "  %s %d, in progress since %s, or left so by a process that died\n", x.Kind, x.ID, x.Triggered.UTC().Format(time.DateTime))
		default:
			fmt.Fprintf(sb, "  %s %d, %s after %s: %s\n", x.Kind, x.ID, x.State, checkpoint.Short(x.Duration(now)), x.Why(now))
		}
	}
}
