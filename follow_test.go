package streamsql_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/sql/diag"
)

const kafkaGiven = `'connector' = 'kafka', 'topic' = 'k', 'properties.bootstrap.servers' = 'b:9092', 'format' = 'json'`

// Goal: in a job that is at least once a table that does not say how it is delivered is written without transactions, what it
// says itself counts, and what contradicts the mode is refused by name. Method: the delivery in EXPLAIN, nothing contacted.
func TestFollowsMode(t *testing.T) {
	for _, c := range []struct {
		name, table, want string // want is the delivery, or a part of the error
		reason            string
	}{
		{"kafka", `(id BIGINT) WITH (` + kafkaGiven + `)`, "at-least-once (", "the table asks for nothing else"},
		{"upsert-kafka", `(id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'k', 'properties.bootstrap.servers' = 'b:9092', 'key.format' = 'json', 'value.format' = 'json')`,
			"at-least-once (", "the table asks for nothing else"},
		{"postgres", `(id BIGINT) WITH ('connector' = 'postgres', 'url' = 'postgres://h/d', 'table-name' = 't')`, "at-least-once (", "the table asks for nothing else"},
		{"postgres by key", `(id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'postgres', 'url' = 'postgres://h/d', 'table-name' = 't')`, "idempotent upsert (", "the table asks for nothing else"},
		{"postgres by key says how", `(id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'postgres', 'url' = 'postgres://h/d', 'table-name' = 't', 'sink.commit-protocol' = 'upsert')`, "idempotent upsert (", "'sink.commit-protocol' = 'upsert'"},
		{"files have no other way", `(id BIGINT) WITH ('connector' = 'filesystem', 'path' = 'o', 'format' = 'json')`, "two-phase commit (rows can repeat", "files get their visible name"},
		{"says at least once", `(id BIGINT) WITH (` + kafkaGiven + `, 'sink.delivery-guarantee' = 'at-least-once')`, "at-least-once (", "'sink.delivery-guarantee' = 'at-least-once'"},
		{"says none", `(id BIGINT) WITH (` + kafkaGiven + `, 'sink.delivery-guarantee' = 'none')`, "none (", "'sink.delivery-guarantee' = 'none'"},
		{"says exactly once", `(id BIGINT) WITH (` + kafkaGiven + `, 'sink.delivery-guarantee' = 'exactly-once')`, "two-phase commit (rows can repeat", "'sink.delivery-guarantee' = 'exactly-once'"},
		{"says how exactly once", `(id BIGINT) WITH (` + kafkaGiven + `, 'sink.commit-protocol' = 'write-ahead')`, "'sink.commit-protocol' is a way to write exactly once, and the job is at least once", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			eng, err := streamsql.Open("", nil)
			if err != nil {
				t.Fatal(err)
			}
			defer eng.Close()
			text := "SET 'execution.checkpointing.mode' = 'AT_LEAST_ONCE';\nCREATE TABLE g (id BIGINT) WITH ('connector' = 'datagen');\n" +
				"CREATE TABLE k " + c.table + ";\nINSERT INTO k SELECT id FROM g;\n"
			plans, err := eng.Explain(text)
			if c.reason == "" {
				var e *diag.Error
				if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) || e.Hint == "" || e.Code != diag.Config {
					t.Fatalf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(plans[0], "delivery:         "+c.want) || !strings.Contains(plans[0], c.reason) {
				t.Errorf("want %q, %q in\n%s", c.want, c.reason, plans[0])
			}
			gs, err := eng.Guarantees("INSERT INTO k SELECT id FROM g;")
			if err != nil {
				t.Fatal(err)
			}
			if g := gs[0].Sinks[0].Guarantee.String(); g == "exactly once" {
				t.Errorf("EXPLAIN GUARANTEES says %s", g)
			}
		})
	}
}

// Rows of such a table are seen as they are written: no transaction hides them until a checkpoint. Method: a broker in the
// process, a job that takes no checkpoint, and a reader of committed rows.
func TestFollowsModeIsSeenAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a broker: not with -short")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	eng, err := streamsql.Open(t.TempDir(), &streamsql.Options{EmbeddedKafka: true})
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	exec := func(text string) *streamsql.Result {
		t.Helper()
		res, err := eng.Exec(ctx, text)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	exec(`SET 'execution.checkpointing.interval' = '1 h'`)
	exec(`SET 'execution.checkpointing.mode' = 'AT_LEAST_ONCE'`)
	exec(`CREATE TABLE g (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000')`)
	exec(`CREATE TABLE k (id BIGINT) WITH ('connector' = 'kafka', 'topic' = 'k', 'format' = 'json')`)
	job := exec(`INSERT INTO k SELECT id FROM g`).Job
	seen := 0
	for _, err := range exec(`SELECT id FROM k LIMIT 10`).Rows() {
		if err != nil {
			t.Fatalf("%v; the job: %+v", err, job.Status())
		}
		if seen++; seen == 10 {
			break
		}
	}
	if seen != 10 {
		t.Fatalf("%d rows are seen; the job: %+v", seen, job.Status())
	}
	s := job.Status()
	if s.Checkpoint.Completed != 0 || len(s.Sinks[0].Open) != 0 {
		t.Errorf("%d checkpoints, open transactions %v", s.Checkpoint.Completed, s.Sinks[0].Open)
	}
}
