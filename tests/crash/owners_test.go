package crash

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/streamsql/streamsql/tests/harness"
)

// Goal: two live jobs that would destroy each other's output are not both allowed, and the refusal names the one that
// was first. Method: an endless job is running and committing; a second process is started beside it.

const endless = `
SET 'pipeline.name' = '%s';
SET 'execution.checkpointing.interval' = '100 ms';
CREATE TABLE gen (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '100', 'fields.id.kind' = 'sequence', 'fields.id.start' = '0', 'fields.id.end' = '9000000');
CREATE TABLE k (id BIGINT) WITH ('connector' = 'kafka', 'topic' = '%s_out', 'properties.bootstrap.servers' = '%s', 'format' = 'json',
  'sink.transactional-id-prefix' = '%s');
CREATE TABLE p (id BIGINT) WITH ('connector' = 'postgres', 'url' = '%s', 'table-name' = 'p', 'sink.commit-protocol' = '%s');
CREATE TABLE f (id BIGINT) WITH ('connector' = 'filesystem', 'path' = '%s', 'format' = 'json');
`

// job of one sink; the names that may not be shared are arguments.
func (f *fixture) endless(sink, name, prefix, protocol string) string {
	return fmt.Sprintf(endless, name, f.name, f.k.Addr(), prefix, f.pg.DSN(f.db), protocol, f.dir) + "INSERT INTO " + sink + " SELECT id FROM gen;\n"
}

// startIn runs text with a state directory of its own.
func (f *fixture) startIn(name, text string) *harness.Process {
	f.file, f.state = filepath.Join(filepath.Dir(f.file), name+".sql"), filepath.Join(filepath.Dir(f.file), name)
	f.write(text)
	return f.start("")
}

// until waits for a condition that the job brings about.
func (f *fixture) until(p *harness.Process, what string, done func() bool) {
	f.t.Helper()
	if !f.either(p, what, done) {
		f.t.Fatalf("the job ended before: %s\n%s", what, p.Output())
	}
}

// either waits for a condition or for the job's end, and reports whether it was the condition.
func (f *fixture) either(p *harness.Process, what string, done func() bool) bool {
	f.t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(50 * time.Millisecond) {
		if !p.Alive() {
			return false
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("not within %v: %s\n%s", patience, what, p.Output())
		}
	}
	return true
}

// stop ends a job over bounded input with SIGTERM: a final checkpoint, and the exit code that says that it was not at its end.
func (f *fixture) stop(p *harness.Process) {
	f.t.Helper()
	if err := p.Signal(syscall.SIGTERM); err != nil {
		f.t.Fatal(err)
	}
	// It had not read all its input.
	if code, err := p.Wait(patience); err != nil || code != 143 {
		f.t.Fatalf("exit %d, %v, want 143\n%s", code, err, p.Output())
	}
}

// countK counts what a read-committed consumer sees of the Kafka sink.
func (f *fixture) countK() int { return len(f.k.Values(f.t, f.name+"_out", harness.Committed)) }

func (f *fixture) countP() int {
	n, err := strconv.Atoi(f.pg.Rows(f.t, f.db, `SELECT count(*) FROM p`)[0])
	if err != nil {
		f.t.Fatal(err)
	}
	return n
}

// survives shows that the first job was not harmed: it commits more, stops well, and every row is there once.
func (f *fixture) survives(first *harness.Process, count func() int, ids func() []string) {
	f.t.Helper()
	before := count()
	f.until(first, "the first job commits more rows", func() bool { return count() > before })
	f.stop(first)
	f.once("", count(), ids())
	if open := f.k.OpenTransactions(f.t, f.name); len(open) > 0 {
		f.t.Errorf("open transactions: %v", open)
	}
	if p := f.pg.PreparedTransactions(f.t, f.db); len(p) > 0 {
		f.t.Errorf("prepared transactions: %v", p)
	}
}

func TestSecondJobWithOneTransactionalPrefixIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.startIn("first", f.endless("k", f.name+"_1", f.name, "auto"))
	f.until(first, "the first job commits", func() bool { return f.countK() > 0 })
	second := f.startIn("second", f.endless("k", f.name+"_2", f.name, "auto"))
	f.refused(second, 1, "transactional prefix '"+f.name+"' is used by another live job", "job '"+f.name+"_1'",
		"process "+strconv.Itoa(first.Pid()), "give this one its own 'sink.transactional-id-prefix'")
	f.survives(first, f.countK, func() []string { return f.ids(f.k.Values(t, f.name+"_out", harness.Committed)) })
	// The prefix is free now: another job may have it.
	third := f.startIn("third", f.endless("k", f.name+"_3", f.name, "auto"))
	before := f.countK()
	f.until(third, "a later job commits under the prefix", func() bool { return f.countK() > before })
	f.stop(third)
}

func TestSecondJobWithOneNameOnPostgresIsRefused(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"prepared", "write-ahead"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			first := f.startIn("first", f.endless("p", f.name, "", protocol))
			f.until(first, "the first job commits", func() bool { return f.countP() > 0 })
			second := f.startIn("second", f.endless("p", f.name, "", protocol))
			f.refused(second, 1, "another job named \""+f.name+"\" is writing to", "SET 'pipeline.name'")
			f.survives(first, f.countP, func() []string { return f.pg.Rows(t, f.db, `SELECT id FROM p`) })
		})
	}
}

func TestSecondProcessOnOneStateDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.startIn("first", f.endless("k", f.name, f.name, "auto"))
	f.until(first, "the first job commits", func() bool { return f.countK() > 0 })
	second := f.start("")
	f.refused(second, 2, "is in use", "held by process "+strconv.Itoa(first.Pid()), "stop the other process")
	if strings.Contains(second.Output(), "panic") {
		t.Error(second.Output())
	}
	f.survives(first, f.countK, func() []string { return f.ids(f.k.Values(t, f.name+"_out", harness.Committed)) })
}
