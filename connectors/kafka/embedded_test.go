package kafka

import (
	"testing"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/connectors/kafka/embedded"
	"github.com/streamsql/streamsql/sql/types"
)

// A table without servers uses the embedded broker; its topic need not exist, for reading as for writing.
func TestEmbeddedBroker(t *testing.T) {
	b, err := embedded.Start(embedded.Options{Dir: t.TempDir()})
	must(t, err)
	defer b.Close()
	tab := (&env{addr: "x:1"}).table("fresh", idCols, "scan.bounded.mode", "latest-offset")
	tab.Options = without(tab.Options, "properties.bootstrap.servers")
	if _, err := newSource(connectors.SourceSpec{Table: tab, Job: job("j")}, false); err == nil {
		t.Fatal("a table without servers was opened without an embedded broker")
	}
	must(t, Connector().Check(tab, connectors.UseSink))
	modes, err := Connector().SinkModes(tab)
	must(t, err)
	if modes[0].Weakness != EmbeddedWeakness {
		t.Fatalf("weakness %q", modes[0].Weakness)
	}
	spec := connectors.SourceSpec{Table: tab, Columns: []int{0}, Schema: types.NewSchema(types.Column{Name: "id", Type: types.BigIntType}), Job: job("r"), Embedded: b.Addr()}
	read := func(tab *catalog.Table) []string {
		spec.Table = tab
		s, err := newSource(spec, false)
		must(t, err)
		defer s.Close()
		r, err := s.Open(testCtx(t), startPositions(t, s.(*source)))
		must(t, err)
		defer r.Close()
		return readFrom(t, s.(*source), r, -1).rows
	}
	if got := read(tab); len(got) != 0 {
		t.Fatalf("rows of a new topic: %v", got)
	}
	for _, topic := range []string{"fresh", "made-by-writing"} {
		tab := (&env{addr: "x:1"}).table(topic, idCols, "scan.bounded.mode", "latest-offset")
		tab.Options = without(tab.Options, "properties.bootstrap.servers")
		s, err := newSink(connectors.SinkSpec{ID: checkpoint.SinkID(topic), Table: tab, Schema: persisted(tab), Mode: modes[0], Parallel: 1, Job: job(topic), Embedded: b.Addr()}, false)
		must(t, err)
		must(t, s.Preflight(testCtx(t)))
		c := committerOf(t, s.(*sink))
		must(t, c.Abort(testCtx(t), nil))
		w, err := s.Open(testCtx(t), 0)
		must(t, err)
		must(t, w.Write(testCtx(t), ids(0, 3)))
		cs, err := w.PreCommit(testCtx(t), 1)
		must(t, err)
		must(t, c.Commit(testCtx(t), cs))
		must(t, s.Close())
		equalUnordered(t, topic, read(tab), idRows(0, 3))
	}
}
