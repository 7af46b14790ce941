package exec_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/connectors/memory"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
	"go.uber.org/goleak"
)

// TestMain demands that the tests leave no goroutine. One that has nothing to do but end gets the time for it: goleak's own
// patience is less than half a second, which a busy machine may need.
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

// The rows of the tests: k BIGINT, v BIGINT, s STRING, ts TIMESTAMP(3).
var testSchema = types.NewSchema(
	types.Column{Name: "k", Type: types.BigIntType}, types.Column{Name: "v", Type: types.BigIntType},
	types.Column{Name: "s", Type: types.StringType}, types.Column{Name: "ts", Type: types.TimestampMs})

func testTable(name string, options ...string) *catalog.Table {
	t := &catalog.Table{Name: name, Options: catalog.NewOptions()}
	for _, c := range testSchema.Columns {
		t.Columns = append(t.Columns, catalog.Column{Name: c.Name, Type: c.Type})
	}
	t.Options.Set("connector", "memory", diag.Pos{})
	for i := 0; i < len(options); i += 2 {
		t.Options.Set(options[i], options[i+1], diag.Pos{})
	}
	return t
}

// row is k, v and a time in ms; s is derived, and NULL for every fifth v.
func row(k, v, ms int64) memory.Row {
	s := types.StrDatum(fmt.Sprintf("s%d", v))
	if v%5 == 0 {
		s = types.NullDatum
	}
	return memory.Insert(types.IntDatum(k), types.IntDatum(v), s, types.IntDatum(ms*1000))
}

// graphs made by hand.
type graph struct {
	bus *memory.Bus
	g   *exec.Graph
}

func newGraph(bus *memory.Bus) *graph {
	return &graph{bus: bus, g: &exec.Graph{Identities: map[checkpoint.OperatorID]string{"test": "1:0"}}}
}

func (g *graph) add(n *exec.Node) int {
	n.ID = checkpoint.OperatorID(n.Name)
	g.g.Nodes = append(g.g.Nodes, n)
	return len(g.g.Nodes) - 1
}

func (g *graph) source(feed string, parallelism int, w *exec.WatermarkSpec) int {
	return g.add(&exec.Node{Name: feed, Parallelism: parallelism, Output: testSchema, Source: &exec.SourceNode{
		Spec:      connectors.SourceSpec{Table: testTable(feed), Columns: []int{0, 1, 2, 3}, Schema: testSchema},
		Connector: g.bus.Connector(), Watermark: w}})
}

// rowtime is a watermark that follows ts.
func rowtime(onEvent bool, interval, idle int64) *exec.WatermarkSpec {
	return &exec.WatermarkSpec{Expr: &expr.Column{Index: 3, Name: "ts", T: types.TimestampMs}, Column: 3, OnEvent: onEvent,
		Interval: interval, IdleAfter: idle}
}

func (g *graph) op(name string, parallelism int, make func() exec.Operator, inputs ...exec.Edge) int {
	return g.add(&exec.Node{Name: name, Parallelism: parallelism, Output: testSchema, Inputs: inputs, Operator: make})
}

func (g *graph) sink(queue string, parallelism int, in exec.Edge) int {
	return g.add(&exec.Node{Name: "to " + queue, Parallelism: parallelism, Inputs: []exec.Edge{in}, Sink: &exec.SinkNode{
		Spec: connectors.SinkSpec{ID: checkpoint.SinkID(queue), Table: testTable(queue), Schema: testSchema,
			Mode: connectors.SinkMode{Delivery: connectors.TwoPhaseCommit}},
		Connector: g.bus.Connector()}})
}

func forward(from int) exec.Edge   { return exec.Edge{From: from, Ship: exec.Forward} }
func hash(from int) exec.Edge      { return exec.Edge{From: from, Ship: exec.Hash, Keys: []int{0}} }
func rebalance(from int) exec.Edge { return exec.Edge{From: from, Ship: exec.Rebalance} }

// pass is the identity.
type pass struct{ exec.Stateless }

func (pass) Open(exec.Subtask) error { return nil }
func (pass) Process(_ int, b *batch.Batch, out exec.Emitter) error {
	return out.Emit(b)
}

func newPass() exec.Operator { return &pass{} }

// running is a job under test.
type running struct {
	*exec.Job
	t    *testing.T
	done chan error
}

func options(o exec.JobOptions) exec.JobOptions {
	o.Name = "test"
	o.Poison()
	return o
}

func start(t *testing.T, g *exec.Graph, o exec.JobOptions) *running {
	t.Helper()
	j, err := exec.NewJob(g, options(o))
	if err != nil {
		t.Fatal(err)
	}
	r := &running{Job: j, t: t, done: make(chan error, 1)}
	go func() { r.done <- j.Run(context.Background()) }()
	t.Cleanup(func() { j.Cancel(); <-j.Ended() })
	return r
}

// wait is how the job ended, within the test's patience.
func (r *running) wait() error {
	r.t.Helper()
	select {
	case err := <-r.done:
		return err
	case <-time.After(patience):
		r.t.Fatalf("the job does not end: %+v", r.Status())
		return nil
	}
}

// patient is a context for one wait.
func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// texts are rows as sorted text.
func texts(rows []memory.Row) []string {
	var out []string
	for _, r := range rows {
		s := r.Kind.String()
		for i, d := range r.Values {
			switch {
			case d.IsNull:
				s += " NULL"
			case testSchema.Columns[i].Type.Phys() == types.PhysStr:
				s += " " + d.Str
			default:
				s += fmt.Sprintf(" %d", d.I64)
			}
		}
		out = append(out, s)
	}
	slices.Sort(out)
	return out
}

func same(t *testing.T, got, want []memory.Row) {
	t.Helper()
	g, w := texts(got), texts(want)
	if slices.Equal(g, w) {
		return
	}
	n := 0
	count := map[string]int{}
	for _, s := range w {
		count[s]++
	}
	for _, s := range g {
		count[s]--
	}
	for s, c := range count {
		if c != 0 && n < 5 {
			n++
			t.Errorf("row %q: %d too few", s, c)
		}
	}
	t.Fatalf("%d rows, want %d", len(g), len(w))
}
