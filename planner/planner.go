package planner

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// Planner plans statements against a catalog. It is safe for concurrent use as long as functions are not registered
// at the same time.
type Planner struct {
	cat   *catalog.Catalog
	conns []connectors.Connector
	funcs *expr.Registry
}

// New makes a planner. conns are the connectors tables may name.
func New(cat *catalog.Catalog, conns []connectors.Connector, funcs *expr.Registry) *Planner {
	return &Planner{cat: cat, conns: conns, funcs: funcs}
}

// Options are what a plan needs beside the statement and the settings.
type Options struct {
	// Collect takes the rows of a SELECT. It is required for queries that are run; EXPLAIN and check may leave it nil.
	Collect *connectors.Connector
	// Embedded is the address of the embedded broker, "" when there is none.
	Embedded string
	// Trace keeps the logical plan after every rule in Plan.Steps.
	Trace bool
}

// Plan is a statement ready to run.
type Plan struct {
	// Name is pipeline.name, or "insert-into_<tables>" or "select".
	Name  string
	Graph *exec.Graph
	// Sinks are the tables written, in statement order. For a SELECT it is the collecting sink alone.
	Sinks []SinkPlan
	// Schema and Mode are the result of a SELECT; Schema is nil for INSERT.
	Schema *types.Schema
	Mode   types.ChangelogMode
	// Bounded reports that the job ends by itself.
	Bounded bool
	// Limit is the number of rows after which the result of an unbounded SELECT is complete, so that the job can be
	// stopped; -1 when there is none.
	Limit int64
	// Notices are remarks for the user.
	Notices []string
	// OnRecord are the guarantees that the job gave up in earlier runs, for EXPLAIN GUARANTEES. The caller sets it, who
	// knows where the job's state is.
	OnRecord []checkpoint.Degradation
	// Steps are the logical plans after each rule, when traced.
	Steps []Step

	abstract string
	roots    []*phys
	conf     *Config
}

// Step is the logical plan after a rule; Rule is "bind" for the first.
type Step struct{ Rule, Plan string }

// SinkPlan is how one table is written.
type SinkPlan struct {
	Table    string
	Mode     connectors.SinkMode
	Reason   string // what happens to the rows on the way, "" = nothing
	InputKey []string
	Parallel int
	Collect  bool
}

// Plan plans a query, INSERT or statement set. It validates options but contacts nothing.
func (p *Planner) Plan(stmt sql.Stmt, conf *Config, o Options) (*Plan, error) {
	conf = conf.Clone()
	if err := conf.checkLifecycle(); err != nil {
		return nil, err
	}
	b := p.binder(conf)
	var roots []Node
	plan := &Plan{conf: conf, Limit: -1}
	switch st := stmt.(type) {
	case *sql.QueryStmt:
		n, err := b.query(st.Query)
		if err != nil {
			return nil, err
		}
		n, err = typedResult(n, st.Pos)
		if err != nil {
			return nil, err
		}
		plan.Schema = schemaOf(n.Fields())
		for i, c := range plan.Schema.Columns {
			plan.Schema.Columns[i].Type = c.Type.AsResult()
		}
		roots = []Node{&Sink{In: n, Target: collectTarget(n, o.Collect, st.Pos)}}
	case *sql.Insert:
		n, err := b.insert(st)
		if err != nil {
			return nil, err
		}
		roots = []Node{n}
	case *sql.StatementSet:
		for _, ins := range st.Inserts {
			n, err := b.insert(ins)
			if err != nil {
				return nil, err
			}
			roots = append(roots, n)
		}
	default:
		return nil, diag.New(diag.Unsupported, stmt.Position(), "this statement has no plan").
			WithHint("queries, INSERT and statement sets can be planned")
	}
	plan.Notices = b.notices
	return plan, p.finish(plan, b, roots, o)
}

func (p *Planner) binder(conf *Config) *binder {
	s := expr.Session{Zone: conf.Zone()}
	if conf.Batch() {
		s.Now = time.Now()
	}
	return &binder{p: p, conf: conf, session: s, tables: map[string]*tableInfo{}}
}

func (b *binder) fold(x expr.Expr) (expr.Expr, error) { return expr.Fold(x, b.session) }

// typedResult gives untyped NULL columns of a result a type, as Flink's collect does not take NULL types.
func typedResult(n Node, pos diag.Pos) (Node, error) {
	for _, f := range n.Fields() {
		if f.Type.Kind == types.Null {
			return nil, diag.New(diag.Semantic, pos, "column %s is NULL without a type", f.Name).WithHint("write CAST(NULL AS STRING)")
		}
	}
	return n, nil
}

// finish takes bound roots to the graph.
func (p *Planner) finish(plan *Plan, b *binder, roots []Node, o Options) error {
	jobs := b.conf.JobOptions()
	if err := jobs.Checkpoints.Check(); err != nil {
		return err
	}
	opt := &optimizer{session: b.session, normalized: b.conf.Bool(keyCDCDuplicate)}
	nameSinks(roots)
	plan.Bounded = true
	for i, r := range roots {
		plan.abstract += tree(r)
		plan.trace(o, "bind", r)
		plan.Bounded = plan.Bounded && bounded(r)
		if b.conf.Batch() {
			r, _ = rewrite(r, func(n Node) (Node, error) { return withEmptyRow(n), nil })
		}
		n, err := opt.run(r, func(rule string, n Node) { plan.trace(o, rule, n) })
		if err != nil {
			return err
		}
		if b.conf.Batch() {
			n, _ = rewrite(n, func(n Node) (Node, error) { return settled(n), nil })
		}
		roots[i] = n
	}
	roots, err := shareScans(roots, b.conf)
	if err != nil {
		return err
	}
	bd := &builder{conf: b.conf, scans: map[string]*phys{}, session: b.session}
	for _, r := range roots {
		s := r.(*Sink)
		root, err := bd.deliver(bd.build(s.In), s.Target)
		if err != nil {
			return err
		}
		plan.roots = append(plan.roots, root)
	}
	for _, r := range plan.roots {
		if err := checkWatermarkUse(r); err != nil {
			return err
		}
		if err := bd.distribute(r); err != nil {
			return err
		}
		plan.Sinks = append(plan.Sinks, sinkPlan(r))
	}
	reuse(plan.roots)
	if plan.Schema != nil {
		plan.Mode = plan.roots[0].trait.Mode()
		if s, ok := plan.roots[0].in[0].op.(*Sort); ok && !plan.Bounded {
			plan.Limit = s.Limit
		}
	}
	plan.Name = jobName(b.conf, plan)
	plan.Notices = append(append(plan.Notices, bd.notices...), plan.warnings()...)
	plan.Graph = bd.lower(plan, o)
	return nil
}

func (plan *Plan) trace(o Options, rule string, n Node) {
	if o.Trace {
		plan.Steps = append(plan.Steps, Step{rule, tree(n)})
	}
}

// nameSinks gives sinks that write one table more than once ids of their own, by their order in the statement.
func nameSinks(roots []Node) {
	seen := map[string]int{}
	for _, r := range roots {
		t := r.(*Sink).Target
		seen[t.ID]++
		if n := seen[t.ID]; n > 1 {
			t.ID += "#" + strconv.Itoa(n)
		}
	}
}

func sinkPlan(r *phys) SinkPlan {
	t := r.op.(*Sink).Target
	s := SinkPlan{Table: t.Table.Name, Mode: t.Delivery, Reason: t.Reason, Parallel: r.par, Collect: t.Collect}
	for _, k := range t.InputKey {
		s.InputKey = append(s.InputKey, t.Columns.Columns[k].Name)
	}
	return s
}

// warnings are what works but hardly is what the user wants, of what the user is told without asking.
func (plan *Plan) warnings() []string {
	out := costs(plan.roots...)
	for i, s := range plan.Sinks {
		if plan.roots[i].op.(*Sink).Target.Followed {
			out = append(out, modeNotice(s.Table))
		}
		if s.Mode.Delivery != connectors.TwoPhaseCommit {
			continue
		}
		if !plan.Bounded && plan.conf.Duration(keyInterval) == 0 {
			out = append(out, offNotice(s.Table))
		}
		if plan.atLeastOnce() {
			out = append(out, modeNotice(s.Table))
		}
		if plan.degrades() {
			out = append(out, "'"+keyOnDegraded+"' = at-least-once: "+degradedNotice(s.Table))
		}
	}
	return out
}

func jobName(conf *Config, plan *Plan) string {
	if name, _ := conf.Get(keyPipelineName); name != "" {
		return name
	}
	if plan.Schema != nil {
		return "select"
	}
	var names []string
	for _, s := range plan.Sinks {
		names = append(names, catalog.FullName(s.Table))
	}
	return "insert-into_" + strings.Join(names, ",")
}

func shortHash(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:4])
}

// collectTarget is the sink of a SELECT: every column of the result, all four row kinds.
func collectTarget(n Node, c *connectors.Connector, pos diag.Pos) *sinkTarget {
	t := &catalog.Table{Name: "*collect*", Temporary: true, Options: catalog.NewOptions()}
	for _, f := range n.Fields() {
		t.Columns = append(t.Columns, catalog.Column{Name: f.Name, Type: f.Type})
	}
	use := connectors.Connector{Name: "collect"}
	if c != nil {
		use = *c
	}
	if use.SinkModes == nil {
		use.SinkModes = func(*catalog.Table) ([]connectors.SinkMode, error) {
			return []connectors.SinkMode{{Delivery: connectors.AtLeastOnce, Changelog: types.Retract,
				Reason:   "the rows go to the program or terminal that asked",
				Weakness: "after a failure rows can be shown again"}}, nil
		}
	}
	return &sinkTarget{Table: t, Connector: &use, Columns: schemaOf(n.Fields()), ID: "collect", Collect: true, Pos: sql.At(pos)}
}

func selectColumns(s *types.Schema, keep []int) *types.Schema {
	out := &types.Schema{}
	for _, i := range keep {
		out.Columns = append(out.Columns, s.Columns[i])
	}
	return out
}
