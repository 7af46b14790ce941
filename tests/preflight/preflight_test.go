package preflight

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/streamsql/streamsql/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// Goal: every check before the first row refuses with a message that a user can act on. Method: the files of testdata
// describe topics, tables and statements; each run has the failpoint source.poll armed, so that a job that reads a row
// is killed and prints "exit -1" instead.
//
//	topic name partitions      makes a topic
//	pg                         runs the statements in a database
//	run                        runs the statements as a job: exit code and messages
//	live                       asks the systems only: streamsql check --live
func TestPreflight(t *testing.T) {
	e := &env{all: t, k: harness.SharedKafka(t), pg: harness.SharedPostgres(t), bin: harness.BuildStreamsql(t)}
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		e.db = e.pg.CreateDatabase(t) // the tables of a file are its own
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "topic":
				n, err := strconv.Atoi(d.CmdArgs[1].Key)
				if err != nil {
					t.Fatal(err)
				}
				e.k.CreateTopic(t, d.CmdArgs[0].Key, int32(n), nil)
				return ""
			case "pg":
				e.pg.Exec(t, e.db, d.Input)
				return ""
			case "run":
				return e.run(t, d.Input, "run", "job.sql", "--state-dir", "state", "--log", "off")
			case "live":
				return e.run(t, d.Input, "check", "--live", "-D", "parallelism.default=2", "job.sql")
			}
			t.Fatalf("%s: unknown directive %s", d.Pos, d.Cmd)
			return ""
		})
	})
}

type env struct {
	all  *testing.T // the whole test, for what several files use
	k    *harness.Broker
	pg   *harness.PG
	bin  string
	db   string
	tiny *harness.PG // with one prepared transaction
	runs int
}

// run runs the statements; $NAME stands for what differs from run to run, in both directions.
func (e *env) run(t *testing.T, text string, args ...string) string {
	dir := t.TempDir()
	e.runs++
	values := map[string]string{"$KAFKA": e.k.Addr(), "$PG": e.pg.DSN(e.db), "$DB": e.db, "$DIR": dir,
		"$NAME": fmt.Sprintf("preflight_%d", e.runs), "$NOWHERE": "127.0.0.1:1"}
	if strings.Contains(text, "$TINYPG") {
		if e.tiny == nil {
			e.tiny = harness.Postgres(e.all, harness.PGMaxPrepared(1))
			e.tiny.Exec(t, "postgres", "CREATE TABLE plain (id bigint)")
		}
		values["$TINYPG"] = e.tiny.DSN("postgres")
	}
	if strings.Contains(text, "$OLDKAFKA") {
		// A broker of the time before transactions: Kafka 0.10.2 has no InitProducerId.
		c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.MaxVersions(kversion.V0_10_2()), kfake.SeedTopics(1, "old"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		values["$OLDKAFKA"] = c.ListenAddrs()[0]
	}
	for name, v := range values {
		text = strings.ReplaceAll(text, name, v)
	}
	file := filepath.Join(dir, "job.sql")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out := e.start(t, dir, args)
	// Longer values first: an address is part of a URL.
	for _, name := range []string{"$TINYPG", "$PG", "$OLDKAFKA", "$KAFKA", "$NOWHERE", "$DB", "$DIR", "$NAME"} {
		if v := values[name]; v != "" {
			out = strings.ReplaceAll(out, v, name)
		}
	}
	for _, v := range volatile {
		out = v.pattern.ReplaceAllString(out, v.with)
	}
	return fmt.Sprintf("exit %d\n%s", code, out)
}

// start runs the program; what check prints on its two streams is put one behind the other.
func (e *env) start(t *testing.T, dir string, args []string) (int, string) {
	if args[0] == "check" {
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		defer cancel()
		var out, errs bytes.Buffer
		c := exec.CommandContext(ctx, e.bin, args...)
		c.Dir, c.Stdout, c.Stderr = dir, &out, &errs
		if err := c.Run(); c.ProcessState == nil {
			t.Fatal(err)
		}
		return c.ProcessState.ExitCode(), out.String() + errs.String()
	}
	p := harness.Start(t, harness.Command{Path: e.bin, Args: args, Dir: dir, Env: []string{"STREAMSQL_FAILPOINT=source.poll"}})
	code, err := p.Wait(4 * time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return code, p.Output()
}

var volatile = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`(failed|ended) after [0-9.µmsh]+`), "$1 after TIME"},
	// The list grows with the connector; connectors tests it.
	{regexp.MustCompile(`(supported options:)(\n    .*)+`), "$1 LIST"},
	{regexp.MustCompile(`PostgreSQL [0-9][^,]*,`), "PostgreSQL VERSION,"},
	{regexp.MustCompile(`127\.0\.0\.1:[0-9]{4,5}`), "ADDRESS"},
}
