package kafka

import (
	"errors"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
)

func equalUnordered(t *testing.T, what string, got, want []string) {
	t.Helper()
	got, want = slices.Clone(got), slices.Clone(want)
	sort.Strings(got)
	sort.Strings(want)
	if !slices.Equal(got, want) {
		t.Fatalf("%s:\n got %v\nwant %v", what, got, want)
	}
}

// Rows are invisible until the manifest's commit, and the transaction is one for all subtasks.
func TestTwoPhaseCommit(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		topic := e.topic(t, 2)
		s := openSink(t, e.table(topic, idCols), "s", 2, job(topic))
		must(t, s.Preflight(testCtx(t)))
		c := committerOf(t, s)
		must(t, c.Abort(testCtx(t), nil))
		ws := openWriters(t, s)
		var cs []checkpoint.Committable
		for id := checkpoint.ID(1); id <= 8; id++ {
			n := int(id) * 10
			must(t, ws[0].Write(testCtx(t), ids(n, n+5)))
			first, err := ws[0].PreCommit(testCtx(t), id)
			must(t, err)
			if len(first) != 0 {
				t.Fatal("the first of two writers pre-committed a transaction the second still writes to")
			}
			must(t, ws[0].Write(testCtx(t), ids(1000*n, 1000*n+1))) // of the next epoch
			must(t, ws[1].Write(testCtx(t), ids(n+5, n+10)))
			cs, err = ws[1].PreCommit(testCtx(t), id)
			must(t, err)
			if len(cs) != 1 || cs[0].Checkpoint != id || cs[0].Sink != "s" {
				t.Fatalf("committables: %+v", cs)
			}
			if got := values(e.read(t, topic, true)); slices.Contains(got, idJSON(n, n+1)[0]) {
				t.Fatal("rows are visible before the commit")
			}
			must(t, c.Commit(testCtx(t), cs))
			must(t, c.Commit(testCtx(t), cs)) // idempotent
			for _, w := range ws {
				must(t, w.Committed(testCtx(t), id))
			}
		}
		waitFor(t, func() bool {
			got := values(e.read(t, topic, true))
			return len(got) == 80+7 && slices.Contains(got, idJSON(80, 81)[0]) && !slices.Contains(got, idJSON(80000, 80001)[0])
		})
	})
}

// waitFor polls a condition that a broker reaches by itself; markers are written after EndTxn is answered.
func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); {
		if time.Now().After(deadline) {
			t.Fatal("condition not reached in time")
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// preCommitted is a process that pre-committed ids 0..9 as checkpoint 1, wrote 10..19 more, and vanished.
func preCommitted(t *testing.T, e *env, topic string, options ...string) []checkpoint.Committable {
	t.Helper()
	s := openSink(t, e.table(topic, idCols, options...), "s", 1, job(topic))
	c := committerOf(t, s)
	must(t, c.Abort(testCtx(t), nil))
	w := openWriters(t, s)[0].(*writer)
	must(t, w.Write(testCtx(t), ids(0, 10)))
	cs, err := w.PreCommit(testCtx(t), 1)
	must(t, err)
	must(t, w.Write(testCtx(t), ids(10, 20)))
	must(t, w.cur.cl.Flush(testCtx(t)))
	vanish(w.group)
	return cs
}

// vanish is a crash: nothing is ended, nothing is given back.
func vanish(g *txnGroup) {
	g.endRenewals()
	for _, sl := range g.slots {
		if sl.state != slotBurned {
			sl.cl.Close()
			sl.state = slotBurned
		}
	}
}

// A new process commits what the manifest lists and aborts the rest.
func TestCommitFromAnotherProcess(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		topic := e.topic(t, 2)
		cs := preCommitted(t, e, topic)
		j := job(topic)
		j.Fence = 2
		s := openSink(t, e.table(topic, idCols), "s", 1, j)
		c := committerOf(t, s)
		classify := func(want checkpoint.Outcome) {
			t.Helper()
			waitFor(t, func() bool {
				os, err := c.Classify(testCtx(t), cs)
				must(t, err)
				return os[0] == want
			})
		}
		classify(checkpoint.OutcomeOpen)
		must(t, c.Commit(testCtx(t), cs))
		classify(checkpoint.OutcomeCommitted)
		must(t, c.Abort(testCtx(t), cs))
		must(t, c.Commit(testCtx(t), cs)) // a third time, after the ids were initialised: the marker tells
		waitFor(t, func() bool { return len(e.read(t, topic, true)) == 10 })
		equalUnordered(t, "committed", values(e.read(t, topic, true)), idJSON(0, 10))
		waitFor(t, func() bool { return e.openTxns(t, s.owner.prefix) == 0 })
	})
}

func (e *env) openTxns(t *testing.T, prefix string) int {
	t.Helper()
	l, err := e.adm.ListTransactions(testCtx(t), nil, []string{"Ongoing", "PrepareAbort", "PrepareCommit"})
	must(t, err)
	n := 0
	for id := range l {
		if prefixOf(id) == prefix {
			n++
		}
	}
	return n
}

// Initialising before the commit is the one mistake that loses data: abort refuses it.
func TestAbortRefusesOpenCommittables(t *testing.T) {
	e := fake(t, 2)
	topic := e.topic(t, 1)
	cs := preCommitted(t, e, topic)
	j := job(topic)
	j.Fence = 2
	c := committerOf(t, openSink(t, e.table(topic, idCols), "s", 1, j))
	if err := c.Abort(testCtx(t), cs); diag.CodeOf(err) != diag.Internal {
		t.Fatalf("abort: %v", err)
	}
	must(t, c.Commit(testCtx(t), cs))
	equalUnordered(t, "committed", values(e.read(t, topic, true)), idJSON(0, 10))
}

// A rewind aborts what later checkpoints wrote and keeps what the older one lists, committed or not.
func TestAbortKeepsWhatIsListed(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		topic := e.topic(t, 1)
		cs := preCommitted(t, e, topic)
		j := job(topic)
		j.Fence = 2
		c := committerOf(t, openSink(t, e.table(topic, idCols), "s", 1, j))
		must(t, c.Abort(testCtx(t), cs))
		must(t, c.Commit(testCtx(t), cs))
		must(t, c.Abort(testCtx(t), cs))
		must(t, c.Abort(testCtx(t), nil))
		equalUnordered(t, "committed", values(e.read(t, topic, true)), idJSON(0, 10))
	})
}

// A transaction that outlived its timeout is proven aborted, and committing it is an error of class Lost.
func TestTimedOutTransaction(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		topic := e.topic(t, 1)
		opts := []string{"properties.transaction.timeout.ms", "10000"}
		cs := preCommitted(t, e, topic, opts...)
		j := job(topic)
		j.Fence = 2
		tab := e.table(topic, idCols, opts...)
		c := committerOf(t, openSink(t, tab, "s", 1, j))
		waitFor(t, func() bool {
			os, err := c.Classify(testCtx(t), cs)
			must(t, err)
			return os[0] == checkpoint.OutcomeAborted
		})
		err := c.Commit(testCtx(t), cs)
		if diag.CodeOf(err) != diag.Lost {
			t.Fatalf("commit of an aborted transaction: %v", err)
		}
		if len(e.read(t, topic, true)) != 0 {
			t.Fatal("rows of an aborted transaction are visible")
		}
		tab.Options.Set("sink.recovery.on-lost-transaction", "ignore", diag.Pos{})
		j.Fence, j.Shared = 3, &connectors.Shared{}
		c = committerOf(t, openSink(t, tab, "s", 1, j))
		os, err := c.Classify(testCtx(t), cs)
		must(t, err)
		if os[0] != checkpoint.OutcomeGivenUp {
			t.Fatalf("the table accepts the loss, the outcome is %s", os[0])
		}
		if err := c.Commit(testCtx(t), cs); diag.CodeOf(err) != diag.Lost { // only a restore gives up, with a record of it
			t.Fatalf("commit of an aborted transaction: %v", err)
		}
	})
}

// An old incarnation that wakes up after the new one started writes nothing that anybody sees.
func TestZombieIsFenced(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		topic := e.topic(t, 1)
		old := openSink(t, e.table(topic, idCols), "s", 1, job(topic))
		oc := committerOf(t, old)
		must(t, oc.Abort(testCtx(t), nil))
		ow := openWriters(t, old)[0]
		must(t, ow.Write(testCtx(t), ids(0, 1)))
		cs, err := ow.PreCommit(testCtx(t), 1)
		must(t, err)
		must(t, ow.Write(testCtx(t), ids(900, 901)))

		j := job(topic)
		j.Fence = 2
		s := openSink(t, e.table(topic, idCols), "s", 1, j)
		c := committerOf(t, s)
		must(t, c.Commit(testCtx(t), cs))
		must(t, c.Abort(testCtx(t), cs))
		w := openWriters(t, s)[0]
		must(t, w.Write(testCtx(t), ids(1, 2)))

		_ = ow.Write(testCtx(t), ids(901, 902))
		if _, err := ow.PreCommit(testCtx(t), 2); err == nil {
			t.Fatal("the fenced writer pre-committed")
		}
		must(t, oc.Commit(testCtx(t), cs)) // a zombie that commits what the manifest lists does no harm
		cs2, err := w.PreCommit(testCtx(t), 2)
		must(t, err)
		must(t, c.Commit(testCtx(t), cs2))
		waitFor(t, func() bool { return len(e.read(t, topic, true)) == 2 })
		equalUnordered(t, "committed", values(e.read(t, topic, true)), idJSON(0, 2))
	})
}

// Fewer subtasks after a restart: the ids of the old ones are fenced too.
func TestRescaleFencesOldIDs(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		topic := e.topic(t, 1)
		tab := e.table(topic, idCols, "sink.transaction-scope", "subtask")
		s := openSink(t, tab, "s", 3, job(topic))
		must(t, committerOf(t, s).Abort(testCtx(t), nil))
		var cs []checkpoint.Committable
		for i, w := range openWriters(t, s) {
			must(t, w.Write(testCtx(t), ids(i, i+1)))
			c, err := w.PreCommit(testCtx(t), 1)
			must(t, err)
			cs = append(cs, c...)
			must(t, w.Write(testCtx(t), ids(100, 101)))
			must(t, w.(*writer).cur.cl.Flush(testCtx(t)))
		}
		if len(cs) != 3 {
			t.Fatalf("%d committables, want one per subtask", len(cs))
		}
		j := job(topic)
		j.Fence = 2
		s2 := openSink(t, tab, "s", 1, j)
		c := committerOf(t, s2)
		must(t, c.Commit(testCtx(t), cs))
		must(t, c.Abort(testCtx(t), nil))
		waitFor(t, func() bool { return e.openTxns(t, s2.owner.prefix) == 0 })
		waitFor(t, func() bool { return len(e.read(t, topic, true)) == 3 })
	})
}

// Two sinks of one job write into one transaction; it commits with the last writer's committable.
func TestSinksShareTransaction(t *testing.T) {
	e := fake(t, 2)
	a, b := e.topic(t, 1), e.topic(t, 1)
	j := job("shared")
	sa, sb := openSink(t, e.table(a, idCols), "a", 1, j), openSink(t, e.table(b, idCols), "b", 1, j)
	c := committerOf(t, sa)
	must(t, c.Abort(testCtx(t), nil))
	wa, wb := openWriters(t, sa)[0], openWriters(t, sb)[0]
	must(t, wa.Write(testCtx(t), ids(0, 3)))
	must(t, wb.Write(testCtx(t), ids(0, 2)))
	c1, err := wa.PreCommit(testCtx(t), 1)
	must(t, err)
	c2, err := wb.PreCommit(testCtx(t), 1)
	must(t, err)
	if len(c1) != 0 || len(c2) != 1 {
		t.Fatalf("committables %d and %d, want 0 and 1", len(c1), len(c2))
	}
	must(t, committerOf(t, sb).Commit(testCtx(t), c2))
	if x, y := len(e.read(t, a, true)), len(e.read(t, b, true)); x != 3 || y != 2 {
		t.Fatalf("visible rows: %d and %d", x, y)
	}
}

// A writer that passes a barrier before others goes on in another transaction, with another producer. What it wrote before
// is in the log by then: otherwise the records of a key could change places.
func TestRowsDoNotOvertakeABarrier(t *testing.T) {
	e := fake(t, 2)
	topic := e.topic(t, 1)
	s := openSink(t, e.table(topic, idCols), "s", 2, job(topic))
	must(t, committerOf(t, s).Abort(testCtx(t), nil))
	ws := openWriters(t, s)
	for id := checkpoint.ID(1); id < 4; id++ {
		written := int(id) * 10
		must(t, ws[1].Write(testCtx(t), ids(0, 5))) // its barrier comes later
		must(t, ws[0].Write(testCtx(t), ids(0, 5)))
		cs, err := ws[0].PreCommit(testCtx(t), id)
		must(t, err)
		if len(cs) != 0 {
			t.Fatal("the first writer listed the transaction of both")
		}
		if n := len(e.read(t, topic, false)); n < written {
			t.Fatalf("%d of %d records are in the log when the writer goes on behind barrier %d", n, written, id)
		}
		cs, err = ws[1].PreCommit(testCtx(t), id)
		must(t, err)
		must(t, committerOf(t, s).Commit(testCtx(t), cs))
		must(t, ws[0].Committed(testCtx(t), id))
	}
}

// Nothing written means no transaction and nothing to list.
func TestEmptyEpoch(t *testing.T) {
	e := fake(t, 2)
	topic := e.topic(t, 1)
	s := openSink(t, e.table(topic, idCols), "s", 1, job(topic))
	must(t, committerOf(t, s).Abort(testCtx(t), nil))
	w := openWriters(t, s)[0]
	for id := checkpoint.ID(1); id < 20; id++ {
		cs, err := w.PreCommit(testCtx(t), id)
		must(t, err)
		if len(cs) != 0 {
			t.Fatalf("an empty epoch listed %v", cs)
		}
		must(t, w.Committed(testCtx(t), id))
	}
}

// A record the broker refuses fails the pre-commit: nothing of the checkpoint may become visible.
func TestProduceErrorFailsPreCommit(t *testing.T) {
	e := fake(t, 2)
	topic := e.topic(t, 1)
	s := openSink(t, e.table(topic, idCols), "s", 1, job(topic))
	must(t, committerOf(t, s).Abort(testCtx(t), nil))
	w := openWriters(t, s)[0]
	must(t, w.Write(testCtx(t), ids(0, 1)))
	w.(*writer).cur.delivered(&kgo.Record{Topic: topic}, kerr.MessageTooLarge)
	_, err := w.PreCommit(testCtx(t), 1)
	if !errors.Is(err, kerr.MessageTooLarge) {
		t.Fatalf("pre-commit: %v", err)
	}
	if err := w.Write(testCtx(t), ids(1, 2)); err != nil {
		t.Logf("write after a failed pre-commit: %v", err)
	}
}

// A slot is reused only after a manifest that no longer lists its transaction.
func TestSlotReuseRule(t *testing.T) {
	e := fake(t, 2)
	topic := e.topic(t, 1)
	s := openSink(t, e.table(topic, idCols, "sink.transactional-id-slots", "5"), "s", 1, job(topic))
	c := committerOf(t, s)
	must(t, c.Abort(testCtx(t), nil))
	w := openWriters(t, s)[0]
	inNewest, newest := "", checkpoint.ID(0)
	for id := checkpoint.ID(1); id < 30; id++ {
		must(t, w.Write(testCtx(t), ids(0, 1)))
		if got := w.(*writer).cur.id; got == inNewest {
			t.Fatalf("id %s is written to while manifest %d lists its last transaction", got, newest)
		}
		cs, err := w.PreCommit(testCtx(t), id)
		must(t, err)
		ref, err := decodeTxnRef(cs[0].Payload)
		must(t, err)
		must(t, c.Commit(testCtx(t), cs)) // manifest id is durable
		inNewest, newest = ref.id, id
		if id%3 != 0 { // the notice can come late
			must(t, w.Committed(testCtx(t), id))
		}
	}
}

// Two live jobs must not share a prefix.
func TestPrefixConflict(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		topic := e.topic(t, 1)
		prefix := topic + "-prefix"
		tab := e.table(topic, idCols, "sink.transactional-id-prefix", prefix)
		s := openSink(t, tab, "s", 1, job("one"))
		must(t, committerOf(t, s).Abort(testCtx(t), nil))
		w := openWriters(t, s)[0]
		must(t, w.Write(testCtx(t), ids(0, 1)))

		other := openSink(t, tab, "s", 1, job("two"))
		who := holder{Job: "two", Lineage: "lin-two", Fence: 1, Host: "h", PID: 1, Started: time.Now().UnixMilli()}
		_, err := takeLease(testCtx(t), other.c, prefix, who, 0, other.log)
		if diag.CodeOf(err) != diag.Conflict {
			t.Fatalf("second job: %v", err)
		}
		cs, err := w.PreCommit(testCtx(t), 1)
		must(t, err)
		must(t, committerOf(t, s).Commit(testCtx(t), cs))
		must(t, s.Close())
		l, err := takeLease(testCtx(t), other.c, prefix, who, leaseWait, other.log)
		must(t, err)
		l.release()
	})
}

func TestAtLeastOnce(t *testing.T) {
	e := fake(t, 2)
	for _, g := range []string{"at-least-once", "none"} {
		topic := e.topic(t, 2)
		s := openSink(t, e.table(topic, idCols, "sink.delivery-guarantee", g), "s", 1, job(topic))
		must(t, s.Preflight(testCtx(t)))
		if c, err := s.Committer(testCtx(t)); c != nil || err != nil {
			t.Fatal("a committer without transactions")
		}
		w := openWriters(t, s)[0]
		must(t, w.Write(testCtx(t), ids(0, 100)))
		cs, err := w.PreCommit(testCtx(t), 1)
		must(t, err)
		if cs != nil {
			t.Fatal("committables without transactions")
		}
		equalUnordered(t, g, values(e.read(t, topic, true)), idJSON(0, 100))
		must(t, w.Close())
	}
}
