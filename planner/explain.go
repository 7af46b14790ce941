package planner

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
)

// Explain is the text of EXPLAIN: the logical plan as written, the physical plan, and how each sink is written.
func (plan *Plan) Explain() string {
	text := "== Abstract Syntax Tree ==\n" + plan.abstract +
		"\n== Optimized Physical Plan ==\n" + plan.PhysicalText() +
		"\n== Delivery ==\n" + plan.DeliveryText()
	if c := plan.ConfigText(); c != "" {
		text += "\n== Checkpoints ==\n" + c
	}
	if c := plan.StateText(); c != "" {
		text += "\n== State on disk ==\n" + c
	}
	return text
}

// ExplainAs is the text of EXPLAIN with the given details.
func (plan *Plan) ExplainAs(details []sql.ExplainDetail) string {
	if slices.Contains(details, sql.ExplainGuarantees) {
		return plan.Guarantees().Text()
	}
	return plan.Explain()
}

// CheckExplain refuses the details of EXPLAIN that are not printed. The changelog modes always are.
func CheckExplain(st *sql.Explain) error {
	for _, d := range st.Details {
		if d != sql.ExplainChangelog && d != sql.ExplainGuarantees {
			return diag.New(diag.Unsupported, st.Position(), "EXPLAIN %s is not supported", d).
				WithHint("write EXPLAIN, which prints the plans with changelog modes, keys and parallelism, and the delivery of each sink")
		}
	}
	return nil
}

// PhysicalText is the physical plan, a tree per sink. What several operators read is printed once in full.
func (plan *Plan) PhysicalText() string {
	var sb strings.Builder
	readers := map[*phys]int{}
	for _, r := range plan.roots {
		countReaders(r, readers)
	}
	seen := map[*phys]int{}
	for _, r := range plan.roots {
		printPhys(&sb, r, "", readers, seen)
	}
	return sb.String()
}

// countReaders counts how often the plan comes to p and what is below it.
func countReaders(p *phys, readers map[*phys]int) {
	readers[p]++
	if readers[p] > 1 {
		return
	}
	for _, in := range p.in {
		countReaders(in, readers)
	}
}

func printPhys(sb *strings.Builder, p *phys, indent string, readers, seen map[*phys]int) {
	if n, ok := p.op.(*normalize); ok && n.removed {
		printPhys(sb, p.in[0], indent, readers, seen)
		return
	}
	sb.WriteString(indent + physLabel(p))
	if id, ok := seen[p]; ok {
		fmt.Fprintf(sb, " (shared, printed above as #%d)\n", id)
		return
	}
	if _, ok := p.op.(*Scan); ok || readers[p] > 1 {
		seen[p] = len(seen) + 1
		fmt.Fprintf(sb, " #%d", seen[p])
	}
	sb.WriteString("\n")
	for i, in := range p.in {
		next := indent + "  "
		if e := p.ship[i]; e.Ship != exec.Forward {
			sb.WriteString(next + exchangeLabel(e, in, p.par) + "\n")
			next += "  "
		}
		printPhys(sb, in, next, readers, seen)
	}
}

// physLabel is the node by Flink's name of the operator, with what flows out of it.
func physLabel(p *phys) string {
	s := p.op.label()
	if n, ok := p.op.(namer); ok {
		s = n.physicalLabel()
	}
	s = strings.TrimSuffix(s, ")")
	if n, ok := p.op.(detailer); ok {
		s += n.detail(p)
	}
	if !strings.HasSuffix(s, "(") {
		s += ", "
	}
	s += "changelogMode=" + "[" + strings.Trim(p.trait.String(), "[]") + "]"
	if len(p.keys) > 0 {
		s += ", upsertKeys=[" + strings.ReplaceAll(describeKeys(p), " or ", ", ") + "]"
	}
	return s + fmt.Sprintf(", parallelism=[%d])", p.par)
}

func exchangeLabel(e exec.Edge, in *phys, par int) string {
	switch {
	case par == 1:
		return "Exchange(distribution=[single])"
	case e.Ship == exec.Hash:
		return fmt.Sprintf("Exchange(distribution=[hash[%s]])", keyNames(in.fields, e.Keys))
	}
	return "Exchange(distribution=[rebalance])"
}

// DeliveryText says for every sink how it is written, why, and what its guarantee consists of.
func (plan *Plan) DeliveryText() string {
	var sb strings.Builder
	for i, s := range plan.Sinks {
		if i > 0 {
			sb.WriteString("\n")
		}
		plan.delivery(&sb, s, plan.roots[i])
	}
	return sb.String()
}

func (plan *Plan) delivery(sb *strings.Builder, s SinkPlan, root *phys) {
	name := s.Table
	if s.Collect {
		name = "the result of SELECT"
	}
	line := func(label, format string, args ...any) {
		fmt.Fprintf(sb, "  %-17s %s\n", label+":", fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(sb, "%s\n", name)
	line("delivery", "%s%s", s.Mode.Delivery, plan.guarantee(s.Mode.Delivery, root))
	line("reason", "%s", s.Mode.Reason)
	if s.Reason != "" {
		line("rows", "%s", s.Reason)
	}
	line("changelog", "%s", root.trait)
	if len(s.Mode.Key) > 0 {
		line("primary key", "(%s)", strings.Join(s.Mode.Key, ", "))
	}
	line("source position", "%s", positionText(root))
	line("operator state", "%s", stateText(root))
	for _, g := range plan.growing(root) {
		line("grows for ever", "%s", g)
	}
	for _, c := range costs(root) {
		line("much work", "%s", c)
	}
	for _, o := range outside(root) {
		line("not covered", "%s", o)
	}
	for _, r := range root.op.(*Sink).Target.Risks {
		line("not covered", "%s", r.line())
	}
	line("visible", "%s", visibleText(s.Mode.Delivery))
	line("commit", "%s", commitText(s.Mode.Delivery))
	line("latency", "%s%s", endText(root), plan.latency(s.Mode.Delivery))
	if s.Mode.Weakness != "" {
		line("not covered", "%s", s.Mode.Weakness)
	}
}

// guarantee says what the delivery is worth: the weakest link of sink and checkpoints.
func (plan *Plan) guarantee(d connectors.Delivery, root *phys) string {
	if d == connectors.TwoPhaseCommit && plan.conf.Enum(keyMode) == "AT_LEAST_ONCE" {
		return " (rows can repeat after a failure: '" + keyMode + "' = AT_LEAST_ONCE)"
	}
	switch d {
	case connectors.TwoPhaseCommit:
		if plan.degrades() {
			return " (exactly once, or rows repeat where a restore cannot be exact: '" + keyOnDegraded + "' = at-least-once)"
		}
		return " (exactly once)"
	case connectors.IdempotentUpsert:
		if takesBack(root) {
			return " (rows that the query takes back can stay after a failure)"
		}
		if valueComesBack(root) {
			return " (a value that the query takes back can stay after a failure)"
		}
		return " (exactly once in the final table)"
	case connectors.AtLeastOnce:
		return " (rows can repeat after a failure)"
	}
	return " (rows can be lost or repeat after a failure)"
}

// positionText names the tables read.
func positionText(root *phys) string {
	var tables []string
	var walk func(p *phys)
	walk = func(p *phys) {
		switch n := p.op.(type) {
		case *Scan:
			if !slices.Contains(tables, n.Info.Table.Name) {
				tables = append(tables, n.Info.Table.Name)
			}
		case *Values:
			if !slices.Contains(tables, "VALUES") {
				tables = append(tables, "VALUES")
			}
		}
		for _, in := range p.in {
			walk(in)
		}
	}
	walk(root)
	return "positions in " + strings.Join(tables, ", ") + " are part of each checkpoint"
}

func stateText(root *phys) string {
	var ops []string
	var walk func(p *phys)
	walk = func(p *phys) {
		for _, in := range p.in {
			walk(in)
		}
		if stateful(p) {
			name, _, _ := strings.Cut(physLabel(p), "(")
			ops = append(ops, name)
		}
	}
	walk(root)
	if ops == nil {
		return "none"
	}
	return strings.Join(ops, ", ") + ", restored from the same checkpoint"
}

// outside lists what below root no guarantee covers.
func outside(root *phys) []string {
	var out []string
	if n, ok := root.op.(outsider); ok {
		out = append(out, n.outside())
	}
	for _, in := range root.in {
		for _, s := range outside(in) {
			if !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	return out
}

// growing lists the state below root that nothing bounds.
func (plan *Plan) growing(root *phys) []string {
	var out []string
	var walk func(p *phys)
	walk = func(p *phys) {
		for _, in := range p.in {
			walk(in)
		}
		if n, ok := p.op.(grower); ok {
			if s := n.grows(plan.conf.StateTTL().Milliseconds()); s != "" && !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	if !plan.Bounded {
		walk(root)
	}
	return out
}

func visibleText(d connectors.Delivery) string {
	if d == connectors.TwoPhaseCommit {
		return "when the checkpoint that holds the rows is published and committed"
	}
	return "at once; after a failure readers can see earlier values again until the job has caught up"
}

func commitText(d connectors.Delivery) string {
	switch d {
	case connectors.TwoPhaseCommit:
		return "pre-committed at the barrier, committed after the checkpoint is published; a restore commits what the checkpoint lists and aborts the rest"
	case connectors.IdempotentUpsert:
		return "flushed at the barrier; a replay writes the same keys again"
	case connectors.AtLeastOnce:
		return "flushed at the barrier; a replay writes the rows again"
	}
	return "never waited for"
}

// endText names the operators below root that give no row before their input has ended; "" when there are none.
func endText(root *phys) string {
	var names []string
	var walk func(p *phys)
	walk = func(p *phys) {
		if n, ok := p.op.(ender); ok && n.atEnd(p) {
			if name, _, _ := strings.Cut(physLabel(p), "("); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		for _, in := range p.in {
			walk(in)
		}
	}
	walk(root)
	if names == nil {
		return ""
	}
	return "no row before the input has ended (" + strings.Join(names, ", ") + "); then "
}

// latency bounds how late a row is seen.
func (plan *Plan) latency(d connectors.Delivery) string {
	interval := plan.conf.Duration(keyInterval)
	switch {
	case d != connectors.TwoPhaseCommit:
		return "as fast as rows are written"
	case interval == 0:
		return "checkpoints are off ('" + keyInterval + "' = 0): rows are visible only when the job stops or ends"
	}
	return fmt.Sprintf("up to %s (checkpoint interval) + the time of a checkpoint and a commit", shortDuration(interval))
}

func shortDuration(d time.Duration) string { return millis(d.Milliseconds()) }
