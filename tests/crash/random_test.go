package crash

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql/tests/harness"
	"github.com/streamsql/streamsql/tests/jobstate"
)

// Goal: whatever the operators of a job, killing it at any moment, as often as one likes, and starting it again at
// another parallelism, with aligned or unaligned checkpoints, leaves what an undisturbed run leaves, and nothing else. Method: three jobs of some ten queries
// each (queries_test.go). A life of a job ends in one of three ways: at a random point of the protocol, by SIGKILL some
// milliseconds after it has been seen to commit a random number of times, or well.

const (
	queryRows = 1500 // of each of past and gen
	queryRate = 500  // of gen: the input lasts three seconds
)

// TestCrashQueries kills each job a few times, or as often as make crash says.
func TestCrashQueries(t *testing.T) {
	t.Parallel()
	for name, sinks := range queryJobs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			r := rand.New(rand.NewPCG(seed, 3))
			calm := newQueryRun(t, sinks)
			calm.finish(1+r.IntN(4), false)
			want := calm.contents()
			calm.noResidue()
			for sink, rows := range want {
				t.Logf("%s: %d rows", sink, len(rows))
				if len(rows) == 0 {
					t.Errorf("%s is empty: it shows nothing", sink)
				}
			}
			kills, runs := 0, 0
			for n := harness.Crashes(t, 4); kills < n && !t.Failed(); runs++ {
				q, ended := newQueryRun(t, sinks), false
				for kills < n && !ended {
					if ended = !q.killed(r); !ended {
						kills++
					}
				}
				if !ended {
					q.finish(1+r.IntN(4), r.IntN(2) == 0)
				}
				q.compare(want)
				q.noResidue()
			}
			t.Logf("%d kills in %d runs", kills, runs)
		})
	}
}

// queryRun is one run of a job with inputs, outputs and state of its own.
type queryRun struct {
	*fixture
	sinks    []querySink
	versions string
}

func newQueryRun(t *testing.T, sinks []querySink) *queryRun {
	t.Helper()
	tmp := t.TempDir()
	f := &fixture{t: t, k: harness.SharedKafka(t), pg: harness.SharedPostgres(t), bin: harness.BuildStreamsql(t), name: harness.UniqueName(t),
		state: filepath.Join(tmp, "state"), dir: filepath.Join(tmp, "out"), file: filepath.Join(tmp, "job.sql")}
	q := &queryRun{fixture: f, sinks: sinks, versions: filepath.Join(tmp, "versions.json")}
	f.db = f.pg.CreateDatabase(t)
	f.k.CreateTopic(t, f.name+"_in", 4, nil)
	values := make([]string, queryRows)
	for i := range values {
		values[i] = fmt.Sprintf(`{"id":%d}`, 2*i)
	}
	f.k.Produce(t, f.name+"_in", values...)
	var lines strings.Builder
	for id := 0; id < 2*queryRows; id += 25 {
		fmt.Fprintf(&lines, `{"k":%d,"name":"name %d","id":%d}`+"\n", id%6, id, id)
	}
	if err := os.WriteFile(q.versions, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, s := range sinks {
		columns := strings.NewReplacer(" NOT ENFORCED", "", "STRING", "text", "TIMESTAMP(3)", "timestamp").Replace(s.columns)
		switch s.kind {
		case intoKafka, intoChangelog, intoCompacted:
			f.k.CreateTopic(t, f.name+"_"+s.name, 2, nil)
		case intoPrepared, intoLog, intoKeyed:
			f.pg.Exec(t, f.db, "CREATE TABLE "+s.name+" ("+columns+")")
		}
	}
	return q
}

// with writes the job's file for a parallelism, with barriers that overtake or not.
func (q *queryRun) with(parallelism int, unaligned bool) {
	text := fmt.Sprintf(querySources, q.name, q.k.Addr(), q.versions, queryRate, parallelism, queryRows-1, unaligned)
	if q.uses("pauses") {
		text += "CREATE VIEW pauses AS SELECT * FROM ev WHERE id % 400 < 300;\n"
	}
	set := "EXECUTE STATEMENT SET BEGIN\n"
	for _, s := range q.sinks {
		text += fmt.Sprintf("CREATE TABLE %s (%s) WITH (%s);\n", s.name, s.columns, q.options(s))
		set += fmt.Sprintf("  INSERT INTO %s %s;\n", s.name, s.query)
	}
	text += fmt.Sprintf("CREATE TABLE pulse (id BIGINT) WITH ('connector' = 'filesystem', 'path' = '%s', 'format' = 'json');\n", filepath.Join(q.dir, "pulse"))
	q.write(text + set + "  INSERT INTO pulse SELECT id FROM gen;\nEND;\n")
}

func (q *queryRun) uses(name string) bool {
	return slices.ContainsFunc(q.sinks, func(s querySink) bool { return strings.Contains(s.query, "TABLE "+name) })
}

func (q *queryRun) options(s querySink) string {
	kafka := fmt.Sprintf("'topic' = '%s_%s', 'properties.bootstrap.servers' = '%s'", q.name, s.name, q.k.Addr())
	postgres := fmt.Sprintf("'connector' = 'postgres', 'url' = '%s', 'table-name' = '%s'", q.pg.DSN(q.db), s.name)
	switch s.kind {
	case intoKafka:
		return "'connector' = 'kafka', 'format' = 'json', " + kafka
	case intoChangelog:
		return "'connector' = 'kafka', 'format' = 'changelog-json', " + kafka
	case intoCompacted:
		return "'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json', " + kafka
	case intoFiles:
		return fmt.Sprintf("'connector' = 'filesystem', 'format' = 'json', 'path' = '%s'", filepath.Join(q.dir, s.name))
	case intoPrepared:
		return postgres + ", 'sink.commit-protocol' = 'prepared'"
	case intoLog:
		return postgres + ", 'sink.commit-protocol' = 'write-ahead'"
	}
	return postgres
}

// killed starts the job and kills it at random. It reports whether the job died; one that came to its end first did not.
func (q *queryRun) killed(r *rand.Rand) bool {
	q.t.Helper()
	q.with(1+r.IntN(4), r.IntN(2) == 0)
	if r.IntN(3) == 0 {
		all := append(slices.Clip(points), "inflight.write")
		p := q.start(fmt.Sprintf("%s:%d", all[r.IntN(len(all))], 1+r.IntN(4)))
		code, err := p.Wait(patience)
		if err != nil || code != 0 && code != -1 {
			q.t.Fatalf("exit %d, %v\n%s", code, err, p.Output())
		}
		return code == -1 && !jobstate.Ended(q.t, q.state)
	}
	commits := q.commits() + r.IntN(4)
	p := q.start("")
	for deadline := time.Now().Add(patience); p.Alive() && q.commits() < commits; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			q.t.Fatalf("no commit within %v\n%s", patience, p.Output())
		}
	}
	time.Sleep(time.Duration(r.IntN(120)) * time.Millisecond) // anywhere between two commits; nothing depends on it
	p.Kill()
	code, err := p.Wait(patience)
	if err != nil || code != 0 && code != -1 {
		q.t.Fatalf("exit %d, %v\n%s", code, err, p.Output())
	}
	return code == -1 && !jobstate.Ended(q.t, q.state)
}

// commits is how many files the sink pulse shows: one per checkpoint and subtask with rows.
func (q *queryRun) commits() int {
	n := 0
	for _, name := range q.names("pulse") {
		if !hidden(filepath.Base(name)) {
			n++
		}
	}
	return n
}

// names are the files below a directory of the outputs.
func (q *queryRun) names(dir string) (names []string) {
	err := filepath.WalkDir(filepath.Join(q.dir, dir), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil // a file that is renamed meanwhile, or no directory yet
		}
		names = append(names, path)
		return nil
	})
	if err != nil {
		q.t.Fatal(err)
	}
	return names
}

func (q *queryRun) finish(parallelism int, unaligned bool) {
	q.t.Helper()
	q.with(parallelism, unaligned)
	q.wait(q.start(""))
}

// contents are the rows that a reader of each sink sees, sorted: of changes, what they leave.
func (q *queryRun) contents() map[string][]string {
	q.t.Helper()
	all := map[string][]string{}
	for _, s := range append(slices.Clone(q.sinks), querySink{name: "pulse", kind: intoFiles}) {
		var rows []string
		topic := q.name + "_" + s.name
		switch s.kind {
		case intoKafka:
			rows = q.k.Values(q.t, topic, harness.Committed)
		case intoChangelog:
			rows = q.folded(topic)
		case intoCompacted:
			last := map[string]string{}
			for _, rec := range q.k.Records(q.t, topic, harness.Committed) {
				if last[string(rec.Key)] = string(rec.Value); rec.Value == nil {
					delete(last, string(rec.Key))
				}
			}
			for _, row := range last {
				rows = append(rows, row)
			}
		case intoFiles:
			for _, name := range q.names(s.name) {
				b, err := os.ReadFile(name)
				if err != nil {
					q.t.Fatal(err)
				}
				rows = append(rows, strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")...)
			}
		default:
			rows = q.pg.Rows(q.t, q.db, "SELECT * FROM "+s.name)
		}
		slices.Sort(rows)
		all[s.name] = rows
	}
	return all
}

// folded is the table that the changes in a topic leave.
func (q *queryRun) folded(topic string) (rows []string) {
	count := map[string]int{}
	for _, v := range q.k.Values(q.t, topic, harness.Committed) {
		var c struct {
			Op   string          `json:"op"`
			Data json.RawMessage `json:"data"`
		}
		if err := json.Unmarshal([]byte(v), &c); err != nil {
			q.t.Fatalf("%v in %s", err, v)
		}
		if strings.HasPrefix(c.Op, "+") {
			count[string(c.Data)]++
		} else {
			count[string(c.Data)]--
		}
	}
	for row, n := range count {
		if n < 0 {
			q.t.Errorf("%s takes back %s, which is not there", topic, row)
		}
		for range n {
			rows = append(rows, row)
		}
	}
	return rows
}

// compare demands the rows of another run.
func (q *queryRun) compare(want map[string][]string) {
	q.t.Helper()
	for sink, got := range q.contents() {
		if slices.Equal(got, want[sink]) {
			continue
		}
		missing, extra := difference(want[sink], got), difference(got, want[sink])
		q.t.Errorf("%s: %d rows, want %d; %d missing: %v; %d too many: %v", sink, len(got), len(want[sink]),
			len(missing), missing[:min(5, len(missing))], len(extra), extra[:min(5, len(extra))])
	}
}

// difference is what a has and b has not, repeated rows counted.
func difference(a, b []string) (out []string) {
	n := map[string]int{}
	for _, x := range b {
		n[x]++
	}
	for _, x := range a {
		if n[x]--; n[x] < 0 {
			out = append(out, x)
		}
	}
	return out
}

// noResidue demands that no transaction, prepared transaction or file is left undecided.
func (q *queryRun) noResidue() {
	q.t.Helper()
	if open := q.openTransactions(); len(open) > 0 {
		q.t.Errorf("open transactions: %v", open)
	}
	if p := q.pg.PreparedTransactions(q.t, q.db); len(p) > 0 {
		q.t.Errorf("prepared transactions: %v", p)
	}
	for _, name := range q.names("") {
		if hidden(filepath.Base(name)) {
			q.t.Errorf("left in progress: %s", name)
		}
	}
}
