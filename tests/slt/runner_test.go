package slt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/connectors/memory"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// stuck bounds every wait of a script: a loaded machine is slow, a hang is for ever.
const stuck = 5 * time.Minute

// runner is a script's engine and what the script did with it.
type runner struct {
	t    *testing.T
	at   string // the command, for messages
	mode mode
	ctx  context.Context
	stop context.CancelFunc
	bus  *memory.Bus
	eng  *streamsql.Engine

	jobs         []*job
	fed          map[string][]int64 // rows fed, by table and split
	sinks        map[string]*sink
	tables       map[string]*tableInfo
	clock        atomic.Int64 // ns that the clock was moved on
	turn         int          // counts resumes, for the next parallelism
	hits         int          // failures at points
	inFlight     int          // checkpoints that held rows in flight
	started      bool
	straightOnly bool
}

// job is an INSERT that a script started.
type job struct {
	text string
	job  *streamsql.Job
	told bool // how it ended was printed
}

// parallelisms are what mode resume goes through.
var parallelisms = []string{"3", "1", "4", "2"}

func newRunner(t *testing.T, m mode) *runner {
	r := &runner{t: t, mode: m, bus: memory.NewBus(), fed: map[string][]int64{}, sinks: map[string]*sink{}, tables: map[string]*tableInfo{}}
	r.ctx, r.stop = context.WithTimeout(context.Background(), stuck)
	base := time.Now()
	o := &streamsql.Options{
		Connectors: append([]connectors.Connector{*r.bus.Connector()}, streamsql.DefaultConnectors(io.Discard)...),
		Settings: map[string]string{
			"parallelism.default": "1", "execution.checkpointing.interval": "1000 d", "table.local-time-zone": "UTC",
			"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "1 ms",
			"restart-strategy.fixed-delay.attempts": "1000",
		},
		Now: func() time.Time { return base.Add(time.Since(base) + time.Duration(r.clock.Load())) },
	}
	dir := ""
	if m.resume {
		dir = t.TempDir()
		o.Memory = 64 << 10
		o.Settings["parallelism.default"] = "2"
	}
	if m.overtake {
		o.Settings["parallelism.default"] = "2"
		o.Settings["execution.checkpointing.unaligned.enabled"] = "true"
	}
	var err error
	if r.eng, err = streamsql.Open(dir, o); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *runner) close() {
	_ = checkpoint.SetFailpoint("")
	for _, j := range r.jobs {
		j.job.Cancel()
		<-j.job.Done()
	}
	if err := r.eng.Close(); err != nil {
		r.t.Error(err)
	}
	r.stop()
}

// run carries out one command.
func (r *runner) run(d *datadriven.TestData) string {
	var args []string
	for _, a := range d.CmdArgs {
		if len(a.Vals) == 0 {
			args = append(args, a.Key)
		}
	}
	arg := func(i int) string {
		if i >= len(args) {
			d.Fatalf(r.t, "%s needs another argument", d.Cmd)
		}
		return args[i]
	}
	switch d.Cmd {
	case "exec":
		return r.exec(d.Input)
	case "eval":
		return r.eval(d.Input)
	case "query":
		return r.query(d.Input, slices.Contains(args, "changelog"))
	case "feed":
		return r.feed(arg(0), number(d, "split", 0), d.Input)
	case "rows":
		return r.rows(arg(0), d.Input)
	case "splits":
		r.bus.Feed(arg(0)).SetSplits(number(d, "n", 1))
		return ""
	case "fail":
		split := number(d, "split", 0)
		r.bus.Feed(arg(0)).Fail(split, r.count(arg(0), split), &checkpoint.FailpointError{Name: "feed " + arg(0)})
		return ""
	case "close":
		for _, a := range args {
			r.bus.Feed(a).Close()
		}
		if out := r.waitBounded(); out != "" {
			return out
		}
		return r.waitEnded(args)
	case "barrier":
		return r.sync()
	case "crash":
		var at string
		d.ScanArgs(r.t, "at", &at)
		return r.crash(at, nil)
	case "resume":
		return r.resume(strconv.Itoa(number(d, "parallelism", 1)))
	case "stop":
		return r.stopJobs(slices.Contains(args, "drain"))
	case "await":
		if err := r.bus.Queue(arg(0)).Wait(r.ctx, int64(number(d, "n", 1))); err != nil {
			return "error: " + err.Error()
		}
		return ""
	case "expect":
		return r.expect(arg(0), arg(1))
	case "late":
		if out := r.sync(); out != "" {
			return out
		}
		var n int64
		for _, j := range r.jobs {
			n += j.job.Status().LateDropped
		}
		return strconv.FormatInt(n, 10)
	case "clock":
		dur, err := time.ParseDuration(arg(0))
		if err != nil {
			d.Fatalf(r.t, "%v", err)
		}
		r.clock.Add(int64(dur))
		return ""
	case "straight":
		r.straightOnly = true
		return ""
	}
	d.Fatalf(r.t, "unknown command %q", d.Cmd)
	return ""
}

func number(d *datadriven.TestData, key string, def int) int {
	for _, a := range d.CmdArgs {
		if a.Key == key && len(a.Vals) == 1 {
			n, err := strconv.Atoi(a.Vals[0])
			if err == nil {
				return n
			}
		}
	}
	return def
}

// exec executes statements one after the other.
func (r *runner) exec(text string) string {
	var out []string
	s := r.eng.Script(text)
	for {
		res, err := s.Next(r.ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return strings.Join(append(out, failure(err)), "\n")
		}
		for _, n := range res.Notices {
			out = append(out, "notice: "+n)
		}
		switch {
		case res.IsQuery():
			out = append(out, r.drain(res, false, ""))
		case res.Schema != nil:
			out = append(out, r.drain(res, true, "ORDER BY"))
		case res.Job != nil:
			r.started = true
			r.jobs = append(r.jobs, &job{text: res.Statement, job: res.Job})
			if res.Job.Bounded() && !r.fedTables(res.Job) {
				if err := res.Job.Wait(r.ctx); err != nil {
					out = append(out, failure(err))
				}
			}
		}
	}
	if len(out) == 0 {
		return "ok"
	}
	return strings.Join(out, "\n")
}

// fedTables tells whether a job reads tables that the script feeds and closes.
func (r *runner) fedTables(j *streamsql.Job) bool {
	for _, n := range j.Status().Nodes {
		if table, ok := strings.CutPrefix(string(n.ID), "source["); ok {
			table, _, _ = strings.Cut(table, "]")
			for c := range must(r.eng.Exec(r.ctx, "SHOW CREATE TABLE "+table)).Rows() {
				if text, _ := c.Text(0); strings.Contains(text, "'connector' = 'memory'") {
					return true
				}
			}
		}
	}
	return false
}

// failure is an error as a golden file shows it.
func failure(err error) string {
	var te *exec.TaskError
	where := ""
	if errors.As(err, &te) {
		where = "task: "
	}
	var e *diag.Error
	if !errors.As(err, &e) {
		return "error: " + where + err.Error()
	}
	out := "error: " + where + e.Error()
	if e.Pos.Known() && !strings.HasPrefix(e.Error(), e.Pos.String()) {
		out = "error: " + where + e.Pos.String() + ": " + e.Error()
	}
	if e.Detail != "" && !strings.Contains(out, e.Detail) {
		out += "\n  " + e.Detail
	}
	if e.Hint != "" {
		out += "\n  hint: " + e.Hint
	}
	return out
}

// feed adds rows to a table and then does what the mode wants done after every feed.
func (r *runner) feed(table string, split int, text string) string {
	rows, err := r.parseRows(table, text)
	if err != nil {
		return "error: " + err.Error()
	}
	f := r.bus.Feed(r.info(table).bus)
	if r.mode.crash == "restore.begin" || r.mode.crash == "restore.committed" || r.mode.crash == "restore.aborted" {
		at := r.count(table, split) + int64(len(rows)/2)
		f.Fail(split, at, &checkpoint.FailpointError{Name: "feed " + table})
	}
	f.Append(split, rows...)
	r.count(table, split)
	r.fed[table][split] += int64(len(rows))
	switch {
	case len(r.live()) == 0:
	case r.mode.barriers:
		return r.sync()
	case r.mode.crash != "":
		return r.crash(r.mode.crash, func() error {
			if !r.reads(table, split) {
				return nil
			}
			return f.Failed(r.ctx, split)
		})
	case r.mode.resume:
		r.turn++
		return r.resume(parallelisms[r.turn%len(parallelisms)])
	}
	return ""
}

// rows replaces the rows that lookups of a table find.
func (r *runner) rows(table, text string) string {
	rows, err := r.parseRows(table, text)
	if err != nil {
		return "error: " + err.Error()
	}
	all := make([][]types.Datum, len(rows))
	for i := range rows {
		all[i] = rows[i].Values
	}
	r.bus.Rows(r.info(table).bus).Set(all...)
	return ""
}

// count is how many rows were fed to a split.
func (r *runner) count(table string, split int) int64 {
	for len(r.fed[table]) <= split {
		r.fed[table] = append(r.fed[table], 0)
	}
	return r.fed[table][split]
}

// live are the jobs that have not ended.
func (r *runner) live() []*job {
	var out []*job
	for _, j := range r.jobs {
		if !j.job.Status().State.Ended() {
			out = append(out, j)
		}
	}
	return out
}

// sync takes checkpoints until they cover every row that was fed to a table that a live job reads. It returns the error of
// a job that failed, once.
func (r *runner) sync() string {
	for {
		for _, j := range r.jobs {
			if !j.told && j.job.Status().State.Ended() {
				j.told = true
				if err := j.job.Wait(r.ctx); err != nil {
					return failure(err)
				}
			}
		}
		// A job that ends from here on is told in the next round.
		live := r.live()
		failed := slices.ContainsFunc(r.jobs, func(j *job) bool { return !j.told && !slices.Contains(live, j) })
		for _, j := range live {
			if _, err := j.job.Checkpoint(r.ctx); err != nil {
				failed = failed || j.job.Status().State.Ended()
				if r.ctx.Err() != nil {
					r.t.Fatalf("%s: stuck: %v", r.at, j.job.Status())
				}
			}
		}
		if failed {
			continue
		}
		if r.covered(live) {
			return ""
		}
	}
}

func (r *runner) covered(live []*job) bool {
	if r.mode.overtake && slices.ContainsFunc(live, func(j *job) bool { return j.job.Status().Checkpoint.InFlight > 0 }) {
		r.inFlight++
		return false // rows are in the checkpoint, and not yet in the results
	}
	read := map[checkpoint.Split]bool{}
	for _, j := range live {
		for _, s := range j.job.Status().Splits {
			read[s.Split] = true
		}
	}
	for table, splits := range r.fed {
		bus := r.info(table).bus
		for i, n := range splits {
			if read[checkpoint.Split(bus+"-"+strconv.Itoa(i))] && r.bus.Feed(bus).Committed(i) < n {
				return false
			}
		}
	}
	return true
}

// reads tells whether a live job reads a split of a table.
func (r *runner) reads(table string, split int) bool {
	name := checkpoint.Split(r.info(table).bus + "-" + strconv.Itoa(split))
	for _, j := range r.live() {
		for _, s := range j.job.Status().Splits {
			if s.Split == name {
				return true
			}
		}
	}
	return false
}

// crash is sync with a failure at a point. It waits for what failed is to wait for first: a checkpoint taken before would cut
// the rows of a feed in two, which changes the changelog.
func (r *runner) crash(point string, failed func() error) string {
	if err := checkpoint.SetFailpoint(point + ":1:error"); err != nil {
		r.t.Fatal(err)
	}
	if failed != nil {
		if err := failed(); err != nil {
			r.t.Fatalf("%s: stuck: %v", r.at, err)
		}
	}
	out := r.sync()
	if checkpoint.FailpointHit() {
		r.hits++
	}
	_ = checkpoint.SetFailpoint("")
	return out
}

// resume stops all jobs at a final checkpoint and starts them again at another parallelism.
func (r *runner) resume(parallelism string) string {
	before := r.eng.Setting("parallelism.default")
	if out := r.sync(); out != "" {
		return out
	}
	if _, err := r.eng.Exec(r.ctx, "SET 'parallelism.default' = '"+parallelism+"'"); err != nil {
		return failure(err)
	}
	for _, j := range r.live() {
		if !r.mode.resume {
			break // without a state directory a stopped job is gone: the other modes leave it running
		}
		if err := j.job.Stop(r.ctx, streamsql.StopOptions{}); err != nil {
			return failure(err)
		}
		res, err := r.eng.Exec(r.ctx, j.text)
		if err != nil {
			return failure(err)
		}
		j.job, j.told = res.Job, false
	}
	if _, err := r.eng.Exec(r.ctx, "SET 'parallelism.default' = '"+before+"'"); err != nil {
		return failure(err)
	}
	return ""
}

func (r *runner) stopJobs(drain bool) string {
	if out := r.sync(); out != "" {
		return out
	}
	for _, j := range r.live() {
		if err := j.job.Stop(r.ctx, streamsql.StopOptions{Drain: drain}); err != nil {
			return failure(err)
		}
	}
	return ""
}

// waitBounded waits for the jobs that end by themselves.
func (r *runner) waitBounded() string {
	for _, j := range r.jobs {
		if !j.job.Bounded() {
			continue
		}
		if err := j.job.Wait(r.ctx); err != nil {
			return failure(err)
		}
	}
	return ""
}

// waitEnded waits until jobs that go on have read bounded tables that were closed to their end: a checkpoint after that covers
// what the end brings about.
func (r *runner) waitEnded(tables []string) string {
	for {
		if out := r.sync(); out != "" {
			return out
		}
		ended := true
		for _, j := range r.live() {
			st := j.job.Status()
			for _, s := range st.Splits {
				bus := string(s.Split[:strings.LastIndexByte(string(s.Split), '-')]) // its splits are bus-0, bus-1, ...
				if !slices.ContainsFunc(tables, func(t string) bool { return r.info(t).bounded && r.info(t).bus == bus }) {
					continue
				}
				for _, n := range st.Nodes {
					ended = ended && (n.ID != s.Node || n.Watermark == exec.MaxWatermark)
				}
			}
		}
		if ended {
			return ""
		}
	}
}

// expect prints what a sink holds, or what it was sent since the last look.
func (r *runner) expect(what, table string) string {
	if out := r.sync(); out != "" {
		return out
	}
	s := r.sink(table)
	news := s.take(r.bus.Queue(r.info(table).bus).Rows())
	if what == "changelog" {
		return strings.Join(news, "\n")
	}
	return s.table()
}

// same compares a result of another mode than straight with the golden one.
func (r *runner) same(d *datadriven.TestData, got string) bool {
	norm := func(s string) []string { return strings.Split(strings.TrimSpace(s), "\n") }
	a, b := norm(got), norm(d.Expected)
	switch {
	case d.Cmd == "late":
		return true // rows that a restart repeats count twice
	case d.Cmd == "expect" && d.CmdArgs[0].Key == "changelog":
		if slices.ContainsFunc(d.CmdArgs, func(a datadriven.CmdArg) bool { return a.Key == "loose" }) {
			return true // a table is expected beside it
		}
		if r.mode.overtake {
			return maps.Equal(fold(a), fold(b)) // where a barrier cuts the rows of a feed, and so mini-batches, is not fixed
		}
		slices.Sort(a)
		slices.Sort(b)
	case d.Cmd == "query":
		slices.Sort(a)
		slices.Sort(b)
	}
	return slices.Equal(a, b)
}

// fold is what a changelog leaves: rows and how many of each.
func fold(log []string) map[string]int {
	out := map[string]int{}
	for _, l := range log {
		row, n := l, 1
		if i := strings.IndexByte(l, '('); i == 2 { // else an error
			row = l[i:]
			if l[:i] == "-U" || l[:i] == "-D" {
				n = -1
			}
		}
		if out[row] += n; out[row] == 0 {
			delete(out, row)
		}
	}
	return out
}

// drain reads a result.
func (r *runner) drain(res *streamsql.Result, changelog bool, text string) string {
	s := &sink{zone: res.Session().Zone}
	for c, err := range res.Rows() {
		if err != nil {
			return failure(err)
		}
		cells := make([]string, c.Len())
		for i := range cells {
			v, null := c.Display(i)
			if null {
				v = "NULL"
			}
			cells[i] = v
		}
		s.apply(c.Kind, strings.Join(cells, ", "), "")
	}
	switch {
	case !res.IsQuery():
		return strings.Join(s.order, "\n")
	case changelog:
		return strings.Join(s.log, "\n")
	case strings.Contains(strings.ToUpper(text), "ORDER BY") && s.appended():
		return strings.Join(s.order, "\n")
	}
	return s.table()
}

// query runs a SELECT to its end.
func (r *runner) query(text string, changelog bool) string {
	res, err := r.eng.Exec(r.ctx, text)
	if err != nil {
		return failure(err)
	}
	if !res.IsQuery() {
		return "error: not a query"
	}
	if !res.Bounded {
		res.Job.Cancel()
		return "error: the query does not end"
	}
	return r.drain(res, changelog, text)
}

// eval evaluates expressions.
func (r *runner) eval(text string) string {
	var out []string
	for _, line := range strings.Split(text, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		res, err := r.eng.Exec(r.ctx, "SELECT "+line)
		if err != nil {
			out = append(out, failure(err))
			continue
		}
		v := r.drain(res, false, "")
		if !strings.HasPrefix(v, "error:") {
			v += " :: " + res.Schema.Columns[0].Type.String()
		}
		out = append(out, v)
	}
	return strings.Join(out, "\n")
}

// kindOf takes the row kind from the front of a line.
func kindOf(line string) (types.RowKind, string) {
	for _, k := range []types.RowKind{types.Insert, types.UpdateBefore, types.UpdateAfter, types.Delete} {
		if rest, ok := strings.CutPrefix(line, k.String()+" "); ok {
			return k, rest
		}
	}
	return types.Insert, line
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(fmt.Sprint("slt: ", err))
	}
	return v
}
