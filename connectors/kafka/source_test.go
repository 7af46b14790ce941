package kafka

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/cmd/streamsql/netproxy"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

func idRows(from, to int) []string {
	var out []string
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprintf("+I %d", i))
	}
	return out
}

func idRecs(topic string, p int32, from, to int, at time.Time) []*kgo.Record {
	var out []*kgo.Record
	for i := from; i < to; i++ {
		r := rec(topic, p, fmt.Sprintf(`{"id":%d}`, i))
		if !at.IsZero() {
			r.Timestamp = at.Add(time.Duration(i) * time.Second)
		}
		out = append(out, r)
	}
	return out
}

// Every startup mode against every bounded mode that ends it.
func TestStartAndBoundedModes(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		topic := e.topic(t, 2)
		base := time.UnixMilli(1_700_000_000_000)
		e.produce(t, idRecs(topic, 0, 0, 10, base)...)
		e.produce(t, idRecs(topic, 1, 10, 20, base)...)
		group := topic + "-group"
		offsets := kadm.Offsets{}
		offsets.AddOffset(topic, 0, 4, -1)
		offsets.AddOffset(topic, 1, 7, -1)
		waitFor(t, func() bool {
			r, err := e.adm.CommitOffsets(testCtx(t), group, offsets)
			return err == nil && r.Error() == nil
		})
		ms := func(i int) string { return fmt.Sprint(base.UnixMilli() + int64(i)*1000) }
		for _, c := range []struct {
			name    string
			options []string
			want    []string
		}{
			{"earliest..latest", []string{"scan.startup.mode", "earliest-offset", "scan.bounded.mode", "latest-offset"}, idRows(0, 20)},
			{"default..latest", []string{"scan.bounded.mode", "latest-offset"}, idRows(0, 20)},
			{"latest..latest", []string{"scan.startup.mode", "latest-offset", "scan.bounded.mode", "latest-offset"}, nil},
			{"group..latest", []string{"scan.startup.mode", "group-offsets", "properties.group.id", group, "scan.bounded.mode", "latest-offset"}, append(idRows(4, 10), idRows(17, 20)...)},
			{"default group..latest", []string{"properties.group.id", group, "scan.bounded.mode", "latest-offset"}, append(idRows(4, 10), idRows(17, 20)...)},
			{"earliest..group", []string{"scan.startup.mode", "earliest-offset", "properties.group.id", group, "scan.bounded.mode", "group-offsets"}, append(idRows(0, 4), idRows(10, 17)...)},
			{"timestamp..latest", []string{"scan.startup.mode", "timestamp", "scan.startup.timestamp-millis", ms(8), "scan.bounded.mode", "latest-offset"}, append(idRows(8, 10), idRows(10, 20)...)},
			{"timestamp..timestamp", []string{"scan.startup.mode", "timestamp", "scan.startup.timestamp-millis", ms(5), "scan.bounded.mode", "timestamp", "scan.bounded.timestamp-millis", ms(12)}, append(idRows(5, 10), idRows(10, 12)...)},
			{"specific..latest", []string{"scan.startup.mode", "specific-offsets", "scan.startup.specific-offsets", "partition:0,offset:9", "scan.bounded.mode", "latest-offset"}, append(idRows(9, 10), idRows(10, 20)...)},
			{"specific..specific", []string{"scan.startup.mode", "specific-offsets", "scan.startup.specific-offsets", "partition:0,offset:2;partition:1,offset:1",
				"scan.bounded.mode", "specific-offsets", "scan.bounded.specific-offsets", "partition:0,offset:5"}, idRows(2, 5)},
		} {
			t.Run(c.name, func(t *testing.T) {
				equalUnordered(t, "rows", scanAll(t, e.table(topic, idCols, c.options...), -1).rows, c.want)
			})
		}
	})
}

// A group without offsets is refused unless the user says where to start.
func TestGroupWithoutOffsets(t *testing.T) {
	e := fake(t, 2)
	topic := e.topic(t, 1)
	e.produce(t, idRecs(topic, 0, 0, 2, time.Time{})...)
	tab := e.table(topic, idCols, "properties.group.id", "g", "scan.bounded.mode", "latest-offset")
	s := sourceOf(t, tab, job("j"))
	if _, err := s.Open(testCtx(t), startPositions(t, s)); diag.CodeOf(err) != diag.Config || !strings.Contains(err.Error(), "group 'g' has no offset") {
		t.Fatalf("open: %v", err)
	}
	tab.Options.Set("properties.auto.offset.reset", "earliest", diag.Pos{})
	equalUnordered(t, "rows", scanAll(t, tab, -1).rows, idRows(0, 2))
}

// Control records and aborted transactions at the end of a bounded scan must not make it wait for ever.
func TestBoundedScanEndsOnControlRecords(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		topic := e.topic(t, 3)
		e.txn(t, true, idRecs(topic, 0, 0, 5, time.Time{})...)
		e.txn(t, false, idRecs(topic, 0, 50, 55, time.Time{})...)
		e.txn(t, false, idRecs(topic, 1, 60, 65, time.Time{})...)
		waitFor(t, func() bool {
			l, err := e.adm.ListCommittedOffsets(testCtx(t), topic)
			must(t, err)
			a, _ := l.Lookup(topic, 0)
			b, _ := l.Lookup(topic, 1)
			return a.Offset == 12 && b.Offset == 6
		})
		got := scanAll(t, e.table(topic, idCols, "scan.bounded.mode", "latest-offset"), -1)
		equalUnordered(t, "rows", got.rows, idRows(0, 5))
	})
}

// Aborted records in front of an open transaction: the abort marker lies behind the last stable offset, so nothing
// visible marks the end.
func TestBoundedScanEndsBeforeOpenTransaction(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		topic := e.topic(t, 1)
		mk := func(id string) *kgo.Client {
			cl, err := kgo.NewClient(kgo.SeedBrokers(e.addr), kgo.TransactionalID(id), kgo.RecordPartitioner(kgo.ManualPartitioner()))
			must(t, err)
			t.Cleanup(cl.Close)
			must(t, cl.BeginTransaction())
			return cl
		}
		a, b := mk(topic+"-a"), mk(topic+"-b")
		must(t, a.ProduceSync(testCtx(t), idRecs(topic, 0, 0, 3, time.Time{})...).FirstErr())
		must(t, b.ProduceSync(testCtx(t), idRecs(topic, 0, 10, 13, time.Time{})...).FirstErr())
		must(t, a.EndTransaction(testCtx(t), kgo.TryAbort))
		waitFor(t, func() bool {
			l, err := e.adm.ListCommittedOffsets(testCtx(t), topic)
			must(t, err)
			o, _ := l.Lookup(topic, 0)
			return o.Offset == 3
		})
		got := scanAll(t, e.table(topic, idCols, "scan.bounded.mode", "latest-offset"), -1)
		equalUnordered(t, "rows", got.rows, nil)
		// Still open: the scan did not wait for the transaction's end.
		o, err := e.adm.DescribeTransactions(testCtx(t), topic+"-b")
		must(t, err)
		if o[topic+"-b"].State != "Ongoing" {
			t.Fatalf("transaction is %s", o[topic+"-b"].State)
		}
		must(t, b.EndTransaction(testCtx(t), kgo.TryAbort))
	})
}

// A position resolved at the start survives in the checkpoint: rows written between are read after a restore.
func TestStartIsRecordedBeforeTheFirstRow(t *testing.T) {
	e := fake(t, 2)
	topic := e.topic(t, 1)
	e.produce(t, idRecs(topic, 0, 0, 3, time.Time{})...)
	tab := e.table(topic, idCols, "scan.startup.mode", "latest-offset")
	s := sourceOf(t, tab, job("j"))
	r, err := s.Open(testCtx(t), startPositions(t, s))
	must(t, err)
	at := r.(*reader).Positions()
	must(t, r.Close())
	if len(at) != 1 || at[0].Next == nil {
		t.Fatalf("positions after open: %+v", at)
	}
	e.produce(t, idRecs(topic, 0, 3, 6, time.Time{})...)
	s = sourceOf(t, tab, job("j"))
	r, err = s.Open(testCtx(t), at)
	must(t, err)
	defer r.Close()
	equalUnordered(t, "rows", readFrom(t, s, r, 3).rows, idRows(3, 6))
}

// Resuming at any position gives every row once.
func TestResume(t *testing.T) {
	e := fake(t, 2)
	topic := e.topic(t, 1)
	for i := range 20 {
		e.txn(t, i%3 != 0, idRecs(topic, 0, 10*i, 10*i+10, time.Time{})...)
	}
	var want []string
	for i := range 20 {
		if i%3 != 0 {
			want = append(want, idRows(10*i, 10*i+10)...)
		}
	}
	tab := e.table(topic, idCols, "scan.bounded.mode", "latest-offset")
	var got []string
	s := sourceOf(t, tab, job("j"))
	pos := startPositions(t, s)
	for range 1000 {
		r, err := s.Open(testCtx(t), pos)
		must(t, err)
		b := batch.NewBuilder(s.spec.Schema)
		for i := range 2041 { // leave room for a few rows only, so that each Next cuts the batch
			_ = i
			b.Cols[0].AppendI64(-1)
			b.RowDone()
		}
		done := false
		for range 3 {
			n0 := b.Len()
			p, err := r.Next(testCtx(t), b)
			must(t, err)
			if p.Position != nil {
				pos = []checkpoint.Position{{Split: p.Split, Next: p.Position}}
			}
			all := rowTexts(b.Finish())
			got = append(got, all[n0:]...)
			done = done || p.Done
			if done || b.Len() > n0 {
				break
			}
		}
		must(t, r.Close())
		if done {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("rows:\n got %v\nwant %v", got, want)
	}
}

// 'properties.max.poll.records' bounds the rows of one step, between which barriers pass, and loses none.
func TestMaxPollRecords(t *testing.T) {
	e := fake(t, 2)
	topic := e.topic(t, 1)
	e.produce(t, idRecs(topic, 0, 0, 50, time.Time{})...)
	s := sourceOf(t, e.table(topic, idCols, "scan.bounded.mode", "latest-offset", "properties.max.poll.records", "7"), job("j"))
	r, err := s.Open(testCtx(t), startPositions(t, s))
	must(t, err)
	defer r.Close()
	var got []string
	for done := false; !done; {
		b := batch.NewBuilder(s.spec.Schema)
		p, err := r.Next(testCtx(t), b)
		must(t, err)
		if b.Len() > 7 {
			t.Errorf("%d rows at once", b.Len())
		}
		got = append(got, rowTexts(b.Finish())...)
		done = p.Done
	}
	if want := idRows(0, 50); !slices.Equal(got, want) {
		t.Errorf("rows:\n got %v\nwant %v", got, want)
	}
}

// 'properties.connect.via' leads to an address by another one: here to a name that does not exist.
func TestConnectVia(t *testing.T) {
	e := fake(t, 2)
	topic := e.topic(t, 1)
	e.produce(t, idRecs(topic, 0, 0, 10, time.Time{})...)
	p, err := netproxy.Start(e.addr, netproxy.Kafka)
	must(t, err)
	defer p.Close()
	via := "no-such-broker.invalid:9092=" + p.Addr() + ", " + e.addr + "=" + p.Addr()
	tab := e.table(topic, idCols, "scan.bounded.mode", "latest-offset", "properties.bootstrap.servers", "no-such-broker.invalid:9092", "properties.connect.via", via)
	if got, want := scanAll(t, tab, -1).rows, idRows(0, 10); !slices.Equal(got, want) {
		t.Errorf("rows:\n got %v\nwant %v", got, want)
	}
	if _, n := p.Connections(); n < 2 {
		t.Errorf("%d connections came by the other way, want one for the name and one for what the broker advertises", n)
	}
	_, err = newClient(e.table(topic, idCols, "properties.connect.via", "here=there"), "", nil)
	if err == nil || !strings.Contains(err.Error(), "not a pair of addresses") {
		t.Errorf("error %v", err)
	}
}

// New partitions are read from their first record, whatever the start mode.
func TestDiscovery(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		topic := e.topic(t, 1)
		e.produce(t, idRecs(topic, 0, 0, 3, time.Time{})...)
		tab := e.table(topic, idCols, "scan.startup.mode", "latest-offset", "scan.topic-partition-discovery.interval", "10 s")
		s := sourceOf(t, tab, job("j"))
		if s.DiscoveryInterval() != 10_000 {
			t.Fatalf("discovery interval %d", s.DiscoveryInterval())
		}
		r, err := s.Open(testCtx(t), startPositions(t, s))
		must(t, err)
		defer r.Close()
		_, err = e.adm.UpdatePartitions(testCtx(t), 2, topic)
		must(t, err)
		waitFor(t, func() bool {
			splits, err := s.Splits(testCtx(t))
			must(t, err)
			return len(splits) == 2
		})
		cl, err := kgo.NewClient(kgo.SeedBrokers(e.addr), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		must(t, err)
		defer cl.Close()
		must(t, cl.ProduceSync(testCtx(t), idRecs(topic, 1, 10, 12, time.Time{})...).FirstErr())
		must(t, r.Add(testCtx(t), checkpoint.Position{Split: checkpoint.Split(topic + "-1")}))
		must(t, cl.ProduceSync(testCtx(t), idRecs(topic, 0, 3, 4, time.Time{})...).FirstErr())
		equalUnordered(t, "rows", readFrom(t, s, r, 3).rows, append(idRows(10, 12), idRows(3, 4)...))
	})
}

func TestTopicPatternAndList(t *testing.T) {
	e := fake(t, 2)
	a, b := e.topic(t, 1), e.topic(t, 1)
	e.produce(t, append(idRecs(a, 0, 0, 2, time.Time{}), idRecs(b, 0, 2, 4, time.Time{})...)...)
	opts := []string{"scan.bounded.mode", "latest-offset"}
	equalUnordered(t, "list", scanAll(t, e.table(a+"; "+b, idCols, opts...), -1).rows, idRows(0, 4))
	equalUnordered(t, "pattern", scanAll(t, e.table("", idCols, append(opts, "topic-pattern", "t_topicpattern.*")...), -1).rows, idRows(0, 4))
	equalUnordered(t, "part of a name", scanAll(t, e.table("", idCols, append(opts, "topic-pattern", "topicpattern.*")...), -1).rows, nil)
}

// Positions below the log start name the gap, or jump when the table says so.
func TestOutOfRange(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		topic := e.topic(t, 1)
		e.produce(t, idRecs(topic, 0, 0, 10, time.Time{})...)
		s := sourceOf(t, e.table(topic, idCols), job("j"))
		r, err := s.Open(testCtx(t), startPositions(t, s))
		must(t, err)
		at := r.(*reader).Positions()
		must(t, r.Close())
		_, err = e.adm.DeleteRecords(testCtx(t), kadm.Offsets{topic: {0: {Topic: topic, Partition: 0, At: 6}}})
		must(t, err)
		r, err = s.Open(testCtx(t), at)
		must(t, err)
		_, err = tryRead(t, s, r, 1)
		var d *diag.Error
		if !asDiag(err, &d) || !strings.Contains(d.Detail, "6 records, offsets 0 to 5, were deleted") {
			t.Fatalf("read: %v %+v", err, d)
		}
		must(t, r.Close())
		s = sourceOf(t, e.table(topic, idCols, "scan.on-out-of-range", "earliest"), job("j"))
		r, err = s.Open(testCtx(t), at)
		must(t, err)
		equalUnordered(t, "rows", readFrom(t, s, r, 4).rows, idRows(6, 10))
		must(t, r.Close())
	})
}

func TestTopicRecreated(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		topic := e.topic(t, 1)
		e.produce(t, idRecs(topic, 0, 0, 3, time.Time{})...)
		s := sourceOf(t, e.table(topic, idCols), job("j"))
		r, err := s.Open(testCtx(t), startPositions(t, s))
		must(t, err)
		at := r.(*reader).Positions()
		must(t, r.Close())
		_, err = e.adm.DeleteTopic(testCtx(t), topic)
		must(t, err)
		waitFor(t, func() bool {
			r, err := e.adm.CreateTopic(testCtx(t), 1, -1, nil, topic)
			return err == nil && r.Err == nil
		})
		s = sourceOf(t, e.table(topic, idCols), job("j"))
		waitFor(t, func() bool {
			r, err := s.Open(testCtx(t), at)
			if err == nil {
				_ = r.Close()
			}
			return err != nil && strings.Contains(err.Error(), "deleted and created again")
		})
	})
}

// Group offsets are written for monitoring.
func TestGroupCommit(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		topic := e.topic(t, 1)
		e.produce(t, idRecs(topic, 0, 0, 3, time.Time{})...)
		s := sourceOf(t, e.table(topic, idCols, "properties.group.id", topic, "scan.startup.mode", "earliest-offset"), job("j"))
		r, err := s.Open(testCtx(t), startPositions(t, s))
		must(t, err)
		defer r.Close()
		readFrom(t, s, r, 3)
		// A single notice may be lost, as to a coordinator that is still being set up.
		waitFor(t, func() bool {
			s.Committed(testCtx(t), r.(*reader).Positions())
			f, err := e.adm.FetchOffsets(testCtx(t), topic)
			must(t, err)
			o, _ := f.Lookup(topic, 0)
			return o.At == 3
		})
	})
}

var metaCols = []catalog.Column{phys("id", types.BigIntType),
	meta("topic", "topic", types.StringType, true), meta("partition", "partition", types.IntType, true),
	meta("offset", "offset", types.BigIntType, true), meta("ts", "timestamp", types.TimestampOf(types.TimestampLTZ, 3), true),
	meta("tt", "timestamp-type", types.StringType, true), meta("h", "headers", headersType, true),
	meta("hl", "header-list", headerListType, true), meta("le", "leader-epoch", types.IntType, true)}

func TestMetadata(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		topic := e.topic(t, 1)
		r := rec(topic, 0, `{"id":1}`)
		r.Timestamp = time.UnixMilli(1_700_000_000_123)
		r.Headers = []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "b", Value: nil}, {Key: "a", Value: []byte("2")}}
		e.produce(t, r, rec(topic, 0, `{"id":2}`))
		got := scanAll(t, e.table(topic, metaCols, "scan.bounded.mode", "latest-offset"), -1).rows
		if len(got) != 2 {
			t.Fatalf("rows: %v", got)
		}
		head := "+I 1 " + topic + " 0 0 1700000000123000 CreateTime [a,2,b,NULL] [[a,1],[b,NULL],[a,2]] "
		if !strings.HasPrefix(got[0], head) {
			t.Fatalf("row 0:\n got %s\nwant %s", got[0], head)
		}
		if !strings.Contains(got[1], " CreateTime [] [] ") {
			t.Fatalf("row 1: %s", got[1])
		}
	})
}

func TestKeyFields(t *testing.T) {
	e := fake(t, 2)
	topic := e.topic(t, 1)
	cols := []catalog.Column{phys("k_id", types.BigIntType), phys("v", types.StringType)}
	k := rec(topic, 0, `{"v":"x"}`)
	k.Key = []byte(`{"id":7}`)
	n := rec(topic, 0, `{"v":"y"}`) // no key: json makes no key row of it, so it is a bad record
	e.produce(t, k, n)
	tab := e.table(topic, cols, "value.format", "json", "key.format", "json", "key.fields", "k_id", "key.fields-prefix", "k_",
		"value.fields-include", "EXCEPT_KEY", "scan.bounded.mode", "latest-offset", "scan.on-error", "skip")
	equalUnordered(t, "rows", scanAll(t, tab, -1).rows, []string{"+I 7 x"})
	tab = e.table(topic, cols, "value.format", "json", "key.format", "raw", "key.fields", "k_id", "scan.bounded.mode", "latest-offset")
	if err := Connector().Check(tab, 0); err != nil {
		t.Logf("raw key of BIGINT: %v", err)
	}
	raw := []catalog.Column{phys("k", types.StringType), phys("v", types.StringType)}
	tab = e.table(topic, raw, "value.format", "json", "key.format", "raw", "key.fields", "k", "value.fields-include", "EXCEPT_KEY", "scan.bounded.mode", "latest-offset")
	equalUnordered(t, "raw key", scanAll(t, tab, -1).rows, []string{`+I {"id":7} x`, "+I NULL y"})
}

func TestBadRecords(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		topic, dead := e.topic(t, 1), e.topic(t, 1)
		bad := rec(topic, 0, `{"id":"x"}`)
		bad.Headers = []kgo.RecordHeader{{Key: "h", Value: []byte("v")}}
		e.produce(t, rec(topic, 0, `{"id":1}`), bad, rec(topic, 0, `{"id":2}`), rec(topic, 0, `{broken`), rec(topic, 0, `{"id":3}`))
		bounded := []string{"scan.bounded.mode", "latest-offset"}
		s := sourceOf(t, e.table(topic, idCols, bounded...), job("j"))
		r, err := s.Open(testCtx(t), startPositions(t, s))
		must(t, err)
		_, err = tryRead(t, s, r, -1)
		must(t, r.Close())
		for _, want := range []string{"table t", "topic " + topic + ", partition 0, offset 1", "id", "x"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Fatalf("error %v does not name %q", err, want)
			}
		}
		if diag.CodeOf(err) != diag.Data {
			t.Fatalf("code %s", diag.CodeOf(err))
		}
		got := scanAll(t, e.table(topic, idCols, append(bounded, "scan.on-error", "skip")...), -1)
		equalUnordered(t, "skip", got.rows, []string{"+I 1", "+I 2", "+I 3"})
		if got.bad != 2 {
			t.Fatalf("counted %d bad records, want 2", got.bad)
		}
		got = scanAll(t, e.table(topic, idCols, append(bounded, "scan.on-error", "dead-letter", "scan.dead-letter.topic", dead)...), -1)
		equalUnordered(t, "dead letter", got.rows, []string{"+I 1", "+I 2", "+I 3"})
		letters := e.read(t, dead, true)
		if len(letters) != 2 || string(letters[0].Value) != `{"id":"x"}` || string(letters[1].Value) != `{broken` {
			t.Fatalf("dead letters: %v", values(letters))
		}
		h := map[string]string{}
		for _, x := range letters[0].Headers {
			h[x.Key] = string(x.Value)
		}
		if h["h"] != "v" || h["streamsql.topic"] != topic || h["streamsql.offset"] != "1" || h["streamsql.column"] != "id" || h["streamsql.reason"] == "" {
			t.Fatalf("headers: %v", h)
		}
	})
}

// A record of 10 MiB and a record without key and value.
func TestLargeAndNullRecords(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		size := "15000000"
		topic := e.topicWith(t, 1, map[string]*string{"max.message.bytes": &size})
		cols := []catalog.Column{phys("s", types.StringType)}
		tab := e.table(topic, cols, "format", "raw", "properties.max.request.size", size, "scan.bounded.mode", "latest-offset")
		big := strings.Repeat("x", 10<<20)
		s := openSink(t, tab, "s", 1, job(topic))
		c := committerOf(t, s)
		must(t, c.Abort(testCtx(t), nil))
		w := openWriters(t, s)[0]
		b := batch.NewBuilder(types.NewSchema(types.Column{Name: "s", Type: types.StringType}))
		b.Cols[0].AppendStr(big)
		b.RowDone()
		b.Cols[0].AppendNull()
		b.RowDone()
		must(t, w.Write(testCtx(t), b.Finish()))
		cs, err := w.PreCommit(testCtx(t), 1)
		must(t, err)
		must(t, c.Commit(testCtx(t), cs))
		waitFor(t, func() bool { return len(e.read(t, topic, true)) == 2 })
		got := scanAll(t, tab, -1).rows
		if len(got) != 2 || len(got[0]) != len("+I ")+10<<20 || got[1] != "+I NULL" {
			t.Fatalf("%d rows", len(got))
		}
	})
}

func TestMissingTopicAndBroker(t *testing.T) {
	e := fake(t, 2)
	s := sourceOf(t, e.table("nowhere", idCols), job("j"))
	if _, err := s.Splits(testCtx(t)); err == nil || !strings.Contains(err.Error(), "topic nowhere does not exist") {
		t.Fatalf("splits: %v", err)
	}
	sk := openSink(t, e.table("nowhere", idCols), "s", 1, job("j"))
	if err := sk.Preflight(testCtx(t)); err == nil || !strings.Contains(err.Error(), "topic nowhere does not exist") {
		t.Fatalf("preflight: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	tab := e.table("t", idCols)
	tab.Options.Set("properties.bootstrap.servers", "127.0.0.1:1", diag.Pos{})
	if err := openSink(t, tab, "s", 1, job("j")).Preflight(ctx); err == nil {
		t.Fatal("preflight without a broker")
	}
}

func TestPositionCodec(t *testing.T) {
	p := position{topicID: [16]byte{1, 2}, next: 42, epoch: -1, stop: noStop}
	q, err := decodePosition(p.encode())
	must(t, err)
	if p != q {
		t.Fatalf("%+v != %+v", p, q)
	}
	tp, err := parseSplit("a-b-12")
	must(t, err)
	if tp != (partition{"a-b", 12}) || tp.split() != "a-b-12" {
		t.Fatalf("%+v", tp)
	}
	for _, bad := range []checkpoint.Split{"", "a", "-1", "a-", "a-x", "a--1"} {
		if x, err := parseSplit(bad); err == nil && bad != "a--1" {
			t.Fatalf("%q parsed as %+v", bad, x)
		}
	}
}

func FuzzPosition(f *testing.F) {
	f.Add(position{next: 1, stop: 2}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = DescribePosition(b)
		if p, err := decodePosition(b); err == nil {
			q, err := decodePosition(p.encode())
			if err != nil || p != q {
				t.Fatalf("%+v %+v %v", p, q, err)
			}
		}
	})
}

func FuzzCommittable(f *testing.F) {
	r := txnRef{id: "p-0-1", pid: 7, epoch: 3, tv: 2, ckpt: 9, startMs: 1, timeoutMs: 2, records: 5,
		witness: witness{topic: "t", topicID: [16]byte{9}, partition: 1, offset: 77}, clusterID: "c", bootstrap: "b:1", subtasks: 2, slots: 5}
	f.Add(r.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = DescribeCommittable(b, time.UnixMilli(5))
		x, err := decodeTxnRef(b)
		if err != nil {
			return
		}
		y, err := decodeTxnRef(x.encode())
		if err != nil || x != y {
			t.Fatalf("%+v %+v %v", x, y, err)
		}
		if !bytes.Equal(x.encode(), y.encode()) {
			t.Fatal("encodings differ")
		}
	})
}

// FuzzSplit: the name of a split is taken apart only into what it is put together from.
func FuzzSplit(f *testing.F) {
	f.Add("orders-3")
	f.Add("a--1")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := parseSplit(checkpoint.Split(s))
		if err != nil {
			return
		}
		if q, err := parseSplit(p.split()); err != nil || p != q || p.num < 0 || p.topic == "" {
			t.Fatalf("%q: %+v %+v %v", s, p, q, err)
		}
	})
}
