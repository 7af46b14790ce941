package chaos

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/planner"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// subject is what is checked: the jobs of a script with the tables they read and write.
type subject struct {
	plans   []*planner.Plan
	names   []string // of the jobs in this check
	sources []*source
	sinks   []*sink
	others  []string // sinks that nothing can be compared of, with the reason
}

// source is a table that is read.
type source struct {
	table *catalog.Table
	edits []edit // that pin its input
	rows  int64  // about how many there are, 0 = not known
	what  string // is read, for people
}

// sink is a table that is written, and where its shadows are.
type sink struct {
	table     *catalog.Table
	mode      connectors.SinkMode
	schema    *types.Schema
	guarantee connectors.Guarantee
	place     place
}

// place is where the shadows of a sink are, and how they are looked at. run names a run of the jobs.
type place interface {
	// edits are the options by which the jobs of a run write its shadow.
	edits(run string) []edit
	// claim fails when something has a name that shadows of this check would have. It makes nothing.
	claim(ctx context.Context) error
	// create makes the shadow of a run.
	create(ctx context.Context, run string) error
	// answers fails while its system does not, as after a restart.
	answers(ctx context.Context, run string) error
	// read is what a reader of committed rows sees in it.
	read(ctx context.Context, run string) (rows, error)
	// residue is what the run left open or unfinished in it.
	residue(ctx context.Context, run string) ([]string, error)
	// drop removes the shadow of a run.
	drop(ctx context.Context, run string) error
	// clean removes everything with the check's id, unless it is to be kept, and closes what is open.
	clean(ctx context.Context, keep bool) error
}

// taken is the error of a claim.
func taken(t *catalog.Table, id, what string) error {
	return diag.New(diag.Conflict, diag.Pos{}, "%s exists already", what).WithDetail("shadows of table %s would have such names", t.Name).
		WithHint("another check uses this id, or left it behind: streamsql chaos FILE --clean %s removes everything with it", id)
}

// inconclusive is why nothing can be said about a job.
type inconclusive struct{ why, hint string }

func (e *inconclusive) Error() string { return e.why }

// inspect plans the script and refuses what cannot be shadowed or compared. It reads the extents of topics, and writes nothing.
func (r *runner) inspect(ctx context.Context) error {
	if err := r.tables(); err != nil {
		return err
	}
	s := r.job
	if len(s.sinks) == 0 {
		return &inconclusive{"nothing that the jobs write can be read back: " + strings.Join(s.others, "; "), "write to kafka, postgres or filesystem for the check"}
	}
	if why := r.unrepeatable(); why != "" && r.o.Oracle == "" {
		return &inconclusive{"the query need not give the same rows twice: " + why,
			"compare what must hold all the same: --oracle " + anOracle}
	}
	if r.o.Oracle != "" {
		if err := r.plan(ctx, "g1", r.o.Oracle); err != nil {
			return err
		}
	}
	for _, x := range s.sources {
		if err := r.pin(ctx, x); err != nil {
			return err
		}
	}
	_, err := r.script("g1")
	return err
}

// tables finds the jobs and what they read and write.
func (r *runner) tables() error {
	plans, err := streamsql.PlanScript(r.o.Script, r.o.Settings, r.o.Embedded)
	if err != nil {
		return err
	}
	if len(plans) == 0 {
		return diag.New(diag.Config, diag.Pos{}, "there is no job to check").WithHint("give a file with INSERT statements")
	}
	s := &subject{plans: plans}
	r.job = s
	for _, p := range plans {
		name := p.Name + suffix + r.o.ID
		if slices.Contains(s.names, name) {
			return diag.New(diag.Config, diag.Pos{}, "two jobs of the file are called %q", p.Name).WithHint("SET 'pipeline.name' before each")
		}
		s.names = append(s.names, name)
		guarantees := p.Guarantees()
		for _, n := range p.Graph.Nodes {
			switch {
			case n.Sink != nil:
				if err := r.addSink(p, n.Sink.Spec.Table, n.Sink.Spec.Mode, n.Sink.Spec.Schema, guarantees); err != nil {
					return err
				}
			case n.Source != nil && n.Source.Spec.Table != nil:
				if !slices.ContainsFunc(s.sources, func(x *source) bool { return x.table.Name == n.Source.Spec.Table.Name }) {
					s.sources = append(s.sources, &source{table: n.Source.Spec.Table})
				}
			}
		}
	}
	for _, x := range s.sources {
		if slices.ContainsFunc(s.sinks, func(k *sink) bool { return k.table.Name == x.table.Name }) {
			return diag.New(diag.Unsupported, diag.Pos{}, "table %s is both written and read by jobs of the file", x.table.Name).
				WithHint("check the jobs one by one, each from a file of its own")
		}
	}
	return nil
}

func (r *runner) unrepeatable() string {
	for _, p := range r.job.plans {
		if why := streamsql.Unrepeatable(p); why != "" {
			return why
		}
	}
	return ""
}

func (r *runner) addSink(p *planner.Plan, t *catalog.Table, mode connectors.SinkMode, schema *types.Schema, gs *planner.Guarantees) error {
	s := r.job
	if slices.ContainsFunc(s.sinks, func(k *sink) bool { return k.table.Name == t.Name }) {
		return nil // another statement writes it, too
	}
	k := &sink{table: t, mode: mode, schema: schema}
	for i := range gs.Sinks {
		if gs.Sinks[i].Table == t.Name {
			k.guarantee = gs.Sinks[i].Guarantee
		}
	}
	switch c := t.Connector(); c {
	case "kafka", "upsert-kafka":
		topic, ok := t.Options.Get("topic")
		if !ok || strings.Contains(topic, ";") {
			return diag.New(diag.Unsupported, t.Options.Pos("topic"), "table %s writes topics that its rows name, and such topics have no shadows", t.Name).
				WithHint("name one topic for the check")
		}
		k.place = &topicPlace{r: r, t: t, topic: topic, mode: mode.Changelog}
	case "jdbc", "postgres":
		k.place = &tablePlace{r: r, k: k, n: len(s.sinks) + 1}
	case "filesystem":
		k.place = &dirPlace{r: r, t: t, mode: mode.Changelog}
	case "print", "blackhole":
		note := fmt.Sprintf("table %s: what connector '%s' takes cannot be read back", t.Name, c)
		if !slices.Contains(s.others, note) {
			s.others = append(s.others, note)
		}
		return nil
	default:
		return diag.New(diag.Unsupported, t.Options.Pos("connector"), "table %s: connector '%s' has no shadows", t.Name, c).
			WithHint("write to kafka, upsert-kafka, postgres, jdbc or filesystem for the check")
	}
	s.sinks = append(s.sinks, k)
	return nil
}

// suffix stands before the run's id in the names of shadows and jobs.
const suffix = "__chaos_"

// script is the jobs' script for one run, proven to write nothing else.
func (r *runner) script(run string) ([]step, error) {
	steps, err := r.rewritten(run)
	if err != nil {
		return nil, err
	}
	return steps, r.fence(steps, run)
}

// rewritten is the jobs' script for one run: sources pinned, sinks shadowed.
func (r *runner) rewritten(run string) ([]step, error) {
	edits := map[string][]edit{}
	for _, x := range r.job.sources {
		if x.edits != nil {
			edits[x.table.Name] = x.edits
		}
	}
	for _, k := range r.job.sinks {
		edits[k.table.Name] = k.place.edits(run)
	}
	if r.through {
		for name, more := range r.net.edits {
			edits[name] = append(slices.Clone(edits[name]), more...)
		}
	}
	return rewrite(r.o.Script, edits, r.job.names)
}

// fence fails unless every table that the rewritten jobs write is a shadow of this run, and every name under which they hold
// transactions is theirs: hints, views or a definition of a table further down could lead past the changed options.
func (r *runner) fence(steps []step, run string) error {
	plans, err := streamsql.PlanScript(textOf(steps), r.settings(1), r.o.Embedded)
	if err != nil {
		return fmt.Errorf("the rewritten script cannot be planned: %w", err)
	}
	if len(plans) != len(r.job.plans) {
		return fmt.Errorf("the rewritten script has %d jobs instead of %d", len(plans), len(r.job.plans))
	}
	outside := func(t *catalog.Table, key string) error {
		v, _ := t.Options.Get(key)
		return diag.New(diag.Unsupported, t.Options.Pos(key), "table %s: option '%s' = '%s' does not lead to the shadow of this run", t.Name, key, catalog.ShowOption(key, v)).
			WithDetail("nothing was written").WithHint("set the option in CREATE TABLE, not in a hint, and define the table once")
	}
	for _, p := range plans {
		if !strings.HasSuffix(p.Name, suffix+r.o.ID) {
			return fmt.Errorf("job %q is not called as a job of this run", p.Name)
		}
		for _, n := range p.Graph.Nodes {
			switch {
			case n.Sink != nil:
				t := n.Sink.Spec.Table
				if c := t.Connector(); c == "print" || c == "blackhole" {
					continue
				}
				i := slices.IndexFunc(r.job.sinks, func(k *sink) bool { return k.table.Name == t.Name })
				if i < 0 {
					return outside(t, "connector")
				}
				for _, e := range r.job.sinks[i].place.edits(run) {
					if v, _ := t.Options.Get(e.key); v != e.value {
						return outside(t, e.key)
					}
				}
			case n.Source != nil && n.Source.Spec.Table != nil:
				t := n.Source.Spec.Table
				i := slices.IndexFunc(r.job.sources, func(x *source) bool { return x.table.Name == t.Name })
				if i < 0 {
					return outside(t, "connector")
				}
				for _, e := range r.job.sources[i].edits {
					if v, _ := t.Options.Get(e.key); v != e.value {
						return outside(t, e.key)
					}
				}
			}
		}
		if !p.Bounded {
			return &inconclusive{"job " + p.Name + " would not end: a table it reads has no end that the check can set", "read kafka, filesystem, datagen or nexmark"}
		}
	}
	return nil
}

// settings are those of the jobs of a run.
func (r *runner) settings(parallelism int) map[string]string {
	out := map[string]string{}
	for k, v := range r.o.Settings {
		if !isOurs(k) {
			out[k] = v
		}
	}
	out["parallelism.default"] = fmt.Sprint(parallelism)
	out["execution.checkpointing.interval"] = fmt.Sprintf("%d ms", interval.Milliseconds())
	out["execution.checkpointing.tolerable-failed-checkpoints"] = "3"
	out["restart-strategy.type"] = "fixed-delay"
	out["restart-strategy.fixed-delay.attempts"] = "20"
	out["restart-strategy.fixed-delay.delay"] = "200 ms"
	return out
}
