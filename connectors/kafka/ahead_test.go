package kafka

import (
	"bytes"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
)

// aheadTable is a table written by the write-ahead protocol, with a marker topic of its own.
func (e *env) aheadTable(topic string, options ...string) *catalog.Table {
	return e.table(topic, idCols, append([]string{commitProtocolOption, writeAhead, markerTopicOption, topic + "-markers"}, options...)...)
}

// aheadSink is an incarnation of the job.
func aheadSink(t *testing.T, e *env, topic string, fence uint64, parallel int, options ...string) *sink {
	t.Helper()
	j := job(topic)
	j.Fence = fence
	return openSink(t, e.aheadTable(topic, options...), "s", parallel, j)
}

// keptAhead are the committables of two subtasks: ids 0..9 and 10..19.
func keptAhead(t *testing.T, e *env, topic string) ([]checkpoint.Committable, *sink) {
	t.Helper()
	s := aheadSink(t, e, topic, 1, 2)
	must(t, s.Preflight(testCtx(t)))
	must(t, committerOf(t, s).Abort(testCtx(t), nil))
	var cs []checkpoint.Committable
	for i, w := range openWriters(t, s) {
		must(t, w.Write(testCtx(t), ids(10*i, 10*i+10)))
		c, err := w.PreCommit(testCtx(t), 1)
		must(t, err)
		if len(c) != 1 || c[0].Subtask != i {
			t.Fatalf("committables of subtask %d: %+v", i, c)
		}
		cs = append(cs, c...)
		must(t, w.Write(testCtx(t), ids(900, 901))) // of a checkpoint that never completes
	}
	return cs, s
}

func outcomes(t *testing.T, c checkpoint.Committer, cs []checkpoint.Committable, want ...checkpoint.Outcome) {
	t.Helper()
	got, err := c.Classify(testCtx(t), cs)
	must(t, err)
	if !slices.Equal(got, want) {
		t.Fatalf("outcomes %v, want %v", got, want)
	}
}

// Nothing is in the topic, not even uncommitted, before the commit; a commit twice writes once.
func TestAheadTwoPhaseCommit(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		topic := e.topic(t, 2)
		s := aheadSink(t, e, topic, 1, 2)
		must(t, s.Preflight(testCtx(t)))
		c := committerOf(t, s)
		must(t, c.Abort(testCtx(t), nil))
		ws := openWriters(t, s)
		for id := checkpoint.ID(1); id <= 4; id++ {
			var cs []checkpoint.Committable
			for i, w := range ws {
				n := 10*int(id) + 5*i
				must(t, w.Write(testCtx(t), ids(n, n+5)))
				list, err := w.PreCommit(testCtx(t), id)
				must(t, err)
				cs = append(cs, list...)
			}
			if n := len(e.read(t, topic, false)); n != 10*int(id-1) || e.openTxns(t, s.owner.prefix) != 0 {
				t.Fatalf("before commit %d: %d records, %d open transactions", id, n, e.openTxns(t, s.owner.prefix))
			}
			must(t, c.Commit(testCtx(t), cs))
			must(t, c.Commit(testCtx(t), cs))
			for _, w := range ws {
				must(t, w.Committed(testCtx(t), id))
			}
		}
		waitFor(t, func() bool { return len(e.read(t, topic, true)) == 40 })
		equalUnordered(t, "committed", values(e.read(t, topic, true)), idJSON(10, 50))
		cs, err := ws[0].PreCommit(testCtx(t), 5)
		must(t, err)
		if len(cs) != 0 {
			t.Fatal("an empty epoch is listed")
		}
		if s.TransactionTimeout() != 0 {
			t.Fatal("the write-ahead protocol names a transaction timeout")
		}
	})
}

// A new process with other subtasks commits what the checkpoint keeps, once; what no checkpoint lists is gone.
func TestAheadCommitFromAnotherProcess(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		topic := e.topic(t, 2)
		cs, _ := keptAhead(t, e, topic)
		c := committerOf(t, aheadSink(t, e, topic, 2, 1))
		outcomes(t, c, cs, checkpoint.OutcomeOpen, checkpoint.OutcomeOpen)
		must(t, c.Commit(testCtx(t), cs[:1]))
		outcomes(t, c, cs, checkpoint.OutcomeCommitted, checkpoint.OutcomeOpen)
		c = committerOf(t, aheadSink(t, e, topic, 3, 1)) // a crash between two subtasks
		outcomes(t, c, cs, checkpoint.OutcomeCommitted, checkpoint.OutcomeOpen)
		must(t, c.Commit(testCtx(t), cs))
		must(t, c.Abort(testCtx(t), nil))
		outcomes(t, c, cs, checkpoint.OutcomeCommitted, checkpoint.OutcomeCommitted)
		must(t, c.Commit(testCtx(t), cs))
		waitFor(t, func() bool { return len(e.read(t, topic, true)) == 20 })
		equalUnordered(t, "committed", values(e.read(t, topic, true)), idJSON(0, 20))
	})
}

// A rewind gives up what later checkpoints keep and nothing of what the older one keeps.
func TestAheadAbort(t *testing.T) {
	e := fake(t, 2)
	topic := e.topic(t, 2)
	cs, _ := keptAhead(t, e, topic)
	c := committerOf(t, aheadSink(t, e, topic, 2, 2))
	must(t, c.Abort(testCtx(t), cs[:1]))
	outcomes(t, c, cs, checkpoint.OutcomeOpen, checkpoint.OutcomeAborted)
	must(t, c.Commit(testCtx(t), cs[:1]))
	equalUnordered(t, "committed", values(e.read(t, topic, true)), idJSON(0, 10))
}

// The answer to a commit is lost, whether it was carried out or not: the marker decides, and the rows are there once.
func TestAheadAnswerLost(t *testing.T) {
	for _, applied := range []bool{true, false} {
		for _, tv := range []int8{1, 2} {
			e := fake(t, tv)
			topic := e.topic(t, 2)
			cs, _ := keptAhead(t, e, topic)
			c := committerOf(t, aheadSink(t, e, topic, 2, 2))
			left := 2
			e.fake.ControlKey(int16(kmsg.EndTxn), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
				e.fake.KeepControl()
				req := kreq.(*kmsg.EndTxnRequest)
				if !req.Commit { // of a transaction that the first lost answer left unfinished
					return nil, nil, false
				}
				if left--; left < 0 {
					return nil, nil, false
				}
				if applied { // by another hand, so that the answer is not the commit's own
					adm, err := kgo.NewClient(append(endTxnOpts(tv), kgo.SeedBrokers(e.addr))...)
					must(t, err)
					go func() {
						defer adm.Close()
						ref := txnRef{id: req.TransactionalID, pid: req.ProducerID, epoch: req.ProducerEpoch}
						_ = endTxn(testCtx(t), adm, &ref, true)
					}()
				}
				resp := kreq.ResponseKind().(*kmsg.EndTxnResponse)
				resp.ErrorCode = kerr.RequestTimedOut.Code
				return resp, nil, true
			})
			must(t, c.Commit(testCtx(t), cs))
			waitFor(t, func() bool { return len(e.read(t, topic, true)) == 20 })
			equalUnordered(t, "committed", values(e.read(t, topic, true)), idJSON(0, 20))
		}
	}
}

// An old incarnation that wakes up in the middle of its commit is fenced; commits of both leave the rows once. One that
// lost the job's directory writes nothing more.
func TestAheadZombie(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		topic := e.topic(t, 2)
		cs, old := keptAhead(t, e, topic)
		zombie := committerOf(t, old).(*committer)
		list, err := zombie.ahead.items(testCtx(t), cs)
		must(t, err)
		slots, err := zombie.ahead.take(testCtx(t), list)
		must(t, err)
		for i := range list { // its transactions are written and not ended
			must(t, zombie.ahead.write(testCtx(t), slots[list[i].ref.id], list[i:i+1], nil))
		}
		c := committerOf(t, aheadSink(t, e, topic, 2, 2))
		outcomes(t, c, cs, checkpoint.OutcomeOpen, checkpoint.OutcomeOpen)
		for i := range list {
			sl := slots[list[i].ref.id]
			adm, err := zombie.adm.get(e.tv)
			must(t, err)
			if err := endTxn(testCtx(t), adm, &txnRef{id: sl.id, pid: sl.pid, epoch: sl.epoch}, true); !undecided(err) {
				t.Fatalf("the fenced transaction was committed: %v", err)
			}
		}
		must(t, c.Commit(testCtx(t), cs))
		must(t, zombie.Commit(testCtx(t), cs)) // finds the markers
		waitFor(t, func() bool { return len(e.read(t, topic, true)) == 20 })
		equalUnordered(t, "committed", values(e.read(t, topic, true)), idJSON(0, 20))

		taken := errors.New("taken over")
		old.spec.Job.Owned = func() error { return taken }
		if err := zombie.Commit(testCtx(t), cs); !errors.Is(err, taken) {
			t.Fatalf("commit without the directory: %v", err)
		}
	})
}

// The point of it: a job that is down for longer than any transaction may live loses nothing and goes back nowhere.
// With the other protocol TestTimedOutTransaction shows the loss.
func TestAheadOutlivesTransactionTimeout(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		topic := e.topic(t, 2)
		cs, s := keptAhead(t, e, topic)
		// A transaction begun at the same time under the same timeout, to see that the downtime is longer.
		cl, err := kgo.NewClient(kgo.SeedBrokers(e.addr), kgo.TransactionalID(s.owner.prefix+"-other-0-0"), kgo.TransactionTimeout(time.Second))
		must(t, err)
		must(t, cl.BeginTransaction())
		must(t, cl.ProduceSync(testCtx(t), rec(topic, 0, "lost")).FirstErr())
		cl.Close()
		waitFor(t, func() bool { return e.openTxns(t, s.owner.prefix+"-other") == 0 })

		c := committerOf(t, aheadSink(t, e, topic, 2, 2, "properties.transaction.timeout.ms", "1000"))
		outcomes(t, c, cs, checkpoint.OutcomeOpen, checkpoint.OutcomeOpen)
		must(t, c.Commit(testCtx(t), cs))
		waitFor(t, func() bool { return len(e.read(t, topic, true)) == 20 })
		equalUnordered(t, "committed", values(e.read(t, topic, true)), idJSON(0, 20))
	})
}

// Markers that are old are removed with a floor behind them: what lies below is unknown, never written again.
func TestAheadMarkersExpire(t *testing.T) {
	e := fake(t, 2)
	topic := e.topic(t, 1)
	s := aheadSink(t, e, topic, 1, 1)
	c := committerOf(t, s).(*committer)
	must(t, c.Abort(testCtx(t), nil))
	c.ahead.keep = -time.Hour
	w := openWriters(t, s)[0]
	var all []checkpoint.Committable
	for id := checkpoint.ID(1); id <= 3; id++ {
		must(t, w.Write(testCtx(t), ids(int(id), int(id)+1)))
		cs, err := w.PreCommit(testCtx(t), id)
		must(t, err)
		must(t, c.Commit(testCtx(t), cs))
		all = append(all, cs...)
	}
	fresh := committerOf(t, aheadSink(t, e, topic, 2, 1))
	outcomes(t, fresh, all, checkpoint.OutcomeUnknown, checkpoint.OutcomeUnknown, checkpoint.OutcomeCommitted)
	if err := fresh.Commit(testCtx(t), all[:1]); diag.CodeOf(err) != diag.Lost {
		t.Fatalf("commit below the floor: %v", err)
	}
	must(t, fresh.Commit(testCtx(t), all[2:]))
	if n := len(e.read(t, topic, true)); n != 3 {
		t.Fatalf("%d rows", n)
	}
}

// A marker topic that was lost makes outcomes unknown; one that deletes by age is refused.
func TestAheadMarkerTopic(t *testing.T) {
	e := fake(t, 2)
	topic := e.topic(t, 2)
	cs, _ := keptAhead(t, e, topic)
	_, err := e.adm.DeleteTopic(testCtx(t), topic+"-markers")
	must(t, err)
	c := committerOf(t, aheadSink(t, e, topic, 2, 2))
	waitFor(t, func() bool {
		got, err := c.Classify(testCtx(t), cs)
		must(t, err)
		return got[0] == checkpoint.OutcomeUnknown
	})
	if err := c.Commit(testCtx(t), cs); diag.CodeOf(err) != diag.Lost {
		t.Fatalf("commit without markers: %v", err)
	}

	other := e.topicWith(t, 1, map[string]*string{"cleanup.policy": kmsg.StringPtr("delete")})
	s := openSink(t, e.aheadTable(topic, markerTopicOption, other), "s", 1, job("other"))
	var d *diag.Error
	if err := s.Preflight(testCtx(t)); !asDiag(err, &d) || d.Code != diag.Config || !strings.Contains(d.Hint, "cleanup.policy=compact") {
		t.Fatalf("preflight: %v", err)
	}
	if _, err := s.Open(testCtx(t), 0); diag.CodeOf(err) != diag.Config {
		t.Fatalf("open: %v", err)
	}
}

// Rows beyond the limits fail when they are written, not in a commit that can never succeed.
func TestAheadLimits(t *testing.T) {
	e := fake(t, 2)
	topic := e.topicWith(t, 1, map[string]*string{"max.message.bytes": kmsg.StringPtr("300")})
	s := openSink(t, e.aheadTable(topic, maxBytesOption, "2kb"), "s", 1, job(topic))
	w := openWriters(t, s)[0].(*writer)
	err := w.Write(testCtx(t), ids(0, 500))
	if diag.CodeOf(err) != diag.Config || !strings.Contains(err.Error(), "more than 2048 bytes in one checkpoint") {
		t.Fatalf("write: %v", err)
	}
	w.ahead.record = 10
	if err := w.Write(testCtx(t), ids(0, 1)); diag.CodeOf(err) != diag.Data {
		t.Fatalf("write: %v", err)
	}
}

// A job that changes the protocol commits what its last checkpoint keeps in the old way.
func TestAheadChangeOfProtocol(t *testing.T) {
	e := fake(t, 2)
	topic := e.topic(t, 2)
	cs, _ := keptAhead(t, e, topic)
	j := job(topic)
	j.Fence = 2
	c := committerOf(t, openSink(t, e.table(topic, idCols), "s", 2, j))
	outcomes(t, c, cs, checkpoint.OutcomeOpen, checkpoint.OutcomeOpen)
	must(t, c.Commit(testCtx(t), cs))
	must(t, c.Abort(testCtx(t), nil))
	equalUnordered(t, "to transaction", values(e.read(t, topic, true)), idJSON(0, 20))

	topic = e.topic(t, 2)
	cs = preCommitted(t, e, topic)
	c = committerOf(t, aheadSink(t, e, topic, 2, 1))
	must(t, c.Commit(testCtx(t), cs))
	must(t, c.Abort(testCtx(t), nil))
	equalUnordered(t, "to write-ahead", values(e.read(t, topic, true)), idJSON(0, 10))
}

// "streamsql txn" and reconcile see the outcome and can commit, without a job.
func TestAheadTransactions(t *testing.T) {
	e := fake(t, 2)
	topic := e.topic(t, 2)
	cs, s := keptAhead(t, e, topic)
	must(t, s.Close())
	x, err := Connector().Transactions(e.aheadTable(topic), "", nil)
	must(t, err)
	defer x.Close()
	if _, ok := x.Identity(&cs[0]); ok {
		t.Fatal("rows in the checkpoint are no transaction")
	}
	if got := x.Describe(&cs[0], time.Now()); !strings.Contains(got, "10 rows kept in the checkpoint") {
		t.Fatal(got)
	}
	for _, want := range []checkpoint.Outcome{checkpoint.OutcomeOpen, checkpoint.OutcomeCommitted} {
		o, why, err := x.Outcome(testCtx(t), &cs[0])
		must(t, err)
		if o != want {
			t.Fatalf("%s %s, want %s", o, why, want)
		}
		must(t, x.Commit(testCtx(t), &cs[0]))
	}
	equalUnordered(t, "committed", values(e.read(t, topic, true)), idJSON(0, 10))
}

// Options of one protocol are refused with the other.
func TestAheadOptions(t *testing.T) {
	for _, x := range []struct {
		options []string
		want    string
	}{
		{[]string{maxBytesOption, "1mb"}, "option '" + maxBytesOption + "' has no effect without"},
		{[]string{markerTopicOption, "m"}, "option '" + markerTopicOption + "' has no effect without"},
		{[]string{commitProtocolOption, writeAhead, "sink.delivery-guarantee", "at-least-once"}, "has no effect with 'sink.delivery-guarantee'"},
		{[]string{commitProtocolOption, writeAhead, "sink.transaction-scope", "job"}, "option 'sink.transaction-scope' has no effect with"},
		{[]string{commitProtocolOption, writeAhead, "sink.transactional-id-slots", "5"}, "option 'sink.transactional-id-slots' has no effect with"},
		{[]string{commitProtocolOption, writeAhead, markerTopicOption, "a/b"}, "cannot be a topic name"},
		{[]string{commitProtocolOption, writeAhead, markerTopicOption, "t"}, "cannot hold the rows and their markers"},
		{[]string{commitProtocolOption, writeAhead, maxBytesOption, "0"}, "must be more than 0"},
		{[]string{commitProtocolOption, "prepared"}, commitProtocolOption},
	} {
		err := Connector().Check((&env{addr: "b:1"}).table("t", idCols, x.options...), connectors.UseSink)
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v: %v", x.options, err)
		}
	}
}

func aheadSample() aheadRef {
	var e aheadEncoder
	at := time.UnixMilli(1_700_000_000_000)
	e.add(&kgo.Record{Topic: "a", Partition: anyPartition, Timestamp: at, Key: []byte("k"), Value: []byte("v")})
	e.add(&kgo.Record{Topic: "b", Partition: 3, Timestamp: at, Key: []byte{}, Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("x")}, {Key: "n"}}})
	e.add(&kgo.Record{Topic: "a", Partition: 0, Timestamp: at.Add(time.Second), Value: []byte{}})
	a := aheadRef{id: "p-1-0", markers: "m", markersID: [16]byte{9}, clusterID: "c", bootstrap: "b:1", subtasks: 2}
	a.data, a.rows = e.take()
	return a
}

// The bytes are part of the state format: a checkpoint of this release is read by later ones.
func TestAheadGoldenBytes(t *testing.T) {
	const golden = "02 05702d312d30 016d 09000000000000000000000000000000 0163 03623a31 04 06" + // to the number of rows
		"00 0161 01 80a0abfef962 026b 0276 00" + // topic a by name, any partition
		"00 0162 06 80a0abfef962 01 00 02 0168 0278 016e 00" + // partition 3, empty key, value NULL, two headers
		"01 00 d0afabfef962 00 01 00" // topic a by number, no key, empty value
	a := aheadSample()
	if got := hex.EncodeToString(a.encode()); got != strings.ReplaceAll(golden, " ", "") {
		t.Fatalf("payload is\n%s", got)
	}
	recs, err := a.records()
	must(t, err)
	if len(recs) != 3 || recs[0].Key == nil || recs[1].Key == nil || recs[1].Value != nil || recs[1].Headers[1].Value != nil || recs[2].Key != nil || recs[2].Value == nil ||
		recs[2].Topic != "a" || recs[0].Partition != anyPartition || recs[2].Timestamp.UnixMilli() != 1_700_000_001_000 {
		t.Fatalf("%+v", recs)
	}
}

func FuzzAhead(f *testing.F) {
	a := aheadSample()
	f.Add(a.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := decodeAhead(b)
		if err != nil {
			return
		}
		recs, err := a.records()
		if err != nil {
			return
		}
		var e aheadEncoder
		for _, r := range recs {
			e.add(r)
		}
		again := a
		again.data, again.rows = e.take()
		back, err := decodeAhead(again.encode())
		must(t, err)
		more, err := back.records()
		must(t, err)
		if !bytes.Equal(back.encode(), again.encode()) || len(more) != len(recs) {
			t.Fatal("encodings differ")
		}
		for i := range recs {
			if recs[i].Topic != more[i].Topic || !bytes.Equal(recs[i].Key, more[i].Key) || (recs[i].Value == nil) != (more[i].Value == nil) {
				t.Fatalf("%+v %+v", recs[i], more[i])
			}
		}
	})
}

func FuzzMarker(f *testing.F) {
	m := markerID{"lin", 7, 2, "a:b"}
	f.Add(m.key())
	f.Add(m.floorKey())
	f.Fuzz(func(t *testing.T, key string) {
		m, floor, ok := parseMarker(key)
		if !ok {
			return
		}
		again := m.key()
		if floor {
			again = m.floorKey()
		}
		if n, f2, ok := parseMarker(again); !ok || n != m || f2 != floor {
			t.Fatalf("%q: %+v %+v", key, m, n)
		}
	})
}

// FuzzMarkerLog: whatever records a marker topic holds, reading them is no panic, and what is found committed has a marker.
func FuzzMarkerLog(f *testing.F) {
	m := markerID{"lin", 7, 2, "a"}
	f.Add(m.key(), []byte(`{"rows":3}`), m.floorKey(), []byte(`{"checkpoint":6}`))
	f.Add(m.floorKey(), []byte(`{"checkpoint":18446744073709551615}`), m.key(), []byte("null"))
	f.Fuzz(func(t *testing.T, key string, value []byte, key2 string, value2 []byte) {
		l := newMarkerLog("t")
		l.apply(&kgo.Record{Key: []byte(key), Value: value, Timestamp: time.UnixMilli(1)})
		l.apply(&kgo.Record{Key: []byte(key2), Value: value2, Timestamp: time.UnixMilli(2)})
		if committed, known := l.has(m); committed && key != m.key() && key2 != m.key() || committed && !known {
			t.Fatalf("committed %v, known %v", committed, known)
		}
		_, _ = l.expired(m, time.Hour)
	})
}
