package nexmark

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// report is the whole run, as it is written as JSON.
type report struct {
	When, Machine, Go, Java, Flink string
	Settings                       map[engine]string
	Source                         string
	Events, Rate, Rounds, WarmUp   int
	FlinkColumns                   string // which columns Flink's source makes
	Queries                        []queryReport
}

// queryReport is a query's runs on each engine.
type queryReport struct {
	Query string
	Runs  map[engine][]run
}

// run is a measured run and the one whose cost is taken off it.
type run struct{ Start, Whole cost }

func (r run) nanos(seconds float64) float64 {
	return seconds * 1e9 / float64(r.Whole.Events-r.Start.Events)
}

func newReport(o *options) *report {
	r := &report{When: time.Now().UTC().Format(time.RFC3339), Machine: machine(), Go: runtime.Version(), Source: o.source, Events: o.events, Rate: o.rate,
		Rounds: o.rounds, WarmUp: o.warmUp, Settings: map[engine]string{}, FlinkColumns: "those that the query reads"}
	for _, e := range o.engines {
		r.Settings[e] = e.settings(o)
		if e == flink {
			out, _ := exec.Command("java", "-version").CombinedOutput()
			java, _, _ := strings.Cut(string(out), "\n")
			r.Java = strings.ReplaceAll(java, "\"", "")
			r.Settings[e] += "JVM: " + os.Getenv("NEXMARK_FLINK_JVM")
		}
	}
	if strings.Contains(os.Getenv("NEXMARK_FLINK_JVM"), "-Dnexmark.full=true") {
		r.FlinkColumns = "all"
	}
	return r
}

// machine is the processor and the memory, where the system says them.
func machine() string {
	model, memory := runtime.GOARCH, ""
	for _, f := range []struct {
		file, key string
		to        *string
	}{{"/proc/cpuinfo", "model name", &model}, {"/proc/meminfo", "MemTotal", &memory}} {
		b, _ := os.ReadFile(f.file)
		for _, l := range strings.Split(string(b), "\n") {
			if k, v, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(k) == f.key {
				*f.to = strings.TrimSpace(v)
				break
			}
		}
	}
	return fmt.Sprintf("%s, %d processors, %s, %s", runtime.GOOS, runtime.NumCPU(), model, memory)
}

// figures are the medians of a query's runs on an engine. All is zero when none ended.
type figures struct {
	cpu, wall   float64 // ns an event
	spread      float64 // largest cpu over smallest
	rss, state  int64
	checkpoint  int64
	checkpoints int
	unfinished  bool
}

func (q queryReport) figures(e engine) figures {
	var f figures
	var cpu, wall []float64
	for _, r := range q.Runs[e] {
		if r.Whole.Error != "" || r.Start.Error != "" {
			continue
		}
		cpu, wall = append(cpu, r.nanos(r.Whole.CPU-r.Start.CPU)), append(wall, r.nanos(r.Whole.Wall-r.Start.Wall))
		f.unfinished = f.unfinished || r.Whole.Unfinished
		f.checkpoint = max(f.checkpoint, r.Whole.Checkpoint)
		f.rss, f.state, f.checkpoints = max(f.rss, r.Whole.PeakRSS), max(f.state, r.Whole.StateBytes), max(f.checkpoints, r.Whole.Checkpoints)
	}
	if len(cpu) > 0 {
		f.cpu, f.wall, f.spread = median(cpu), median(wall), slices.Max(cpu)/slices.Min(cpu)
	}
	return f
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

func (r *report) markdown() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s: %s; %s", r.When, r.Machine, r.Go)
	if r.Java != "" {
		fmt.Fprintf(&s, "; %s; Flink's source makes %s columns", r.Java, r.FlinkColumns)
	}
	fmt.Fprintf(&s, ".\n%d events from %s, %d a second of event time; medians of %d rounds. Columns with two figures: streamsql / Flink.\n\n", r.Events, r.Source, r.Rate, r.Rounds)
	s.WriteString("| query | streamsql events/s/core | Flink events/s/core | ratio | limit events/s/core | share of the limit | events/s | ratio | resident MiB | state MiB | checkpoints | checkpoint MiB | most over least |\n" +
		"|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	var ratios, shares []float64
	for _, q := range r.Queries {
		a, b, l := q.figures(ours), q.figures(flink), q.figures(limit)
		fmt.Fprintf(&s, "| %s | %s | %s | %s | %s | %s | %s / %s | %s | %s / %s | %s / %s | %d / %d | %s / %s | %.2f / %.2f |\n", q.Query, rate(a.cpu), rate(b.cpu), atLeast(b)+times(b.cpu, a.cpu),
			rate(l.cpu), share(l.cpu, a.cpu), rate(a.wall), rate(b.wall), atLeast(b)+times(b.wall, a.wall), mib(a.rss), mib(b.rss), mib(a.state), mib(b.state),
			a.checkpoints, b.checkpoints, mib(a.checkpoint), mib(b.checkpoint), a.spread, b.spread)
		if a.cpu > 0 && b.cpu > 0 {
			ratios = append(ratios, b.cpu/a.cpu)
		}
		if a.cpu > 0 && l.cpu > 0 {
			shares = append(shares, l.cpu/a.cpu)
		}
	}
	if len(ratios) > 0 {
		fmt.Fprintf(&s, "\nPer core against Flink: %.1f× geometric mean of %d queries, %.1f× the least.\n", geometric(ratios), len(ratios), slices.Min(ratios))
	}
	if len(shares) > 0 {
		fmt.Fprintf(&s, "\nShare of the hand-coded limit: %.0f %% geometric mean of %d queries, %.0f %% the least.\n", 100*geometric(shares), len(shares), 100*slices.Min(shares))
	}
	return s.String()
}

// atLeast marks the ratio to an engine that was stopped: what is left of the events costs no less each.
func atLeast(f figures) string {
	if f.unfinished {
		return "≥ "
	}
	return ""
}

// rate is events a second for nanoseconds an event, in thousands.
func rate(nanos float64) string {
	if nanos <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f K", 1e6/nanos)
}

func times(a, b float64) string {
	if a <= 0 || b <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f×", a/b)
}

func share(a, b float64) string {
	if a <= 0 || b <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*a/b)
}

func mib(n int64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint((n + 1<<19) >> 20)
}

func geometric(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += math.Log(x)
	}
	return math.Exp(sum / float64(len(v)))
}

// write puts the report into dir, as files of a name.
func (r *report) write(t *testing.T, dir, file string) {
	t.Helper()
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{file + ".json": append(data, '\n'), file + ".md": []byte(r.markdown())} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
