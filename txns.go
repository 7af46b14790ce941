package streamsql

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/planner"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
)

// TxnOptions say where to look for transactions that jobs left.
type TxnOptions struct {
	// Scripts are the jobs' SQL texts: the clusters and databases of the tables that they write are looked at.
	Scripts []string
	// Tables name further clusters and databases; only their connection options count.
	Tables []*catalog.Table
	// JobDirs are the directories of jobs (<state directory>/jobs/<id>): without that of its job nothing is proven about a
	// transaction.
	JobDirs  []string
	Embedded string // address of an embedded broker, "" = none
	Settings map[string]string
	Log      *slog.Logger
}

// Txns looks after transactions that jobs left open or prepared in clusters and databases, and acts on them where that is
// proven to be safe.
type Txns struct {
	conns    []connectors.Connector
	systems  []txnSystem
	jobs     []*txnJob
	prefixes []string
	log      *slog.Logger
	held     []io.Closer
}

// txnSystem is a system and the sinks of the scripts that write to it.
type txnSystem struct {
	connectors.TxnSystem
	sinks map[txnSink]bool
}

type txnSink struct {
	job  string // id
	sink checkpoint.SinkID
}

// OpenTxns plans the scripts and reads the directories. It contacts nothing yet.
func OpenTxns(o TxnOptions) (*Txns, error) {
	x := &Txns{conns: DefaultConnectors(io.Discard), log: o.Log}
	if x.log == nil {
		x.log = slog.New(slog.DiscardHandler)
	}
	byTable := map[string]int{} // system by connection
	names := map[string][]string{}
	prefixes := map[string][]string{}
	for _, text := range o.Scripts {
		plans, err := planScript(text, o.Settings, o.Embedded)
		if err != nil {
			return nil, errors.Join(err, x.Close())
		}
		for _, p := range plans {
			id := jobID(p.Name)
			names[id] = append(names[id], p.Name)
			for _, n := range p.Graph.Nodes {
				if n.Sink == nil || n.Sink.Connector.Transactions == nil {
					continue
				}
				t := n.Sink.Spec.Table
				if err := x.add(t, o.Embedded, byTable, txnSink{id, n.Sink.Spec.ID}); err != nil {
					return nil, errors.Join(err, x.Close())
				}
				if p, ok := t.Options.Get("sink.transactional-id-prefix"); ok {
					prefixes[id] = append(prefixes[id], p)
					x.prefixes = append(x.prefixes, p)
				}
			}
		}
	}
	for _, t := range o.Tables {
		if err := x.add(t, o.Embedded, byTable, txnSink{}); err != nil {
			return nil, errors.Join(err, x.Close())
		}
	}
	for _, dir := range o.JobDirs {
		j, err := readTxnJob(dir)
		if err != nil {
			return nil, errors.Join(err, x.Close())
		}
		j.owner.Names, j.owner.Prefixes = names[j.owner.JobID], prefixes[j.owner.JobID]
		x.jobs = append(x.jobs, j)
	}
	return x, nil
}

// add opens the system of a table, unless it is open.
func (x *Txns) add(t *catalog.Table, embedded string, byTable map[string]int, sink txnSink) error {
	i := slices.IndexFunc(x.conns, func(c connectors.Connector) bool { return c.Name == t.Connector() })
	if i < 0 || x.conns[i].Transactions == nil {
		return diag.New(diag.Config, diag.Pos{}, "connector %q keeps no transactions", t.Connector())
	}
	sys, err := x.conns[i].Transactions(t, embedded, x.log)
	if err != nil {
		return err
	}
	at, ok := byTable[sys.Name()]
	if ok {
		_ = sys.Close() // nothing was opened yet
	} else {
		at = len(x.systems)
		byTable[sys.Name()] = at
		x.systems = append(x.systems, txnSystem{sys, map[txnSink]bool{}})
	}
	x.systems[at].sinks[sink] = true
	return nil
}

// PlanScript plans the INSERTs and statement sets of a script, in order. Definitions and settings take effect in memory, nothing is
// contacted. embedded is the address of an embedded broker, "" = none.
func PlanScript(text string, settings map[string]string, embedded string) ([]*planner.Plan, error) {
	return planScript(text, settings, embedded)
}

// planScript plans the INSERTs and statement sets of a script; definitions and settings take effect in memory.
func planScript(text string, settings map[string]string, embedded string) ([]*planner.Plan, error) {
	e, err := Open("", &Options{Settings: settings, EmbeddedAddr: embedded})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	var out []*planner.Plan
	for s := sql.NewScript(text); ; {
		st, err := s.Next()
		if st == nil || err != nil {
			return out, suggestTable(err)
		}
		switch x := st.Stmt.(type) {
		case *sql.Insert, *sql.StatementSet:
			if set, ok := x.(*sql.StatementSet); ok && len(set.Inserts) == 0 {
				continue
			}
			plan, err := e.planner.Plan(st.Stmt, e.conf, planner.Options{Embedded: e.embedded})
			if err == nil && embedded == "" {
				err = haveServers(plan)
			}
			if err != nil {
				return nil, suggestTable(diag.At(err, st.Pos))
			}
			out = append(out, plan)
		case *sql.QueryStmt, *sql.StopJob, *sql.Explain, *sql.Show, *sql.Describe:
		default:
			if _, err := e.execute(context.Background(), st); err != nil {
				return nil, suggestTable(diag.At(err, st.Pos))
			}
		}
	}
}

// readTxnJob reads a job's directory without owning it.
func readTxnJob(dir string) (*txnJob, error) {
	j := &txnJob{dir: dir, owner: connectors.TxnOwner{JobID: filepath.Base(dir)}}
	return j, j.read()
}

// read reads the directory again. What a running job changes meanwhile makes no difference: its lock is looked at last.
func (j *txnJob) read() error {
	all, err := checkpoint.ReadCheckpoints(vfs.Default, j.dir)
	if err != nil {
		return err
	}
	if j.confirmed, err = checkpoint.ReadConfirmed(vfs.Default, j.dir); err != nil {
		return err
	}
	lineages, err := checkpoint.ReadLineages(vfs.Default, j.dir)
	if err != nil {
		return err
	}
	j.newest, j.older, j.owner.Listed = nil, nil, nil
	if len(all) > 0 {
		j.newest, j.older = all[0], all[1:]
		j.owner.Listed = all[0].Pending
	}
	for _, c := range all {
		if !slices.Contains(lineages, c.Lineage) {
			lineages = append(lineages, c.Lineage)
		}
	}
	j.owner.Lineages = lineages
	if !j.held {
		j.pid, err = checkpoint.Locked(j.dir)
	}
	return err
}

// List is what the systems hold of jobs, and what becomes of it. What a checkpoint lists and is not open any more is
// there too, when a script says where to look for it.
func (x *Txns) List(ctx context.Context) ([]TxnReport, error) {
	var out []TxnReport
	for _, j := range x.jobs {
		if err := j.read(); err != nil {
			return nil, err
		}
	}
	for _, sys := range x.systems {
		open, err := sys.List(ctx, x.prefixes)
		if err != nil {
			return nil, err
		}
		seen := map[string]bool{}
		for _, t := range open {
			seen[t.Identity] = true
			out = append(out, judgeTxn(t, sys, x.jobs))
		}
		for _, j := range x.jobs {
			gone, err := j.gone(ctx, sys, seen)
			if err != nil {
				return nil, err
			}
			out = append(out, gone...)
		}
	}
	return out, nil
}

// gone are the job's pending transactions in sys that are not among those it holds open.
func (j *txnJob) gone(ctx context.Context, sys txnSystem, open map[string]bool) ([]TxnReport, error) {
	if j.pid != 0 {
		return nil, nil // it commits them now
	}
	var out []TxnReport
	pending := j.pending()
	for i := range pending {
		c := &pending[i]
		id, ok := sys.Identity(c)
		if !ok || open[id] || !sys.sinks[txnSink{j.owner.JobID, c.Sink}] {
			continue
		}
		o, why, err := sys.Outcome(ctx, c)
		if err != nil {
			return nil, err
		}
		out = append(out, judgeGone(c, j, sys.TxnSystem, o, why))
	}
	return out, nil
}

// hold keeps the job of r from being started until Close, and judges r again: what was read before that could have
// changed.
func (x *Txns) hold(r *TxnReport) error {
	if r.job == nil {
		return nil
	}
	if err := x.holdJob(r.job); err != nil {
		return err
	}
	if r.Identity != "" { // one that is gone is not acted on
		*r = judgeTxn(r.Txn, r.system, []*txnJob{r.job})
	}
	return nil
}

// holdJob keeps j from being started until Close.
func (x *Txns) holdJob(j *txnJob) error {
	if j.held {
		return nil
	}
	lock, err := checkpoint.Hold(vfs.Default, j.dir)
	if err != nil {
		return err
	}
	x.held = append(x.held, lock)
	j.held, j.pid = true, 0
	return j.read()
}

// giveUp puts on record, before it is done, that a transaction is aborted by force: with the job at hand, nil when there is none.
func (x *Txns) giveUp(r *TxnReport) error {
	i := slices.IndexFunc(x.jobs, func(j *txnJob) bool { return j.dir == r.StateDir })
	if r.StateDir == "" || i < 0 {
		return nil
	}
	if err := x.holdJob(x.jobs[i]); err != nil {
		return err
	}
	return checkpoint.NoteByHand(vfs.Default, r.StateDir, checkpoint.Degradation{At: time.Now().UTC(), Lineage: cmp.Or(r.Lineage, r.Txn.Lineage),
		Lost: true, Hand: true, From: r.Listed, To: r.Listed, By: "streamsql txn abort --force", Why: fmt.Sprintf("transaction %s, which was %s: %s", r.ID, r.Verdict, r.Why)})
}

// deadAlive is how long a process that was killed can look alive to its system.
const deadAlive = 15 * time.Second

// Settled is List once no process that was killed looks alive any more: it waits for those whose state directory nobody
// holds. waiting is called once when there is something to wait for.
func (x *Txns) Settled(ctx context.Context, waiting func(TxnReport)) ([]TxnReport, error) {
	for deadline := time.Now().Add(deadAlive); ; {
		out, err := x.List(ctx)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(out, func(r TxnReport) bool { return r.Live != "" && r.job != nil && r.job.pid == 0 })
		if i < 0 || time.Now().After(deadline) {
			return out, nil
		}
		if waiting != nil {
			waiting(out[i])
			waiting = nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// decidable refuses to act on a transaction by a copy of checkpoints that count elsewhere: another machine may have listed it,
// or gone on without the checkpoint that lists it here.
func (r *TxnReport) decidable() error {
	if r.job == nil {
		return nil
	}
	where, err := checkpoint.ReadStorage(vfs.Default, r.job.dir)
	if err != nil || where == "" {
		return err
	}
	return diag.New(diag.Conflict, diag.Pos{}, "what becomes of transaction %s is decided by the checkpoints in %s", r.ID, where).
		WithDetail("%s holds a copy, which may be older", r.job.dir).
		WithHint("run the job with its 'execution.checkpointing.dir': it commits what its newest checkpoint lists and aborts the rest")
}

// Abort ends a transaction that is an orphan; with force also one that is listed or of which nothing is known, never one
// in use. While it does, the job cannot be started. What is forced is first put on the record of the job in r.StateDir, if there is one.
func (x *Txns) Abort(ctx context.Context, r TxnReport, force bool) error {
	if err := x.hold(&r); err != nil {
		return err
	}
	if err := r.decidable(); err != nil && !force {
		return err
	}
	switch {
	case r.Verdict == TxnOrphan:
	case force && (r.Verdict == TxnListed || r.Verdict == TxnUnknown):
		x.log.Warn("transaction is aborted by force", "transaction", r.ID, "verdict", string(r.Verdict), "why", r.Why)
		if err := x.giveUp(&r); err != nil {
			return err
		}
	default:
		return refusedTxn("aborted", r)
	}
	return r.system.Abort(ctx, &r.Txn)
}

// Commit commits a transaction that the newest checkpoint of its job lists, after those of earlier checkpoints: all of
// the same sink that come before it must have been committed. While it does, the job cannot be started.
func (x *Txns) Commit(ctx context.Context, r TxnReport) error {
	if err := x.hold(&r); err != nil {
		return err
	}
	if err := r.decidable(); err != nil {
		return err
	}
	if r.Verdict != TxnListed {
		return refusedTxn("committed", r)
	}
	pending := r.job.pending()
	for i := range pending {
		c := &pending[i]
		if c.Sink != r.committable.Sink || c.Checkpoint >= r.committable.Checkpoint {
			continue
		}
		if _, ok := r.system.Identity(c); !ok {
			continue
		}
		if o, _, err := r.system.Outcome(ctx, c); err != nil || o == checkpoint.OutcomeOpen {
			return errors.Join(err, diag.New(diag.Conflict, diag.Pos{}, "transaction %s is of checkpoint %d, and one of checkpoint %d is not committed yet", r.ID, r.committable.Checkpoint, c.Checkpoint).
				WithHint("commit them in the order of their checkpoints: --listed does"))
		}
	}
	return r.system.Commit(ctx, r.committable)
}

func refusedTxn(what string, r TxnReport) error {
	return diag.New(diag.Conflict, diag.Pos{}, "transaction %s is not %s: %s", r.ID, what, r.Verdict).WithDetail("%s", r.Why).WithHint("%s", r.Do)
}

// Close ends the sessions and lets the jobs be started again.
func (x *Txns) Close() error {
	var errs []error
	for _, s := range x.systems {
		errs = append(errs, s.Close())
	}
	for _, l := range x.held {
		errs = append(errs, l.Close())
	}
	x.systems, x.held = nil, nil
	return errors.Join(errs...)
}
