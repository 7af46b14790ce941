package badinput

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

const patience = 4 * time.Minute

// Goal: no bad record is lost silently, repeated, or told without its place. Method: the files of testdata hold records
// and statements; the program runs on a real broker, and its messages, exit code and output are golden.
//
//	case                       new topics $IN, $OUT and $DEAD, a new folder $DIR, a new job $NAME
//	produce partition=N        a record per line: value, or key => value; NULL, Go-quoted text, or BIG=bytes
//	file name=F                writes a file of Go-quoted lines
//	run                        exit code and messages
//	read [topic=dead]          what a read-committed consumer sees, sorted; dead letters with their headers
func TestBadInput(t *testing.T) {
	k, bin := harness.SharedKafka(t), harness.BuildStreamsql(t)
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var c *scene
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "case":
				c = newScene(t, k, bin)
			case "produce":
				var p int
				d.ScanArgs(t, "partition", &p)
				c.produce(t, int32(p), d.Input)
			case "file":
				var name string
				d.ScanArgs(t, "name", &name)
				c.file(t, name, d.Input)
			case "run":
				return c.run(t, d.Input)
			case "read":
				return c.read(t, d.HasArg("topic"))
			default:
				t.Fatalf("%s: unknown directive %s", d.Pos, d.Cmd)
			}
			return ""
		})
	})
}

type scene struct {
	k              *harness.Broker
	bin, dir, name string
}

func newScene(t *testing.T, k *harness.Broker, bin string) *scene {
	s := &scene{k: k, bin: bin, dir: t.TempDir(), name: harness.UniqueName(t)}
	large := map[string]string{"max.message.bytes": strconv.Itoa(32 << 20)}
	k.CreateTopic(t, s.name+"_in", 2, large)
	k.CreateTopic(t, s.name+"_out", 1, large)
	k.CreateTopic(t, s.name+"_dead", 1, large)
	return s
}

func (s *scene) fill(text string) string {
	for _, r := range [][2]string{{"$IN", s.name + "_in"}, {"$OUT", s.name + "_out"}, {"$DEAD", s.name + "_dead"}, {"$KAFKA", s.k.Addr()}, {"$DIR", s.dir}, {"$NAME", s.name}} {
		text = strings.ReplaceAll(text, r[0], r[1])
	}
	return text
}

func (s *scene) mask(text string) string {
	for _, r := range [][2]string{{"$IN", s.name + "_in"}, {"$OUT", s.name + "_out"}, {"$DEAD", s.name + "_dead"}, {"$KAFKA", s.k.Addr()}, {"$DIR", s.dir}, {"$NAME", s.name}} {
		text = strings.ReplaceAll(text, r[1], r[0])
	}
	text = regexp.MustCompile(` after [0-9.µmsh]+:`).ReplaceAllString(text, " after TIME:")
	text = regexp.MustCompile(`, [0-9]+ checkpoints?`).ReplaceAllString(text, ", N checkpoints")
	// Messages show bytes as they came; the golden files are text.
	var clean strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&clean, `\x%02x`, text[0])
		} else {
			clean.WriteString(text[:n])
		}
		text = text[n:]
	}
	return clean.String()
}

// bytesOf is a record's part from its text.
func bytesOf(t *testing.T, text string) []byte {
	switch {
	case text == "NULL":
		return nil
	case strings.HasPrefix(text, "BIG="):
		n, err := strconv.Atoi(text[4:])
		if err != nil {
			t.Fatal(err)
		}
		return []byte(`{"id":77,"name":"` + strings.Repeat("x", n) + `"}`)
	case strings.HasPrefix(text, `"`):
		v, err := strconv.Unquote(text)
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		return []byte(v)
	}
	return []byte(text)
}

func (s *scene) produce(t *testing.T, partition int32, lines string) {
	cl := s.k.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(32<<20), kgo.ProducerBatchCompression(kgo.NoCompression()))
	defer cl.Close()
	for line := range strings.Lines(lines) {
		r := &kgo.Record{Topic: s.name + "_in", Partition: partition}
		key, value, keyed := strings.Cut(strings.TrimSuffix(line, "\n"), " => ")
		if !keyed {
			key, value = "NULL", key
		}
		r.Key, r.Value = bytesOf(t, key), bytesOf(t, value)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		err := cl.ProduceSync(ctx, r).FirstErr()
		cancel()
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (s *scene) file(t *testing.T, name, lines string) {
	var text strings.Builder
	for line := range strings.Lines(lines) {
		text.Write(bytesOf(t, strings.TrimSuffix(line, "\n")))
		text.WriteByte('\n')
	}
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (s *scene) start(t *testing.T, text string) *harness.Process {
	if err := os.WriteFile(filepath.Join(s.dir, "job.sql"), []byte("SET 'pipeline.name' = '"+s.name+"';\n"+s.fill(text)), 0o644); err != nil {
		t.Fatal(err)
	}
	return harness.Start(t, harness.Command{Path: s.bin, Args: []string{"run", "job.sql", "--state-dir", "state", "--log", "off"}, Dir: s.dir})
}

func (s *scene) run(t *testing.T, text string) string {
	p := s.start(t, text)
	code, err := p.Wait(patience)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("exit %d\n%s", code, s.mask(p.Output()))
}

func (s *scene) read(t *testing.T, dead bool) string {
	topic := s.name + "_out"
	if dead {
		topic = s.name + "_dead"
	}
	var lines []string
	for _, r := range s.k.Records(t, topic, harness.Committed) {
		line := string(r.Value)
		if len(line) > 200 {
			line = fmt.Sprintf("%s... %d bytes", line[:20], len(line))
		}
		if dead {
			line = strconv.QuoteToASCII(line)
			for _, h := range r.Headers {
				line += fmt.Sprintf("\n  %s=%s", h.Key, s.mask(string(h.Value)))
			}
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

const unbounded = `
SET 'execution.checkpointing.interval' = '100 ms';
CREATE TABLE src (id BIGINT) WITH ('connector' = 'kafka', 'topic' = '$IN', 'properties.bootstrap.servers' = '$KAFKA',
  'scan.startup.mode' = 'earliest-offset', 'format' = 'json'%s);
CREATE TABLE k (id BIGINT) WITH ('connector' = 'kafka', 'topic' = '$OUT', 'properties.bootstrap.servers' = '$KAFKA', 'format' = 'json');
INSERT INTO k SELECT id FROM src;
`

// A bad record arrives while the job runs: it ends, without restarting, and once the table says to leave such records
// out, the job goes on from its checkpoint: every other row is there once.
func TestGoesOnAfterTheTableIsMended(t *testing.T) {
	s := newScene(t, harness.SharedKafka(t), harness.BuildStreamsql(t))
	seen := func() int { return len(s.k.Values(t, s.name+"_out", harness.Committed)) }
	until := func(p *harness.Process, n int) {
		t.Helper()
		for deadline := time.Now().Add(patience); seen() < n; time.Sleep(50 * time.Millisecond) {
			if !p.Alive() || time.Now().After(deadline) {
				t.Fatalf("%d rows are not there\n%s", n, p.Output())
			}
		}
	}
	good := func(from, to int) (lines string) {
		for i := from; i < to; i++ {
			lines += fmt.Sprintf("{\"id\":%d}\n", i)
		}
		return lines
	}
	s.produce(t, 0, good(0, 100))
	p := s.start(t, fmt.Sprintf(unbounded, ""))
	until(p, 100)
	s.produce(t, 1, good(100, 110)+"{\"id\":\n"+good(110, 200))
	code, err := p.Wait(patience)
	if err != nil || code != 1 {
		t.Fatalf("exit %d, %v", code, err)
	}
	for _, want := range []string{"table src", "partition 1, offset 10"} {
		if !strings.Contains(s.mask(p.Output()), want) {
			t.Errorf("the message lacks %q:\n%s", want, p.Output())
		}
	}
	if strings.Contains(p.Output(), "restart") && !strings.Contains(p.Output(), "0 restarts") {
		t.Errorf("the job restarted on bad data:\n%s", p.Output())
	}
	// The same state, the table mended.
	p = s.start(t, fmt.Sprintf(unbounded, ", 'scan.on-error' = 'skip'"))
	until(p, 200)
	if err := p.Signal(15); err != nil {
		t.Fatal(err)
	}
	if code, err := p.Wait(patience); err != nil || code != 0 {
		t.Fatalf("exit %d, %v\n%s", code, err, p.Output())
	}
	if !strings.Contains(p.Output(), "1 bad record skipped") {
		t.Errorf("the summary does not count the record:\n%s", p.Output())
	}
	counts := map[string]int{}
	for _, v := range s.k.Values(t, s.name+"_out", harness.Committed) {
		counts[v]++
	}
	for i := range 200 {
		if n := counts[fmt.Sprintf(`{"id":%d}`, i)]; n != 1 {
			t.Errorf("row %d is there %d times", i, n)
		}
	}
}
