package streamsql

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/connectors/kafka"
	"github.com/streamsql/streamsql/connectors/postgres"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/planner"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// sinkSide is a sink as a reader of committed rows sees it.
type sinkSide struct {
	r      *reconciler
	t      *catalog.Table
	id     checkpoint.SinkID
	l      *layout
	ext    []kafka.Extent // of a Kafka table, at the checkpoint
	first  *tally         // of a PostgreSQL table: the rows at the checkpoint; taken once
	marked int64
	mode   connectors.SinkMode
}

// attempts bounds how often a checkpoint of a running job is tried for, until the sinks can be looked at before the next.
const attempts = 50

// openSinks looks at every sink at one moment at which the newest checkpoint is r.c and committed.
func (r *reconciler) openSinks(ctx context.Context, out []Reconciled, plans []*planner.Plan) ([]*sinkSide, error) {
	for attempt := 0; ; attempt++ {
		sides := make([]*sinkSide, len(r.nodes))
		var err error
		for i, n := range r.nodes {
			out[i].Checkpoint, out[i].Reason = r.c.ID, ""
			sides[i], err = r.openSink(ctx, n, plans)
			var c *cannot
			if errors.As(err, &c) {
				out[i].Reason, err = c.why, nil
			}
			if err != nil {
				break
			}
		}
		if err == nil {
			err = r.still()
		}
		if !errors.Is(err, errMoved) {
			return sides, err
		}
		if attempt == attempts {
			return nil, cannotf("the job takes checkpoints faster than its sinks can be looked at: stop it first")
		}
		if err := r.checkpoint(); err != nil {
			return nil, err
		}
	}
}

func (r *reconciler) openSink(ctx context.Context, n *exec.Node, plans []*planner.Plan) (*sinkSide, error) {
	spec := &n.Sink.Spec
	s := &sinkSide{r: r, t: spec.Table, id: spec.ID, marked: -1, mode: spec.Mode}
	if why := otherWriter(n, plans); why != "" {
		return nil, cannotf("the sink has other writers: %s", why)
	}
	var key []string
	if spec.Mode.Changelog == types.Upsert {
		key = spec.Mode.Key
	}
	var err error
	if s.l, err = newLayout(spec.Schema, key, r.o.By, r.plan.Graph.Session); err != nil {
		return nil, err
	}
	if r.live && spec.Mode.Delivery != connectors.TwoPhaseCommit {
		return nil, cannotf("the job runs, and the sink (%s) shows rows before their checkpoint: stop it first", spec.Mode.Delivery)
	}
	switch c := s.t.Connector(); c {
	case "kafka", "upsert-kafka":
		if err := s.settle(ctx, n.Sink.Connector); err != nil {
			return nil, err
		}
		s.ext, err = kafka.Extents(ctx, s.t, r.o.Embedded, r.o.Log)
	case "jdbc", "postgres":
		s.first = newTally(s.l, nil)
		err = s.scan(ctx, s.first)
	case "filesystem":
		if r.live {
			return nil, cannotf("the job runs, and a directory cannot be read as it was at a checkpoint: stop it first")
		}
	default:
		return nil, cannotf("what connector '%s' wrote cannot be read", c)
	}
	return s, err
}

// otherWriter names a second statement of the script that writes what n writes.
func otherWriter(n *exec.Node, plans []*planner.Plan) string {
	place := func(t *catalog.Table) string {
		var p []string
		for _, k := range []string{"topic", "properties.bootstrap.servers", "url", "table-name", "path"} {
			v, _ := t.Options.Get(k)
			p = append(p, v)
		}
		return strings.Join(p, "\x00")
	}
	for _, p := range plans {
		for _, m := range p.Graph.Nodes {
			// The graphs were planned once: the same node is the same pointer.
			if m.Sink != nil && m != n && place(m.Sink.Spec.Table) == place(n.Sink.Spec.Table) {
				return "job " + p.Name + " writes it too, through table " + m.Sink.Spec.Table.Name
			}
		}
	}
	return ""
}

// settle waits until what is committed can be seen: Kafka writes the markers after it has answered.
func (s *sinkSide) settle(ctx context.Context, c *connectors.Connector) error {
	sys, err := c.Transactions(s.t, s.r.o.Embedded, s.r.o.Log)
	if err != nil {
		return err
	}
	defer sys.Close()
	var prefixes []string
	if p, ok := s.t.Options.Get("sink.transactional-id-prefix"); ok {
		prefixes = append(prefixes, p)
	}
	for {
		list, err := sys.List(ctx, prefixes)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(list, func(t connectors.Txn) bool { return t.Final }) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// scan reads a PostgreSQL table, if the newest checkpoint is still the same.
func (s *sinkSide) scan(ctx context.Context, into *tally) (err error) {
	s.marked, err = postgres.Scan(ctx, postgres.ScanSpec{
		Table: s.t, Schema: s.l.schema, Job: jobID(s.r.plan.Name), Sink: string(s.id), Log: s.r.o.Log, Taken: s.r.still,
		Each: func(b *batch.Batch) error { into.takeBatch(b); return nil },
	})
	if s.mode.Changelog == types.Upsert {
		s.marked = -1 // the job's commits count changes, and a key can have many
	}
	return err
}

// read adds up the sink's rows at the checkpoint.
func (s *sinkSide) read(ctx context.Context, into *tally) error {
	if s.first != nil {
		return s.scan(ctx, into)
	}
	e, _, err := s.r.script(ctx, "")
	if err != nil {
		return err
	}
	defer e.Close()
	var cols []string
	for _, c := range s.l.schema.Columns {
		cols = append(cols, "`"+strings.ReplaceAll(c.Name, "`", "``")+"`")
	}
	st, err := sql.NewScript("SELECT " + strings.Join(cols, ", ") + " FROM `" + strings.ReplaceAll(s.t.Name, "`", "``") + "`").Next()
	if err != nil {
		return err
	}
	c := newCollector()
	conf := e.conf.Clone()
	plan, err := e.planner.Plan(st.Stmt, conf, planner.Options{Collect: c.connector(), Embedded: e.embedded})
	if err != nil {
		return cannotf("the sink cannot be read as a table: %v", err)
	}
	for _, n := range plan.Graph.Nodes {
		if n.Source != nil && s.ext != nil {
			n.Source.Spec.Range = map[checkpoint.Split]connectors.SplitRange{}
			for _, x := range s.ext {
				n.Source.Spec.Range[x.Split] = connectors.SplitRange{From: x.From, To: x.To}
			}
		}
	}
	j, err := e.start(plan, conf)
	if err != nil {
		return err
	}
	for change, err := range c.rows(j, plan.Schema, e.Session(), -1) {
		if err != nil {
			return err
		}
		into.take(change.Kind, change.Row.datums)
	}
	return ctx.Err()
}

// judge compares the figures, and names the segment where they diverge. want are the groups whose rows are worth a look.
func (r *reconciler) judge(ctx context.Context, res *Reconciled, s *sinkSide, expected, have *tally, late int64) (want map[string]bool) {
	res.By, res.Expected, res.SinkRows, res.Marked = s.l.String(), expected.rows(), have.rows(), s.marked
	diffs := r.settled(res, s.l, differing(expected, have), expected, have)
	all := maps.Clone(expected.groups)
	maps.Copy(all, have.groups)
	res.Groups, res.DifferingGroups = len(all), len(diffs)
	if len(diffs) == 0 {
		return nil
	}
	if late > 0 {
		res.Reason = fmt.Sprintf("%d rows came too late for their windows when the query ran again, and %d of %d groups differ: which rows are late depends on the order in which partitions are read",
			late, len(diffs), len(all))
		return nil
	}
	want = map[string]bool{}
	for _, g := range diffs[:min(len(diffs), r.o.Limit)] {
		want[g] = true
		res.Diffs = append(res.Diffs, ReconcileDiff{Group: g, Expected: s.l.show(expected.groups[g]), Sink: s.l.show(have.groups[g])})
	}
	res.Segment = s.segment(ctx, res)
	if s.mode.Delivery != connectors.TwoPhaseCommit && !r.c.Final {
		res.Notes = append(res.Notes, "the sink ("+s.mode.Delivery.String()+") shows rows before their checkpoint: if the job was killed, run it and stop it before comparing")
	}
	return want
}

// settled leaves out windows at the edge: the job's watermark may have been behind its input when the checkpoint was taken,
// so that the last windows had not fired yet.
func (r *reconciler) settled(res *Reconciled, l *layout, diffs []string, expected, have *tally) []string {
	timed := slices.ContainsFunc(r.plan.Graph.Nodes, func(n *exec.Node) bool { return n.Source != nil && n.Source.Watermark != nil })
	if r.c.Final || !timed || l.by < 0 || l.hours {
		return diffs
	}
	last := ""
	for g := range have.groups {
		last = max(last, g)
	}
	out := slices.DeleteFunc(slices.Clone(diffs), func(g string) bool { return have.groups[g] == nil && g > last })
	if n := len(diffs) - len(out); n > 0 {
		res.Notes = append(res.Notes, fmt.Sprintf("%d groups after the sink's last one were not compared: at checkpoint %d their windows need not have fired", n, r.c.ID))
	}
	return out
}

// segment says between which two points the rows diverge, from what can be counted in between.
func (s *sinkSide) segment(ctx context.Context, res *Reconciled) string {
	for _, x := range s.ext {
		if x.First > 0 {
			return fmt.Sprintf("in the sink: %s begins at offset %d, so retention or somebody deleted the records before it", x.Split, x.First)
		}
	}
	switch {
	case s.ext != nil && s.mode.Delivery == connectors.TwoPhaseCommit:
		uctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		n, err := kafka.Untransacted(uctx, s.t, s.r.o.Embedded, s.ext)
		switch {
		case err != nil:
			return "not known: the sink's records cannot be looked at one by one: " + err.Error()
		case n > 0:
			return fmt.Sprintf("in the sink: %d of its records were not written in a transaction, so not by this job", n)
		}
		return "before the sink's commit: all records there were written in transactions and none is missing at the beginning, so another run or job wrote into it too, the input has changed since, or the query gave other rows"
	case res.Marked == res.Expected:
		return fmt.Sprintf("in the sink: the job's commits say they wrote %d rows, as many as expected, so rows were changed there since", res.Marked)
	case res.Marked >= 0:
		return fmt.Sprintf("before the sink's commit: the job's commits say they wrote %d rows where %d are expected, so the input has changed since or the query gave other rows", res.Marked, res.Expected)
	}
	return "between the query and the sink: nothing in between is counted for this kind of sink"
}

// rows fills in the rows that differ, at most limit in all.
func (r *Reconciled) rows(expected, have *tally, limit int) {
	for i := range r.Diffs {
		d := &r.Diffs[i]
		x, y := expected.kept[d.Group], have.kept[d.Group]
		texts := maps.Clone(x)
		if texts == nil {
			texts = map[string]int64{}
		}
		maps.Copy(texts, y)
		for _, t := range slices.Sorted(maps.Keys(texts)) {
			if x[t] != y[t] && limit > 0 {
				d.Rows = append(d.Rows, ReconcileRow{t, x[t], y[t]})
				limit--
			}
		}
	}
}
