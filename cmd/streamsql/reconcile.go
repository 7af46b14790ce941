package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/sql/diag"
)

func reconcileCommand(args []string, out, errs io.Writer) int {
	f := newFlags("reconcile", "FILE…", `Compares what a job's sinks hold with what its sources and queries give: runs each query again over the input that the
job had read at its newest committed checkpoint, and reads the sink as a reader of committed rows does. Rows are counted
and hashed in groups: by window, by hour of a time column, or by hash; for groups that differ the rows are shown, and the
segment in which they diverge. It changes nothing. A running job is compared at a checkpoint; a sink that shows rows before
their checkpoint only when the job has stopped.
Exit codes: 0 equal, 1 differs, 2 cannot be compared, or the command is wrong.`, errs)
	f.examples = `  streamsql reconcile job.sql                         every sink; state in .streamsql/job
  streamsql reconcile job.sql --sink totals --by window_start
  streamsql reconcile job.sql --state-dir /var/lib/job -o json
`
	var sinks list
	var by, format string
	var limit int
	f.settingFlags()
	f.set.StringVar(&f.stateDir, "state-dir", "", "`directory` of the job's checkpoints (default .streamsql/ and the name of the last file without its extension)")
	f.set.Var(&sinks, "sink", "`table` to compare; may be repeated (default all that the files write)")
	f.set.StringVar(&by, "by", "", "`column` whose values make the groups (default window_start, window_end, hours of the first time column, or a hash)")
	f.set.IntVar(&limit, "limit", 10, "`number` of differing groups and rows to show of each sink")
	f.set.StringVar(&format, "o", "text", "`format`: text or json")
	f.set.StringVar(&f.kafkaAddr, "embedded-kafka-addr", "", "`host:port` of an embedded broker that another streamsql process runs")
	f.set.StringVar(&f.logLevel, "log", "error", "log `level` on stderr: debug, info, warn, error, off")
	pos, code, ok := f.parse(args, out)
	if !ok {
		return code
	}
	if len(pos) == 0 || format != "text" && format != "json" {
		fmt.Fprintln(errs, "streamsql reconcile: no file, or an unknown format\n  hint: streamsql reconcile job.sql [-o text|json]")
		return exitUsage
	}
	o := streamsql.ReconcileOptions{StateDir: f.stateDir, Sinks: sinks, By: by, Limit: limit, Embedded: f.kafkaAddr, Settings: f.settings}
	last := filepath.Base(pos[len(pos)-1])
	if o.StateDir == "" {
		o.StateDir = filepath.Join(".streamsql", strings.TrimSuffix(last, filepath.Ext(last)))
	}
	var err error
	if o.Log, err = f.logger(errs); err != nil {
		return fail(errs, err, source{})
	}
	for _, name := range pos {
		b, err := os.ReadFile(name)
		if err != nil {
			return fail(errs, diag.New(diag.Config, diag.Pos{}, "cannot read %s", name).Wrap(err), source{})
		}
		o.Script += string(b) + "\n"
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	rs, err := streamsql.Reconcile(ctx, o)
	if err != nil {
		src := source{text: o.Script}
		if len(pos) == 1 {
			src.name = pos[0]
		}
		return max(fail(errs, err, src), exitUsage) // nothing was compared
	}
	if format == "json" {
		err = reconciledJSON(out, rs)
	} else {
		err = reconciledText(out, rs)
	}
	if err != nil {
		return fail(errs, err, source{})
	}
	return reconciledCode(rs)
}

// reconciledCode is the worst of the sinks: one that differs counts for more than one that cannot be compared.
func reconciledCode(rs []streamsql.Reconciled) int {
	code := exitOK
	for i := range rs {
		switch {
		case rs[i].Equal():
		case rs[i].Reason == "":
			return exitFailed
		default:
			code = exitUsage
		}
	}
	return code
}

func verdictOf(r *streamsql.Reconciled) string {
	switch {
	case r.Equal():
		return "equal"
	case r.Reason != "":
		return "not compared"
	}
	return "differs"
}

func reconciledText(out io.Writer, rs []streamsql.Reconciled) error {
	var sb strings.Builder
	for i := range rs {
		r := &rs[i]
		fmt.Fprintf(&sb, "%s: %s  (job %s", r.Sink, verdictOf(r), r.Job)
		if r.Checkpoint != 0 {
			fmt.Fprintf(&sb, ", checkpoint %d", r.Checkpoint)
		}
		sb.WriteString(")\n")
		if r.Reason != "" {
			fmt.Fprintf(&sb, "  because: %s\n", r.Reason)
			continue
		}
		fmt.Fprintf(&sb, "  source %d rows -> query %d rows", r.SourceRows, r.Expected)
		if r.Marked >= 0 {
			fmt.Fprintf(&sb, " -> commits %d rows", r.Marked)
		}
		fmt.Fprintf(&sb, " -> sink %d rows\n  %d of %d groups differ, by %s\n", r.SinkRows, r.DifferingGroups, r.Groups, r.By)
		for _, d := range r.Diffs {
			fmt.Fprintf(&sb, "  %s: expected %s; sink %s\n", d.Group, d.Expected, d.Sink)
			for _, x := range d.Rows {
				fmt.Fprintf(&sb, "    expected %d, sink %d: %s\n", x.Expected, x.Sink, x.Row)
			}
		}
		if r.Segment != "" {
			fmt.Fprintf(&sb, "  segment: %s\n", r.Segment)
		}
		for _, n := range r.Notes {
			fmt.Fprintf(&sb, "  note: %s\n", n)
		}
	}
	_, err := io.WriteString(out, sb.String())
	return err
}

// reconciledLine is a sink as -o json prints it.
type reconciledLine struct {
	Sink       string           `json:"sink"`
	Job        string           `json:"job"`
	JobID      string           `json:"job_id"`
	Verdict    string           `json:"verdict"`
	Reason     string           `json:"reason,omitempty"`
	Checkpoint uint64           `json:"checkpoint,omitempty"`
	SourceRows int64            `json:"source_rows"`
	QueryRows  int64            `json:"query_rows"`
	CommitRows *int64           `json:"commit_rows,omitempty"`
	SinkRows   int64            `json:"sink_rows"`
	By         string           `json:"by,omitempty"`
	Groups     int              `json:"groups"`
	Differing  int              `json:"differing_groups"`
	Diffs      []reconciledDiff `json:"differences,omitempty"`
	Segment    string           `json:"segment,omitempty"`
	Notes      []string         `json:"notes,omitempty"`
}

type reconciledDiff struct {
	Group    string          `json:"group"`
	Expected string          `json:"expected"`
	Sink     string          `json:"sink"`
	Rows     []reconciledRow `json:"rows,omitempty"`
}

type reconciledRow struct {
	Row      string `json:"row"`
	Expected int64  `json:"expected"`
	Sink     int64  `json:"sink"`
}

func reconciledJSON(out io.Writer, rs []streamsql.Reconciled) error {
	list := make([]reconciledLine, 0, len(rs))
	for i := range rs {
		r := &rs[i]
		l := reconciledLine{Sink: r.Sink, Job: r.Job, JobID: r.JobID, Verdict: verdictOf(r), Reason: r.Reason, Checkpoint: uint64(r.Checkpoint), SourceRows: r.SourceRows,
			QueryRows: r.Expected, SinkRows: r.SinkRows, By: r.By, Groups: r.Groups, Differing: r.DifferingGroups, Segment: r.Segment, Notes: r.Notes}
		if r.Marked >= 0 {
			l.CommitRows = &r.Marked
		}
		for _, d := range r.Diffs {
			x := reconciledDiff{Group: d.Group, Expected: d.Expected, Sink: d.Sink}
			for _, row := range d.Rows {
				x.Rows = append(x.Rows, reconciledRow{row.Row, row.Expected, row.Sink})
			}
			l.Diffs = append(l.Diffs, x)
		}
		list = append(list, l)
	}
	return printJSON(out, list)
}
