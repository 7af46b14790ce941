package memory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
	"go.uber.org/goleak"
)

// TestMain demands that the tests leave no goroutine; one that has nothing to do but end gets the time for it.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		err := goleak.Find()
		for deadline := time.Now().Add(patience); err != nil && time.Now().Before(deadline); {
			err = goleak.Find()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "goroutines are left:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// patience bounds every wait: a loaded machine is slow, a hang is for ever.
const patience = 3 * time.Minute

func table(options ...string) *catalog.Table {
	t := &catalog.Table{Name: "t", Options: catalog.NewOptions(), Columns: []catalog.Column{
		{Name: "a", Type: types.BigIntType}, {Name: "c", Type: types.BigIntType, Kind: catalog.Computed, Expr: "a + 1"},
		{Name: "b", Type: types.StringType}}}
	t.Options.Set("connector", "memory", diag.Pos{})
	for i := 0; i < len(options); i += 2 {
		t.Options.Set(options[i], options[i+1], diag.Pos{})
	}
	return t
}

func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// TestFeed: columns are picked by the table's positions, positions go on where they say, committed rows are dropped, a
// closed feed ends, and a program that starts again learns where to continue.
func TestFeed(t *testing.T) {
	ctx := patient(t)
	bus := NewBus()
	schema := types.NewSchema(types.Column{Name: "b", Type: types.StringType})
	open := func(bus *Bus, next []byte) (connectors.Source, connectors.Reader) {
		s, err := bus.Connector().NewSource(ctx, connectors.SourceSpec{Table: table(), Columns: []int{2}, Schema: schema})
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Open(ctx, []checkpoint.Position{{Split: "t-0", Next: next}})
		if err != nil {
			t.Fatal(err)
		}
		return s, r
	}
	f := bus.Feed("t")
	f.Append(0, Insert(types.IntDatum(1), types.StrDatum("x")), Row{Kind: types.Delete, Values: []types.Datum{types.IntDatum(2), types.NullDatum}})
	src, r := open(bus, nil)
	out := batch.NewBuilder(schema)
	p, err := r.Next(ctx, out)
	if err != nil || out.Len() != 2 || p.Split != "t-0" || p.Done {
		t.Fatalf("%+v, %v, %d rows", p, err, out.Len())
	}
	b := out.Finish()
	if b.Cols[0].Str[0] != "x" || !b.Cols[0].IsNull(1) || b.Kind(1) != types.Delete {
		t.Fatalf("%+v", b)
	}
	src.Committed(ctx, []checkpoint.Position{{Split: "t-0", Next: p.Position}})
	if n := f.Committed(0); n != 2 {
		t.Fatalf("%d rows committed", n)
	}
	if _, err := src.Open(ctx, []checkpoint.Position{{Split: "t-0", Next: []byte{1}}}); diag.CodeOf(err) != diag.Lost {
		t.Fatalf("rows that are gone are read: %v", err)
	}
	f.Close()
	out.Reset()
	if q, err := r.Next(ctx, out); err != nil || !q.Done || out.Len() != 0 {
		t.Fatalf("%+v, %v", q, err)
	}
	if _, err := r.Next(ctx, out); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}

	again := NewBus() // another process
	s2, err := again.Connector().NewSource(ctx, connectors.SourceSpec{Table: table(), Columns: []int{2}, Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	opened := make(chan error, 1)
	go func() {
		_, err := s2.Open(ctx, []checkpoint.Position{{Split: "t-0", Next: p.Position}})
		opened <- err
	}()
	at, err := again.Feed("t").Start(ctx, 0)
	if err != nil || at != 2 {
		t.Fatalf("continue at %d, %v", at, err)
	}
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
}

// TestFeedLimit: Send waits while the job is behind, and goes on when it read.
func TestFeedLimit(t *testing.T) {
	ctx := patient(t)
	bus := NewBus()
	f := bus.Feed("t").SetLimit(1)
	one := Insert(types.IntDatum(1), types.StrDatum("x"))
	if err := f.Send(ctx, 0, one); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if err := f.Send(gone, 0, one); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	sent := make(chan error)
	go func() { sent <- f.Send(ctx, 0, one) }()
	schema := types.NewSchema(types.Column{Name: "a", Type: types.BigIntType})
	s, err := bus.Connector().NewSource(ctx, connectors.SourceSpec{Table: table(), Columns: []int{0}, Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Open(ctx, []checkpoint.Position{{Split: "t-0"}})
	if err != nil {
		t.Fatal(err)
	}
	out := batch.NewBuilder(schema)
	for out.Len() < 2 {
		if _, err := r.Next(ctx, out); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
}

// TestQueueTransactions: rows are visible after commit only and once, an aborted writer is fenced, outcomes are what
// happened.
func TestQueueTransactions(t *testing.T) {
	ctx := patient(t)
	bus := NewBus()
	q := bus.Queue("t")
	schema := types.NewSchema(types.Column{Name: "a", Type: types.BigIntType})
	s, err := bus.Connector().NewSink(ctx, connectors.SinkSpec{ID: "t", Table: table(), Schema: schema, Mode: connectors.SinkMode{Delivery: connectors.TwoPhaseCommit}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Committer(ctx)
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Open(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	in := batch.NewBuilder(schema)
	write := func(v int64) {
		in.Reset()
		in.Cols[0].AppendI64(v)
		in.RowDone()
		if err := w.Write(ctx, in.Finish()); err != nil {
			t.Fatal(err)
		}
	}
	var all []checkpoint.Committable
	for id := range 3 {
		write(int64(id))
		cs, err := w.PreCommit(ctx, checkpoint.ID(id+1))
		if err != nil || len(cs) != 1 {
			t.Fatalf("%v, %v", cs, err)
		}
		all = append(all, cs...)
	}
	if cs, err := w.PreCommit(ctx, 4); err != nil || len(cs) != 0 {
		t.Fatalf("an empty transaction was prepared: %v, %v", cs, err)
	}
	write(9) // stays open
	if len(q.Rows()) != 0 {
		t.Fatal("rows are visible before commit")
	}
	for range 2 {
		if err := c.Commit(ctx, all[:1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Abort(ctx, all[1:2]); err != nil {
		t.Fatal(err)
	}
	got, err := c.Classify(ctx, append(all, checkpoint.Committable{Payload: []byte("\x01other")}))
	if err != nil {
		t.Fatal(err)
	}
	want := []checkpoint.Outcome{checkpoint.OutcomeCommitted, checkpoint.OutcomeOpen, checkpoint.OutcomeAborted, checkpoint.OutcomeUnknown}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("committable %d is %s, want %s", i, got[i], want[i])
		}
	}
	if err := c.Commit(ctx, all[2:]); diag.CodeOf(err) != diag.Lost {
		t.Errorf("commit of an aborted transaction: %v", err)
	}
	if _, err := w.PreCommit(ctx, 5); diag.CodeOf(err) != diag.Conflict {
		t.Errorf("a fenced writer: %v", err)
	}
	if r, err := q.Next(ctx); err != nil || r.Values[0].I64 != 0 {
		t.Errorf("%v, %v", r, err)
	}
	q.End(nil)
	if _, err := q.Next(ctx); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

// TestOptions: what cannot work is refused with the option's name.
func TestOptions(t *testing.T) {
	c := NewBus().Connector()
	if err := c.Check(table("changelog", "upsert"), connectors.UseSink); diag.CodeOf(err) != diag.Config {
		t.Error(err)
	}
	if err := c.Check(table("nmae", "x"), connectors.UseSource); diag.CodeOf(err) != diag.Config {
		t.Error(err)
	}
	modes, err := c.SinkModes(table("delivery", "at-least-once", "changelog", "retract"))
	if err != nil || len(modes) != 1 || modes[0].Delivery != connectors.AtLeastOnce || modes[0].Changelog != types.Retract {
		t.Errorf("%+v, %v", modes, err)
	}
}

// FuzzPosition: a split and a position of a damaged checkpoint are an error, or something that can be read from.
func FuzzPosition(f *testing.F) {
	f.Add("in-0", []byte{2})
	f.Add("in-3", []byte{})
	f.Add("in-999999999999", []byte{1})
	f.Add("in-0", []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, split string, next []byte) {
		feed := NewBus().Feed("in")
		s := &source{f: feed, spec: connectors.SourceSpec{Table: table()}}
		p := checkpoint.Position{Split: checkpoint.Split(split), Next: next}
		r := &reader{s: s}
		if r.Add(context.Background(), p) != nil {
			return
		}
		if at := r.splits[0].at; at < 0 {
			t.Fatalf("row %d", at)
		}
		s.Committed(context.Background(), []checkpoint.Position{p})
	})
}
