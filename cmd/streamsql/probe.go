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
	"time"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/diag"
)

// probeCommand measures what a job's checkpoints wait for.
func probeCommand(args []string, out, errs io.Writer) int {
	f := newFlags("probe", "FILE…", `Measures what the checkpoints of a job wait for, and says what that means for its checkpoint interval: fsync and writing of
the state directory's disk and of checkpoint storage, and the round trip to every broker and database of its tables. It
starts no job, takes seconds, and removes what it writes, at most 256 MiB. A job that runs meanwhile is measured, too:
its checkpoints wait for the same disk. Exit codes: 0 good, tight, or without an interval, 1 too slow, or something could not
be measured, 2 the SQL is wrong.`, errs)
	f.examples = `  streamsql probe job.sql                                    state in .streamsql/job
  streamsql probe job.sql --state-dir /mnt/fast/job          another disk, before the job moves there
  streamsql probe job.sql -D execution.checkpointing.interval=1s
  streamsql probe job.sql --for 10s -o json
`
	o := streamsql.ProbeOptions{}
	format := "text"
	f.settingFlags()
	f.set.StringVar(&f.stateDir, "state-dir", "", "state `directory` of the job, which need not exist (default .streamsql/ and the name of the last file without its extension)")
	f.set.DurationVar(&o.Within, "for", 2*time.Second, "how `long` each disk and each cluster or database is measured")
	f.set.StringVar(&f.kafkaAddr, "embedded-kafka-addr", "", "`host:port` of an embedded broker that another streamsql process runs")
	f.set.StringVar(&format, "o", format, "`format`: text or json")
	f.set.StringVar(&f.logLevel, "log", "error", "log `level` on stderr: debug, info, warn, error, off")
	pos, code, ok := f.parse(args, out)
	if !ok {
		return code
	}
	if len(pos) == 0 || format != "text" && format != "json" {
		return f.usage(fmt.Errorf("no file, or an unknown format: streamsql probe job.sql [-o text|json]"))
	}
	if o.Within <= 0 || o.Within > time.Minute {
		return f.usage(fmt.Errorf("--for %s: use a time of up to 1m", o.Within))
	}
	o.Embedded, o.Settings, o.StateDir = f.kafkaAddr, f.settings, f.stateDir
	last := filepath.Base(pos[len(pos)-1])
	if o.StateDir == "" {
		o.StateDir = filepath.Join(".streamsql", strings.TrimSuffix(last, filepath.Ext(last)))
	}
	var err error
	if o.Log, err = f.logger(errs); err != nil {
		return fail(errs, err, source{})
	}
	src := source{}
	for _, name := range pos {
		b, err := os.ReadFile(name)
		if err != nil {
			return fail(errs, diag.New(diag.Config, diag.Pos{}, "cannot read %s", name).Wrap(err), source{})
		}
		src.text += string(b) + "\n"
	}
	if len(pos) == 1 {
		src.name = pos[0]
	}
	o.Scripts = []string{src.text}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	r, err := streamsql.Probe(ctx, o)
	if err != nil {
		return fail(errs, err, src)
	}
	if format == "json" {
		err = probeJSON(out, r)
	} else {
		_, err = io.WriteString(out, probeText(r))
	}
	if err != nil {
		return fail(errs, err, source{})
	}
	for _, j := range r.Jobs {
		if j.Verdict == streamsql.VerdictSlow || j.Verdict == streamsql.VerdictUnknown {
			return exitFailed
		}
	}
	return exitOK
}

// longer is d as a setting has it, rounded up to seconds, or to tens of milliseconds.
func longer(d time.Duration) string {
	if up := 10 * time.Millisecond; d <= time.Second-up {
		return fmt.Sprintf("%d ms", ((d + up - 1) / up * up).Milliseconds())
	}
	return fmt.Sprintf("%d s", (d+time.Second-1)/time.Second)
}

// smallWrite is what the small calls of a place are.
func smallWrite(q *streamsql.Probed) string {
	switch {
	case q.Kind == "server":
		return "round trip"
	case strings.HasPrefix(q.Name, "s3://"):
		return "write of 4 KiB"
	}
	return "fsync of 4 KiB"
}

func probeText(r *streamsql.ProbeReport) string {
	var sb strings.Builder
	for i := range r.Places {
		q := &r.Places[i]
		switch q.Kind {
		case "disk":
			fmt.Fprintf(&sb, "disk of %s\n", q.Name)
		case "storage":
			fmt.Fprintf(&sb, "checkpoint storage %s\n", q.Name)
		default:
			fmt.Fprintf(&sb, "%s (%s)\n", q.Name, strings.Join(q.Tables, ", "))
		}
		if q.Err != nil {
			fmt.Fprintf(&sb, "  not measured: %s\n", strings.ReplaceAll(diag.Render(q.Err, "", ""), "\n", "\n  "))
			continue
		}
		fmt.Fprintf(&sb, "  %s: p50 %s, p99 %s (%d times)\n", smallWrite(q), checkpoint.Short(q.P50), checkpoint.Short(q.P99), q.Samples)
		if q.Kind != "server" {
			fmt.Fprintf(&sb, "  writing: %.0f MB/s (%d MiB)\n", q.BytesPerSecond/1e6, q.Bytes>>20)
		}
	}
	for i := range r.Jobs {
		j := &r.Jobs[i]
		fmt.Fprintf(&sb, "job %s: %s\n", j.Job, j.Verdict)
		if j.Verdict == streamsql.VerdictUnknown {
			continue
		}
		waits := []string{fmt.Sprintf("%d fsyncs", j.Syncs)}
		if j.Puts > 0 {
			waits = append(waits, fmt.Sprintf("%d writes to checkpoint storage", j.Puts))
		}
		if j.Trips > 0 {
			waits = append(waits, fmt.Sprintf("%d round trips", j.Trips))
		}
		fmt.Fprintf(&sb, "  a checkpoint without state takes at least %s, and %s at p99: %s\n", checkpoint.Short(j.AtP50), checkpoint.Short(j.AtP99), strings.Join(waits, ", "))
		if j.Interval == 0 {
			sb.WriteString("  the job takes checkpoints on request and at its end only\n")
			continue
		}
		fmt.Fprintf(&sb, "  checkpoint interval: %s; in half of it %.0f MB of changed state can be made durable\n", j.Interval, float64(j.Bytes)/1e6)
		if j.Verdict == streamsql.VerdictTight || j.Verdict == streamsql.VerdictSlow {
			fmt.Fprintf(&sb, "  hint: SET 'execution.checkpointing.interval' = '%s', or put the state on a faster disk\n", longer(10*j.AtP99))
		}
	}
	return sb.String()
}

func probeJSON(out io.Writer, r *streamsql.ProbeReport) error {
	type place struct {
		Name           string   `json:"name"`
		Kind           string   `json:"kind"`
		Tables         []string `json:"tables,omitempty"`
		P50            float64  `json:"p50_ms"`
		P99            float64  `json:"p99_ms"`
		Samples        int      `json:"samples"`
		BytesPerSecond float64  `json:"bytes_per_second,omitempty"`
		Error          string   `json:"error,omitempty"`
	}
	type job struct {
		Job      string  `json:"job"`
		Verdict  string  `json:"verdict"`
		Interval float64 `json:"interval_ms"`
		AtP50    float64 `json:"checkpoint_p50_ms"`
		AtP99    float64 `json:"checkpoint_p99_ms"`
		Bytes    int64   `json:"state_bytes_in_half_interval"`
	}
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	doc := struct {
		Places []place `json:"places"`
		Jobs   []job   `json:"jobs"`
	}{[]place{}, []job{}}
	for i := range r.Places {
		q := &r.Places[i]
		p := place{Name: q.Name, Kind: q.Kind, Tables: q.Tables, P50: ms(q.P50), P99: ms(q.P99), Samples: q.Samples, BytesPerSecond: q.BytesPerSecond}
		if q.Err != nil {
			p.Error = q.Err.Error()
		}
		doc.Places = append(doc.Places, p)
	}
	for _, j := range r.Jobs {
		doc.Jobs = append(doc.Jobs, job{j.Job, string(j.Verdict), ms(j.Interval), ms(j.AtP50), ms(j.AtP99), j.Bytes})
	}
	return printJSON(out, doc)
}
