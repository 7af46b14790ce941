package preflight

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
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
//	topic name partitions [key=value…]   makes a topic, with settings
//	pg                         runs the statements in a database; $CLERK is a role of the file's own
//	run                        runs the statements as a job: exit code and messages
//	live                       asks the systems only: streamsql check --live
//	hold                       runs the statements as a job that has written, and goes on to the end of the file
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
				settings := map[string]string{}
				for _, a := range d.CmdArgs[2:] {
					settings[a.Key] = a.Vals[0]
				}
				e.k.CreateTopic(t, d.CmdArgs[0].Key, int32(n), settings)
				return ""
			case "pg":
				e.pg.Exec(t, e.db, strings.ReplaceAll(d.Input, "$CLERK", clerk(e.db)))
				return ""
			case "hold":
				e.hold(t, d.Input)
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
	all     *testing.T // the whole test, for what several files use
	k       *harness.Broker
	pg      *harness.PG
	bin     string
	db      string
	tiny    *harness.PG // with one prepared transaction
	standby *harness.PG
	strict  *harness.Broker // that lets alice do nothing
	runs    int
}

// clerk is the name of a role that belongs to database db.
func clerk(db string) string { return "clerk_" + db }

// as is the address of the database for another user.
func as(t *testing.T, dsn, user string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(user)
	return u.String()
}

// hold starts a job and waits until it has completed a checkpoint. It is stopped when the file ends.
func (e *env) hold(t *testing.T, text string) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "job.sql"), []byte(strings.ReplaceAll(text, "$KAFKA", e.k.Addr())), 0o600); err != nil {
		t.Fatal(err)
	}
	p := harness.Start(t, harness.Command{Path: e.bin, Args: []string{"run", "job.sql", "--state-dir", "state"}, Dir: dir})
	t.Cleanup(func() {
		if err := p.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if _, err := p.Wait(4 * time.Minute); err != nil {
			t.Error(err)
		}
	})
	for deadline := time.Now().Add(4 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if done, _ := filepath.Glob(filepath.Join(dir, "state", "jobs", "*", "chk-*", "MANIFEST")); len(done) > 0 {
			return
		}
		if !p.Alive() || time.Now().After(deadline) {
			t.Fatalf("the job completes no checkpoint:\n%s", p.Output())
		}
	}
}

// names are those that run puts values for. Those that begin with another come before it, and so do longer values, as an address is part
// of a URL.
var names = []string{"$TINYPG", "$STANDBY", "$CLERKPG", "$PG", "$OLDKAFKA", "$STRICTKAFKA", "$KAFKA", "$NOWHERE", "$CLERK", "$DB", "$DIR", "$NAME"}

// run runs the statements; $NAME stands for what differs from run to run, in both directions.
func (e *env) run(t *testing.T, text string, args ...string) string {
	dir := t.TempDir()
	e.runs++
	values := map[string]string{"$KAFKA": e.k.Addr(), "$PG": e.pg.DSN(e.db), "$DB": e.db, "$DIR": dir, "$CLERKPG": as(t, e.pg.DSN(e.db), clerk(e.db)), "$CLERK": clerk(e.db),
		"$NAME": fmt.Sprintf("preflight_%d", e.runs), "$NOWHERE": "127.0.0.1:1"}
	if strings.Contains(text, "$TINYPG") {
		if e.tiny == nil {
			e.tiny = harness.Postgres(e.all, harness.PGMaxPrepared(1))
			e.tiny.Exec(t, "postgres", "CREATE TABLE plain (id bigint)")
		}
		values["$TINYPG"] = e.tiny.DSN("postgres")
	}
	if strings.Contains(text, "$STANDBY") {
		if e.standby == nil {
			e.standby = harness.Postgres(e.all)
			e.standby.Exec(t, "postgres", "CREATE TABLE there (id bigint)")
			if err := e.standby.BecomeStandby(); err != nil {
				t.Fatal(err)
			}
		}
		values["$STANDBY"] = e.standby.DSN("postgres")
	}
	if strings.Contains(text, "$STRICTKAFKA") {
		if e.strict == nil {
			e.strict = harness.Kafka(e.all, harness.KafkaSASL("PLAIN", "alice", "secret"),
				harness.KafkaConfig("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
				harness.KafkaConfig("super.users", "User:ANONYMOUS")) // the broker itself, and the harness
		}
		values["$STRICTKAFKA"] = e.strict.Addr()
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
	var pairs []string
	for _, name := range names {
		if v := values[name]; v != "" {
			pairs = append(pairs, name, v)
		}
	}
	text = strings.NewReplacer(pairs...).Replace(text)
	file := filepath.Join(dir, "job.sql")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out := e.start(t, dir, args)
	for _, name := range names {
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
