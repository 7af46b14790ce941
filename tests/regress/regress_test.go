package regress

// Goal: a fault that was fixed stays fixed. Method: SQL in, rendered errors or rows out.

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/sql/diag"
)

// stuck bounds a script: a loaded machine is slow, a hang is for ever.
const stuck = 5 * time.Minute

func open(t *testing.T) *streamsql.Engine {
	t.Helper()
	e, err := streamsql.Open(filepath.Join(t.TempDir(), "state"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// run executes a script and returns the rows of its last query, one line each, and the error as a user sees it.
func run(t *testing.T, script string) (rows, failure string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), stuck)
	defer cancel()
	err := func() error {
		s := open(t).Script(script)
		for {
			res, err := s.Next(ctx)
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			rows = ""
			for change, err := range res.Rows() {
				if err != nil {
					return err
				}
				var cells []string
				for i := range change.Row.Len() {
					cell, null := change.Row.Display(i)
					if null {
						cell = "<NULL>"
					}
					cells = append(cells, cell)
				}
				rows += change.Kind.String() + " " + strings.Join(cells, ", ") + "\n"
			}
			if res.Job != nil {
				if err := res.Job.Wait(ctx); err != nil {
					return err
				}
			}
		}
	}()
	if err != nil {
		failure = diag.Render(err, "", script)
	}
	return rows, failure
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ name, script, want string }{
		{"a view with one name twice", "CREATE VIEW v (x, x) AS SELECT 1, 2", "1:19: column x is listed twice"},
		{"an empty statement set", "EXECUTE STATEMENT SET BEGIN END", "1:1: the statement set is empty"},
		{"explain DDL", "EXPLAIN CREATE TABLE t (a INT)", "1:9: EXPLAIN of a definition is not supported"},
		{"a table by the name its alias hides", "SELECT t.a FROM (VALUES (1)) AS u(a)", "hint: write u.a"},
		{"a window column without a window", "SELECT window_start FROM (VALUES (1)) AS u(a)", "hint: a window adds it"},
		{"a script in UTF-16", "\xff\xfeS\x00E\x00L\x00E\x00C\x00T\x00", "saved as UTF-16?"},
		{"a binary file", "\x7fELF\x02\x01", "is this a binary file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, failure := run(t, c.script); !strings.Contains(failure, c.want) {
				t.Errorf("got %q, want %q in it", failure, c.want)
			}
		})
	}
}

// Editors on Windows put a byte order mark in front of UTF-8. It was an unexpected character.
func TestByteOrderMark(t *testing.T) {
	if rows, failure := run(t, "\ufeffSELECT 1;\r\n"); rows != "+I 1\n" || failure != "" {
		t.Errorf("rows %q, error %q", rows, failure)
	}
	if _, failure := run(t, "\ufeffSELECT x"); !strings.Contains(failure, "1:8: column x does not exist\n  SELECT x\n         ^") {
		t.Errorf("the mark shifts the place: %q", failure)
	}
	if _, failure := run(t, "SELECT 1;\ufeffSELECT 2"); !strings.Contains(failure, `1:10: unexpected character '\ufeff'`) {
		t.Errorf("a mark inside the text passes: %q", failure)
	}
}

// A path that does not exist was refused without a word on what to do.
func TestMissingPathHasAHint(t *testing.T) {
	_, failure := run(t, "CREATE TABLE s (a INT) WITH ('connector' = 'filesystem', 'path' = '"+filepath.Join(t.TempDir(), "nope")+
		"', 'format' = 'json'); SELECT * FROM s")
	if !strings.Contains(failure, "no such file or directory") || !strings.Contains(failure, "hint: check 'path'") {
		t.Errorf("got %q", failure)
	}
}

// An error in a line of a megabyte printed that line, and another of spaces; one in a binary file drove the terminal.
func TestErrorsOfLongLinesAreShort(t *testing.T) {
	_, failure := run(t, "SELECT "+strings.Repeat("1, ", 300_000)+"nope"+strings.Repeat(", 1", 100_000))
	if len(failure) > 2000 {
		t.Errorf("the error has %d bytes", len(failure))
	}
	lines := strings.Split(failure, "\n")
	if len(lines) < 3 {
		t.Fatalf("no excerpt in %q", failure)
	}
	if at := len([]rune(lines[2])) - 1; !strings.HasPrefix(string([]rune(lines[1])[at:]), "nope") {
		t.Errorf("the caret does not stand under nope:\n%s\n%s", lines[1], lines[2])
	}
	if _, failure := run(t, "SELECT '\x1b[2J', \x01"); strings.ContainsAny(failure, "\x1b\x01") {
		t.Errorf("control characters in %q", failure)
	}
}

// The error of a row began with all columns of the operator it failed in.
func TestErrorsOfWideQueriesAreShort(t *testing.T) {
	var sb strings.Builder
	sb.WriteString("SELECT CAST(s AS INT)")
	for i := range 1000 {
		fmt.Fprintf(&sb, ", s || 'column %d'", i)
	}
	_, failure := run(t, sb.String()+" FROM (VALUES ('x')) AS v(s)")
	if !strings.Contains(failure, "cannot cast 'x' to INT") || len(failure) > 1500 {
		t.Errorf("%d bytes: %.2000q", len(failure), failure)
	}
}

// Binding a chain of n conditions took n² time: 50,000 of them, minutes.
func TestLongConditions(t *testing.T) {
	for _, op := range []string{"AND a <> ", "OR a = "} {
		var sb strings.Builder
		sb.WriteString("SELECT a FROM (VALUES (1)) AS v(a) WHERE a = 1 ")
		for i := range 20_000 {
			fmt.Fprintf(&sb, "%s%d ", op, i+2)
		}
		if rows, failure := run(t, sb.String()); rows != "+I 1\n" || failure != "" {
			t.Errorf("%s: rows %q, error %.300q", op, rows, failure)
		}
	}
}

// A destination that is a file was retried forever, as if it could become a directory.
func TestSinkPathIsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.csv")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, failure := run(t, fmt.Sprintf(`CREATE TABLE w (a INT) WITH ('connector' = 'filesystem', 'path' = '%s', 'format' = 'csv');
		INSERT INTO w VALUES (1)`, path))
	if !strings.Contains(failure, path+" is not a directory") || !strings.Contains(failure, "hint: set 'path' to a directory") {
		t.Errorf("got %q", failure)
	}
}

// The values of distinct sets were removed window by window, each with a pass over the state: n windows took n² time.
func TestManyWindowsWithDistinct(t *testing.T) {
	rows, failure := run(t, `CREATE TABLE g (id BIGINT, ts AS TO_TIMESTAMP_LTZ(id * 1000, 3), WATERMARK FOR ts AS ts - INTERVAL '30' DAY)
			WITH ('connector' = 'datagen', 'rows-per-second' = '100000000', 'number-of-rows' = '200000',
			'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '200000');
		CREATE VIEW w AS SELECT window_start, COUNT(DISTINCT id) AS n FROM TABLE(TUMBLE(TABLE g, DESCRIPTOR(ts), INTERVAL '2' SECOND))
			GROUP BY window_start, window_end;
		SET 'execution.runtime-mode' = 'batch';
		SELECT COUNT(*), SUM(n) FROM w`)
	if rows != "+I 100001, 200000\n" || failure != "" {
		t.Errorf("rows %q, error %q", rows, failure)
	}
}

// MAP['a', 1] has keys of type CHAR(1), and refused the value of a STRING column as a key.
func TestMapKeyOfAnotherLength(t *testing.T) {
	rows, failure := run(t, `SELECT MAP['a', 1, 'bb', 2][k] FROM (VALUES (CAST('a' AS STRING)), ('bb'), ('ccc'), (CAST(NULL AS STRING))) AS v(k)`)
	if rows != "+I 1\n+I 2\n+I <NULL>\n+I <NULL>\n" || failure != "" {
		t.Errorf("rows %q, error %q", rows, failure)
	}
}

// A job whose state directory was removed restarted forever: each attempt took it for a disk that fails for a moment.
func TestStateRemovedWhileRunning(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	e, err := streamsql.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ctx, cancel := context.WithTimeout(context.Background(), stuck)
	defer cancel()
	s := e.Script(`SET 'execution.checkpointing.interval' = '50 ms';
		SET 'restart-strategy.exponential-delay.initial-backoff' = '10 ms';
		CREATE TABLE g (a INT) WITH ('connector' = 'datagen', 'rows-per-second' = '100');
		CREATE TABLE o (a INT, n BIGINT, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'blackhole');
		INSERT INTO o SELECT a, COUNT(*) FROM g GROUP BY a`)
	var job *streamsql.Job
	for job == nil {
		res, err := s.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		job = res.Job
	}
	if _, err := job.Checkpoint(ctx); err != nil {
		t.Fatal(err)
	}
	// What the job writes meanwhile can make the first attempts fail.
	for err := os.RemoveAll(dir); err != nil && ctx.Err() == nil; {
		err = os.RemoveAll(dir)
	}
	if err := job.Wait(ctx); err == nil || !strings.Contains(diag.Render(err, "", ""), "was removed while its job ran") {
		t.Errorf("got %v", err)
	}
}

// A file in place of the state directory was said to be in use by another process.
func TestStateDirectoryIsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := streamsql.Open(path, nil); err == nil || !strings.Contains(err.Error(), "is a file") {
		t.Errorf("got %v", err)
	}
}
