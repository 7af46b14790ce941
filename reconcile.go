package streamsql

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors/kafka"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/planner"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
)

// ReconcileOptions say what Reconcile compares.
type ReconcileOptions struct {
	Script   string   // the jobs' SQL
	StateDir string   // their state directory
	Sinks    []string // names of tables; nil = all that the script writes
	By       string   // column that makes the groups; "" = see Reconciled.By
	Limit    int      // differing groups and rows shown; 0 = 10
	Embedded string   // address of an embedded broker, "" = none
	Settings map[string]string
	Log      *slog.Logger
}

// Reconciled is a sink compared with its sources.
type Reconciled struct {
	Sink, Job, JobID string
	Checkpoint       checkpoint.ID // whose positions were compared; 0 = none
	// Reason says why nothing can be said; "" = the figures hold.
	Reason string
	// By is what the groups are: a column, hours of a column, or a hash of the key or row.
	By string
	// SourceRows came out of the sources, Expected are the rows the query gives, SinkRows those that a reader sees.
	SourceRows, Expected, SinkRows int64
	// Marked is how many rows the job's commits say they wrote (PostgreSQL), -1 = unknown.
	Marked int64
	Groups int // compared
	// Differing groups and rows, the first ones, in order.
	DifferingGroups int
	Diffs           []ReconcileDiff
	// Segment is between which two points the rows diverge, and why that is concluded.
	Segment string
	Notes   []string
}

// Equal reports that the sink holds what its sources and query give.
func (r *Reconciled) Equal() bool { return r.Reason == "" && r.DifferingGroups == 0 }

// ReconcileDiff is a group in which the sides differ.
type ReconcileDiff struct {
	Group          string
	Expected, Sink string // counts and sums
	Rows           []ReconcileRow
}

// ReconcileRow is a row that one side has more often.
type ReconcileRow struct {
	Row            string
	Expected, Sink int64 // how often
}

// cannot is why a sink cannot be compared.
type cannot struct{ why string }

func (c *cannot) Error() string { return c.why }

func cannotf(format string, args ...any) error { return &cannot{fmt.Sprintf(format, args...)} }

// Reconcile compares each sink of a script with its sources: it runs the query again, over what the sources had read at the
// newest committed checkpoint, and compares with what a reader of committed rows sees in the sink. It changes nothing.
// An error is one of the outside or of the script; what cannot be compared is a Reconciled with a Reason.
func Reconcile(ctx context.Context, o ReconcileOptions) ([]Reconciled, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Limit <= 0 {
		o.Limit = 10
	}
	plans, err := planScript(o.Script, o.Settings, o.Embedded)
	if err != nil {
		return nil, err
	}
	var out []Reconciled
	for i, p := range plans {
		rs, err := reconcileJob(ctx, &o, plans, i)
		var c *cannot
		if errors.As(err, &c) {
			rs = nil
			for _, s := range p.Sinks {
				if o.wants(s.Table) {
					rs = append(rs, Reconciled{Sink: s.Table, Job: p.Name, JobID: jobID(p.Name), Reason: c.why, Marked: -1})
				}
			}
		} else if err != nil {
			return nil, err
		}
		out = append(out, rs...)
	}
	if len(out) == 0 {
		return nil, diag.New(diag.Config, diag.Pos{}, "there is nothing to compare").WithHint("give a file with INSERT statements, and --sink the name of a table that one of them writes")
	}
	return out, nil
}

func (o *ReconcileOptions) wants(sink string) bool {
	return len(o.Sinks) == 0 || slices.Contains(o.Sinks, sink)
}

// reconciler compares the sinks of one job.
type reconciler struct {
	o     *ReconcileOptions
	nth   int // of the script's jobs
	dir   string
	c     *checkpoint.Checkpoint
	live  bool // a process runs the job
	plan  *planner.Plan
	nodes []*exec.Node // its sinks
}

func reconcileJob(ctx context.Context, o *ReconcileOptions, plans []*planner.Plan, nth int) ([]Reconciled, error) {
	r := &reconciler{o: o, nth: nth, plan: plans[nth], dir: filepath.Join(o.StateDir, "jobs", jobID(plans[nth].Name))}
	for _, n := range r.plan.Graph.Nodes {
		if n.Sink != nil && o.wants(n.Sink.Spec.Table.Name) {
			r.nodes = append(r.nodes, n)
		}
	}
	if len(r.nodes) == 0 {
		return nil, nil
	}
	if err := r.checkpoint(); err != nil {
		return nil, err
	}
	if err := r.repeats(ctx); err != nil {
		return nil, err
	}
	var out []Reconciled
	for _, n := range r.nodes {
		out = append(out, Reconciled{Sink: n.Sink.Spec.Table.Name, Job: r.plan.Name, JobID: jobID(r.plan.Name), Marked: -1})
	}
	sides, err := r.openSinks(ctx, out, plans)
	if err != nil {
		return nil, err
	}
	return out, r.compare(ctx, out, sides)
}

// checkpoint finds the newest checkpoint, whose output must be committed.
func (r *reconciler) checkpoint() error {
	if _, err := os.Stat(r.dir); err != nil {
		return cannotf("job %q has left nothing in %s", r.plan.Name, r.o.StateDir)
	}
	where, err := checkpoint.ReadStorage(vfs.Default, r.dir)
	if err != nil {
		return err
	}
	if where != "" && r.o.Log != nil {
		r.o.Log.Warn("checkpoints are kept elsewhere; what is compared is the copy of this machine", "storage", where, "directory", r.dir)
	}
	for attempt := 0; ; attempt++ {
		cs, err := checkpoint.ReadCheckpoints(vfs.Default, r.dir)
		if err != nil {
			return err
		}
		confirmed, err := checkpoint.ReadConfirmed(vfs.Default, r.dir)
		if err != nil {
			return err
		}
		pid, err := checkpoint.Locked(r.dir)
		if err != nil {
			return err
		}
		r.live = pid != 0
		switch {
		case len(cs) == 0:
			return cannotf("job %q has no checkpoint yet", r.plan.Name)
		case cs[0].ID <= confirmed || len(cs[0].Pending) == 0:
			r.c = cs[0]
			return nil
		case !r.live || attempt == 100:
			return cannotf("the output of checkpoint %d is not known to be committed: run the job again, or streamsql txn commit", cs[0].ID)
		}
		time.Sleep(20 * time.Millisecond) // it is being committed
	}
}

// still fails when the job has published another checkpoint since.
func (r *reconciler) still() error {
	cs, err := checkpoint.ReadCheckpoints(vfs.Default, r.dir)
	if err == nil && (len(cs) == 0 || cs[0].ID != r.c.ID) {
		return errMoved
	}
	return err
}

var errMoved = errors.New("the job has taken another checkpoint")

// repeats finds what keeps the query from giving the same rows again, and input that is gone.
func (r *reconciler) repeats(ctx context.Context) error {
	for _, n := range r.plan.Graph.Nodes {
		if why := unrepeatable(n); why != "" {
			return cannotf("the query need not give the same rows twice: %s", why)
		}
		if n.Source == nil {
			continue
		}
		t := n.Source.Spec.Table
		if !n.Source.Connector.Ranges {
			if t.Connector() != "filesystem" && t.Connector() != "nexmark" && t.Connector() != "" {
				return cannotf("table %s: what connector '%s' gave cannot be read again", t.Name, t.Connector())
			}
			if !r.c.Final {
				return cannotf("table %s: connector '%s' cannot be read up to a position again; compare when the job has ended", t.Name, t.Connector())
			}
			continue
		}
		if err := r.whole(ctx, n.ID, t); err != nil {
			return err
		}
	}
	return nil
}

// whole fails when a topic does not hold any more what the job has read of it.
func (r *reconciler) whole(ctx context.Context, op checkpoint.OperatorID, t *catalog.Table) error {
	why, err := kafka.StartsAgain(t)
	if err != nil {
		return err
	}
	if why != "" {
		return cannotf("table %s: %s", t.Name, why)
	}
	ext, err := kafka.Extents(ctx, t, r.o.Embedded, r.o.Log)
	if err != nil {
		return err
	}
	rs := rangesOf(r.c)[op]
	for _, e := range ext {
		to, ok := rs[e.Split]
		if !ok {
			continue
		}
		end, err := kafka.Offset(to.To)
		if err != nil {
			return err
		}
		if e.First > 0 && e.First != end {
			return cannotf("table %s: retention deleted input: %s begins at offset %d by now", t.Name, e.Split, e.First)
		}
		if e.First > 0 {
			return cannotf("table %s: retention deleted all input of %s", t.Name, e.Split)
		}
		if e.End < end {
			return cannotf("table %s: %s ends at offset %d, before offset %d, which the job has read", t.Name, e.Split, e.End, end)
		}
	}
	return nil
}

// clocks are what reads the clock or chance in an operator's label.
var clocks = []string{"NOW()", "RAND(", "RAND_INTEGER(", "UUID()", "UNIX_TIMESTAMP()", "PROCTIME()", "LOCALTIMESTAMP", "LOCALTIME", "CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "CURRENT_ROW_TIMESTAMP"}

// Unrepeatable is why a job's query can give other rows for the same input; "" = it does not, as far as the plan shows.
func Unrepeatable(p *planner.Plan) string {
	for _, n := range p.Graph.Nodes {
		if why := unrepeatable(n); why != "" {
			return why
		}
	}
	return ""
}

// unrepeatable is why an operator can give other rows for the same input; "" = it does not.
func unrepeatable(n *exec.Node) string {
	if strings.HasPrefix(n.Name, "LookupJoin") {
		return "it looks rows up in a table that may have changed"
	}
	for _, c := range clocks {
		if strings.Contains(n.Name, c) {
			return strings.TrimRight(c, "()") + " in " + n.Name
		}
	}
	if n.Source != nil {
		for _, e := range n.Source.Rows {
			if text := e.String(); slices.ContainsFunc(clocks, func(c string) bool { return strings.Contains(text, c) }) {
				return "a computed column of table " + n.Source.Spec.Table.Name + " is " + text
			}
		}
	}
	return ""
}

// script opens an engine in dir and executes the script up to its nth job, whose statement it returns.
func (r *reconciler) script(ctx context.Context, dir string) (*Engine, sql.Stmt, error) {
	e, err := Open(dir, &Options{Settings: r.o.Settings, EmbeddedAddr: r.o.Embedded, Log: r.o.Log})
	if err != nil {
		return nil, nil, err
	}
	nth := 0
	for s := sql.NewScript(r.o.Script); ; {
		st, err := s.Next()
		if err != nil || st == nil {
			return nil, nil, errors.Join(err, e.Close())
		}
		switch x := st.Stmt.(type) {
		case *sql.Insert, *sql.StatementSet:
			if set, ok := x.(*sql.StatementSet); ok && len(set.Inserts) == 0 {
				continue
			}
			if nth == r.nth {
				return e, st.Stmt, nil
			}
			nth++
		case *sql.QueryStmt, *sql.StopJob, *sql.Explain, *sql.Show, *sql.Describe:
		default:
			if _, err := e.execute(ctx, st); err != nil {
				return nil, nil, errors.Join(err, e.Close())
			}
		}
	}
}

// compare runs the query once, reads the sinks, and where they differ does both again to find the rows.
func (r *reconciler) compare(ctx context.Context, out []Reconciled, sides []*sinkSide) error {
	want := make([]map[string]bool, len(sides))
	expected, in, late, err := r.expect(ctx, sides, want)
	if expected == nil || err != nil {
		return err
	}
	again := false
	for i, s := range sides {
		if s == nil {
			continue
		}
		have := s.first
		if have == nil {
			have = newTally(s.l, nil)
			if err := s.read(ctx, have); err != nil {
				return err
			}
		}
		out[i].SourceRows = in
		want[i] = r.judge(ctx, &out[i], s, expected[s.id], have, late)
		again = again || want[i] != nil
	}
	if !again {
		return nil
	}
	if expected, _, _, err = r.expect(ctx, sides, want); err != nil {
		return err
	}
	for i, s := range sides {
		if want[i] == nil {
			continue
		}
		have := newTally(s.l, want[i])
		err := s.read(ctx, have)
		if errors.Is(err, errMoved) {
			out[i].Notes = append(out[i].Notes, "the rows are not shown: the job has gone on since they were counted")
			continue
		}
		if err != nil {
			return err
		}
		out[i].rows(expected[s.id], have, r.o.Limit)
	}
	return nil
}

// expect runs the job's query into tallies, with its state in a temporary directory; nil when no sink is compared. in is
// how many rows its sources gave, late how many of them came too late for their windows.
func (r *reconciler) expect(ctx context.Context, sides []*sinkSide, want []map[string]bool) (sinks map[checkpoint.SinkID]*tally, in, late int64, err error) {
	for i, s := range sides {
		if s != nil {
			if sinks == nil {
				sinks = map[checkpoint.SinkID]*tally{}
			}
			sinks[s.id] = newTally(s.l, want[i])
		}
	}
	if sinks == nil {
		return nil, 0, 0, nil
	}
	dir, err := os.MkdirTemp("", "streamsql-reconcile-")
	if err != nil {
		return nil, 0, 0, err
	}
	defer os.RemoveAll(dir)
	e, stmt, err := r.script(ctx, dir)
	if err != nil {
		return nil, 0, 0, err
	}
	defer e.Close()
	if ttl := e.Setting("table.exec.state.ttl"); ttl != "" && !strings.HasPrefix(ttl, "0") {
		return nil, 0, 0, cannotf("the query need not give the same rows twice: state is forgotten by the clock ('table.exec.state.ttl' = '%s')", ttl)
	}
	conf := e.conf.Clone()
	// A second attempt would add rows up twice, and nobody goes on from a checkpoint of this run.
	for k, v := range map[string]string{"restart-strategy.type": "none", "execution.checkpointing.interval": "0 ms"} {
		if _, err := conf.Set(k, v, diag.Pos{}); err != nil {
			return nil, 0, 0, err
		}
	}
	plan, err := e.planner.Plan(stmt, conf, planner.Options{Embedded: e.embedded})
	if err != nil {
		return nil, 0, 0, err
	}
	in, late, err = recompute(ctx, e, plan, conf, r.c, sinks)
	return sinks, in, late, err
}
