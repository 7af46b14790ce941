package kafka

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

var benchCols = []catalog.Column{phys("id", types.BigIntType), phys("name", types.StringType), phys("amount", types.DoubleType), phys("note", types.StringType)}

func benchTable(addr, topic string, options ...string) *catalog.Table {
	t := &catalog.Table{Name: "t", Columns: benchCols, Options: catalog.NewOptions()}
	kv := append([]string{"connector", "kafka", "format", "json", "topic", topic, "properties.bootstrap.servers", addr}, options...)
	for i := 0; i < len(kv); i += 2 {
		t.Options.Set(kv[i], kv[i+1], diag.Pos{})
	}
	return t
}

// BenchmarkWrite: rows of about 100 bytes into a transaction, broker that drops the data. One op is one row.
func BenchmarkWrite(b *testing.B) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.BlackholeProduce(), kfake.SeedTopics(4, "t"))
	must(b, err)
	defer c.Close()
	tab := benchTable(c.ListenAddrs()[0], "t")
	modes, err := Connector().SinkModes(tab)
	must(b, err)
	s, err := newSink(connectors.SinkSpec{ID: "s", Table: tab, Schema: persisted(tab), Mode: modes[0], Parallel: 1, Job: job("b")}, false)
	must(b, err)
	defer s.Close()
	w, err := s.Open(b.Context(), 0)
	must(b, err)
	rows := batch.NewBuilder(persisted(tab))
	for i := range batch.Size {
		rows.Cols[0].AppendI64(int64(i))
		rows.Cols[1].AppendStr("customer-17")
		rows.Cols[2].AppendF64(12.5)
		rows.Cols[3].AppendStr("forty bytes of text, more or less, here.")
		rows.RowDone()
	}
	bt := rows.Finish()
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n += batch.Size {
		must(b, w.Write(b.Context(), bt))
	}
	_, err = w.PreCommit(b.Context(), 1)
	must(b, err)
}

// BenchmarkRead: the same rows from a topic into columns. One op is one row.
func BenchmarkRead(b *testing.B) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, "t"))
	must(b, err)
	defer c.Close()
	addr := c.ListenAddrs()[0]
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.MaxBufferedRecords(1<<20))
	must(b, err)
	for i := range b.N {
		v := fmt.Appendf(nil, `{"id":%d,"name":"customer-17","amount":12.5,"note":"forty bytes of text, more or less, here."}`, i)
		cl.Produce(b.Context(), &kgo.Record{Topic: "t", Value: v}, nil)
	}
	must(b, cl.Flush(b.Context()))
	cl.Close()
	tab := benchTable(addr, "t", "scan.bounded.mode", "latest-offset")
	spec := connectors.SourceSpec{Table: tab, Columns: []int{0, 1, 2, 3}, Schema: persisted(tab), Job: job("b")}
	s, err := newSource(spec, false)
	must(b, err)
	defer s.Close()
	splits, err := s.Splits(b.Context())
	must(b, err)
	var at []checkpoint.Position
	for _, sp := range splits {
		at = append(at, checkpoint.Position{Split: sp})
	}
	r, err := s.Open(b.Context(), at)
	must(b, err)
	defer r.Close()
	out := batch.NewBuilder(spec.Schema)
	b.ReportAllocs()
	b.ResetTimer()
	for {
		_, err := r.Next(b.Context(), out)
		if err == connectors.ErrEnd {
			return
		}
		must(b, err)
		out.Reset()
	}
}
