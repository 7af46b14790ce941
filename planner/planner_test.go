package planner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/connectors/nexmark"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// The planner's goldens: testdata/*.test. Commands take SQL and print what the planner makes of it; connectors are
// stand-ins that declare what the real ones do and refuse to be opened, so a plan that contacts anything fails.
//
//	ddl        runs CREATE, DROP, SET and RESET; prints errors and notices
//	steps      prints the logical plan after binding and after every rule that changed it
//	plan       prints the physical plan and each sink's delivery in short
//	explain    prints EXPLAIN
//	graph      prints the executor's graph
//	describe   prints DESCRIBE
//	show       prints SHOW CREATE
//	determinism  what EXPLAIN says is not covered with strategy IGNORE, and what TRY_RESOLVE makes of it: an error, or lookup
//	           joins that keep rows
//	mistake    a wrong statement, a line "=>", and the statement as the hint would have it: prints the error of the
//	           first and plans the second
func TestPlanner(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		h := newHarness(t)
		h.standIns()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, err := h.run(d.Cmd, d.Input)
			if err != nil {
				return out + diag.Render(err, "", d.Input) + "\n"
			}
			if out == "" {
				return "ok\n"
			}
			return out
		})
	})
}

var posNone diag.Pos

var pathOf = sql.PathOf

type harness struct {
	t    *testing.T
	p    *Planner
	conf *Config
}

func newHarness(t *testing.T) *harness {
	cat, err := catalog.New("")
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{t: t, p: New(cat, testConnectors(), expr.NewRegistry()), conf: NewConfig()}
	for _, kv := range [][2]string{{keyParallelism, "2"}, {keyZone, "UTC"}} {
		if _, err := h.conf.Set(kv[0], kv[1], diag.Pos{}); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// standIns registers what the goldens call and the function table lacks: they are typed and printed, never evaluated.
func (h *harness) standIns() {
	for name, t := range map[string]types.Type{"PROCTIME": types.TimestampOf(types.TimestampLTZ, 3).NotNull(), "UPPER": types.StringType, "LOWER": types.StringType} {
		if h.p.Functions().Lookup(name) != nil {
			continue
		}
		err := h.p.Functions().Register(&expr.Func{Name: name, Bind: func(c *expr.CallSite) (expr.Bound, error) {
			return expr.Bound{Args: c.Args, Type: t, Dynamic: name == "PROCTIME"}, nil
		}})
		if err != nil {
			h.t.Fatal(err)
		}
	}
}

// mistake prints the error of a statement whose correction, behind the line "=>", has none.
func (h *harness) mistake(input string) (string, error) {
	wrong, right, ok := strings.Cut(input, "\n=>\n")
	if !ok {
		return "", errors.New("no line => with the statement put right")
	}
	_, err := h.run("plan", wrong)
	if err == nil {
		return "", errors.New("the first statement is not wrong")
	}
	out := diag.Render(err, "", wrong) + "\n"
	var e *diag.Error
	switch {
	case !errors.As(err, &e) || !e.Pos.Known():
		h.t.Errorf("no position: %s", out)
	case e.Hint == "" && !(strings.HasPrefix(e.Message, "expected ") && strings.Contains(e.Message, ", found ")):
		h.t.Errorf("no hint: %s", out)
	}
	if _, err := h.run("plan", right); err != nil {
		h.t.Errorf("the correction of this is wrong too: %s%s", out, diag.Render(err, "", right))
	}
	return out, nil
}

func (h *harness) run(cmd, input string) (string, error) {
	switch cmd {
	case "mistake":
		return h.mistake(input)
	case "determinism":
		return h.determinism(input)
	}
	stmts, err := sql.ParseScript(input)
	if err != nil {
		return "", err
	}
	var sb strings.Builder
	for _, s := range stmts {
		out, err := h.statement(cmd, s)
		sb.WriteString(out)
		if err != nil {
			return sb.String(), err
		}
	}
	return sb.String(), nil
}

func (h *harness) statement(cmd string, s sql.Statement) (string, error) {
	switch cmd {
	case "ddl":
		return h.ddl(s)
	case "describe", "show":
		return h.object(cmd, s.Stmt)
	}
	switch s.Stmt.(type) {
	case *sql.CreateTable, *sql.CreateView, *sql.Drop, *sql.Set, *sql.Reset:
		return h.ddl(s)
	}
	plan, err := h.p.Plan(s.Stmt, h.conf, Options{Trace: true})
	if err != nil {
		return "", err
	}
	if err := checkGraph(plan.Graph); err != nil {
		return "", err
	}
	switch cmd {
	case "steps":
		return steps(plan), nil
	case "plan":
		return plan.PhysicalText() + shortDelivery(plan), nil
	case "explain":
		return plan.Explain(), nil
	case "graph":
		return graphText(plan), nil
	case "grows":
		return growsText(plan), nil
	case "identity":
		return identityText(plan), nil
	}
	h.t.Fatalf("unknown command %s", cmd)
	return "", nil
}

func (h *harness) ddl(s sql.Statement) (string, error) {
	switch st := s.Stmt.(type) {
	case *sql.CreateTable:
		_, notices, err := h.p.CreateTable(st, s.Text, h.conf)
		return noticeText(notices), err
	case *sql.CreateView:
		_, err := h.p.CreateView(st, s.Text, h.conf)
		return "", err
	case *sql.Drop:
		return "", h.p.Catalog().Drop(st)
	case *sql.Set:
		n, err := h.conf.Set(st.Option.Key, st.Option.Value, st.Option.KeyPos)
		if n == "" {
			return "", err
		}
		return noticeText([]string{n}), err
	case *sql.Reset:
		h.conf.Reset(st.Key)
		return "", nil
	}
	return "", fmt.Errorf("no DDL: %T", s.Stmt)
}

func noticeText(notices []string) string {
	out := ""
	for _, n := range notices {
		out += "notice: " + n + "\n"
	}
	return out
}

func (h *harness) object(cmd string, st sql.Stmt) (string, error) {
	switch st := st.(type) {
	case *sql.Show:
		o, err := h.p.Catalog().Lookup(st.Path)
		if err != nil {
			return "", err
		}
		return catalog.ShowCreate(o) + "\n", nil
	case *sql.Describe:
		rows, err := h.p.Describe(st.Path, h.conf)
		out := ""
		for _, r := range rows {
			out += strings.TrimRight(fmt.Sprintf("%s | %s | %v | %s | %s | %s | %s", r.Name, r.Type, r.Null, r.Key, r.Extras, r.Watermark, r.Comment), "| ") + "\n"
		}
		return out, err
	}
	return "", fmt.Errorf("not for %s: %T", cmd, st)
}

func steps(plan *Plan) string {
	var sb strings.Builder
	last := ""
	for _, s := range plan.Steps {
		if s.Plan == last && s.Rule != "bind" {
			continue
		}
		fmt.Fprintf(&sb, "-- %s\n%s", s.Rule, s.Plan)
		last = s.Plan
	}
	return sb.String()
}

// growsText is what EXPLAIN says about state without bound.
func growsText(plan *Plan) string {
	var out strings.Builder
	for _, l := range strings.Split(plan.Explain(), "\n") {
		if s, ok := strings.CutPrefix(strings.TrimSpace(l), "grows for ever:"); ok {
			out.WriteString(strings.TrimSpace(s) + "\n")
		}
	}
	return out.String()
}

func shortDelivery(plan *Plan) string {
	var sb strings.Builder
	for _, s := range plan.Sinks {
		if s.Collect {
			continue
		}
		fmt.Fprintf(&sb, "%s: %s: %s\n", s.Table, s.Mode.Delivery, s.Mode.Reason)
		if s.Reason != "" {
			fmt.Fprintf(&sb, "  %s\n", s.Reason)
		}
	}
	return sb.String()
}

func graphText(plan *Plan) string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "name %s\n", plan.Name)
	for i, n := range plan.Graph.Nodes {
		fmt.Fprintf(&sb, "%d %s x%d", i, n.ID, n.Parallelism)
		for _, e := range n.Inputs {
			fmt.Fprintf(&sb, " <-%s%v %d", e.Ship, e.Keys, e.From)
		}
		if n.Source != nil {
			fmt.Fprintf(&sb, " reads %v", n.Source.Spec.Schema.Names())
			if n.Source.Spec.Filter != nil {
				fmt.Fprintf(&sb, " where %s", n.Source.Spec.Filter)
			}
			if n.Source.Rows != nil {
				fmt.Fprintf(&sb, " rows %s", exprList(n.Source.Rows))
			}
			if w := n.Source.Watermark; w != nil {
				fmt.Fprintf(&sb, " watermark %s on %d every %d ms, idle after %d ms", w.Expr, w.Column, w.Interval, w.IdleAfter)
			}
		}
		if n.Sink != nil && n.Sink.Spec.Rowtime > 0 {
			fmt.Fprintf(&sb, " rowtime %s", n.Sink.Spec.Schema.Columns[n.Sink.Spec.Rowtime-1].Name)
		}
		sb.WriteString("\n")
	}
	if plan.Limit >= 0 {
		fmt.Fprintf(&sb, "complete after %d rows\n", plan.Limit)
	}
	return sb.String() + noticeText(plan.Notices)
}

// checkGraph holds every plan to what the executor relies on.
func checkGraph(g *exec.Graph) error {
	ids := map[string]bool{}
	for i, n := range g.Nodes {
		set := 0
		for _, b := range []bool{n.Source != nil, n.Operator != nil, n.Sink != nil} {
			if b {
				set++
			}
		}
		if set != 1 {
			return fmt.Errorf("node %s has %d kinds of work", n.ID, set)
		}
		if ids[string(n.ID)] {
			return fmt.Errorf("two nodes are called %s", n.ID)
		}
		ids[string(n.ID)] = true
		for _, e := range n.Inputs {
			in := g.Nodes[e.From]
			switch {
			case e.From >= i:
				return fmt.Errorf("node %s reads a later node", n.ID)
			case e.Ship == exec.Forward && in.Parallelism != n.Parallelism:
				return fmt.Errorf("node %s is forwarded from parallelism %d to %d", n.ID, in.Parallelism, n.Parallelism)
			case e.Ship == exec.Hash && len(e.Keys) == 0:
				return fmt.Errorf("node %s is hashed by nothing", n.ID)
			}
			for _, k := range e.Keys {
				if k < 0 || k >= in.Output.Len() {
					return fmt.Errorf("node %s is hashed by column %d of %d", n.ID, k, in.Output.Len())
				}
			}
		}
	}
	return nil
}

var errContact = errors.New("planning must not contact anything")

func noSource(context.Context, connectors.SourceSpec) (connectors.Source, error) {
	return nil, errContact
}
func noSink(context.Context, connectors.SinkSpec) (connectors.Sink, error) { return nil, errContact }

func option(t *catalog.Table, key string) string {
	v, _ := t.Options.Get(key)
	return v
}

func oneMode(m connectors.SinkMode) func(*catalog.Table) ([]connectors.SinkMode, error) {
	return func(*catalog.Table) ([]connectors.SinkMode, error) { return []connectors.SinkMode{m}, nil }
}

func testConnectors() []connectors.Connector {
	changelog := func(t *catalog.Table) types.ChangelogMode {
		if f := option(t, "format"); f == "debezium-json" || f == "changelog-json" {
			return types.Retract
		}
		return types.AppendOnly
	}
	sourceMode := func(t *catalog.Table) (types.ChangelogMode, error) { return changelog(t), nil }
	upsert := func(*catalog.Table) (types.ChangelogMode, error) { return types.Upsert, nil }
	bounded := func(t *catalog.Table) (bool, error) { return option(t, "scan.bounded.mode") != "", nil }
	always := func(*catalog.Table) (bool, error) { return true, nil }
	// Filters go down to all sources but those that make watermarks of the rows.
	push := func(_ *catalog.Table, filter, watermark expr.Expr) expr.Expr {
		if watermark != nil {
			return nil
		}
		return filter
	}
	keyed := func(t *catalog.Table) connectors.SinkMode {
		return connectors.SinkMode{Delivery: connectors.IdempotentUpsert, Changelog: types.Upsert, Key: t.PrimaryKey, Reason: "rows are written by primary key"}
	}
	return []connectors.Connector{
		{Name: "kafka", SourceMode: sourceMode, Bounded: bounded, PushFilter: push, NewSource: noSource, NewSink: noSink,
			ReadsFields: func(t *catalog.Table, _ int) bool { return option(t, "format") == "json" },
			Metadata:    []connectors.MetadataColumn{{Key: "timestamp", Type: types.TimestampOf(types.TimestampLTZ, 3), Writable: true}, {Key: "offset", Type: types.BigIntType}},
			Check: func(t *catalog.Table, u connectors.Use) error {
				if option(t, "topic") == "" {
					return diag.New(diag.Config, diag.Pos{}, "missing required option 'topic'").WithHint("add 'topic' = '...'")
				}
				return nil
			},
			SinkModes: func(t *catalog.Table) ([]connectors.SinkMode, error) {
				if option(t, "sink.delivery-guarantee") == "at-least-once" {
					return []connectors.SinkMode{{Delivery: connectors.AtLeastOnce, Changelog: changelog(t), Reason: "'sink.delivery-guarantee' asks for it"}}, nil
				}
				return []connectors.SinkMode{{Delivery: connectors.TwoPhaseCommit, Changelog: changelog(t), Reason: "the topic takes transactions"}}, nil
			}},
		{Name: "upsert-kafka", SourceMode: upsert, Bounded: bounded, PushFilter: push, NewSource: noSource, NewSink: noSink,
			SinkModes: func(t *catalog.Table) ([]connectors.SinkMode, error) { return []connectors.SinkMode{keyed(t)}, nil }},
		{Name: "jdbc", Bounded: always, PushFilter: push, NewSource: noSource, NewSink: noSink,
			NewLookup: func(context.Context, connectors.LookupSpec) (connectors.Lookup, error) { return nil, nil },
			SinkModes: func(t *catalog.Table) ([]connectors.SinkMode, error) {
				if len(t.PrimaryKey) > 0 {
					return []connectors.SinkMode{keyed(t)}, nil
				}
				return []connectors.SinkMode{{Delivery: connectors.TwoPhaseCommit, Changelog: types.AppendOnly, Reason: "rows are inserted in prepared transactions"}}, nil
			}},
		{Name: "filesystem", Bounded: always, PushFilter: push, NewSource: noSource, NewSink: noSink,
			SinkModes: oneMode(connectors.SinkMode{Delivery: connectors.TwoPhaseCommit, Changelog: types.AppendOnly, Reason: "files become visible by rename"})},
		{Name: "datagen", Bounded: func(t *catalog.Table) (bool, error) { return option(t, "number-of-rows") != "", nil }, PushFilter: push, NewSource: noSource},
		{Name: "print", NewSink: noSink, SinkModes: oneMode(connectors.SinkMode{Delivery: connectors.AtLeastOnce, Changelog: types.Retract, Reason: "printing cannot be undone"})},
		nexmark.Connector(),
		{Name: "blackhole", NewSink: noSink, SinkModes: oneMode(connectors.SinkMode{Delivery: connectors.NoGuarantee, Changelog: types.Upsert, Reason: "rows are thrown away"})},
	}
}
