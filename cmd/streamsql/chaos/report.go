package chaos

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/types"
)

// The verdicts, of a trial and of a check.
const (
	Exact        = "exact"
	Violated     = "violated"
	Inconclusive = "inconclusive"
)

// Report is the outcome of a check.
type Report struct {
	Jobs    []string       `json:"jobs"`
	ID      string         `json:"id"`
	Seed    uint64         `json:"seed"`
	Verdict string         `json:"verdict"`
	Reason  string         `json:"reason,omitempty"` // of an inconclusive one
	Hint    string         `json:"hint,omitempty"`
	Sources []SourceReport `json:"sources"`
	Sinks   []SinkReport   `json:"sinks"`
	Faults  []FaultReport  `json:"faults"`
	Trials  []Trial        `json:"trials"`
	// Injected is how many faults met jobs whose rows were compared afterwards. Bound is the highest rate of failure per fault
	// that is compatible with none among them, with 95 % confidence (the rule of three); 0 when there is no such statement.
	Injected   int      `json:"injected"`
	Bound      float64  `json:"bound_95,omitempty"`
	NotCovered []string `json:"not_covered"`
	Seconds    float64  `json:"seconds"`
}

// SourceReport is what was read of a table.
type SourceReport struct {
	Table string `json:"table"`
	Input string `json:"input"`
}

// SinkReport is a table that was written and compared.
type SinkReport struct {
	Table     string `json:"table"`
	Connector string `json:"connector"`
	Delivery  string `json:"delivery"`
	Guarantee string `json:"guarantee"`
	Oracle    string `json:"oracle"`
	Rows      int64  `json:"rows"` // without faults; -1 = not counted
}

// FaultReport adds up the trials of one kind.
type FaultReport struct {
	Fault    string `json:"fault"`
	Trials   int    `json:"trials"`
	Injected int    `json:"injected"`
	Missed   int    `json:"missed"`
	Starts   int    `json:"starts"`
	Lost     int64  `json:"lost"`
	Dup      int64  `json:"duplicates"`
	Wrong    int64  `json:"wrong"`
	Residue  int    `json:"residue"`
	P50      int64  `json:"recovery_p50_ms"`
	P99      int64  `json:"recovery_p99_ms"`
	Litter   int    `json:"litter"`
	Stopped  int    `json:"stopped"` // processes that stopped by themselves, with a reason
}

func (r *runner) newReport() *Report {
	return &Report{Jobs: []string{}, ID: r.o.ID, Seed: r.o.Seed, Verdict: Inconclusive, Sources: []SourceReport{}, Sinks: []SinkReport{}, Faults: []FaultReport{}, Trials: []Trial{},
		NotCovered: []string{}}
}

// describe fills in what is known before anything runs.
func (rep *Report) describe(r *runner) {
	for _, p := range r.job.plans {
		rep.Jobs = append(rep.Jobs, p.Name)
	}
	for _, x := range r.job.sources {
		rep.Sources = append(rep.Sources, SourceReport{x.table.Name, x.what})
	}
	for _, k := range r.job.sinks {
		oracle := "multiset of rows"
		switch {
		case r.o.Oracle != "":
			oracle = "rows of: " + r.o.Oracle
		case k.mode.Changelog == types.Upsert && len(k.mode.Key) > 0:
			oracle = "last row of each key (" + strings.Join(k.mode.Key, ", ") + ")"
		case k.mode.Changelog == types.Upsert:
			oracle = "last row of each key"
		case k.mode.Changelog == types.Retract:
			oracle = "rows that the changes add up to"
		}
		rep.Sinks = append(rep.Sinks, SinkReport{Table: k.table.Name, Connector: k.table.Connector(), Delivery: k.mode.Delivery.String(),
			Guarantee: k.guarantee.String(), Oracle: oracle, Rows: -1})
	}
	for _, k := range Kinds() {
		if !slices.Contains(r.o.Kinds, k) {
			rep.NotCovered = append(rep.NotCovered, "fault "+k+": not asked for")
		}
	}
	rep.NotCovered = append(rep.NotCovered, r.job.others...)
	switch {
	case !slices.Contains(r.o.Kinds, Server):
	case len(r.o.Servers) == 0:
		rep.NotCovered = append(rep.NotCovered, "brokers and databases that are killed: say how to restart them, --server-fault 'docker restart kafka'")
	default:
		rep.NotCovered = append(rep.NotCovered, "faults of brokers and databases other than what the commands of --server-fault do")
	}
	rep.NotCovered = append(rep.NotCovered,
		"brokers and databases that fail over to replicas, a power loss",
		"input after the part that was read; readers that read uncommitted records; triggers and readers of the sinks",
		"the settings of checkpoints, restarts and parallelism of the job: the check sets its own")
	if r.o.Embedded != "" {
		rep.NotCovered = append(rep.NotCovered, "a real broker: the embedded one aborts the open transactions of a connection that is gone")
	}
}

// expect fills in what runs without faults left.
func (rep *Report) expect(r *runner) {
	for i := range rep.Sinks {
		if w, ok := r.want[rep.Sinks[i].Table]; ok {
			rep.Sinks[i].Rows = w.len()
		}
	}
}

// conclude adds the trials up.
func (rep *Report) conclude() {
	by := map[string]*FaultReport{}
	recovery := map[string][]int64{}
	violated, open := 0, ""
	for i := range rep.Trials {
		t := &rep.Trials[i]
		f := by[t.Fault]
		if f == nil {
			f = &FaultReport{Fault: t.Fault}
			by[t.Fault] = f
		}
		f.Trials++
		f.Injected += t.Injected
		f.Missed += t.Missed
		f.Starts += t.Starts
		f.Residue += len(t.Residue)
		f.Litter += len(t.Litter)
		f.Stopped += len(t.Stopped)
		recovery[t.Fault] = append(recovery[t.Fault], t.Recovery...)
		for _, d := range t.Sinks {
			f.Lost, f.Dup, f.Wrong = f.Lost+d.Lost, f.Dup+d.Duplicates, f.Wrong+d.Wrong
		}
		switch t.Verdict {
		case Violated:
			violated++
		case Exact:
			rep.Injected += t.Injected
		default:
			if open == "" {
				open = fmt.Sprintf("trial %d (%s): %s", t.N, t.Fault, t.Reason)
			}
		}
	}
	for _, k := range Kinds() {
		if f := by[k]; f != nil {
			f.P50, f.P99 = checkpoint.Quantile(recovery[k], 50), checkpoint.Quantile(recovery[k], 99)
			rep.Faults = append(rep.Faults, *f)
		}
	}
	switch {
	case violated > 0:
		rep.Verdict, rep.Reason = Violated, ""
	case rep.Reason != "":
	case open != "":
		rep.Reason = open
	case rep.Injected == 0:
		rep.Reason = "no fault met the jobs at work"
		if rep.Hint == "" {
			rep.Hint = "make runs longer: --run-for 10s, or inject more: --kills"
		}
	default:
		rep.Verdict = Exact
		rep.Bound = min(1, 3/float64(rep.Injected))
	}
}

// text is a difference in one line.
func (d *Difference) text() string {
	out := fmt.Sprintf("%d lost, %d duplicates, %d wrong", d.Lost, d.Duplicates, d.Wrong)
	if len(d.Rows) > 0 {
		x := d.Rows[0]
		out += fmt.Sprintf("; first: %s (expected %s, found %s)", x.Row, x.Expected, x.Found)
	}
	return out
}

// line is a trial in one line, for progress.
func (t *Trial) line() string {
	out := t.Verdict
	if t.Reason != "" {
		out += ": " + t.Reason
	}
	for _, name := range sinksOf(t) {
		d := t.Sinks[name]
		out += "; " + prefixOf(name) + d.text()
	}
	if len(t.Residue) > 0 {
		out += "; left: " + t.Residue[0]
	}
	if len(t.Unclean) > 0 {
		out += "; " + t.Unclean[0]
	}
	return out
}

// text is all that there is to say of a trial that is not exact, in lines.
func (t *Trial) text() string {
	var sb strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&sb, "  "+format+"\n", args...) }
	if t.Reason != "" {
		line("because: %s", t.Reason)
	}
	for _, name := range sinksOf(t) {
		d := t.Sinks[name]
		line("%s%d lost, %d duplicates, %d wrong", prefixOf(name), d.Lost, d.Duplicates, d.Wrong)
		for _, x := range d.Rows {
			line("  expected %s, found %s: %s", x.Expected, x.Found, x.Row)
		}
	}
	for _, x := range t.Residue {
		line("left: %s", x)
	}
	for _, x := range t.Unclean {
		line("%s", x)
	}
	for _, x := range t.Stopped {
		line("stopped by itself: %s", x)
	}
	if t.Replay != "" {
		line("again: %s", t.Replay)
	}
	return sb.String()
}

func sinksOf(t *Trial) []string {
	var out []string
	for name := range t.Sinks {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Text is the report for people.
func (rep *Report) Text(out io.Writer) error {
	var sb strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&sb, format+"\n", args...) }
	line("job %s  seed %d  id %s", strings.Join(rep.Jobs, ", "), rep.Seed, rep.ID)
	for _, s := range rep.Sources {
		line("  reads  %s: %s", s.Table, s.Input)
	}
	for _, s := range rep.Sinks {
		n := ""
		if s.Rows >= 0 {
			n = fmt.Sprintf(", %d rows", s.Rows)
		}
		line("  writes %s (%s, %s): %s; compared: %s%s", s.Table, s.Connector, s.Delivery, s.Guarantee, s.Oracle, n)
	}
	if len(rep.Faults) > 0 {
		line("")
		line("%-10s %6s %8s %6s %6s %5s %5s %5s %7s %7s  %s", "fault", "trials", "injected", "missed", "starts", "lost", "dup", "wrong", "residue", "stopped", "recovery p50/p99")
		for _, f := range rep.Faults {
			line("%-10s %6d %8d %6d %6d %5d %5d %5d %7d %7d  %.1fs / %.1fs", f.Fault, f.Trials, f.Injected, f.Missed, f.Starts, f.Lost, f.Dup, f.Wrong, f.Residue, f.Stopped,
				float64(f.P50)/1000, float64(f.P99)/1000)
		}
	}
	for _, f := range rep.Faults {
		if f.Litter > 0 {
			line("%s: hidden files left by processes that woke up after they had been replaced: %d; readers do not see them", f.Fault, f.Litter)
		}
	}
	for i := range rep.Trials {
		t := &rep.Trials[i]
		if t.Verdict == Exact {
			continue
		}
		line("")
		line("trial %d (%s: %s): %s", t.N, t.Fault, strings.Join(t.Where, "; "), t.Verdict)
		sb.WriteString(t.text())
	}
	line("")
	for _, x := range rep.NotCovered {
		line("not covered: %s", x)
	}
	line("%s", rep.Conclusion())
	if rep.Hint != "" {
		line("  hint: %s", rep.Hint)
	}
	_, err := io.WriteString(out, sb.String())
	return err
}

// Conclusion is the verdict in one line.
func (rep *Report) Conclusion() string {
	switch rep.Verdict {
	case Exact:
		return fmt.Sprintf("VERDICT exact in %d faults: at most %.1f %% of faults like these break it, with 95 %% confidence (3/n); %.0f s", rep.Injected, 100*rep.Bound, rep.Seconds)
	case Violated:
		n := 0
		for i := range rep.Trials {
			if rep.Trials[i].Verdict == Violated {
				n++
			}
		}
		text := fmt.Sprintf("VERDICT violated in %d of %d trials", n, len(rep.Trials))
		for _, s := range rep.Sinks {
			if s.Guarantee == connectors.CanRepeat.String() || s.Guarantee == connectors.CanLose.String() {
				text += fmt.Sprintf("; table %s promises no more than: %s", s.Table, s.Guarantee)
			}
		}
		return text
	}
	return "VERDICT inconclusive: " + rep.Reason
}

// JSON writes the report for programs.
func (rep *Report) JSON(out io.Writer) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(rep)
}
