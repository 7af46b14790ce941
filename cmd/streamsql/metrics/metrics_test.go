package metrics_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/cmd/streamsql/metrics"
)

// get asks the server and returns status and body.
func get(t *testing.T, s *metrics.Server, path string) (int, string) {
	t.Helper()
	r, err := http.Get("http://" + s.Address() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

// scrape reads what Prometheus reads, with its own parser.
func scrape(t *testing.T, s *metrics.Server) map[string]*dto.MetricFamily {
	t.Helper()
	code, text := get(t, s, "/metrics")
	if code != http.StatusOK {
		t.Fatalf("status %d: %s", code, text)
	}
	var p expfmt.TextParser
	all, err := p.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return all
}

// value is the one sample of a figure with these labels, name=value.
func value(t *testing.T, all map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	t.Helper()
	var found []float64
	for _, m := range all["streamsql_"+name].GetMetric() {
		has := map[string]bool{}
		for _, l := range m.Label {
			has[l.GetName()+"="+l.GetValue()] = true
		}
		ok := true
		for _, l := range labels {
			ok = ok && has[l]
		}
		if ok {
			found = append(found, m.GetGauge().GetValue()+m.GetCounter().GetValue())
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s%v has %d samples", name, labels, len(found))
	}
	return found[0]
}

// Goal: a scrape tells of a job what its status does, in the format Prometheus reads, and /healthz tells of a job that
// failed. Method: a real engine with a bounded job, one that goes on, and one whose input is wrong.
func TestScrape(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	work := t.TempDir()
	eng, err := streamsql.Open(filepath.Join(work, "state"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	s, err := metrics.Serve(eng.Jobs, "127.0.0.1:0", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	run := func(statements ...string) *streamsql.Job {
		t.Helper()
		var job *streamsql.Job
		for _, text := range statements {
			res, err := eng.Exec(ctx, text)
			if err != nil {
				t.Fatal(err)
			}
			job = res.Job
		}
		return job
	}
	out := filepath.Join(work, "out")
	bounded := run(
		`CREATE TABLE g (id BIGINT, ts AS TO_TIMESTAMP_LTZ(id, 3), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen', 'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '500')`,
		`CREATE TABLE f (id BIGINT, n BIGINT) WITH ('connector' = 'filesystem', 'format' = 'changelog-json', 'path' = '`+out+`')`,
		`SET 'pipeline.name' = 'bounded "one"'`,
		`INSERT INTO f SELECT MOD(id, 7), COUNT(*) FROM g GROUP BY MOD(id, 7)`)
	if err := bounded.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	endless := run(
		`CREATE TABLE e (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000')`,
		`CREATE TABLE b (id BIGINT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '`+out+`2')`,
		`SET 'pipeline.name' = 'endless'`, `SET 'execution.checkpointing.interval' = '1 h'`,
		`INSERT INTO b SELECT id FROM e`)
	for range 3 {
		if _, err := endless.Checkpoint(ctx); err != nil {
			t.Fatal(err)
		}
	}
	all := scrape(t, s)
	one, two := "job_id="+bounded.ID(), "job_id="+endless.ID()
	st := endless.Status()
	for _, c := range []struct {
		want   float64
		name   string
		labels []string
	}{
		{1, "job_state", []string{one, `job_name=bounded "one"`, "state=FINISHED"}},
		{0, "job_state", []string{one, "state=RUNNING"}},
		{1, "job_state", []string{two, "state=RUNNING"}},
		{0, "job_numRestarts", []string{two}},
		{3, "job_numberOfCompletedCheckpoints", []string{two}},
		{3, "job_checkpoints", []string{two, "result=completed"}},
		{0, "job_numberOfFailedCheckpoints", []string{two}},
		{float64(st.Checkpoint.Last), "job_lastCompletedCheckpointId", []string{two}},
		{float64(st.Checkpoint.Last), "job_lastCommittedCheckpointId", []string{two}},
		{float64(st.Checkpoint.Duration) / 1e6, "job_lastCheckpointDuration", []string{two}},
		{0, "job_guaranteesGivenUp", []string{two, "lost=true"}},
		{0, "job_alarm", []string{two, "alarm=CheckpointsFail"}},
		{0, "sink_pendingCommittables", []string{two}},
	} {
		if got := value(t, all, c.name, c.labels...); got != c.want {
			t.Errorf("%s%v is %v, want %v", c.name, c.labels, got, c.want)
		}
	}
	// The three checkpoints above were made durable on a real disk.
	if n, total := value(t, all, "state_fsyncs", two), value(t, all, "state_fsyncSecondsTotal", two); n < 6 || total <= 0 {
		t.Errorf("%v fsyncs took %v s", n, total)
	}
	if p50, p99 := value(t, all, "state_fsyncSeconds", two, "quantile=0.5"), value(t, all, "state_fsyncSeconds", two, "quantile=0.99"); p50 <= 0 || p99 < p50 {
		t.Errorf("an fsync takes %v s, at most %v s", p50, p99)
	}
	read := 0.0
	for _, sp := range bounded.Status().Splits {
		read += value(t, all, "split_numRecordsIn", one, "split="+string(sp.Split))
	}
	if read != 500 {
		t.Errorf("%v records are read of all splits", read)
	}
	for i, n := range bounded.Status().Nodes {
		labels := []string{one, "operator_id=" + string(n.ID), "operator_name=" + n.Name}
		in, out := value(t, all, "operator_numRecordsIn", labels...), value(t, all, "operator_numRecordsOut", labels...)
		if in != float64(n.RowsIn) || out != float64(n.RowsOut) || i == 0 && out != 500 {
			t.Errorf("%s: %v rows in, %v out; the status says %d and %d", n.Name, in, out, n.RowsIn, n.RowsOut)
		}
	}
	if got := value(t, all, "job_lastCheckpointAgeSeconds", two); got < 0 || got > 180 {
		t.Errorf("the last checkpoint is %v s old", got)
	}
	if all["go_goroutines"] == nil || all["process_start_time_seconds"] == nil {
		t.Error("nothing about the process itself")
	}
	if code, text := get(t, s, "/healthz"); code != http.StatusOK || !strings.Contains(text, `"status":"ok"`) {
		t.Errorf("healthz: %d %s", code, text)
	}

	bad := run(`SET 'pipeline.name' = 'bad'`,
		`CREATE TABLE x (id BIGINT) WITH ('connector' = 'datagen', 'fields.id.kind' = 'sequence', 'fields.id.start' = '0', 'fields.id.end' = '9')`,
		`INSERT INTO b SELECT 10 / id FROM x`)
	if err := bad.Wait(ctx); err == nil {
		t.Fatal("a division by zero went well")
	}
	code, text := get(t, s, "/healthz")
	var h metrics.Health
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	failed := ""
	for _, j := range h.Jobs {
		if j.State == "FAILED" {
			failed += fmt.Sprintf("%s: %s", j.Name, j.Error)
		}
	}
	if code != http.StatusServiceUnavailable || h.Status != "failed" || len(h.Jobs) != 3 || !strings.HasPrefix(failed, "bad: ") || len(failed) == len("bad: ") {
		t.Errorf("healthz: %d %s", code, text)
	}
	if got := value(t, scrape(t, s), "job_alarm", "job_name=bad", "alarm=JobFailed"); got != 1 {
		t.Errorf("alarm JobFailed is %v", got)
	}
	if _, err := metrics.Serve(eng.Jobs, s.Address(), slog.New(slog.DiscardHandler)); err == nil {
		t.Error("two servers at one address")
	}
	if code, _ := get(t, s, "/"); code != http.StatusNotFound {
		t.Errorf("/ answers %d", code)
	}
}
