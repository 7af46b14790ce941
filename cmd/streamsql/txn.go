package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/sql/diag"
)

// txnFlags are what the command txn takes beside the flags of all.
type txnFlags struct {
	*flags
	ids       list
	dirs      list
	servers   string
	url       string
	format    string
	orphans   bool
	listed    bool
	force     bool
	out, errs io.Writer
}

func txnCommand(args []string, out, errs io.Writer) int {
	f := &txnFlags{out: out, errs: errs, flags: newFlags("txn", "list|abort|commit [FILE…]", `Shows the transactions that jobs left open in Kafka or prepared in PostgreSQL, and ends them where that is proven to be
safe. FILE is a job's SQL: its tables say which clusters and databases to ask; --bootstrap-servers and --url name others.
The state directory says what must become of a transaction:
  listed     the newest checkpoint lists it: its rows must be committed (commit, or run the job again)
  orphan     no checkpoint lists it: its rows are produced again (abort, or run the job again)
  running    its job runs and ends it itself: nothing is done
  ending     its system has decided already;  committed, lost: listed, and no longer open
  unknown    nothing at hand proves anything: nothing is done without --force
A restart of the job does all this by itself; txn is for jobs that are not to be started again, and to see what would
happen. Exit codes: 0 done, 1 something was refused or failed, 2 the command is wrong.`, errs)}
	f.examples = `  streamsql txn list job.sql                                     state in .streamsql/job
  streamsql txn list --bootstrap-servers broker:9092 --state-dir /var/lib/job -o json
  streamsql txn abort job.sql --orphans                          all that are proven to be orphans
  streamsql txn commit job.sql --listed                          all that the newest checkpoint lists
  streamsql txn abort job.sql --id 'ssql:…:7:0:0' --force        whose state directory is gone for good
`
	f.settingFlags()
	f.set.Var(&f.dirs, "state-dir", "state `directory` of the job, or that of one job in it; may be repeated (default .streamsql/ and the name of each file without its extension)")
	f.set.StringVar(&f.servers, "bootstrap-servers", "", "`host:port,…` of a Kafka cluster to ask beside those of the files")
	f.set.StringVar(&f.url, "url", "", "`URL` of a PostgreSQL database to ask beside those of the files: postgres://user:password@host:port/database")
	f.set.StringVar(&f.format, "o", "text", "`format` of the list: text or json")
	f.set.Var(&f.ids, "id", "`id` of a transaction to abort or commit; may be repeated")
	f.set.BoolVar(&f.orphans, "orphans", false, "abort all that are proven to be orphans")
	f.set.BoolVar(&f.listed, "listed", false, "commit all that the newest checkpoint lists, in the order of checkpoints")
	f.set.BoolVar(&f.force, "force", false, "abort also what is listed (its rows are then lost or the job goes back) or unknown; with --id only")
	f.set.StringVar(&f.kafkaAddr, "embedded-kafka-addr", "", "`host:port` of an embedded broker that another streamsql process runs")
	f.set.StringVar(&f.logLevel, "log", "warn", "log `level` on stderr: debug, info, warn, error, off")
	pos, code, ok := f.parse(args, out)
	if !ok {
		return code
	}
	if err := f.wrong(pos); err != "" {
		fmt.Fprintf(errs, "streamsql txn: %s\n", err)
		return exitUsage
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	x, err := f.open(pos[1:])
	if err != nil {
		return fail(errs, err, source{})
	}
	defer x.Close()
	if pos[0] == "list" {
		rs, err := x.List(ctx)
		if err == nil {
			err = f.show(rs)
		}
		if err != nil {
			return fail(errs, err, source{})
		}
		return exitOK
	}
	return f.act(ctx, x, pos[0])
}

// wrong is what is wrong with the command line, with the remedy; "" = nothing.
func (f *txnFlags) wrong(pos []string) string {
	switch {
	case len(pos) == 0 || pos[0] != "list" && pos[0] != "abort" && pos[0] != "commit":
		return "what to do is missing or unknown\n  hint: streamsql txn list job.sql"
	case len(pos) == 1 && f.servers == "" && f.url == "":
		return fmt.Sprintf("which cluster or database is missing\n  hint: streamsql txn %s job.sql, or --bootstrap-servers or --url", pos[0])
	case f.format != "text" && f.format != "json":
		return fmt.Sprintf("flag -o: unknown format %q\n  hint: use text or json", f.format)
	case pos[0] == "list" && (len(f.ids) > 0 || f.orphans || f.listed || f.force):
		return "list takes no --id, --orphans, --listed or --force\n  hint: streamsql txn abort or commit"
	case pos[0] == "abort" && (f.listed || f.orphans == (len(f.ids) > 0)):
		return "abort needs either --orphans or --id\n  hint: streamsql txn list shows the ids and what is an orphan"
	case pos[0] == "commit" && (f.orphans || f.force || f.listed == (len(f.ids) > 0)):
		return "commit needs either --listed or --id, and cannot be forced\n  hint: streamsql txn list shows the ids and what is listed"
	case f.force && len(f.ids) == 0:
		return "--force goes with --id only\n  hint: name what is to be aborted although nothing proves that it may be"
	}
	return ""
}

// open finds the systems and the jobs' directories.
func (f *txnFlags) open(files []string) (*streamsql.Txns, error) {
	o := streamsql.TxnOptions{Settings: f.settings, Embedded: f.kafkaAddr}
	var err error
	if o.Log, err = f.logger(f.errs); err != nil {
		return nil, err
	}
	dirs := slices.Clone(f.dirs)
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, diag.New(diag.Config, diag.Pos{}, "cannot read %s", name).Wrap(err)
		}
		o.Scripts = append(o.Scripts, string(b))
		if len(f.dirs) == 0 {
			dirs = append(dirs, filepath.Join(".streamsql", strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))))
		}
	}
	for _, d := range dirs {
		jobs := jobDirs(d)
		if len(jobs) == 0 && filepath.Base(filepath.Dir(d)) == "jobs" {
			jobs = []string{d} // a job without a checkpoint
		}
		if len(jobs) == 0 && len(f.dirs) > 0 {
			return nil, diag.New(diag.Config, diag.Pos{}, "no job has left anything in %q", d).WithHint("give the directory that --state-dir of the run named")
		}
		o.JobDirs = append(o.JobDirs, jobs...)
	}
	table := func(connector string, more ...string) {
		t := &catalog.Table{Name: connector, Options: catalog.NewOptions()}
		t.Options.Set("connector", connector, diag.Pos{})
		for i := 0; i < len(more); i += 2 {
			t.Options.Set(more[i], more[i+1], diag.Pos{})
		}
		o.Tables = append(o.Tables, t)
	}
	if f.servers != "" {
		table("kafka", "properties.bootstrap.servers", f.servers)
	}
	if f.url != "" {
		table("postgres", "url", f.url, "table-name", "none")
	}
	return streamsql.OpenTxns(o)
}

// act aborts or commits what was chosen. It goes on after a failure and tells all of them.
func (f *txnFlags) act(ctx context.Context, x *streamsql.Txns, what string) int {
	all, err := x.Settled(ctx, func(r streamsql.TxnReport) {
		fmt.Fprintf(f.errs, "waiting for %s, which was killed, to look dead to its system\n", r.Live)
	})
	if err != nil {
		return fail(f.errs, err, source{})
	}
	chosen, code := f.choose(all)
	for _, r := range chosen {
		if what == "abort" {
			err = x.Abort(ctx, r, f.force)
		} else {
			err = x.Commit(ctx, r)
		}
		if err != nil {
			fmt.Fprintln(f.errs, diag.Render(err, "", ""))
			code = exitFailed
			continue
		}
		fmt.Fprintf(f.out, "%s: %s\n", r.ID, done(what, r))
	}
	if len(chosen) == 0 && code == exitOK {
		fmt.Fprintf(f.out, "nothing to %s\n", what)
	}
	return code
}

// done tells what became of r, and where it is on record when a guarantee was given up for it.
func done(what string, r streamsql.TxnReport) string {
	switch {
	case what == "commit":
		return "committed"
	case r.Verdict == streamsql.TxnOrphan:
		return "aborted"
	case r.StateDir == "":
		return "aborted by force, on nobody's record: no state directory at hand knows its job"
	}
	return "aborted by force, on record in " + r.StateDir
}

// choose are the transactions the flags name, in checkpoint order. An id that is not there fails.
func (f *txnFlags) choose(all []streamsql.TxnReport) (chosen []streamsql.TxnReport, code int) {
	for _, r := range all {
		if slices.Contains(f.ids, r.ID) || f.orphans && r.Verdict == streamsql.TxnOrphan || f.listed && r.Verdict == streamsql.TxnListed {
			chosen = append(chosen, r)
		}
	}
	for _, id := range f.ids {
		if !slices.ContainsFunc(all, func(r streamsql.TxnReport) bool { return r.ID == id }) {
			fmt.Fprintf(f.errs, "error: there is no open transaction %q\n  hint: streamsql txn list shows those there are\n", id)
			code = exitFailed
		}
	}
	slices.SortStableFunc(chosen, func(a, b streamsql.TxnReport) int { return int(int64(a.Checkpoint) - int64(b.Checkpoint)) })
	return chosen, code
}

// txnJSON is a transaction as -o json prints it.
type txnJSON struct {
	ID         string `json:"id"`
	System     string `json:"system"`
	State      string `json:"state"`
	Detail     string `json:"detail,omitempty"`
	Started    string `json:"started,omitempty"`
	AgeMS      int64  `json:"age_ms"`
	TimeoutMS  int64  `json:"timeout_ms"` // 0 = never
	Job        string `json:"job,omitempty"`
	JobID      string `json:"job_id,omitempty"`
	Lineage    string `json:"lineage,omitempty"`
	Checkpoint uint64 `json:"checkpoint,omitempty"`
	ListedBy   uint64 `json:"listed_by,omitempty"`
	StateDir   string `json:"state_dir,omitempty"`
	Verdict    string `json:"verdict"`
	Why        string `json:"why"`
	Do         string `json:"do"`
}

func (f *txnFlags) show(rs []streamsql.TxnReport) error {
	now := time.Now()
	if f.format == "json" {
		list := make([]txnJSON, 0, len(rs))
		for _, r := range rs {
			j := txnJSON{ID: r.ID, System: r.System, State: r.State, Detail: r.Detail, TimeoutMS: r.Timeout.Milliseconds(), Job: jobOf(&r), JobID: r.JobID,
				Lineage: lineageOf(&r), Checkpoint: uint64(r.Checkpoint), ListedBy: uint64(r.Listed), StateDir: r.StateDir, Verdict: string(r.Verdict), Why: r.Why, Do: r.Do}
			if !r.Started.IsZero() {
				j.Started, j.AgeMS = r.Started.UTC().Format(time.RFC3339Nano), now.Sub(r.Started).Milliseconds()
			}
			list = append(list, j)
		}
		return printJSON(f.out, list)
	}
	var sb strings.Builder
	for _, r := range rs {
		fmt.Fprintf(&sb, "%s  %s\n  %s%s, %s\n  %s, %s\n  %s: %s\n  do: %s\n", r.Verdict, r.ID, r.State, ageText(&r, now), r.System, ownerText(&r), r.Detail, r.Verdict, r.Why, r.Do)
	}
	if len(rs) == 0 {
		sb.WriteString("no open or prepared transactions of streamsql jobs\n")
	}
	_, err := io.WriteString(f.out, sb.String())
	return err
}

// ageText is the age against the timeout.
func ageText(r *streamsql.TxnReport, now time.Time) string {
	if r.Started.IsZero() {
		return ""
	}
	age := now.Sub(r.Started).Round(time.Second)
	switch {
	case r.Timeout == 0:
		return fmt.Sprintf(" for %s, without a timeout", age)
	case age > r.Timeout:
		return fmt.Sprintf(" for %s, past its timeout of %s", age, r.Timeout)
	}
	return fmt.Sprintf(" for %s of %s, after which it is aborted", age, r.Timeout)
}

func jobOf(r *streamsql.TxnReport) string {
	if r.JobName != "" {
		return r.JobName
	}
	return r.Job
}

func lineageOf(r *streamsql.TxnReport) string {
	if r.Lineage != "" {
		return r.Lineage
	}
	return r.Txn.Lineage
}

// ownerText says to whom the transaction belongs.
func ownerText(r *streamsql.TxnReport) string {
	parts := []string{"job " + jobOf(r)}
	if l := lineageOf(r); l != "" {
		parts = append(parts, "lineage "+l)
	}
	if r.Checkpoint != 0 {
		parts = append(parts, fmt.Sprintf("checkpoint %d", r.Checkpoint))
	}
	if r.StateDir != "" {
		parts = append(parts, r.StateDir)
	}
	return strings.Join(parts, ", ")
}
