package crash

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql/tests/harness"
)

// Two tests wait for a minute, and every job waits for its servers.
func TestMain(m *testing.M) { harness.MainParallel(m, runtime.GOMAXPROCS(0)+2) }

// One statement set writes every row to two-phase sinks: Kafka, PostgreSQL by both protocols and by key, and files. A crash at
// any point must leave each with every row once.
const job = `
SET 'pipeline.name' = '%[1]s';
SET 'execution.checkpointing.interval' = '60 ms';
SET 'parallelism.default' = '2';
%[6]s
CREATE TABLE src (id BIGINT) WITH ('connector' = 'kafka', 'topic' = '%[1]s_in', 'properties.bootstrap.servers' = '%[2]s',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = 'json');
CREATE TABLE k (id BIGINT) WITH ('connector' = 'kafka', 'topic' = '%[1]s_out', 'properties.bootstrap.servers' = '%[2]s', 'format' = 'json'%[7]s);
CREATE TABLE a (id BIGINT) WITH ('connector' = 'kafka', 'topic' = '%[1]s_ahead', 'properties.bootstrap.servers' = '%[2]s', 'format' = 'json',
  'sink.commit-protocol' = 'write-ahead', 'sink.write-ahead.marker-topic' = '%[1]s_markers');
CREATE TABLE p (id BIGINT) WITH ('connector' = 'postgres', 'url' = '%[3]s', 'table-name' = 'p', 'sink.commit-protocol' = 'prepared');
CREATE TABLE w (id BIGINT) WITH ('connector' = 'postgres', 'url' = '%[3]s', 'table-name' = 'w', 'sink.commit-protocol' = 'write-ahead');
CREATE TABLE u (id BIGINT, twice BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'postgres', 'url' = '%[3]s', 'table-name' = 'u', 'sink.commit-protocol' = 'upsert');
CREATE TABLE v (id BIGINT, twice BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'postgres', 'url' = '%[3]s', 'table-name' = 'v');
CREATE TABLE f (id BIGINT) WITH ('connector' = 'filesystem', 'path' = '%[4]s', 'format' = 'json');
CREATE TABLE gen (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '%[5]d', 'fields.id.kind' = 'sequence',
  'fields.id.start' = '2000', 'fields.id.end' = '%[8]d');
CREATE VIEW input AS SELECT id FROM src UNION ALL SELECT id FROM gen;
EXECUTE STATEMENT SET BEGIN
`

// inserts are the statements of the set, by the name of their sink.
var inserts = map[string]string{
	"k": "INSERT INTO k SELECT id FROM input;",
	"a": "INSERT INTO a SELECT id FROM input;",
	"p": "INSERT INTO p SELECT id FROM input;",
	"w": "INSERT INTO w SELECT id FROM input;",
	"f": "INSERT INTO f SELECT id FROM input;",
	"u": "INSERT INTO u SELECT id, SUM(id * 2) FROM input GROUP BY id;",
	"v": "INSERT INTO v SELECT id, SUM(id * 2) FROM input GROUP BY id;",
}

// fromKafka rows come from Kafka at once, the others from datagen over eight seconds: many checkpoints, and three of them also
// on a machine that needs seconds for one. The run that has to come to the end gets what is left at once.
const (
	fromKafka = 2000
	rows      = 10_000
	usualRate = 1000
)

// patience bounds every wait for a process: a loaded machine is slow, a hang is for ever.
const patience = 4 * time.Minute

// setup is what a test may choose. The zero value is the job of the crash points.
type setup struct {
	k        *harness.Broker // default: the shared one
	pg       *harness.PG     // default: the shared one
	sinks    string          // names of inserts, in order; default "kpwf"
	rate     int             // datagen's rows per second; default usualRate
	rows     int             // of both inputs together; default rows
	settings string          // more SET statements
	kafka    string          // more options of the table k, beginning with a comma
	name     string          // pipeline.name and the topics' prefix; default unique
}

type fixture struct {
	t                    *testing.T
	k                    *harness.Broker
	pg                   *harness.PG
	sinks                string
	bin, name, db, file  string
	state, dir, fileText string
	rate, rows           int
	now                  int // rows of Kafka, in a job of newPressed
}

func newFixture(t *testing.T) *fixture { return newFixtureWith(t, setup{}) }

func newFixtureWith(t *testing.T, s setup) *fixture {
	t.Helper()
	f := &fixture{t: t, k: s.k, pg: s.pg, sinks: s.sinks, bin: harness.BuildStreamsql(t), name: harness.UniqueName(t)}
	if s.name != "" {
		f.name = s.name
	}
	if f.k == nil {
		f.k = harness.SharedKafka(t)
	}
	if f.pg == nil {
		f.pg = harness.SharedPostgres(t)
	}
	if f.sinks == "" {
		f.sinks = "kpwf"
	}
	if s.rate == 0 {
		s.rate = usualRate
	}
	if s.rows == 0 {
		s.rows = rows
	}
	tmp := t.TempDir()
	f.state, f.dir, f.file = filepath.Join(tmp, "state"), filepath.Join(tmp, "out"), filepath.Join(tmp, "job.sql")
	f.db = f.pg.CreateDatabase(t)
	f.pg.Exec(t, f.db, `CREATE TABLE p (id bigint)`, `CREATE TABLE w (id bigint)`, `CREATE TABLE u (id bigint PRIMARY KEY, twice bigint)`, `CREATE TABLE v (LIKE u INCLUDING ALL)`)
	f.k.CreateTopic(t, f.name+"_in", 4, nil)
	for _, topic := range f.topics() {
		f.k.CreateTopic(t, topic, 2, nil)
	}
	f.rate, f.rows = s.rate, s.rows
	f.fileText = fmt.Sprintf(job, f.name, f.k.Addr(), f.pg.DSN(f.db), f.dir, s.rate, s.settings, s.kafka, s.rows-1)
	for _, sink := range f.sinks {
		f.fileText += "  " + inserts[string(sink)] + "\n"
	}
	f.fileText += "END;\n"
	f.write(f.fileText)
	f.produce(0, fromKafka)
	return f
}

// topics are those of the Kafka sinks. The one of k is there for the tests that write a statement of their own, too.
func (f *fixture) topics() []string {
	if strings.Contains(f.sinks, "a") {
		return []string{f.name + "_out", f.name + "_ahead"}
	}
	return []string{f.name + "_out"}
}

func (f *fixture) write(text string) {
	if err := os.WriteFile(f.file, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) produce(from, to int) {
	values := make([]string, 0, to-from)
	for i := from; i < to; i++ {
		values = append(values, fmt.Sprintf(`{"id":%d}`, i))
	}
	f.k.Produce(f.t, f.name+"_in", values...)
}

func (f *fixture) start(failpoint string, args ...string) *harness.Process {
	var env []string
	if failpoint != "" {
		env = []string{"STREAMSQL_FAILPOINT=" + failpoint}
	}
	return harness.Start(f.t, harness.Command{Path: f.bin, Args: append([]string{"run", f.file, "--state-dir", f.state, "--log", "info"}, args...), Env: env})
}

// crashAt runs the job until the failpoint kills it, and returns what it wrote. Reaching the end instead is an error: the
// point was not passed.
func (f *fixture) crashAt(failpoint string) *harness.Process {
	f.t.Helper()
	p := f.start(failpoint)
	code, err := p.Wait(patience)
	if err != nil {
		f.t.Fatalf("%s: %v", failpoint, err)
	}
	if code != -1 {
		f.t.Fatalf("%s: exit code %d, not killed by the failpoint\n%s", failpoint, code, p.Output())
	}
	return p
}

// pace changes datagen's rate from the next start on.
func (f *fixture) pace(rate int) {
	f.t.Helper()
	text, err := os.ReadFile(f.file)
	if err != nil {
		f.t.Fatal(err)
	}
	was, is := fmt.Sprintf("'rows-per-second' = '%d'", f.rate), fmt.Sprintf("'rows-per-second' = '%d'", rate)
	f.write(strings.Replace(string(text), was, is, 1))
	f.rate = rate
}

// finish runs the job to its end, without waiting for datagen.
func (f *fixture) finish(args ...string) *harness.Process {
	f.t.Helper()
	f.pace(10_000_000)
	p := f.start("", args...)
	f.wait(p)
	return p
}

// wait waits for a run that ends well.
func (f *fixture) wait(p *harness.Process) {
	f.t.Helper()
	if code, err := p.Wait(patience); err != nil || code != 0 {
		f.t.Fatalf("exit %d, %v\n%s", code, err, p.Output())
	}
}

// refused waits for a run that must end with exit code and message.
func (f *fixture) refused(p *harness.Process, code int, messages ...string) {
	f.t.Helper()
	got, err := p.Wait(patience)
	if err != nil {
		f.t.Fatal(err)
	}
	if got != code {
		f.t.Errorf("exit code %d, want %d", got, code)
	}
	for _, m := range messages {
		if !strings.Contains(p.Output(), m) {
			f.t.Errorf("output lacks %q:\n%s", m, p.Output())
		}
	}
}

// findings is what a check finds wrong: numbers of rows, and of what is left undecided.
type findings struct{ lost, repeated, wrong, residue int }

// check looks at every sink as a reader does, and for what must not be left behind.
func (f *fixture) check(n int) (all findings) {
	f.t.Helper()
	for sink, ids := range f.visible() {
		lost, repeated := f.once(sink, n, ids)
		all.lost, all.repeated = all.lost+lost, all.repeated+repeated
	}
	for _, keyed := range []string{"u", "v"} {
		if !strings.Contains(f.sinks, keyed) {
			continue
		}
		if wrong := f.pg.Rows(f.t, f.db, `SELECT id, twice FROM `+keyed+` WHERE twice <> 2 * id`); len(wrong) > 0 {
			f.t.Errorf("%s: %d wrong sums: %v", keyed, len(wrong), wrong[:min(5, len(wrong))])
			all.wrong += len(wrong)
		}
	}
	if open := f.openTransactions(); len(open) > 0 {
		f.t.Errorf("open transactions: %v", open)
		all.residue += len(open)
	}
	if held := f.heldBack(); held > 0 {
		f.t.Errorf("%d records behind the last stable offsets", held)
		all.residue += int(held)
	}
	if p := f.pg.PreparedTransactions(f.t, f.db); len(p) > 0 {
		f.t.Errorf("prepared transactions: %v", p)
		all.residue += len(p)
	}
	if files := f.hiddenFiles(); len(files) > 0 {
		f.t.Errorf("files left in progress: %v", files)
		all.residue += len(files)
	}
	return all
}

func (f *fixture) openTransactions() map[string]string {
	return f.k.OpenTransactions(f.t, "streamsql-"+f.name+"-")
}

// heldBack is how many records of the sinks' topics lie behind their last stable offsets.
func (f *fixture) heldBack() int64 {
	f.t.Helper()
	return f.k.HeldBack(f.t, f.topics()...)
}

// visible are the ids that a reader of each sink sees.
func (f *fixture) visible() map[string][]string {
	f.t.Helper()
	all := map[string][]string{}
	for _, sink := range f.sinks {
		switch sink := string(sink); sink {
		case "k":
			all[sink] = f.ids(f.k.Values(f.t, f.name+"_out", harness.Committed))
		case "a":
			all[sink] = f.ids(f.k.Values(f.t, f.name+"_ahead", harness.Committed))
		case "f":
			all[sink] = f.ids(f.fileLines())
		default:
			all[sink] = f.pg.Rows(f.t, f.db, `SELECT id FROM `+sink)
		}
	}
	return all
}

func (f *fixture) ids(values []string) []string {
	out := make([]string, len(values))
	for i, v := range values {
		var r struct {
			ID json.Number `json:"id"`
		}
		if err := json.Unmarshal([]byte(v), &r); err != nil {
			f.t.Fatalf("%v in %q", err, v)
		}
		out[i] = r.ID.String()
	}
	return out
}

func hidden(name string) bool { return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") }

// fileNames are the names in the sink's directory that are hidden, or not.
func (f *fixture) fileNames(hiddenOnes bool) (names []string) {
	entries, err := os.ReadDir(f.dir)
	if err != nil && !os.IsNotExist(err) {
		f.t.Fatal(err)
	}
	for _, e := range entries {
		if hidden(e.Name()) == hiddenOnes {
			names = append(names, e.Name())
		}
	}
	return names
}

func (f *fixture) hiddenFiles() []string { return f.fileNames(true) }

// fileLines are the lines of the committed files.
func (f *fixture) fileLines() []string {
	var lines []string
	for _, name := range f.fileNames(false) {
		b, err := os.ReadFile(filepath.Join(f.dir, name))
		if err != nil {
			f.t.Fatal(err)
		}
		lines = append(lines, strings.Split(strings.TrimRight(string(b), "\n"), "\n")...)
	}
	return lines
}

// once demands that the ids are those from 0 to n-1, each once, and counts those lost and those too many.
func (f *fixture) once(sink string, n int, ids []string) (lost, repeated int) {
	f.t.Helper()
	seen := map[string]int{}
	for _, id := range ids {
		seen[id]++
	}
	for i := range n {
		if seen[fmt.Sprint(i)] == 0 {
			lost++
		}
	}
	repeated = len(ids) - (n - lost)
	if lost+repeated > 0 {
		f.t.Errorf("sink %s: %d rows, want %d: %d missing, %d too many", sink, len(ids), n, lost, repeated)
	}
	return lost, repeated
}
