package cli

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/streamsql/streamsql/tests/harness"
)

// Goal: flags, files, streams and exit codes. Method: the real binary in an empty folder.

// run runs the program to its end.
func run(t *testing.T, dir, stdin string, args ...string) (out, errs string, code int) {
	t.Helper()
	p := harness.Start(t, harness.Command{Path: harness.BuildStreamsql(t), Args: args, Dir: dir, Stdin: stdin})
	code, err := p.Wait(patience)
	if err != nil {
		t.Fatal(err)
	}
	return p.Stdout(), p.Stderr(), code
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// kafkaJob names no servers.
const kafkaJob = "CREATE TABLE k (x INT) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json'); INSERT INTO k VALUES (1)"

// TestExitCodes: 0 done, 1 a job failed, 2 the SQL or the configuration is wrong, each with a message that helps.
func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "bad.json", "{\"id\":1}\n{\"id\":\n")
	write(t, dir, "good.sql", "SELECT 1 AS uno;")
	write(t, dir, "wrong.sql", "SELECT 1 AS uno;\nSELECT\n  nope\nFROM missing;\nSELECT 3 AS three;")
	write(t, dir, "fails.sql", `CREATE TABLE bad (id BIGINT) WITH ('connector' = 'filesystem', 'path' = 'bad.json', 'format' = 'json');
CREATE TABLE bin (id BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO bin SELECT id FROM bad;`)
	for _, c := range []struct {
		name string
		args []string
		code int
		errs []string // must stand on stderr
	}{
		{"done", []string{"run", "good.sql"}, 0, nil},
		{"wrong SQL", []string{"run", "wrong.sql"}, 2, []string{"wrong.sql:4:6: ", "missing does not exist", "     ^"}},
		{"failed job", []string{"run", "fails.sql"}, 1, []string{"subtask 0", "split", "bad.json", "failed after"}},
		{"no file", []string{"run", "nofile.sql"}, 2, []string{"nofile.sql"}},
		{"nothing to run", []string{"run"}, 2, []string{"hint: streamsql run job.sql"}},
		{"unknown command", []string{"rum"}, 2, []string{`did you mean "run"?`}},
		{"unknown flag", []string{"run", "--restor", "none", "good.sql"}, 2, []string{"unknown flag --restor", "did you mean --restore?"}},
		{"bad setting", []string{"run", "-D", "parallelism.default=many", "good.sql"}, 2, []string{"flag -D parallelism.default=many"}},
		{"setting without value", []string{"run", "-D", "parallelism.default", "good.sql"}, 2, []string{"write key=value"}},
		{"misspelled setting", []string{"run", "-D", "paralelism.default=2", "good.sql"}, 0, []string{"did you mean 'parallelism.default'?"}},
		{"bad format", []string{"run", "-o", "xml", "good.sql"}, 2, []string{"flag -o", "table, csv, json or markdown"}},
		{"bad mode", []string{"run", "--result-mode", "live", "good.sql"}, 2, []string{"flag --result-mode"}},
		{"bad memory", []string{"run", "--memory", "lots", "good.sql"}, 2, []string{"flag --memory=lots"}},
		{"bad log level", []string{"run", "--log", "loud", "good.sql"}, 2, []string{"flag --log"}},
		{"restore from an unset variable", []string{"run", "--restore", "", "good.sql"}, 2, []string{"flag --restore has no value"}},
		{"restore from nowhere", []string{"run", "--restore", "nowhere", "-e", "CREATE TABLE b (x INT) WITH ('connector' = 'blackhole'); INSERT INTO b VALUES (1)"}, 2, []string{"nowhere"}},
		{"stray argument", []string{"-q", "good.sql"}, 2, []string{"streamsql run good.sql runs a file"}},
		{"check", []string{"check", "good.sql"}, 0, nil},
		{"check wrong", []string{"check", "wrong.sql"}, 2, []string{"wrong.sql:4:6: "}},
		{"limit of endless rows", []string{"-e", "CREATE TABLE g (i INT) WITH ('connector' = 'datagen'); SELECT i FROM g LIMIT 2"}, 0, nil},
		{"check without broker", []string{"check", "-e", kafkaJob}, 2, []string{"properties.bootstrap.servers", "--embedded-kafka"}},
		{"check with broker", []string{"check", "--embedded-kafka", "-e", kafkaJob}, 0, nil},
		{"check warns", []string{"check", "-e", uncommitted}, 0, []string{"warning SSQL-W201: table orders reads rows of open and aborted transactions"}},
		{"check strict", []string{"check", "--strict", "-e", uncommitted}, 2, []string{"SSQL-W201"}},
		{"check ignore", []string{"check", "--strict", "--ignore", "SSQL-W201", "-e", uncommitted}, 0, nil},
		{"check ignore what", []string{"check", "--ignore", "SSQL-X1", "-e", uncommitted}, 2, []string{"there is no rule"}},
		{"check rule", []string{"check", "--rule", "SSQL-W301"}, 0, nil},
		{"check rule what", []string{"check", "--rule", "SSQL-X1"}, 2, []string{"there is no rule"}},
		{"check format", []string{"check", "-o", "xml", "-e", uncommitted}, 2, []string{"use text or json"}},
		{"explain guarantees", []string{"explain", "--guarantees", "-o", "json", "-e", uncommitted}, 0, nil},
		{"explain format", []string{"explain", "-o", "json", "-e", uncommitted}, 2, []string{"--guarantees -o json"}},
		{"check syntax", []string{"check", "--syntax", "wrong.sql"}, 0, nil},
		{"unused setting", []string{"version", "-D", "a=b"}, 2, []string{"unknown flag -D"}},
		{"unused setting of checkpoints", []string{"checkpoint", "show", "-D", "a=b"}, 2, []string{"unknown flag -D"}},
		{"unused setting of the demo", []string{"demo", "orders", "-D", "a=b"}, 2, []string{"demo without earthquakes does not take -D"}},
		{"unused setting of a savepoint", []string{"savepoint", "list", "-D", "a=b"}, 2, []string{"list does not take -D"}},
		{"unused flag", []string{"checkpoint", "show", "--id", "3"}, 2, []string{"show does not take --id"}},
		{"old option", []string{"check", "--embedded-kafka", "-e", strings.Replace(kafkaJob, "'topic'", "'sink.semantic' = 'exactly-once', 'topic'", 1)}, 0,
			[]string{"notice: table k: option 'sink.semantic' is an old name; use 'sink.delivery-guarantee'"}},
		{"no state", []string{"checkpoint", "show", "nowhere"}, 2, []string{`no state directory "nowhere"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, errs, code := run(t, dir, "", c.args...)
			if code != c.code {
				t.Errorf("exit code %d, want %d; stderr:\n%s", code, c.code, errs)
			}
			for _, want := range c.errs {
				if !strings.Contains(errs, want) {
					t.Errorf("stderr does not say %q:\n%s", want, errs)
				}
			}
		})
	}
}

// TestHelp: every command teaches itself on stdout, with examples, and ends well.
func TestHelp(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []string{"run", "repl", "explain", "check", "checkpoint"} {
		out, errs, code := run(t, dir, "", c, "--help")
		if code != 0 || errs != "" || !strings.Contains(out, "examples:\n  streamsql ") || !strings.Contains(out, "flags:\n") {
			t.Errorf("%s --help: exit code %d, stderr %q, stdout:\n%s", c, code, errs, out)
		}
	}
	out, _, code := run(t, dir, "", "--help")
	if code != 0 || !strings.Contains(out, "checkpoint show|trace [DIR]") {
		t.Errorf("--help: exit code %d, stdout:\n%s", code, out)
	}
}

// TestPipedStatements: without a terminal, standard input is a script, commands of the shell between the statements.
func TestPipedStatements(t *testing.T) {
	out, errs, code := run(t, t.TempDir(), "CREATE VIEW v AS SELECT 1 AS x;\n.mode csv\nSELECT x\nFROM v;\n\nSELECT y FROM v;\nSELECT 3;\n", "-q")
	if code != 2 || !strings.HasSuffix(out, "x\n1\n") || strings.Contains(out, "streamsql>") || !strings.Contains(errs, "6:8: ") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, out, errs)
	}
}

// TestResultFormats: what -o and --result-mode make of one query.
func TestResultFormats(t *testing.T) {
	const query = "SELECT k, COUNT(*) AS n FROM (VALUES ('a'), ('b'), ('a')) AS t(k) GROUP BY k"
	dir := t.TempDir()
	for _, c := range []struct{ args, want string }{
		{"-o csv", "k,n\na,2\nb,1\n"},
		{"-o json", `{"k":"a","n":2}` + "\n" + `{"k":"b","n":1}` + "\n"},
		{"-o json --result-mode changelog", `{"op":"+I","row":{"k":"a","n":2}}` + "\n" + `{"op":"+I","row":{"k":"b","n":1}}` + "\n"},
	} {
		args := append(strings.Fields(c.args), "-D", "parallelism.default=1", "-e", query)
		out, errs, code := run(t, dir, "", args...)
		if code != 0 || out != c.want {
			t.Errorf("%s: exit code %d\n%swant\n%s%s", c.args, code, out, c.want, errs)
		}
	}
}

// TestTerminate: SIGTERM stops an unbounded job with a final checkpoint, exit code 0, and the next run goes on there.
func TestTerminate(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "job.sql", generator+`
CREATE TABLE bin (id BIGINT, name STRING) WITH ('connector' = 'print');
SET 'execution.checkpointing.interval' = '200 ms';
INSERT INTO bin SELECT * FROM numbers;`)
	for round := range 2 {
		p := harness.Start(t, harness.Command{Path: harness.BuildStreamsql(t), Args: []string{"run", "job.sql"}, Dir: dir})
		if err := p.WaitOutput("+I[", patience); err != nil {
			t.Fatal(err)
		}
		if err := p.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		code, err := p.Wait(patience)
		if err != nil || code != 0 {
			t.Fatalf("round %d: exit code %d, %v", round, code, err)
		}
		for _, want := range []string{"stopping after a final checkpoint", "stopped after"} {
			if !strings.Contains(p.Stderr(), want) {
				t.Errorf("round %d: stderr does not say %q:\n%s", round, want, p.Stderr())
			}
		}
	}
	out, _, code := run(t, dir, "", "checkpoint", "show")
	for _, want := range []string{filepath.Join(".streamsql", "job"), "source[numbers]/0 split 0: row ", "output: committed", "fencing number 2"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("checkpoint show: exit code %d, no %q in\n%s", code, want, out)
		}
	}
	tracedInOrder(t, dir)
}

// tracedInOrder: checkpoint trace shows each step of a checkpoint's life, in the protocol's order, and finds one by its id.
func tracedInOrder(t *testing.T, dir string) {
	t.Helper()
	out, _, code := run(t, dir, "", "checkpoint", "trace", "--id", "1")
	rest := out
	for _, want := range []string{" 1 COMMITTED, taken ", "barrier ", "pre-commit ", "complete ", "commit ", "committed "} {
		_, after, ok := strings.Cut(rest, want)
		if code != 0 || !ok {
			t.Fatalf("checkpoint trace: exit code %d, no %q in its place in\n%s", code, want, out)
		}
		rest = after
	}
	if out, _, code := run(t, dir, "", "checkpoint", "trace", "--json"); code != 0 || strings.Count(out, `"state":"COMMITTED"`) == 0 || strings.Count(out, "\n") > 3 {
		t.Errorf("checkpoint trace --json: exit code %d\n%s", code, out)
	}
	if _, errs, code := run(t, dir, "", "checkpoint", "trace", "--id", "4711"); code != 2 || !strings.Contains(errs, "holds no checkpoint 4711") {
		t.Errorf("checkpoint trace of another: exit code %d\n%s", code, errs)
	}
}

// TestKilledBetweenJobs: a file whose process was killed when its first job had ended goes on with the second, and does not write
// the first one's rows again; the exit code of a killed process can be had by running it once more.
func TestKilledBetweenJobs(t *testing.T) {
	dir := t.TempDir()
	const tables = `
CREATE TABLE ten (id BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '10');
CREATE TABLE numbers (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '100');
CREATE TABLE f (id BIGINT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'out');
CREATE TABLE bin (id BIGINT) WITH ('connector' = 'print');
`
	write(t, dir, "job.sql", tables+"INSERT INTO f SELECT id FROM ten; INSERT INTO bin SELECT id FROM numbers;")
	for round, end := range []syscall.Signal{syscall.SIGKILL, syscall.SIGKILL, syscall.SIGTERM} {
		p := harness.Start(t, harness.Command{Path: harness.BuildStreamsql(t), Args: []string{"run", "job.sql"}, Dir: dir})
		if err := p.WaitOutput("+I[", patience); err != nil { // of the second job
			t.Fatal(err)
		}
		if err := p.Signal(end); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Wait(patience); err != nil {
			t.Fatal(err)
		}
		if said := strings.Contains(p.Stderr(), "is not run again"); said != (round > 0) {
			t.Errorf("round %d says\n%s", round, p.Stderr())
		}
		rows := 0
		files, err := filepath.Glob(filepath.Join(dir, "out", "part-*"))
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			rows += strings.Count(string(text), "\n")
		}
		if err != nil || rows != 10 {
			t.Errorf("round %d: %d rows, %v", round, rows, err)
		}
	}
}

// TestInterrupted: Ctrl-C before the end of what ends by itself is exit code 130, SIGTERM 143, with the final checkpoint.
func TestInterrupted(t *testing.T) {
	for _, c := range []struct {
		sig  syscall.Signal
		code int
	}{{syscall.SIGINT, 130}, {syscall.SIGTERM, 143}} {
		dir := t.TempDir()
		write(t, dir, "job.sql", `
CREATE TABLE numbers (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '50', 'number-of-rows' = '1000000000');
CREATE TABLE bin (id BIGINT) WITH ('connector' = 'print');
INSERT INTO bin SELECT * FROM numbers;`)
		p := harness.Start(t, harness.Command{Path: harness.BuildStreamsql(t), Args: []string{"run", "job.sql"}, Dir: dir})
		if err := p.WaitOutput("+I[", patience); err != nil {
			t.Fatal(err)
		}
		if err := p.Signal(c.sig); err != nil {
			t.Fatal(err)
		}
		code, err := p.Wait(patience)
		if err != nil || code != c.code || !strings.Contains(p.Stderr(), "stopped after") {
			t.Fatalf("%v: exit code %d, %v\n%s", c.sig, code, err, p.Stderr())
		}
	}
}

// TestSummary: a job ends with what it did, unless -q.
func TestSummary(t *testing.T) {
	const insert = "CREATE TABLE bin (id INT) WITH ('connector' = 'blackhole'); INSERT INTO bin VALUES (1), (2), (3)"
	_, errs, code := run(t, t.TempDir(), "", "-e", insert)
	if code != 0 || !strings.Contains(errs, "finished after") || !strings.Contains(errs, "3 rows in, 3 rows out") {
		t.Errorf("exit code %d, stderr %q", code, errs)
	}
	_, errs, code = run(t, t.TempDir(), "", "-q", "-e", insert)
	if code != 0 || errs != "" {
		t.Errorf("-q: exit code %d, stderr %q", code, errs)
	}
}

// TestHead: a reader that closes its end stops a query, and a job that prints, quietly.
func TestHead(t *testing.T) {
	t.Run("query", func(t *testing.T) { head(t, "SELECT id FROM numbers", `{"op":"+I","row":{"id":`) })
	t.Run("print", func(t *testing.T) {
		head(t, "CREATE TABLE p (id BIGINT) WITH ('connector' = 'print', 'print-identifier' = 'row', 'sink.parallelism' = '1'); INSERT INTO p SELECT id FROM numbers", "row> +I[")
	})
}

func head(t *testing.T, statements, first string) {
	cmd := exec.Command(harness.BuildStreamsql(t), "-q", "-o", "json", "-e", generator+statements)
	cmd.Dir = t.TempDir()
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, first) {
		t.Errorf("first line %q, %v", line, err)
	}
	out.Close()
	if err := cmd.Wait(); err != nil || errs.Len() > 0 {
		t.Errorf("%v, stderr %q", err, errs.String())
	}
}

// uncommitted is a job with one warning.
const uncommitted = `CREATE TABLE orders (id INT) WITH ('connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'b:9092', 'format' = 'json',
  'properties.isolation.level' = 'read_uncommitted');
CREATE TABLE out1 (id INT) WITH ('connector' = 'kafka', 'topic' = 'out', 'properties.bootstrap.servers' = 'b:9092', 'format' = 'json');
INSERT INTO out1 SELECT id FROM orders;`
