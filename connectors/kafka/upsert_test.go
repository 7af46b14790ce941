package kafka

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

var upsertCols = []catalog.Column{phys("v", types.StringType), phys("a", types.BigIntType.NotNull()), phys("b", types.StringType.NotNull()),
	meta("off", "offset", types.BigIntType, true)}

func upsertTable(e *env, topic string, options ...string) *catalog.Table {
	tab := e.table(topic, upsertCols, append([]string{"connector", "upsert-kafka", "key.format", "json", "value.format", "json"}, options...)...)
	tab.PrimaryKey = []string{"b", "a"} // key order is the primary key's
	return tab
}

func keyed(topic, key, value string) *kgo.Record {
	r := rec(topic, 0, value)
	r.Key = []byte(key)
	if value == "" {
		r.Value = nil
	}
	return r
}

func TestUpsertSource(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		topic := e.topic(t, 1)
		e.produce(t, keyed(topic, `{"b":"x","a":1}`, `{"v":"one","a":1,"b":"x"}`), keyed(topic, `{"b":"x","a":1}`, ""),
			keyed(topic, `{"b":"y","a":2}`, `{"v":"two","a":20,"b":"yy"}`), keyed(topic, `{"b":"z","a":3}`, ""))
		want := []string{"+U one 1 x 0", "-D NULL 1 x 1", "+U two 20 yy 2", "-D NULL 3 z 3"}
		tab := upsertTable(e, topic, "scan.bounded.mode", "latest-offset")
		if m, err := UpsertConnector().SourceMode(tab); err != nil || m != types.Upsert {
			t.Fatalf("mode %v %v", m, err)
		}
		equalUnordered(t, "ALL", scanAll(t, tab, -1).rows, want)
		want[2] = "+U two 2 y 2"
		tab = upsertTable(e, topic, "scan.bounded.mode", "latest-offset", "value.fields-include", "EXCEPT_KEY")
		equalUnordered(t, "EXCEPT_KEY", scanAll(t, tab, -1).rows, want)
	})
}

func changes(rows ...string) *batch.Batch {
	b := batch.NewBuilder(types.NewSchema(types.Column{Name: "v", Type: types.StringType}, types.Column{Name: "a", Type: types.BigIntType.NotNull()},
		types.Column{Name: "b", Type: types.StringType.NotNull()}))
	kinds := map[string]types.RowKind{"+I": types.Insert, "-U": types.UpdateBefore, "+U": types.UpdateAfter, "-D": types.Delete}
	for _, r := range rows {
		var k, v, y string
		var a int64
		fmt.Sscan(r, &k, &v, &a, &y)
		b.Cols[0].AppendStr(v)
		b.Cols[1].AppendI64(a)
		b.Cols[2].AppendStr(y)
		b.RowKindDone(kinds[k])
	}
	return b.Finish()
}

func keyValues(recs []*kgo.Record) []string {
	var out []string
	for _, r := range recs {
		v := "NULL"
		if r.Value != nil {
			v = string(r.Value)
		}
		out = append(out, string(r.Key)+" "+v)
	}
	return out
}

// Updates are values, deletions tombstones, in order per key; all of it in the checkpoint's transaction.
func TestUpsertSink(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		topic := e.topic(t, 1)
		s := openSink(t, upsertTable(e, topic, "value.fields-include", "EXCEPT_KEY"), "s", 1, job(topic))
		if s.spec.Mode.Delivery != connectors.TwoPhaseCommit || s.spec.Mode.Changelog != types.Upsert {
			t.Fatalf("mode %+v", s.spec.Mode)
		}
		must(t, s.Preflight(testCtx(t)))
		c := committerOf(t, s)
		must(t, c.Abort(testCtx(t), nil))
		w := openWriters(t, s)[0]
		must(t, w.Write(testCtx(t), changes("+I one 1 x", "+U uno 1 x", "-D uno 1 x", "+I two 2 y")))
		cs, err := w.PreCommit(testCtx(t), 1)
		must(t, err)
		must(t, c.Commit(testCtx(t), cs))
		want := []string{`{"b":"x","a":1} {"v":"one"}`, `{"b":"x","a":1} {"v":"uno"}`, `{"b":"x","a":1} NULL`, `{"b":"y","a":2} {"v":"two"}`}
		waitFor(t, func() bool { return len(e.read(t, topic, true)) == 4 })
		got := keyValues(e.read(t, topic, true))
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("records:\n got %q\nwant %q", got, want)
			}
		}
	})
}

// Buffering keeps the last change per key and is empty at every barrier.
func TestUpsertBuffer(t *testing.T) {
	e := fake(t, 2)
	topic := e.topic(t, 1)
	s := openSink(t, upsertTable(e, topic, "value.fields-include", "EXCEPT_KEY", "sink.buffer-flush.max-rows", "3", "sink.buffer-flush.interval", "1 h"), "s", 1, job(topic))
	c := committerOf(t, s)
	must(t, c.Abort(testCtx(t), nil))
	w := openWriters(t, s)[0]
	must(t, w.Write(testCtx(t), changes("+I one 1 x", "+I two 2 y", "+U uno 1 x", "-D two 2 y")))
	cs, err := w.PreCommit(testCtx(t), 1)
	must(t, err)
	must(t, c.Commit(testCtx(t), cs))
	equalUnordered(t, "records", keyValues(e.read(t, topic, true)), []string{`{"b":"x","a":1} {"v":"uno"}`, `{"b":"y","a":2} NULL`})
}

func TestUpsertNeedsKey(t *testing.T) {
	tab := upsertTable(&env{addr: "localhost:9092"}, "t")
	tab.PrimaryKey = nil
	if err := UpsertConnector().Check(tab, connectors.UseSink); err == nil {
		t.Fatal("upsert-kafka without a primary key")
	}
	tab = upsertTable(&env{addr: "localhost:9092"}, "t", "value.format", "debezium-json")
	if err := UpsertConnector().Check(tab, connectors.UseSource); err == nil {
		t.Fatal("upsert-kafka with a change format")
	}
}

// Writable metadata: timestamp, headers and topic make the round trip.
func TestWriteMetadata(t *testing.T) {
	e := fake(t, 2)
	a, b := e.topic(t, 1), e.topic(t, 1)
	cols := []catalog.Column{phys("id", types.BigIntType), meta("to", "topic", types.StringType.NotNull(), false),
		meta("at", "timestamp", types.TimestampOf(types.TimestampLTZ, 3).NotNull(), false), meta("h", "header-list", headerListType, false)}
	tab := e.table(a+";"+b, cols)
	s := openSink(t, tab, "s", 1, job("j"))
	c := committerOf(t, s)
	must(t, c.Abort(testCtx(t), nil))
	w := openWriters(t, s)[0]
	rows := batch.NewBuilder(persisted(tab))
	add := func(id int64, topic string) {
		rows.Cols[0].AppendI64(id)
		rows.Cols[1].AppendStr(topic)
		rows.Cols[2].AppendI64(1_700_000_000_123_000 + id*1000)
		rows.Cols[3].AppendDatum(types.ListDatum(types.ListDatum(types.StrDatum("k"), types.StrDatum("v")), types.ListDatum(types.StrDatum("k"), types.NullDatum),
			types.ListDatum(types.NullDatum, types.StrDatum("dropped"))))
		rows.RowDone()
	}
	add(1, a)
	add(2, b)
	must(t, w.Write(testCtx(t), rows.Finish()))
	cs, err := w.PreCommit(testCtx(t), 1)
	must(t, err)
	must(t, c.Commit(testCtx(t), cs))
	for i, topic := range []string{a, b} {
		got := e.read(t, topic, true)
		if len(got) != 1 || got[0].Timestamp.UnixMilli() != 1_700_000_000_124+int64(i) || len(got[0].Headers) != 2 ||
			string(got[0].Headers[0].Value) != "v" || got[0].Headers[1].Value != nil {
			t.Fatalf("%s: %+v", topic, got)
		}
	}
	rows.Reset()
	add(3, "elsewhere")
	if err := w.Write(testCtx(t), rows.Finish()); err == nil {
		t.Fatal("a row named a topic the table does not allow")
	}
}

// 'fixed' sends each subtask to one partition.
func TestFixedPartitioner(t *testing.T) {
	e := fake(t, 2)
	topic := e.topic(t, 3)
	s := openSink(t, e.table(topic, idCols, "sink.partitioner", "fixed"), "s", 2, job("j"))
	c := committerOf(t, s)
	must(t, c.Abort(testCtx(t), nil))
	ws := openWriters(t, s)
	for i, w := range ws {
		must(t, w.Write(testCtx(t), ids(i*10, i*10+10)))
	}
	for _, w := range ws {
		cs, err := w.PreCommit(testCtx(t), 1)
		must(t, err)
		must(t, c.Commit(testCtx(t), cs))
	}
	for _, r := range e.read(t, topic, true) {
		var id int32
		fmt.Sscanf(string(r.Value), `{"id":%d}`, &id)
		if r.Partition != id/10 {
			t.Fatalf("id %d in partition %d", id, r.Partition)
		}
	}
}
