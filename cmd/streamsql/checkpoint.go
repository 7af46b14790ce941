package main

import (
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors/datagen"
	"github.com/streamsql/streamsql/connectors/file"
	"github.com/streamsql/streamsql/connectors/kafka"
	"github.com/streamsql/streamsql/connectors/nexmark"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
)

func checkpointCommand(args []string, out, errs io.Writer) int {
	f := newFlags("checkpoint", "show|trace [DIR]", `show: the checkpoints in a state directory, a job's directory or a savepoint: newest first, with the sources' positions,
state sizes and output that is pre-committed and not known to be committed. DIR is .streamsql by default, with all state
directories in it.

trace: the lives of the last checkpoints, of those that were given up too: when the barrier was sent, every sink had pre-committed,
the manifest was durable, the output was committed; the slowest subtasks; what expired waited for.

Both only read, and may be used while a job runs.`, errs)
	f.examples = `  streamsql checkpoint show                    everything below .streamsql
  streamsql checkpoint show .streamsql/job
  streamsql checkpoint show .streamsql/job --json | jq .ID
  streamsql checkpoint trace .streamsql/job          the last three checkpoints
  streamsql checkpoint trace .streamsql/job --id 17
  streamsql checkpoint trace .streamsql/job --json | jq 'select(.state == "EXPIRED")'
`
	f.set.BoolVar(&f.dump, "json", false, "the manifests, or traces, as JSON, one after the other, newest first")
	id := f.set.Uint("id", 0, "trace: the `number` of one checkpoint (default the last three)")
	pos, code, ok := f.parse(args, out)
	if !ok {
		return code
	}
	if len(pos) == 0 || pos[0] != "show" && pos[0] != "trace" || len(pos) > 2 {
		fmt.Fprintln(errs, "streamsql checkpoint: what to do is missing or unknown\n  hint: streamsql checkpoint show [DIR], or streamsql checkpoint trace [DIR]")
		return exitUsage
	}
	used := map[string][]string{"show": {"json"}, "trace": {"json", "id"}}
	if err := f.only(pos[0], used[pos[0]]...); err != nil {
		return f.usage(err)
	}
	dir := ".streamsql"
	if len(pos) == 2 {
		dir = pos[1]
	}
	var err error
	if pos[0] == "trace" {
		err = traceCheckpoints(out, dir, *id, f.dump, time.Now())
	} else {
		err = showCheckpoints(out, dir, f.dump, time.Now())
	}
	if err != nil {
		return fail(errs, err, source{})
	}
	return exitOK
}

// showCheckpoints prints what jobs' directories below dir hold.
func showCheckpoints(out io.Writer, dir string, dump bool, now time.Time) error {
	jobs, err := jobsIn(dir)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		cs, err := checkpoint.ReadCheckpoints(vfs.Default, j)
		if err != nil {
			return err
		}
		if !dump {
			if err := showJob(out, j, cs, now); err != nil {
				return err
			}
			continue
		}
		for _, c := range cs {
			b, err := checkpoint.Dump(c)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(out, "%s\n", b); err != nil {
				return err
			}
		}
	}
	return nil
}

// jobsIn is jobDirs, of which there must be one.
func jobsIn(dir string) ([]string, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, diag.New(diag.Config, diag.Pos{}, "no state directory %q", dir).WithHint("give the directory that --state-dir named, or that of a savepoint")
	}
	jobs := jobDirs(dir)
	if len(jobs) == 0 {
		return nil, diag.New(diag.Config, diag.Pos{}, "no job has left anything in %q", dir).WithHint("give the directory that --state-dir named, or that of a savepoint")
	}
	return jobs, nil
}

// jobDirs are the directories of jobs in a job's directory, a state directory, or a directory of state directories.
func jobDirs(dir string) []string {
	if m, _ := filepath.Glob(filepath.Join(dir, "chk-*")); len(m) > 0 {
		return []string{dir}
	}
	var out []string
	for _, pattern := range []string{"jobs/*", "*/jobs/*"} {
		m, _ := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
		out = append(out, m...)
	}
	return out
}

func showJob(out io.Writer, dir string, cs []*checkpoint.Checkpoint, now time.Time) error {
	confirmed, err := checkpoint.ReadConfirmed(vfs.Default, dir)
	if err != nil {
		return err
	}
	var sb strings.Builder
	fmt.Fprintf(&sb, "%s\n", dir)
	if h, ok, err := checkpoint.ReadHolder(vfs.Default, dir); err == nil && ok {
		fmt.Fprintf(&sb, "  last owner: process %d on %s since %s, fencing number %d\n", h.PID, h.Host, h.Since.UTC().Format(time.DateTime), h.Fence)
	}
	if where, err := checkpoint.ReadStorage(vfs.Default, dir); err == nil && where != "" {
		fmt.Fprintf(&sb, "  kept in %s; this is the copy of that process, and may be older\n", where)
	}
	if len(cs) == 0 {
		sb.WriteString("  no checkpoint\n")
	}
	degraded, err := checkpoint.ReadDegraded(vfs.Default, dir)
	if err != nil {
		return err
	}
	if len(cs) > 0 { // of a savepoint, and of a job that began with one, the manifest says it
		degraded = checkpoint.MergeDegradations(cs[0].Degraded, degraded)
	}
	for _, d := range degraded {
		fmt.Fprintf(&sb, "  guarantee given up: %s\n", d)
	}
	describe := describer(dir)
	traces, _ := checkpoint.ReadTraces(vfs.Default, dir) // a copy of what the manifests say, and more; never needed
	for _, c := range cs {
		showCheckpoint(&sb, c, confirmed, now, describe)
		if life := lifeLine(traces, c.ID); life != "" {
			fmt.Fprintf(&sb, "    life: %s\n", life)
		}
	}
	givenUpLines(&sb, traces, now)
	_, err = io.WriteString(out, sb.String())
	return err
}

func showCheckpoint(sb *strings.Builder, c *checkpoint.Checkpoint, confirmed checkpoint.ID, now time.Time, describe func(checkpoint.OperatorID, []byte) string) {
	what := "checkpoint"
	if c.Savepoint {
		what = "savepoint"
	}
	fmt.Fprintf(sb, "  %s %d, %s, %s ago", what, c.ID, c.StartedAt.UTC().Format(time.DateTime), now.Sub(c.StartedAt).Round(time.Second))
	if c.Final {
		sb.WriteString(", final: all input was read")
	}
	files, bytes, small := 0, int64(0), 0
	for _, s := range c.Subtasks {
		small += len(s.State)
		for _, f := range s.Files {
			files++
			bytes += f.Size
		}
	}
	fmt.Fprintf(sb, "\n    lineage %s, fencing number %d\n    state: %d bytes in %d files, %d bytes of operators\n", c.Lineage, c.Fence, bytes, files, small)
	for _, s := range c.Subtasks {
		for _, p := range s.Positions {
			fmt.Fprintf(sb, "    %s/%d split %s: %s\n", s.Subtask.Operator, s.Subtask.Index, p.Split, describe(s.Subtask.Operator, p.Next))
		}
	}
	if len(c.Pending) == 0 || c.ID <= confirmed {
		sb.WriteString("    output: committed\n")
		return
	}
	for _, p := range c.Pending {
		fmt.Fprintf(sb, "    pending output: %s/%d of checkpoint %d, pre-committed %s ago, %d bytes\n", p.Sink, p.Subtask, p.Checkpoint,
			now.Sub(p.CreatedAt).Round(time.Second), len(p.Payload))
	}
}

// describer reads positions with the decoder of the connector that the catalog of the state directory names for the
// table; others are shown in hex.
func describer(jobDir string) func(checkpoint.OperatorID, []byte) string {
	decoders := map[string]func([]byte) (string, error){
		"kafka": kafka.DescribePosition, "upsert-kafka": kafka.DescribePosition, "filesystem": file.DescribePosition, "datagen": datagen.DescribePosition,
		"nexmark": nexmark.DescribePosition,
	}
	connector := map[string]string{}
	// Read as text: an engine would want the directory for itself.
	text, _ := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(jobDir)), catalog.FileName))
	statements, _ := sql.ParseScript(string(text))
	for _, st := range statements {
		if t, ok := st.Stmt.(*sql.CreateTable); ok {
			for _, o := range t.Options {
				if o.Key == "connector" {
					parts := t.Path.Parts()
					connector[parts[len(parts)-1]] = o.Value
				}
			}
		}
	}
	return func(op checkpoint.OperatorID, next []byte) string {
		_, table, _ := strings.Cut(string(op), "[")
		table, _, _ = strings.Cut(table, "]")
		if decode := decoders[connector[table]]; decode != nil {
			if text, err := decode(next); err == nil {
				return text
			}
		}
		return "0x" + hex.EncodeToString(next)
	}
}
