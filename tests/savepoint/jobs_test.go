package savepoint

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

const patience = 3 * time.Minute // for what takes a second

func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// sink is a table of files and the query that fills it.
type sink struct{ name, columns, query string }

// sources: rows of past are even, those of gen odd; time goes by a hundredth of a second per number, so that rows of both
// meet. gen paces the watermark. What the queries leave does not depend on the order in which the sources are read.
const sources = `
CREATE TABLE IF NOT EXISTS past (id BIGINT, k AS id %% 7, v AS id * 37 %% 101, ts AS CAST(TIMESTAMP '2025-01-01 00:00:00' + id * INTERVAL '0.010' SECOND AS TIMESTAMP(3)),
  WATERMARK FOR ts AS ts - INTERVAL '0.100' SECOND) WITH ('connector' = 'filesystem', 'path' = '%[1]s', 'format' = 'json');
CREATE TABLE IF NOT EXISTS gen (j BIGINT, id AS j * 2 + 1, k AS (j * 2 + 1) %% 7, v AS (j * 2 + 1) * 37 %% 101,
  ts AS CAST(TIMESTAMP '2025-01-01 00:00:00' + (j * 2 + 1) * INTERVAL '0.010' SECOND AS TIMESTAMP(3)), WATERMARK FOR ts AS ts - INTERVAL '0.100' SECOND)
  WITH ('connector' = 'datagen', 'rows-per-second' = '%[2]d', 'fields.j.kind' = 'sequence', 'fields.j.start' = '0', 'fields.j.end' = '%[3]d');
CREATE TABLE IF NOT EXISTS versions (k BIGINT, name STRING, id BIGINT, ts AS CAST(TIMESTAMP '2025-01-01 00:00:00' + id * INTERVAL '0.010' SECOND AS TIMESTAMP(3)),
  WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = '%[4]s', 'format' = 'json');
CREATE VIEW IF NOT EXISTS names AS SELECT k, name, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS rn FROM versions) WHERE rn = 1;
CREATE VIEW IF NOT EXISTS ev AS SELECT id, k, v, ts FROM past UNION ALL SELECT id, k, v, ts FROM gen;
`

// jobs have between them every operator with state.
var jobs = map[string][]sink{
	"joins": {
		{"interval_inner", "a BIGINT, b BIGINT", "SELECT o.id, g.id FROM past AS o JOIN gen AS g ON o.k = g.k AND g.ts BETWEEN o.ts - INTERVAL '0.2' SECOND AND o.ts + INTERVAL '0.3' SECOND"},
		{"interval_outer", "a BIGINT, b BIGINT", "SELECT o.id, g.id FROM past AS o LEFT JOIN gen AS g ON o.v = g.v AND g.ts BETWEEN o.ts AND o.ts + INTERVAL '1.01' SECOND"},
		{"temporal_joined", "id BIGINT, name STRING", "SELECT e.id, n.name FROM ev AS e LEFT JOIN names FOR SYSTEM_TIME AS OF e.ts AS n ON e.k = n.k"},
		{"regular", "a BIGINT, b BIGINT, v BIGINT", "SELECT o.id, g.id, g.v FROM past AS o LEFT JOIN gen AS g ON o.id + 1 = g.id AND g.v > 20"},
		{"regular_inner", "a BIGINT, b BIGINT", "SELECT o.id, g.id FROM past AS o JOIN gen AS g ON o.v = g.v AND o.k = g.k AND g.id > o.id AND g.id < o.id + 900"},
		{"joined_groups", "k BIGINT, n BIGINT, s BIGINT", "SELECT COALESCE(o.k, -1), COUNT(*), SUM(g.id) FROM past AS o FULL JOIN gen AS g ON o.id = g.id + 1 AND o.v > 30 GROUP BY COALESCE(o.k, -1)"},
		{"join_regrouped", "k BIGINT, n BIGINT, vs BIGINT", `SELECT k, n, COUNT(*) FROM (SELECT o.k, o.v, COUNT(*) AS n, MAX(g.id) AS top FROM past AS o JOIN gen AS g
    ON o.k = g.k AND g.id > o.id AND g.id < o.id + 300 GROUP BY o.k, o.v) GROUP BY k, n`},
		{"semi_joined", "id BIGINT, v BIGINT", "SELECT id, v FROM past WHERE id + 1 NOT IN (SELECT id FROM gen WHERE v > 50)"},
	},
	"windows": {
		{"tumbles", "k BIGINT, t TIMESTAMP(3), n BIGINT, s BIGINT, d BIGINT", "SELECT k, window_start, COUNT(*), SUM(v), COUNT(DISTINCT v) FROM TABLE(TUMBLE(TABLE ev, DESCRIPTOR(ts), INTERVAL '1' SECOND)) GROUP BY k, window_start, window_end"},
		{"hops", "t TIMESTAMP(3), n BIGINT, m BIGINT", "SELECT window_start, COUNT(*), MAX(id) FROM TABLE(HOP(TABLE ev, DESCRIPTOR(ts), INTERVAL '0.5' SECOND, INTERVAL '2' SECOND)) GROUP BY window_start, window_end"},
		{"sessions", "k BIGINT, a TIMESTAMP(3), b TIMESTAMP(3), n BIGINT", "SELECT k, window_start, window_end, COUNT(*) FROM TABLE(SESSION(TABLE pauses PARTITION BY k, DESCRIPTOR(ts), INTERVAL '0.5' SECOND)) GROUP BY k, window_start, window_end"},
		{"window_join", "a BIGINT, b BIGINT", `SELECT o.id, g.id FROM (SELECT * FROM TABLE(TUMBLE(TABLE past, DESCRIPTOR(ts), INTERVAL '1' SECOND))) AS o FULL JOIN
    (SELECT * FROM TABLE(TUMBLE(TABLE gen, DESCRIPTOR(ts), INTERVAL '1' SECOND))) AS g ON o.window_start = g.window_start AND o.window_end = g.window_end AND o.v = g.v - 1`},
		{"window_top", "t TIMESTAMP(3), rn BIGINT, id BIGINT", `SELECT window_start, rn, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY v DESC, id) AS rn
    FROM TABLE(TUMBLE(TABLE ev, DESCRIPTOR(ts), INTERVAL '1' SECOND))) WHERE rn <= 3`},
		{"over_rows", "id BIGINT, s BIGINT, l BIGINT", "SELECT id, SUM(v) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 9 PRECEDING AND CURRENT ROW), FIRST_VALUE(id) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) FROM ev"},
		{"over_all", "id BIGINT, n BIGINT, m BIGINT", "SELECT id, COUNT(*) OVER (PARTITION BY k ORDER BY ts), MAX(v) OVER (PARTITION BY k ORDER BY ts) FROM ev"},
		{"matched", "k BIGINT, a BIGINT, b BIGINT, n BIGINT", `SELECT * FROM ev MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES a.id AS a, c.id AS b, COUNT(b.id) AS n
    AFTER MATCH SKIP PAST LAST ROW PATTERN (a b+ c) DEFINE b AS b.v < 60, c AS c.v >= 60)`},
	},
	"changes": {
		{"top_numbered", "k BIGINT, rn BIGINT, id BIGINT, v BIGINT", "SELECT k, rn, id, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id DESC) AS rn FROM ev) WHERE rn <= 5"},
		{"top_unnumbered", "k BIGINT, id BIGINT", "SELECT k, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v, id DESC) AS rn FROM ev) WHERE rn <= 5"},
		{"first_rows", "v BIGINT, id BIGINT", "SELECT v, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY v ORDER BY ts ASC) AS rn FROM ev) WHERE rn = 1"},
		{"last_rows", "v BIGINT, id BIGINT", "SELECT v, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY v ORDER BY ts DESC) AS rn FROM ev) WHERE rn = 1"},
		{"common_rows", "k BIGINT, v BIGINT", "SELECT k, v FROM past WHERE id < 500 INTERSECT SELECT k, v FROM gen"},
		{"remaining_rows", "k BIGINT, v BIGINT", "SELECT k, v FROM past EXCEPT ALL SELECT k, v FROM gen WHERE id % 3 = 0"},
		{"grouped", "k BIGINT, n BIGINT, d BIGINT, lo BIGINT, hi BIGINT, a BIGINT", "SELECT k, COUNT(*), COUNT(DISTINCT v), MIN(id), MAX(id), AVG(v) FROM ev GROUP BY k"},
		{"regrouped", "n BIGINT, ks BIGINT, top BIGINT", "SELECT n % 5, COUNT(*), MAX(v) FROM (SELECT v, COUNT(*) AS n FROM ev GROUP BY v) GROUP BY n % 5"},
		{"keyed", "k BIGINT, n BIGINT, PRIMARY KEY (k) NOT ENFORCED", "SELECT v % 11, n FROM (SELECT k, v, COUNT(*) AS n FROM ev GROUP BY k, v)"},
	},
}

const (
	pastRows = 1500
	genRows  = 3000
	slowly   = 400 // rows of gen a second, in runs that are to be stopped: far fewer than there are
	fast     = 100_000_000
)

// world is the input and output of one job through all its lives.
type world struct {
	t         *testing.T
	dir       string
	sinks     []sink
	past, ver string
}

func newWorld(t *testing.T, sinks []sink) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), sinks: sinks}
	w.past, w.ver = filepath.Join(w.dir, "past.json"), filepath.Join(w.dir, "versions.json")
	var past, versions strings.Builder
	for i := range pastRows {
		fmt.Fprintf(&past, "{\"id\":%d}\n", 2*i)
	}
	for id := 0; id < 2*pastRows; id += 25 {
		fmt.Fprintf(&versions, "{\"k\":%d,\"name\":\"name %d\",\"id\":%d}\n", id%6, id, id)
	}
	for name, text := range map[string]string{w.past: past.String(), w.ver: versions.String()} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w *world) out(s sink) string { return filepath.Join(w.dir, "out", s.name) }

// life is a run of the job in a state directory of its own.
type life struct {
	parallelism int
	memory      int64
	rate        int
	restore     streamsql.Restore
	sinks       []sink // nil: the world's
}

// start runs the job. Whoever starts it closes the engine.
func (w *world) start(l life) (*streamsql.Engine, *streamsql.Job) {
	w.t.Helper()
	eng, err := streamsql.Open(filepath.Join(w.t.TempDir(), "state"), &streamsql.Options{Restore: l.restore, Memory: l.memory, Settings: map[string]string{
		"parallelism.default": fmt.Sprint(l.parallelism), "execution.checkpointing.interval": "100 ms", "table.local-time-zone": "UTC", "pipeline.name": "job"}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = eng.Close() })
	if l.sinks == nil {
		l.sinks = w.sinks
	}
	text := fmt.Sprintf(sources, w.past, l.rate, genRows-1, w.ver) + "CREATE VIEW pauses AS SELECT * FROM ev WHERE id % 400 < 300;\n"
	set := "EXECUTE STATEMENT SET BEGIN\n"
	for _, s := range l.sinks {
		text += fmt.Sprintf("CREATE TABLE %s (%s) WITH ('connector' = 'filesystem', 'format' = 'changelog-json', 'path' = '%s');\n", s.name, s.columns, w.out(s))
		set += fmt.Sprintf("INSERT INTO %s %s;\n", s.name, s.query)
	}
	script := eng.Script(text + set + "END;\n")
	var job *streamsql.Job
	for {
		res, err := script.Next(context.Background())
		if err != nil {
			if job != nil {
				return eng, job
			}
			w.t.Fatal(err)
		}
		job = res.Job
	}
}

// read waits until the job has read so many rows of gen.
func read(t *testing.T, j *streamsql.Job, rows int64) {
	t.Helper()
	for ctx := patient(t); ; time.Sleep(time.Millisecond) {
		st := j.Status()
		n := int64(0)
		for _, s := range st.Splits {
			if s.Node == "source[gen]" {
				n += s.Records
			}
		}
		if n >= rows {
			return
		}
		if st.State.Ended() || ctx.Err() != nil {
			t.Fatalf("%d rows of %d: %s, %v", n, rows, st.State, j.Wait(ctx))
		}
	}
}

// stopped runs the job until it has read so many rows of gen, and stops it with a savepoint, which is then moved.
func (w *world) stopped(l life, rows int64) (savepoint string) {
	w.t.Helper()
	l.rate = slowly
	eng, job := w.start(l)
	read(w.t, job, rows)
	made, moved := filepath.Join(w.t.TempDir(), "made"), filepath.Join(w.t.TempDir(), "moved")
	if err := job.Stop(patient(w.t), streamsql.StopOptions{Savepoint: made}); err != nil {
		w.t.Fatal(err)
	}
	if err := eng.Close(); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Rename(made, moved); err != nil {
		w.t.Fatal(err)
	}
	return moved
}

// finish runs the job to the end of its input.
func (w *world) finish(l life) {
	w.t.Helper()
	l.rate = fast
	eng, job := w.start(l)
	if err := job.Wait(patient(w.t)); err != nil {
		w.t.Fatal(err)
	}
	if err := eng.Close(); err != nil {
		w.t.Fatal(err)
	}
}

// contents are the rows that the changes of each sink leave, with how often.
func (w *world) contents() map[string]map[string]int {
	w.t.Helper()
	all := map[string]map[string]int{}
	for _, s := range w.sinks {
		rows := map[string]int{}
		files, err := filepath.Glob(filepath.Join(w.out(s), "part-*"))
		if err != nil {
			w.t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				w.t.Fatal(err)
			}
			for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
				var c struct {
					Data json.RawMessage
					Op   string
				}
				if err := json.Unmarshal([]byte(line), &c); err != nil {
					w.t.Fatalf("%s: %q: %v", f, line, err)
				}
				by := 1
				if c.Op[0] == '-' {
					by = -1
				}
				if rows[string(c.Data)] += by; rows[string(c.Data)] == 0 {
					delete(rows, string(c.Data))
				}
			}
		}
		all[s.name] = rows
	}
	return all
}

// undisturbed is what the job leaves when nothing happens to it.
func undisturbed(t *testing.T, sinks []sink) map[string]map[string]int {
	t.Helper()
	w := newWorld(t, sinks)
	w.finish(life{parallelism: 2})
	want := w.contents()
	for name, rows := range want {
		if len(rows) == 0 {
			t.Errorf("%s is empty: it shows nothing", name)
		}
	}
	return want
}

func (w *world) compare(want map[string]map[string]int) {
	w.t.Helper()
	got := w.contents()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if maps.Equal(want[name], got[name]) {
			continue
		}
		shown := 0
		for _, row := range slices.Sorted(maps.Keys(want[name])) {
			if got[name][row] != want[name][row] && shown < 5 {
				w.t.Errorf("%s: row %s is there %d times, want %d", name, row, got[name][row], want[name][row])
				shown++
			}
		}
		for _, row := range slices.Sorted(maps.Keys(got[name])) {
			if want[name][row] == 0 && shown < 10 {
				w.t.Errorf("%s: row %s is there %d times, want none", name, row, got[name][row])
				shown++
			}
		}
	}
}
