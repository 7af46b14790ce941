package nexmark

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// flinkQueries is where the queries are that both engines are compared on.
const flinkQueries = "../flink/testdata/nexmark"

// engine is one of those that are measured.
type engine string

const (
	ours  engine = "streamsql"
	flink engine = "flink"
	limit engine = "limit" // a program by hand for one query
)

// settings are what a script of the engine begins with: those of the guide of Flink's benchmark, but for the parallelism and the
// interval of checkpoints. Both engines get all that both know; the rest is Flink's alone.
func (e engine) settings(o *options) string {
	if e == limit {
		return "one core, no checkpoints"
	}
	s := fmt.Sprintf(`SET 'parallelism.default' = '%d';
SET 'execution.checkpointing.interval' = '%s';
SET 'table.local-time-zone' = 'UTC';
SET 'table.exec.mini-batch.enabled' = 'true';
SET 'table.exec.mini-batch.allow-latency' = '2 s';
SET 'table.exec.mini-batch.size' = '50000';
`, o.parallelism, o.interval)
	if e == ours {
		return s
	}
	s += `SET 'execution.checkpointing.mode' = 'EXACTLY_ONCE';
SET 'state.backend.type' = 'rocksdb';
SET 'execution.checkpointing.incremental' = 'true';
SET 'pipeline.object-reuse' = 'true';
SET 'table.optimizer.distinct-agg.split.enabled' = 'true';
`
	if o.source != kafkaSource { // its last transaction is committed by a last checkpoint
		s += "SET 'execution.checkpointing.checkpoints-after-tasks-finish.enabled' = 'false';\n"
	}
	return s
}

var (
	sourceOptions = regexp.MustCompile(`'connector' = 'nexmark'[^)]*`)
	sinkOptions   = regexp.MustCompile(`'connector' = 'memory'[^)]*`)
	sideInput     = regexp.MustCompile(`'path' = '([^']*)'`)
)

// queryNames are the queries asked for, or all: q0, q1, ….
func queryNames(t *testing.T, asked string) []string {
	t.Helper()
	var all []string
	for i := range 23 {
		if name := fmt.Sprintf("q%d", i); name != "q6" { // no engine runs it: an OVER of what a Top-N takes back
			all = append(all, name)
		}
	}
	if asked == "" {
		return all
	}
	var out []string
	for _, q := range words(asked) {
		if _, err := os.Stat(queryFile(q)); err != nil {
			t.Fatalf("$NEXMARK_QUERIES: no query %s: %v", q, err)
		}
		out = append(out, q)
	}
	return out
}

func queryFile(name string) string {
	file := fmt.Sprintf("q%02s.sql", strings.TrimPrefix(name, "q"))
	if own := filepath.Join("testdata", file); fileExists(own) {
		return own
	}
	return filepath.Join(flinkQueries, file)
}

func fileExists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// script is a query's file for an engine over so many events.
func script(t *testing.T, name string, e engine, o *options, events int) string {
	t.Helper()
	text, err := os.ReadFile(queryFile(name))
	if err != nil {
		t.Fatal(err)
	}
	s := string(text)
	if o.digest {
		if s, err = withDigest(s, name); err != nil {
			t.Fatal(err)
		}
	}
	s = o.withSource(s, events)
	s = sinkOptions.ReplaceAllLiteralString(s, o.sink(name))
	s = sideInput.ReplaceAllStringFunc(s, func(m string) string {
		abs, err := filepath.Abs(filepath.Join("../flink", sideInput.FindStringSubmatch(m)[1]))
		if err != nil {
			t.Fatal(err)
		}
		return "'path' = '" + abs + "'"
	})
	return e.settings(o) + s
}
