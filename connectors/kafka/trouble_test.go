package kafka

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
	"github.com/streamsql/streamsql/tests/harness"
)

// One answer to a commit is an error of unknown meaning: the commit goes on by the raw way, its producer is never used
// again, and when too few are left the attempt fails instead of initialising ids while it runs.
func TestCommitWithoutAnswer(t *testing.T) {
	e := fake(t, 2)
	topic := e.topic(t, 1)
	s := openSink(t, e.table(topic, idCols, "sink.transactional-id-slots", "5"), "s", 1, job(topic))
	c := committerOf(t, s)
	must(t, c.Abort(testCtx(t), nil))
	w := openWriters(t, s)[0]
	var err error
	committed := 0
	for id := checkpoint.ID(1); id < 10; id++ {
		if err = w.Write(testCtx(t), ids(int(id), int(id)+1)); err != nil {
			break
		}
		cs, perr := w.PreCommit(testCtx(t), id)
		must(t, perr)
		asked := 0
		e.fake.ControlKey(int16(kmsg.EndTxn), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
			if asked++; asked != 2 { // the first is the commit, the second the producer's own
				e.fake.KeepControl()
				return nil, nil, false
			}
			resp := kreq.ResponseKind().(*kmsg.EndTxnResponse)
			resp.ErrorCode = kerr.UnknownServerError.Code
			return resp, nil, true
		})
		must(t, c.Commit(testCtx(t), cs))
		must(t, w.Committed(testCtx(t), id))
		committed++
	}
	if diag.CodeOf(err) != diag.External || !strings.Contains(err.Error(), "too few usable transactional ids") {
		t.Fatalf("after %d commits: %v", committed, err)
	}
	equalUnordered(t, "rows", values(e.read(t, topic, true)), idJSON(1, 1+committed))
}

// Checkpoints that never complete use up the ids; writing then waits and fails with what holds them.
func TestNoFreeSlot(t *testing.T) {
	e := fake(t, 2)
	topic := e.topic(t, 1)
	s := openSink(t, e.table(topic, idCols, "sink.transactional-id-slots", "3"), "s", 1, job(topic))
	must(t, committerOf(t, s).Abort(testCtx(t), nil))
	w := openWriters(t, s)[0].(*writer)
	w.group.patience = 10 * time.Millisecond
	for id := checkpoint.ID(1); id <= 3; id++ {
		must(t, w.Write(testCtx(t), ids(0, 1)))
		_, err := w.PreCommit(testCtx(t), id)
		must(t, err)
	}
	err := w.Write(testCtx(t), ids(0, 1))
	var d *diag.Error
	if !asDiag(err, &d) || !strings.Contains(err.Error(), "free transactional id") || !strings.Contains(d.Detail, "prepared(3)") {
		t.Fatalf("write: %v %+v", err, d)
	}
}

// A barrier that was given up before it reached every writer: the transaction of its rows is listed by the next one.
func TestSkippedBarrier(t *testing.T) {
	e := fake(t, 2)
	topic := e.topic(t, 1)
	s := openSink(t, e.table(topic, idCols), "s", 2, job(topic))
	c := committerOf(t, s)
	must(t, c.Abort(testCtx(t), nil))
	ws := openWriters(t, s)
	must(t, ws[0].Write(testCtx(t), ids(0, 1)))
	must(t, ws[1].Write(testCtx(t), ids(1, 2)))
	_, err := ws[0].PreCommit(testCtx(t), 1) // checkpoint 1 ends here: writer 1 is never asked
	must(t, err)
	must(t, ws[0].Write(testCtx(t), ids(2, 3)))
	first, err := ws[0].PreCommit(testCtx(t), 2)
	must(t, err)
	cs, err := ws[1].PreCommit(testCtx(t), 2)
	must(t, err)
	if len(first) != 0 || len(cs) != 2 {
		t.Fatalf("committables: %d and %d, want 0 and 2", len(first), len(cs))
	}
	must(t, c.Commit(testCtx(t), cs))
	must(t, ws[0].Committed(testCtx(t), 2))
	equalUnordered(t, "rows", values(e.read(t, topic, true)), idJSON(0, 3))
}

// A sink that is closed leaves what it prepared alone and aborts what it had open.
func TestCloseKeepsPrepared(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		topic := e.topic(t, 1)
		s := openSink(t, e.table(topic, idCols), "s", 1, job(topic))
		must(t, committerOf(t, s).Abort(testCtx(t), nil))
		w := openWriters(t, s)[0]
		must(t, w.Write(testCtx(t), ids(0, 1)))
		cs, err := w.PreCommit(testCtx(t), 1)
		must(t, err)
		must(t, w.Write(testCtx(t), ids(1, 2)))
		must(t, w.(*writer).cur.cl.Flush(testCtx(t)))
		prefix := s.owner.prefix
		must(t, w.Close())
		must(t, s.Close())
		waitFor(t, func() bool { return e.openTxns(t, prefix) == 1 })
		j := job(topic)
		j.Fence = 2
		must(t, committerOf(t, openSink(t, e.table(topic, idCols), "s", 1, j)).Commit(testCtx(t), cs))
		waitFor(t, func() bool { return len(e.read(t, topic, true)) == 1 })
	})
}

func TestForeignCluster(t *testing.T) {
	a, b := fake(t, 2, kfake.ClusterID("one")), fake(t, 2, kfake.ClusterID("two"))
	topic := a.topic(t, 1)
	_, err := b.adm.CreateTopic(testCtx(t), 1, -1, nil, topic)
	must(t, err)
	cs := preCommitted(t, a, topic)
	c := committerOf(t, openSink(t, b.table(topic, idCols), "s", 1, job(topic)))
	if err := c.Commit(testCtx(t), cs); diag.CodeOf(err) != diag.Lost || !strings.Contains(err.Error(), "another kafka cluster") {
		t.Fatalf("commit: %v", err)
	}
}

func TestTimeoutAboveBrokerMaximum(t *testing.T) {
	e := fake(t, 2, kfake.BrokerConfigs(map[string]string{"transaction.max.timeout.ms": "60000"}))
	topic := e.topic(t, 1)
	s := openSink(t, e.table(topic, idCols, "properties.transaction.timeout.ms", "3600000"), "s", 1, job(topic))
	var d *diag.Error
	if err := s.Preflight(testCtx(t)); !asDiag(err, &d) || !strings.Contains(d.Detail, "3600000") || !strings.Contains(d.Detail, "60000") {
		t.Fatalf("preflight: %v", err)
	}
	// The same answer comes from the broker when its settings cannot be read.
	if err := committerOf(t, s).Abort(testCtx(t), nil); !errors.Is(err, kerr.InvalidTransactionTimeout) {
		t.Fatalf("abort: %v", err)
	}
	s = openSink(t, e.table(topic, idCols), "s2", 1, job(topic))
	must(t, s.Preflight(testCtx(t)))
	k, err := s.configure(testCtx(t))
	must(t, err)
	if s.timeout(k) != 60_000 {
		t.Fatalf("default timeout %d", s.timeout(k))
	}
}

// Missing permissions are named with what to grant.
func TestPermissions(t *testing.T) {
	allow := func(r kmsg.ACLResourceType, name string, op kmsg.ACLOperation) kfake.ACL {
		return kfake.ACL{Resource: r, Name: name, Pattern: kmsg.ACLResourcePatternTypePrefixed, Operation: op, Allow: true}
	}
	topics := []kfake.ACL{allow(kmsg.ACLResourceTypeTopic, "t_", kmsg.ACLOperationRead), allow(kmsg.ACLResourceTypeTopic, "t_", kmsg.ACLOperationWrite)}
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "root", "root"),
		kfake.User("PLAIN", "nobody", "p"), kfake.User("PLAIN", "writer", "p", topics...),
		kfake.User("PLAIN", "exact", "p", append(topics, allow(kmsg.ACLResourceTypeTransactionalId, "streamsql-", kmsg.ACLOperationWrite))...))
	must(t, err)
	t.Cleanup(c.Close)
	e := newEnv(t, c.ListenAddrs()[0], kgo.SASL(plain.Auth{User: "root", Pass: "root"}.AsMechanism()))
	topic := e.topic(t, 1)
	as := func(user string) *sink {
		e.more = map[string]string{"properties.security.protocol": "SASL_PLAINTEXT", "properties.sasl.mechanism": "PLAIN",
			"properties.sasl.username": user, "properties.sasl.password": "p"}
		return openSink(t, e.table(topic, idCols), "s", 1, job(topic))
	}
	wantHint := func(err error, hint string) {
		t.Helper()
		var d *diag.Error
		if !asDiag(err, &d) || !strings.Contains(d.Hint, hint) {
			t.Fatalf("got %v (%+v), want a hint %q", err, d, hint)
		}
	}
	wantHint(as("nobody").Preflight(testCtx(t)), "on the topic")
	w := as("writer")
	must(t, w.Preflight(testCtx(t)))
	wantHint(committerOf(t, w).Abort(testCtx(t), nil), "grant WRITE on the prefixed resource TransactionalId streamsql-")
	x := as("exact") // no READ on the lease's group: the check is off, with a warning
	must(t, x.Preflight(testCtx(t)))
	must(t, committerOf(t, x).Abort(testCtx(t), nil))
	ws := openWriters(t, x)
	must(t, ws[0].Write(testCtx(t), ids(0, 2)))
	cs, err := ws[0].PreCommit(testCtx(t), 1)
	must(t, err)
	must(t, committerOf(t, x).Commit(testCtx(t), cs))
	must(t, committerOf(t, x).Commit(testCtx(t), cs))
}

// The rowtime attribute dates the records.
func TestRowtimeTimestamp(t *testing.T) {
	e := fake(t, 2)
	topic := e.topic(t, 1)
	tab := e.table(topic, []catalog.Column{phys("id", types.BigIntType), phys("ts", types.TimestampMs)}, "sink.delivery-guarantee", "at-least-once")
	s, err := newSink(connectors.SinkSpec{ID: "s", Table: tab, Schema: persisted(tab), Mode: connectors.SinkMode{Delivery: connectors.AtLeastOnce},
		Parallel: 1, Job: connectors.JobInfo{Log: slog.New(slog.DiscardHandler)}, Rowtime: 2}, false)
	must(t, err)
	defer s.Close()
	w, err := s.Open(testCtx(t), 0)
	must(t, err)
	defer w.Close()
	b := batch.NewBuilder(persisted(tab))
	b.Cols[0].AppendI64(1)
	b.Cols[1].AppendI64(1_600_000_000_000_000)
	b.RowDone()
	must(t, w.Write(testCtx(t), b.Finish()))
	_, err = w.PreCommit(testCtx(t), 1)
	must(t, err)
	if r := e.read(t, topic, true)[0]; r.Timestamp.Unix() != 1_600_000_000 {
		t.Fatalf("timestamp %v", r.Timestamp)
	}
}

// The protocol before KIP-890 part 2 on a real broker, and brokers that die between pre-commit and commit.
func TestRealBrokerVariants(t *testing.T) {
	t.Run("transaction.version=1", func(t *testing.T) {
		b := harness.Kafka(t, harness.KafkaTransactionVersion(1))
		e := newEnv(t, b.Addr())
		runChaos(t, e, 5, 400, 2, 0, "sink.transactional-id-prefix", "tv1")
		lateEndTxn(t, e)
		topic := e.topic(t, 1)
		cs := preCommitted(t, e, topic, "properties.transaction.timeout.ms", "10000")
		j := job(topic)
		j.Fence = 2
		c := committerOf(t, openSink(t, e.table(topic, idCols), "s", 1, j))
		waitFor(t, func() bool {
			os, err := c.Classify(testCtx(t), cs)
			must(t, err)
			return os[0] == checkpoint.OutcomeAborted
		})
		if err := c.Commit(testCtx(t), cs); diag.CodeOf(err) != diag.Lost {
			t.Fatalf("commit: %v", err)
		}
	})
	t.Run("broker killed", func(t *testing.T) {
		b := harness.Kafka(t)
		e := newEnv(t, b.Addr())
		topic := e.topic(t, 1)
		s := openSink(t, e.table(topic, idCols), "s", 1, job(topic))
		c := committerOf(t, s)
		must(t, c.Abort(testCtx(t), nil))
		w := openWriters(t, s)[0]
		must(t, w.Write(testCtx(t), ids(0, 10)))
		cs, err := w.PreCommit(testCtx(t), 1)
		must(t, err)
		b.Kill()
		must(t, b.Restart())
		must(t, c.Commit(testCtx(t), cs))
		must(t, w.Committed(testCtx(t), 1))
		must(t, w.Write(testCtx(t), ids(10, 20)))
		cs, err = w.PreCommit(testCtx(t), 2)
		must(t, err)
		must(t, c.Commit(testCtx(t), cs))
		waitFor(t, func() bool { return len(e.read(t, topic, true)) == 20 })
		equalUnordered(t, "rows", values(e.read(t, topic, true)), idJSON(0, 20))
	})
}
