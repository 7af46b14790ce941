package preflight

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql/tests/harness"
)

// Goal: streamsql probe measures the disk, the broker and the database that a job's file names, and nothing else, judges, and leaves
// nothing behind; what cannot be reached is named and fails. Method: a real broker and a real database, then an address where
// nobody listens. No figure is asserted but that there is one.
func TestProbe(t *testing.T) {
	k, pg, bin := harness.SharedKafka(t), harness.SharedPostgres(t), harness.BuildStreamsql(t)
	db := pg.CreateDatabase(t)
	script := func(url string) string {
		return `CREATE TABLE a (id BIGINT) WITH ('connector' = 'kafka', 'topic' = 'probe', 'format' = 'json', 'properties.bootstrap.servers' = '` + k.Addr() + `');
CREATE TABLE b (id BIGINT) WITH ('connector' = 'postgres', 'url' = '` + url + `', 'table-name' = 'b', 'connection.max-retry-timeout' = '1 s');
INSERT INTO b SELECT id FROM a;`
	}
	dir := t.TempDir()
	run := func(text string, args ...string) (code int, out, errs string) {
		t.Helper()
		file := filepath.Join(dir, "job.sql")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		defer cancel()
		var o, e bytes.Buffer
		c := exec.CommandContext(ctx, bin, append([]string{"probe", "job.sql", "--for", "100ms"}, args...)...)
		c.Dir, c.Stdout, c.Stderr = dir, &o, &e
		if err := c.Run(); c.ProcessState == nil {
			t.Fatal(err)
		}
		return c.ProcessState.ExitCode(), o.String(), e.String()
	}
	// At an interval of an hour any machine is fast enough.
	code, out, errs := run(script(pg.DSN(db)), "-o", "json", "-D", "execution.checkpointing.interval=1h")
	var doc struct {
		Places []struct {
			Name, Kind, Error string
			Tables            []string
			P50               float64 `json:"p50_ms"`
			P99               float64 `json:"p99_ms"`
			Samples           int
			BytesPerSecond    float64 `json:"bytes_per_second"`
		}
		Jobs []struct {
			Job, Verdict string
			AtP99        float64 `json:"checkpoint_p99_ms"`
		}
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatalf("%v in %s%s", err, out, errs)
	}
	var kinds []string
	for _, p := range doc.Places {
		kinds = append(kinds, p.Kind+" "+strings.Fields(p.Name)[0]+" "+strings.Join(p.Tables, ","))
		if p.Error != "" || p.Samples < 5 || p.P50 <= 0 || p.P99 < p.P50 || (p.BytesPerSecond > 0) != (p.Kind == "disk") {
			t.Errorf("%+v", p)
		}
	}
	if want := []string{"disk .streamsql/job ", "server postgres b", "server kafka a"}; !slices.Equal(kinds, want) {
		t.Errorf("measured: %q, want %q", kinds, want)
	}
	if code != 0 || len(doc.Jobs) != 1 || doc.Jobs[0].Verdict != "good" || doc.Jobs[0].AtP99 <= 0 {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	// The round trips and fsyncs of a checkpoint take more than half of a millisecond.
	code, out, errs = run(script(pg.DSN(db)), "-D", "execution.checkpointing.interval=1ms")
	hint := regexp.MustCompile(`hint: SET 'execution.checkpointing.interval' = '([1-9]\d* m?s)'`).FindStringSubmatch(out)
	if code != 1 || !strings.Contains(out, "too slow") || hint == nil {
		t.Fatalf("an interval of 1 ms: exit %d: %s%s", code, out, errs)
	}
	if code, out, errs = run(script(pg.DSN(db)), "-D", "execution.checkpointing.interval="+hint[1]); code != 0 && !strings.Contains(out, "too slow") {
		t.Errorf("the interval of the hint, %s: exit %d: %s%s", hint[1], code, out, errs)
	}
	code, out, errs = run(script("postgres://u@127.0.0.1:1/x"))
	if code != 1 || !strings.Contains(out, "cannot connect to PostgreSQL at 127.0.0.1:1") || !strings.Contains(out, "kafka broker") {
		t.Errorf("a database that is not there: exit %d: %s%s", code, out, errs)
	}
	if code, out, errs = run("INSERT INTO nowhere SELECT 1;"); code != 2 {
		t.Errorf("a wrong script: exit %d: %s%s", code, out, errs)
	}
}
