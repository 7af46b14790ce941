package bench

// Goal: how long a job is away after kill -9, by the size of its state. Method: a job counts the rows of each key, keys 0, 1, 2, … each
// once, and then a few random ones a second; when all are in a checkpoint it is killed and started again, and the time taken from the
// start of the process to the first new row in the output topic, written and committed.

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/tests/harness"
)

// restored is a restart over so many keys.
type restored struct {
	Keys            int
	StateBytes      int64 // files below the state directory
	Written, Opened time.Duration
	Memory          int64         // resident after it, bytes
	CPU             time.Duration // of the process until then
	Parts           map[string]time.Duration
}

func TestRestore(t *testing.T) {
	runs := []restored{{Keys: 10_000}}
	if _, ok := full(); ok {
		runs = nil
		for _, mib := range []int64{100, 1024, 4096} {
			if mib <= sizeFromEnv(t, "BENCH_RESTORE_MIB", 4096) {
				runs = append(runs, restored{Keys: int(mib << 20 / restoredBytes)})
			}
		}
	}
	k := harness.SharedKafka(t)
	tb := &table{title: "From the start of the process after kill -9 to new rows in Kafka, checkpoints every second", head: append([]string{"groups", "files of the state", "first row written", "first row committed", "resident", "processor time"}, restoreParts...)}
	for i := range runs {
		r := &runs[i]
		r.measure(t, k)
		cells := []any{r.Keys, fmt.Sprintf("%d MiB", r.StateBytes>>20), ms(r.Written), ms(r.Opened), fmt.Sprintf("%d MiB", r.Memory>>20), ms(r.CPU)}
		for _, p := range restoreParts {
			cells = append(cells, ms(r.Parts[p]))
		}
		tb.add(cells...)
		tb.write(t, "restore", runs[:i+1]) // a run of an hour leaves what it has
	}
	tb.report(t, "restore", runs)
}

func (r *restored) measure(t *testing.T, k *harness.Broker) {
	t.Helper()
	out, state := k.Topic(t, 1), t.TempDir()
	file := writeJob(t, fmt.Sprintf(`SET 'execution.checkpointing.interval' = '1 s';
SET 'parallelism.default' = '2';
CREATE TABLE once (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000000000', 'fields.id.kind' = 'sequence', 'fields.id.start' = '0', 'fields.id.end' = '%[1]d');
CREATE TABLE few (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '50', 'fields.id.kind' = 'random', 'fields.id.min' = '0', 'fields.id.max' = '%[1]d');
CREATE TABLE o (id BIGINT, n BIGINT, pad STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = '%[2]s', 'properties.bootstrap.servers' = '%[3]s',
  'key.format' = 'json', 'value.format' = 'json', 'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = '%[2]s');
CREATE VIEW everything AS SELECT id, id AS v FROM once UNION ALL SELECT id, 0 FROM few;
INSERT INTO o SELECT id, COUNT(*), MAX(LPAD(CAST(id AS STRING), 60, 'x')) FROM everything GROUP BY id HAVING COUNT(*) > 1 OR MAX(v) = %[1]d;`, r.Keys-1, out, k.Addr()))
	cmd := harness.Command{Path: harness.BuildStreamsql(t), Args: []string{"run", file, "--state-dir", state, "--log", "info"}}

	first := harness.Start(t, cmd)
	last := fmt.Sprintf(`{"id":%d}`, r.Keys-1)
	committed := reader(t, k, out)
	for found := false; !found; {
		for _, rec := range poll(t, committed, first) {
			found = found || string(rec.Key) == last
		}
	}
	// The other subtask may have keys left: rows of later checkpoints follow when it is through.
	for range 3 {
		poll(t, committed, first)
		time.Sleep(time.Second)
	}
	first.Kill()
	<-first.Done()
	r.StateBytes = stateBytes(t, state)

	ends := kgo.NewOffset().AtEnd()
	written := reader(t, k, out, kgo.FetchIsolationLevel(kgo.ReadUncommitted()), kgo.ConsumeResetOffset(ends))
	began := time.Now()
	second := harness.Start(t, cmd)
	poll(t, written, second)
	r.Written = time.Since(began)
	for seen := false; !seen; { // what the first process had committed is not news
		for _, rec := range poll(t, committed, second) {
			seen = seen || rec.Timestamp.After(began)
		}
	}
	r.Opened = time.Since(began)
	r.Memory, r.Parts = residentBytes(t, second.Pid()), partsOf(t, second)
	second.Kill()
	user, system := second.CPU()
	r.CPU = user + system
}

// stateBytes is the size of the files below a state directory, those with several names counted once.
func stateBytes(t *testing.T, state string) (n int64) {
	t.Helper()
	named := map[string][]fs.FileInfo{}
	err := filepath.WalkDir(state, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if slices.ContainsFunc(named[d.Name()], func(other fs.FileInfo) bool { return os.SameFile(info, other) }) {
			return nil
		}
		named[d.Name()] = append(named[d.Name()], info)
		n += info.Size()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// restoreParts are the parts of a restore that the log tells.
var restoreParts = []string{"metadata", "transactions", "sources", "state", "writers"}

var logField = regexp.MustCompile(`(\w+)=(\S+)`)

// partsOf reads them from the log of a process that has restored its job.
func partsOf(t *testing.T, p *harness.Process) map[string]time.Duration {
	t.Helper()
	const line = `msg="the job is restored"`
	if err := p.WaitOutput(line, 5*time.Minute); err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(p.Output(), line)
	text, _, _ = strings.Cut(text, "\n")
	parts := map[string]time.Duration{}
	for _, m := range logField.FindAllStringSubmatch(text, -1) {
		if d, err := time.ParseDuration(m[2]); err == nil {
			parts[m[1]] = d
		}
	}
	for _, part := range restoreParts {
		if _, ok := parts[part]; !ok {
			t.Fatalf("the log has no %q of the restore: %s", part, text)
		}
	}
	return parts
}
