package equivalence

// Goal: whatever order, batching, checkpoints, failures, parallelism and memory do to a streaming query, it ends with the
// table that the query means. Method: an oracle of a few lines per operator (query_test.go) beside the engine.

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime/pprof"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/connectors/memory"
	"github.com/streamsql/streamsql/sql/types"
)

var (
	seeds     = flag.Int("seeds", 400, "how many seeds to run")
	oneSeed   = flag.Uint64("seed", 0, "run only this seed")
	forTime   = flag.Duration("for", 0, "run random seeds for so long")
	unaligned = flag.Bool("unaligned", false, "let the barriers of every trial overtake, not only of a third")
	focus     = flag.String("focus", "", "run queries of one kind only: "+strings.Join(slices.Sorted(maps.Keys(focused)), ", "))
	jobLog    = flag.Bool("joblog", false, "write the log of the jobs to standard error")
	verbose   = flag.Bool("show", false, "log the queries")
)

// stuck bounds a query: a loaded machine is slow, a hang is for ever.
const stuck = 5 * time.Minute

// enough is when a default run stops although it has seeds left; with -short it is half as long.
const enough = 20 * time.Second

// kept are seeds that found a mistake once; they always run. A change of the generator gives a seed another query: what
// they were about is in the .slt script of the fix.
var kept = []uint64{}

func TestEquivalence(t *testing.T) {
	if *oneSeed != 0 {
		runSeed(t, *oneSeed)
		return
	}
	start := time.Now()
	for _, s := range kept {
		runSeed(t, s)
	}
	if *forTime > 0 {
		runFor(t, *forTime)
		return
	}
	for s := range uint64(*seeds) {
		if runSeed(t, s+1); t.Failed() {
			return
		}
		if *seeds == 400 && (time.Since(start) > enough || testing.Short() && time.Since(start) > enough/2) {
			t.Logf("%d of %d seeds", s+1, *seeds)
			return
		}
	}
}

// runFor runs random seeds, and goes on behind one that fails to find more, up to ten.
func runFor(t *testing.T, d time.Duration) {
	failed, n := 0, 0
	for start := time.Now(); time.Since(start) < d && failed < 10; n++ {
		seed := rand.Uint64N(1 << 40)
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { runSeed(t, seed) }) {
			failed++
			t.Logf("again: go test ./tests/equivalence -run 'TestEquivalence$' -seed %d", seed)
		}
	}
	t.Logf("%d seeds, %d failed", n, failed)
}

func FuzzEquivalence(f *testing.F) {
	for s := range uint64(20) {
		f.Add(s * 1_000_003)
	}
	f.Fuzz(runSeed)
}

const ddl = `
CREATE TABLE a (c0 BIGINT, c1 BIGINT, c2 BIGINT) WITH ('connector' = 'memory', 'bounded' = 'true');
CREATE TABLE r (c0 BIGINT, c1 BIGINT, c2 BIGINT) WITH ('connector' = 'memory', 'bounded' = 'true', 'changelog' = 'retract');
CREATE TABLE u (c0 BIGINT, c1 BIGINT, c2 BIGINT, PRIMARY KEY (c0) NOT ENFORCED) WITH ('connector' = 'memory', 'bounded' = 'true', 'changelog' = 'upsert');
CREATE TABLE e (c0 BIGINT, c1 BIGINT, c2 BIGINT, ts AS CAST(TIMESTAMP '1970-01-01 00:00:00' + c2 * INTERVAL '1' SECOND AS TIMESTAMP(3)), WATERMARK FOR ts AS ts - INTERVAL '10' SECOND)
  WITH ('connector' = 'memory', 'bounded' = 'true', 'scan.watermark.emit.strategy' = '%[1]s');
CREATE TABLE f (c0 BIGINT, c1 BIGINT, c2 BIGINT, ts AS CAST(TIMESTAMP '1970-01-01 00:00:00' + c2 * INTERVAL '1' SECOND AS TIMESTAMP(3)), WATERMARK FOR ts AS ts - INTERVAL '10' SECOND)
  WITH ('connector' = 'memory', 'bounded' = 'true', 'scan.watermark.emit.strategy' = '%[1]s');
CREATE TABLE p (c0 BIGINT, c1 BIGINT, c2 BIGINT, ts AS PROCTIME()) WITH ('connector' = 'memory', 'bounded' = 'true');
CREATE TABLE w (c0 BIGINT, c1 BIGINT, c2 BIGINT, ts AS CAST(TIMESTAMP '1970-01-01 00:00:00' + c2 * INTERVAL '1' SECOND AS TIMESTAMP(3)), WATERMARK FOR ts AS ts - INTERVAL '10' SECOND)
  WITH ('connector' = 'memory', 'bounded' = 'true', 'changelog' = 'retract', 'scan.watermark.emit.strategy' = '%[1]s');
CREATE TABLE v (c0 BIGINT, c1 BIGINT, c2 BIGINT, ts AS CAST(TIMESTAMP '1970-01-01 00:00:00' + c2 * INTERVAL '1' SECOND AS TIMESTAMP(3)), WATERMARK FOR ts AS ts - INTERVAL '10' SECOND, PRIMARY KEY (c0) NOT ENFORCED)
  WITH ('connector' = 'memory', 'bounded' = 'true', 'changelog' = 'upsert', 'scan.watermark.emit.strategy' = '%[1]s')`

var readTable = regexp.MustCompile(`\b(?:FROM|JOIN|TABLE) ([aruefvwp])(?:[^.\w]|$)`)

var points = []string{"source.poll", "barrier.inject", "precommit.before", "precommit.after", "publish.before", "publish.after",
	"commit.before", "commit.during", "commit.after", "confirm.after", "restore.begin", "restore.committed"}

// trial is one seed.
type trial struct {
	t    *testing.T
	r    *rand.Rand
	ctx  context.Context
	bus  *memory.Bus
	eng  *streamsql.Engine
	job  *streamsql.Job
	stmt string
	dir  bool
	what string
	// outs are the sinks of the job, views the views that their queries share.
	outs  []*output
	views []*view
	// splits is how many splits tables have whose rows may come in any order.
	splits map[string]int
	// tables are those that the queries read.
	tables []string
	// late lets rows come behind the watermark, which operators of event time have to drop.
	late bool
	// sent are the third columns of the rows given to each split.
	sent map[feedPlace][]int64
	// unique says that rows of e and f have times of their own.
	unique bool
	// pending are rows not sent yet, bursts how many come at once.
	pending map[feedPlace][]memory.Row
	bursts  int
	// rows bounds the rows of a table. Many of them have many or few different values, and leave the memory.
	rows   int
	domain int64
	// clock is the time, in ms, of a clocked trial; idle says that its tables pause.
	clock atomic.Int64
	idle  bool
}

var (
	overTime   = regexp.MustCompile(` OVER \((PARTITION BY [^()]*)?ORDER BY ts`)
	overWindow = regexp.MustCompile(` OVER \([^()]*\)`)
)

// finalOver reports a query with different OVER windows in one SELECT. They are computed when the input has ended, and then no row is late.
func (x *trial) finalOver() bool {
	for _, o := range x.outs {
		for _, q := range o.in {
			windows := overWindow.FindAllString(q.sql(), -1)
			slices.Sort(windows)
			if len(slices.Compact(windows)) > 1 {
				return true
			}
		}
	}
	return false
}

// hiddenOver reports OVER in the order of time below the top of a query. If nobody reads what it computes it is not done,
// and then it drops no late row.
func (x *trial) hiddenOver() bool {
	for _, v := range x.views {
		if overTime.MatchString(v.q.sql()) {
			return true
		}
	}
	for _, o := range x.outs {
		for _, q := range o.in {
			if _, top := q.(over); !top && overTime.MatchString(q.sql()) {
				return true
			}
		}
	}
	return false
}

// output is a sink: its name, the queries whose rows it takes together, and the length of its primary key; 0 for a sink
// that takes retractions.
type output struct {
	name string
	in   []query
	key  int
}

// kinds of trials
const (
	plainTrial   = iota
	clockedTrial // see clocked_test.go
	deepTrial    // see deep_test.go
	batchTrial   // plain, in batch mode
	focusTrial   // see focus_test.go
)

func trialKind(seed uint64) int {
	switch {
	case *focus != "":
		return focusTrial
	case seed%8 == 7:
		return clockedTrial
	case seed%8 == 6:
		return batchTrial
	case seed%16 == 5:
		return deepTrial
	}
	return plainTrial
}

type feedPlace struct {
	table string
	split int
}

func runSeed(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 17))
	ctx, cancel := context.WithTimeout(context.Background(), stuck)
	defer cancel()
	defer func() { _ = checkpoint.SetFailpoint("") }()
	g := &gen{r: r, batch: seed%8 == 6}
	outs, kind := []*output(nil), trialKind(seed)
	switch kind {
	case clockedTrial:
		outs = []*output{{name: "s0", in: []query{clockedQueries[r.IntN(len(clockedQueries))](g)}}}
	case deepTrial:
		outs = []*output{{name: "s0", in: []query{randomDeep(g)}}}
	case focusTrial:
		outs = []*output{{name: "s0", in: []query{focused[*focus](g)}}}
	default:
		outs = g.whole()
	}
	x := &trial{t: t, r: r, ctx: ctx, bus: memory.NewBus(), dir: r.IntN(6) == 0, rows: 40, domain: 6, unique: g.unique, outs: outs, views: g.views,
		pending: map[feedPlace][]memory.Row{}, sent: map[feedPlace][]int64{}}
	o := x.options()
	switch {
	case kind == clockedTrial:
		x.clock.Store(clockStart)
		x.dir = x.dir || r.IntN(4) == 0
		o.Now = x.now
		q := outs[0].in[0].(clockedQuery)
		x.idle = q.idle
		maps.Copy(o.Settings, q.settings)
	case kind == deepTrial:
		x.rows, x.dir, x.domain = 400, r.IntN(2) == 0, []int64{2, 6, 300}[r.IntN(3)]
		o.Memory = 32 << 10
	case kind == focusTrial:
		x.dir = true
		o.Settings["parallelism.default"] = "4"
	case kind == batchTrial:
		o.Settings["execution.runtime-mode"] = "batch"
	case r.IntN(5) == 0 && g.pays(outs, 250):
		x.rows, x.domain = 250, []int64{2, 6, 300}[r.IntN(3)]
	}
	dir := ""
	if x.dir {
		dir = t.TempDir()
	}
	var err error
	if x.eng, err = streamsql.Open(dir, o); err != nil {
		t.Fatal(err)
	}
	defer x.eng.Close()
	if err := x.eng.Register(countdown); err != nil {
		t.Fatal(err)
	}
	x.splits = map[string]int{"a": 1 + r.IntN(3), "e": 1 + r.IntN(3), "f": 1 + r.IntN(3)}
	x.bursts = []int{1, 8, 64}[r.IntN(3)]
	for table, n := range x.splits {
		x.bus.Feed(table).SetSplits(n)
	}
	emit := []string{"on-event", "on-periodic"}[r.IntN(2)]
	if kind == focusTrial {
		emit = "on-periodic"
	}
	x.define(emit)
	x.late = kind == plainTrial && emit == "on-event" && !g.punctual && !x.hiddenOver() && !x.finalOver() && o.Settings["table.exec.mini-batch.enabled"] == "" && r.IntN(2) == 0
	x.what = fmt.Sprintf("seed %d: %s (%v, memory %d, durable %v, rows %d, late %v)", seed, x.stmt, o.Settings, o.Memory, x.dir, x.rows, x.late)
	if *verbose {
		t.Log(x.what)
	}
	if !x.start() {
		return
	}
	feed := x.feed
	if kind == clockedTrial {
		feed = x.clocked
	}
	final := feed()
	if kind == batchTrial {
		final[batchMode] = nil
	}
	if err := x.job.Wait(ctx); err != nil {
		x.fatal(err)
	}
	for _, o := range x.outs {
		x.check(o, final)
	}
}

// fatal ends a trial that failed, or that hangs: then it says where.
func (x *trial) fatal(err error) {
	x.t.Helper()
	if x.ctx.Err() != nil {
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
	}
	x.t.Fatalf("%s\n%v", x.what, err)
}

// options are the engine's: parallelism, memory and settings that must not change a result.
func (x *trial) options() *streamsql.Options {
	r := x.r
	o := &streamsql.Options{
		Connectors: append([]connectors.Connector{*x.bus.Connector()}, streamsql.DefaultConnectors(io.Discard)...),
		Settings: map[string]string{"execution.checkpointing.interval": "1000 d", "restart-strategy.type": "fixed-delay",
			"restart-strategy.fixed-delay.delay": "1 ms", "restart-strategy.fixed-delay.attempts": "300",
			"table.local-time-zone": "UTC", "table.exec.sink.not-null-enforcer": "DROP", "parallelism.default": []string{"1", "2", "4"}[r.IntN(3)]},
	}
	if r.IntN(3) == 0 {
		o.Settings["table.exec.mini-batch.enabled"] = "true"
		o.Settings["table.exec.mini-batch.size"] = fmt.Sprint(1 + r.IntN(20))
		o.Settings["table.exec.mini-batch.allow-latency"] = fmt.Sprintf("%d ms", 1+r.IntN(20))
	}
	if r.IntN(5) == 0 {
		o.Settings["table.exec.state.ttl"] = "1 d" // longer than any run, so that nothing expires
	}
	if r.IntN(3) == 0 || *unaligned { // barriers overtake, from the start or after a while
		o.Settings["execution.checkpointing.unaligned.enabled"] = "true"
		o.Settings["execution.checkpointing.aligned-checkpoint-timeout"] = []string{"0", "0", "1 ms"}[r.IntN(3)]
	}
	o.Settings["table.optimizer.agg-phase-strategy"] = []string{"AUTO", "ONE_PHASE", "TWO_PHASE", "TWO_PHASE"}[r.IntN(4)]
	if r.IntN(2) == 0 {
		o.Memory = 32 << 10
	}
	if *jobLog {
		o.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return o
}

// check compares a sink with what its queries mean over the final input.
func (x *trial) check(o *output, final tables) {
	x.t.Helper()
	var rows []row
	for _, q := range o.in {
		out, ok := evaluate(q, final)
		if !ok {
			return // more than the rows that pays tried led to expect
		}
		rows = append(rows, out...)
	}
	queue := x.bus.Queue(o.name)
	if text := early(queue.Rows(), o.key); text != "" {
		x.t.Errorf("%s\n%s: %s is taken back before it comes", x.what, o.name, text)
	}
	if got := fold(queue.Rows(), o.key); !same(got, rows, o.key) {
		x.t.Errorf("%s\n%s: got %v\nwant %v\ninput %v", x.what, o.name, got, count(rows, o.key), final)
	}
	if n := queue.Undecided(); n != 0 {
		x.t.Errorf("%s: %s has %d undecided transactions", x.what, o.name, n)
	}
}

// count is how often each row is there. Rows with NULL in the primary key are dropped by the sink.
func count(rows []row, key int) map[string]int {
	out := map[string]int{}
	for _, r := range rows {
		if !slices.Contains(r[:key], null) {
			out[r.String()]++
		}
	}
	return out
}

// same compares the table of the sink with the result. A table with a primary key has one of the rows of each key.
func same(got map[string]int, rows []row, key int) bool {
	want := count(rows, key)
	if key == 0 {
		return maps.Equal(got, want)
	}
	keys := map[string]bool{}
	for _, r := range rows {
		if want[r.String()] > 0 {
			keys[r[:key].String()] = true
		}
	}
	for text := range got {
		if want[text] == 0 {
			return false
		}
	}
	return len(got) == len(keys)
}

// define makes the tables, views and sinks, and the statement.
func (x *trial) define(emit string) {
	script, inserts := fmt.Sprintf(ddl, emit), ""
	for _, v := range x.views {
		script += ";CREATE VIEW " + v.name + " AS " + v.q.sql()
	}
	for _, o := range x.outs {
		o.key = x.sinkKey(o)
		script += ";" + o.ddl()
		for _, q := range o.in {
			inserts += "INSERT INTO " + o.name + " " + q.sql() + ";\n"
		}
	}
	s := x.eng.Script(script)
	for {
		if _, err := s.Next(x.ctx); err == io.EOF {
			break
		} else if err != nil {
			x.t.Fatal(err)
		}
	}
	if x.stmt = strings.TrimSuffix(inserts, ";\n"); len(x.outs) > 1 || len(x.outs[0].in) > 1 {
		x.stmt = "EXECUTE STATEMENT SET BEGIN\n" + inserts + "END"
	}
	text := x.stmt
	for _, v := range x.views {
		text += " " + v.q.sql()
	}
	for _, m := range readTable.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(x.tables, m[1]) {
			x.tables = append(x.tables, m[1])
		}
	}
}

// sinkKey is the length of the primary key of a sink, 0 for a sink that takes retractions.
func (x *trial) sinkKey(o *output) int {
	if len(o.in) > 1 {
		return 0
	}
	q := o.in[0]
	if _, ok := q.(clockedQuery); ok { // a group that starts afresh is another row
		return 0
	}
	if g, ok := q.(group); ok && g.keys > 0 && x.r.IntN(2) == 0 {
		return g.keys
	}
	if x.r.IntN(6) == 0 {
		return 1 + x.r.IntN(min(2, q.width()))
	}
	return 0
}

func (o *output) ddl() string {
	var cols, pk []string
	for i := range o.in[0].width() {
		null := ""
		if i < o.key {
			null = " NOT NULL"
			pk = append(pk, fmt.Sprintf("c%d", i))
		}
		cols = append(cols, fmt.Sprintf("c%d BIGINT%s", i, null))
	}
	mode := "retract"
	if o.key > 0 {
		mode = "upsert"
		cols = append(cols, "PRIMARY KEY ("+strings.Join(pk, ", ")+") NOT ENFORCED")
	}
	return "CREATE TABLE " + o.name + " (" + strings.Join(cols, ", ") + ") WITH ('connector' = 'memory', 'changelog' = '" + mode + "')"
}

// start starts the job, unless the query is refused as one that has no rows.
func (x *trial) start() bool {
	res, err := x.eng.Exec(x.ctx, x.stmt)
	if err != nil && strings.Contains(err.Error(), "no row has a ROW_NUMBER") {
		return false // as by Flink
	}
	if err != nil {
		x.t.Fatalf("%s\n%v", x.what, err)
	}
	x.job = res.Job
	return true
}

// early is a row that a sink of retractions is told to take back when it is not there, "" without one.
func early(changes []memory.Row, key int) string {
	there := map[string]int{}
	for _, c := range changes {
		text := changed(c).String()
		if c.Kind == types.Insert || c.Kind == types.UpdateAfter {
			there[text]++
		} else if there[text]--; there[text] < 0 && key == 0 {
			return text
		}
	}
	return ""
}

// changed is the row of a change.
func changed(c memory.Row) row {
	r := make(row, len(c.Values))
	for i, d := range c.Values {
		if r[i] = null; !d.IsNull {
			r[i] = value{v: d.I64}
		}
	}
	return r
}

// fold is the table that changes leave: rows with their number.
func fold(changes []memory.Row, key int) map[string]int {
	out, byKey := map[string]int{}, map[string]string{}
	for _, c := range changes {
		r := changed(c)
		text, add := r.String(), c.Kind == types.Insert || c.Kind == types.UpdateAfter
		if key > 0 {
			k := r[:key].String()
			if old, ok := byKey[k]; ok {
				delete(out, old)
				delete(byKey, k)
			}
			if add {
				byKey[k], out[text] = text, 1
			}
			continue
		}
		if add {
			out[text]++
		} else {
			out[text]--
		}
		if out[text] == 0 {
			delete(out, text)
		}
	}
	return out
}
