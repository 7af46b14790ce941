package harness_test

// Goal: every promise the other tests build on holds: the broker is a real one with transactions, the database does
// two-phase commit, kill and restart keep data and address, secured listeners let in only who may. Method: use them.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/streamsql/streamsql/tests/harness"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestMain(m *testing.M) {
	if os.Getenv("HARNESS_TEST_CHILD") != "" {
		child()
		return
	}
	harness.Main(m)
}

func produceTxn(t *testing.T, cl *kgo.Client, topic string, end kgo.TransactionEndTry, values ...string) {
	t.Helper()
	ctx := t.Context()
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		if err := cl.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte(v)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	if err := cl.EndTransaction(ctx, end); err != nil {
		t.Fatal(err)
	}
}

func TestKafkaTransactions(t *testing.T) {
	b := harness.SharedKafka(t)
	topic := b.Topic(t, 1)
	b.Produce(t, topic, "plain")
	cl := b.Client(t, kgo.TransactionalID(harness.UniqueName(t)))
	produceTxn(t, cl, topic, kgo.TryCommit, "c1", "c2")
	produceTxn(t, cl, topic, kgo.TryAbort, "a1")
	if got, want := b.Values(t, topic, harness.Committed), []string{"plain", "c1", "c2"}; !slices.Equal(got, want) {
		t.Errorf("committed: got %v, want %v", got, want)
	}

	// An open transaction hides what is behind it, an aborted record before it whose marker lies after it, too.
	id := harness.UniqueName(t)
	open, other := b.Client(t, kgo.TransactionalID(id)), b.Client(t, kgo.TransactionalID(harness.UniqueName(t)))
	must(t, other.BeginTransaction())
	must(t, other.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte("a2")}).FirstErr())
	must(t, open.BeginTransaction())
	must(t, open.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte("open")}).FirstErr())
	must(t, other.EndTransaction(t.Context(), kgo.TryAbort))
	b.Produce(t, topic, "behind")
	if got, want := b.Values(t, topic, harness.Committed), []string{"plain", "c1", "c2"}; !slices.Equal(got, want) {
		t.Errorf("committed with an open transaction: got %v, want %v", got, want)
	}
	if got, want := b.Values(t, topic, harness.Uncommitted), []string{"plain", "c1", "c2", "a1", "a2", "open", "behind"}; !slices.Equal(got, want) {
		t.Errorf("uncommitted: got %v, want %v", got, want)
	}
	if got := b.OpenTransactions(t, id); got[id] != "Ongoing" {
		t.Errorf("open transactions: got %v, want %s Ongoing", got, id)
	}
	must(t, open.EndTransaction(t.Context(), kgo.TryCommit))
	if got, want := b.Values(t, topic, harness.Committed), []string{"plain", "c1", "c2", "open", "behind"}; !slices.Equal(got, want) {
		t.Errorf("committed at the end: got %v, want %v", got, want)
	}
	if got := b.OpenTransactions(t, id); len(got) != 0 {
		t.Errorf("open transactions at the end: %v", got)
	}
}

func TestKafkaPartitions(t *testing.T) {
	b := harness.SharedKafka(t)
	topic := b.Topic(t, 3)
	b.Produce(t, topic, "0", "1", "2", "3", "4")
	if got, want := b.Values(t, topic, harness.Committed), []string{"0", "3", "1", "4", "2"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestKafkaKillAndRestart(t *testing.T) {
	t.Parallel()
	b := harness.Kafka(t, harness.KafkaConfig("transaction.max.timeout.ms", "240000"))
	addr, topic, id := b.Addr(), b.Topic(t, 1), harness.UniqueName(t)
	b.Produce(t, topic, "before")
	cl := b.Client(t, kgo.TransactionalID(id), kgo.TransactionTimeout(3*time.Minute))
	must(t, cl.BeginTransaction())
	must(t, cl.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte("open")}).FirstErr())
	b.Kill()
	must(t, b.Restart())
	if b.Addr() != addr {
		t.Errorf("the address moved from %s to %s", addr, b.Addr())
	}
	must(t, cl.EndTransaction(t.Context(), kgo.TryCommit))
	b.Stop()
	must(t, b.Restart())
	if got, want := b.Values(t, topic, harness.Committed), []string{"before", "open"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	slow := b.Client(t, kgo.TransactionalID(id+"_slow"), kgo.TransactionTimeout(5*time.Minute))
	if _, _, err := slow.ProducerID(t.Context()); err == nil || !strings.Contains(err.Error(), "INVALID_TRANSACTION_TIMEOUT") {
		t.Errorf("a timeout above transaction.max.timeout.ms: got %v", err)
	}
}

func TestKafkaCluster(t *testing.T) {
	t.Parallel()
	b := harness.Kafka(t, harness.KafkaNodes(3))
	topic := b.Topic(t, 3)
	b.KillNode(2)
	b.Produce(t, topic, "a", "b", "c")
	must(t, b.RestartNode(2))
	if got := b.Values(t, topic, harness.Committed); len(got) != 3 {
		t.Errorf("got %v", got)
	}
}

func TestKafkaTransactionVersions(t *testing.T) {
	t.Parallel()
	if got := harness.SharedKafka(t).TransactionVersion(t); got != 2 {
		t.Errorf("%s: transaction.version %d, want 2", harness.KafkaDefault, got)
	}
	if got := harness.Kafka(t, harness.KafkaTransactionVersion(1)).TransactionVersion(t); got != 1 {
		t.Errorf("%s formatted with 1: transaction.version %d", harness.KafkaDefault, got)
	}
}

func TestKafkaSecurity(t *testing.T) {
	for _, c := range []struct {
		name string
		opts []harness.KafkaOption
	}{
		{"plain", []harness.KafkaOption{harness.KafkaSASL("PLAIN", "alice", "secret")}},
		{"scram256", []harness.KafkaOption{harness.KafkaSASL("SCRAM-SHA-256", "alice", "secret")}},
		{"scram512+tls", []harness.KafkaOption{harness.KafkaSASL("SCRAM-SHA-512", "alice", "secret"), harness.KafkaTLS()}},
		{"mutual tls", []harness.KafkaOption{harness.KafkaMutualTLS()}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := harness.Kafka(t, c.opts...)
			topic := b.Topic(t, 1)
			b.Produce(t, topic, "x") // through the secured listener
			if got := b.Values(t, topic, harness.Committed); !slices.Equal(got, []string{"x"}) {
				t.Errorf("got %v", got)
			}
			bare, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()), kgo.RetryTimeout(time.Second))
			must(t, err)
			defer bare.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if err := bare.Ping(ctx); err == nil {
				t.Error("a client without credentials got in")
			}
		})
	}
}

func TestPostgresTwoPhaseCommit(t *testing.T) {
	pg := harness.SharedPostgres(t)
	db := pg.CreateDatabase(t)
	pg.Exec(t, db, "CREATE TABLE t (x int)")
	pg.Exec(t, db, "BEGIN", "INSERT INTO t VALUES (7)", "PREPARE TRANSACTION 'g1'")
	if got := pg.PreparedTransactions(t, db); !slices.Equal(got, []string{"g1"}) {
		t.Errorf("prepared: %v", got)
	}
	if got := pg.Rows(t, db, "SELECT x FROM t"); len(got) != 0 {
		t.Errorf("visible before the commit: %v", got)
	}
	pg.Exec(t, db, "COMMIT PREPARED 'g1'")
	if got := pg.Rows(t, db, "SELECT x, x+1 FROM t"); !slices.Equal(got, []string{"7|8"}) {
		t.Errorf("rows: %v", got)
	}
}

func TestPostgresKillKeepsPrepared(t *testing.T) {
	t.Parallel()
	pg := harness.Postgres(t, harness.PGDurable(), harness.PGPassword("it's secret"))
	db := pg.CreateDatabase(t)
	pg.Exec(t, db, "CREATE TABLE t (x int)", "BEGIN", "INSERT INTO t VALUES (7)", "PREPARE TRANSACTION 'g1'")
	idle := pg.Conn(t, db) // a backend that outlives the postmaster for a moment
	must(t, idle.Ping(t.Context()))
	dsn := pg.DSN(db)
	pg.Kill()
	must(t, pg.Restart())
	pg.Stop()
	must(t, pg.Restart())
	pg.Exec(t, db, "COMMIT PREPARED 'g1'")
	if got := pg.Rows(t, db, "SELECT x FROM t"); !slices.Equal(got, []string{"7"}) || pg.DSN(db) != dsn {
		t.Errorf("rows: %v, dsn %s, was %s", got, pg.DSN(db), dsn)
	}
	if _, err := pgconn.Connect(t.Context(), strings.Replace(dsn, "secret", "wrong", 1)); err == nil {
		t.Error("a wrong password got in")
	}
}

func TestPostgresWithoutPrepared(t *testing.T) {
	t.Parallel()
	pg := harness.Postgres(t, harness.PGMaxPrepared(0))
	conn := pg.Conn(t, "")
	_, err := conn.Exec(t.Context(), "BEGIN; CREATE TABLE t (x int); PREPARE TRANSACTION 'g'")
	var pe *pgconn.PgError
	if !errors.As(err, &pe) || pe.Code != "55000" {
		t.Errorf("PREPARE TRANSACTION with max_prepared_transactions=0: %v", err)
	}
}

// patience ends what hangs, also on a loaded machine.
const patience = 5 * time.Minute

func TestBuildStreamsql(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program: run without -short")
	}
	path := harness.BuildStreamsql(t)
	if again := harness.BuildStreamsql(t); again != path {
		t.Errorf("built twice: %s and %s", path, again)
	}
	p := harness.Start(t, harness.Command{Path: "go", Args: []string{"version", "-m", path}})
	if code, err := p.Wait(patience); code != 0 || err != nil {
		t.Fatalf("go version: %d, %v", code, err)
	}
	if want := "github.com/streamsql/streamsql/cmd/streamsql"; os.Getenv(harness.BinaryEnv) == "" && !strings.Contains(p.Stdout(), want) {
		t.Errorf("the program is not %s:\n%s", want, p.Stdout())
	}
}

// child is what TestProcess starts: it says it is there, then waits for the end of the world.
func child() {
	os.Stdout.WriteString("out\n")
	os.Stderr.WriteString("err\n")
	if os.Getenv("HARNESS_TEST_CHILD") == "exit" {
		os.Exit(3)
	}
	select {}
}

func TestProcess(t *testing.T) {
	start := func(mode string) *harness.Process {
		return harness.Start(t, harness.Command{Path: os.Args[0], Env: []string{"HARNESS_TEST_CHILD=" + mode}})
	}
	p := start("exit")
	if code, err := p.Wait(patience); code != 3 || err != nil {
		t.Errorf("wait: %d, %v", code, err)
	}
	if p.Stdout() != "out\n" || p.Stderr() != "err\n" || len(p.Output()) != 8 {
		t.Errorf("stdout %q, stderr %q, both %q", p.Stdout(), p.Stderr(), p.Output())
	}
	if err := p.WaitOutput("never", patience); err == nil || !strings.Contains(err.Error(), "ended without writing") {
		t.Errorf("waiting for text of an ended child: %v", err)
	}
	p = start("stay")
	must(t, p.WaitOutput("err\n", patience))
	if err := p.WaitOutput("never", time.Millisecond); err == nil {
		t.Error("text that was never written was found")
	}
	must(t, p.Pause())
	if !p.Alive() {
		t.Error("a paused child counts as dead")
	}
	must(t, p.Resume())
	if _, err := p.Wait(time.Millisecond); err == nil {
		t.Error("waiting for a running child succeeded")
	}
	p.Kill()
	if code, err := p.Wait(patience); code != -1 || err != nil || p.Alive() {
		t.Errorf("after kill: %d, %v, alive %v", code, err, p.Alive())
	}
}

// TestChildrenDieWithParent starts a test binary that starts a child, and kills it with SIGKILL, which no deferred call
// and no cleanup survives: the child must go too.
func TestChildrenDieWithParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ties a child's life to its parent's; elsewhere the next run sweeps")
	}
	const mark = "7771777.5"
	if os.Getenv("HARNESS_TEST_PARENT") != "" {
		c := harness.Start(t, harness.Command{Path: "sleep", Args: []string{mark}})
		must(t, c.Pause()) // even a stopped one
		os.Stderr.WriteString(fmt.Sprintf("child %d ready\n", c.Pid()))
		<-c.Done()
		return
	}
	p := harness.Start(t, harness.Command{Path: os.Args[0], Args: []string{"-test.run=^TestChildrenDieWithParent$"},
		Env: []string{"HARNESS_TEST_PARENT=1"}})
	must(t, p.WaitOutput(" ready\n", patience))
	var pid int
	if _, err := fmt.Sscanf(p.Output(), "child %d ready", &pid); err != nil {
		t.Fatalf("%v in %q", err, p.Output())
	}
	cmdline := func() string {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return string(b)
	}
	// Its arguments cannot be read yet while it still enters the program, which is after its parent's call has returned.
	for end := time.Now().Add(patience); !strings.Contains(cmdline(), mark); {
		if time.Now().After(end) {
			t.Fatalf("the child does not run: %q", cmdline())
		}
	}
	p.Kill()
	for end := time.Now().Add(patience); strings.Contains(cmdline(), mark); {
		if time.Now().After(end) {
			t.Fatal("a child outlived the test binary that was killed")
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
