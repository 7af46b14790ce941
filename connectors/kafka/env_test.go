package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
	"github.com/streamsql/streamsql/tests/harness"
)

// Those marked parallel wait for brokers, and for zombies that nobody answers.
func TestMain(m *testing.M) { harness.MainParallel(m, runtime.GOMAXPROCS(0)+4) }

// env is a broker to test against: kfake in the default run, a real one without -short.
type env struct {
	addr string
	cl   *kgo.Client
	adm  *kadm.Client
	fake *kfake.Cluster // nil on a real broker
	tv   int8
	more map[string]string // properties.* every table needs
}

func newEnv(t *testing.T, addr string, opts ...kgo.Opt) *env {
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(strings.Split(addr, ",")...), kgo.RecordPartitioner(kgo.ManualPartitioner())}, opts...)...)
	must(t, err)
	t.Cleanup(cl.Close)
	return &env{addr: addr, cl: cl, adm: kadm.NewClient(cl)}
}

// fake is a kfake cluster; tv 1 behaves like Kafka 3.9.
func fake(t *testing.T, tv int8, opts ...kfake.Opt) *env {
	t.Helper()
	if tv < 2 {
		opts = append(opts, kfake.MaxVersions(kversion.V3_9_0()))
	}
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	must(t, err)
	t.Cleanup(c.Close)
	e := newEnv(t, c.ListenAddrs()[0])
	e.fake, e.tv = c, tv
	return e
}

// everywhere runs test on kfake with both transaction protocols and on a real broker.
func everywhere(t *testing.T, test func(t *testing.T, e *env)) {
	t.Run("kfake-tv2", func(t *testing.T) { test(t, fake(t, 2)) })
	t.Run("kfake-tv1", func(t *testing.T) { test(t, fake(t, 1)) })
	t.Run("kafka", func(t *testing.T) {
		e := newEnv(t, harness.SharedKafka(t).Addr())
		e.tv = 2
		test(t, e)
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		var e *diag.Error
		if ok := asDiag(err, &e); ok {
			t.Fatalf("%v\n  reason: %s\n  hint: %s", err, e.Detail, e.Hint)
		}
		t.Fatal(err)
	}
}

func asDiag(err error, e **diag.Error) bool {
	for ; err != nil; err = unwrap(err) {
		if d, ok := err.(*diag.Error); ok {
			*e = d
			return true
		}
	}
	return false
}

func unwrap(err error) error {
	u, ok := err.(interface{ Unwrap() error })
	if !ok {
		return nil
	}
	return u.Unwrap()
}

// patience bounds every wait: a loaded machine is slow, a hang is for ever.
const patience = 4 * time.Minute

func testCtx(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func (e *env) topic(t *testing.T, partitions int32) string { return e.topicWith(t, partitions, nil) }

// topicWith creates a topic with settings. They hold from the first record on; altered ones would some time later.
func (e *env) topicWith(t *testing.T, partitions int32, configs map[string]*string) string {
	t.Helper()
	name := harness.UniqueName(t)
	_, err := e.adm.CreateTopic(testCtx(t), partitions, -1, configs, name)
	must(t, err)
	// A broker answers before it knows the topic itself.
	waitFor(t, func() bool {
		ends, err := e.adm.ListEndOffsets(testCtx(t), name)
		return err == nil && ends.Error() == nil && len(ends[name]) == int(partitions)
	})
	return name
}

// produce writes records without transaction.
func (e *env) produce(t *testing.T, recs ...*kgo.Record) {
	t.Helper()
	must(t, e.cl.ProduceSync(testCtx(t), recs...).FirstErr())
}

func rec(topic string, p int32, value string) *kgo.Record {
	return &kgo.Record{Topic: topic, Partition: p, Value: []byte(value)}
}

// txn writes records in a transaction of its own and ends it.
func (e *env) txn(t *testing.T, commit bool, recs ...*kgo.Record) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(e.addr), kgo.TransactionalID(harness.UniqueName(t)), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	must(t, err)
	defer cl.Close()
	must(t, cl.BeginTransaction())
	must(t, cl.ProduceSync(testCtx(t), recs...).FirstErr())
	must(t, cl.EndTransaction(testCtx(t), kgo.TransactionEndTry(commit)))
}

// read returns the records a reader sees now, partition by partition.
func (e *env) read(t *testing.T, topic string, committed bool) []*kgo.Record {
	t.Helper()
	ctx := testCtx(t)
	// The stable ends come first: what is decided between the two requests must not count as undecided.
	var stable, ends kadm.ListedOffsets
	waitFor(t, func() bool {
		var errs [2]error
		stable, errs[0] = e.adm.ListCommittedOffsets(ctx, topic)
		ends, errs[1] = e.adm.ListEndOffsets(ctx, topic)
		return errors.Join(errs[0], errs[1], stable.Error(), ends.Error()) == nil
	})
	left := map[int32]int64{}
	starts := map[int32]kgo.Offset{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
			starts[o.Partition] = kgo.NewOffset().AtStart()
		}
	})
	var all []*kgo.Record
	outcome := map[string]bool{}
	if len(left) > 0 {
		cl, err := kgo.NewClient(kgo.SeedBrokers(e.addr), kgo.KeepControlRecords(), kgo.FetchMaxWait(50*time.Millisecond),
			kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: starts}))
		must(t, err)
		defer cl.Close()
		for len(left) > 0 {
			fs := cl.PollFetches(ctx)
			must(t, fs.Err())
			fs.EachRecord(func(r *kgo.Record) {
				all = append(all, r)
				if r.Offset+1 >= left[r.Partition] {
					delete(left, r.Partition)
				}
			})
		}
	}
	// A marker decides the records of its producer before it.
	open := map[string][]int{}
	for i, r := range all {
		k := fmt.Sprint(r.Partition, "/", r.ProducerID)
		if r.Attrs.IsControl() {
			for _, j := range open[k] {
				outcome[fmt.Sprint(j)] = r.Key[3] == 1
			}
			delete(open, k)
		} else if r.Attrs.IsTransactional() {
			open[k] = append(open[k], i)
		}
	}
	var out []*kgo.Record
	for i, r := range all {
		lso, _ := stable.Lookup(topic, r.Partition)
		switch {
		case r.Attrs.IsControl():
		case committed && r.Offset >= lso.Offset:
		case committed && r.Attrs.IsTransactional() && !outcome[fmt.Sprint(i)]:
		default:
			out = append(out, r)
		}
	}
	return out
}

func values(recs []*kgo.Record) []string {
	var out []string
	for _, r := range recs {
		if r.Value == nil {
			out = append(out, "NULL")
		} else {
			out = append(out, string(r.Value))
		}
	}
	return out
}

// tableOf builds a table. options are key, value pairs; the connector and the servers are added.
func (e *env) table(topic string, cols []catalog.Column, options ...string) *catalog.Table {
	t := &catalog.Table{Name: "t", Columns: cols, Options: catalog.NewOptions()}
	set := func(k, v string) { t.Options.Set(k, v, diag.Pos{}) }
	set("connector", "kafka")
	set("properties.bootstrap.servers", e.addr)
	set("topic", topic)
	for k, v := range e.more {
		set(k, v)
	}
	for i := 0; i < len(options); i += 2 {
		if options[i] == "topic-pattern" {
			t.Options = without(t.Options, "topic")
		}
		t.Options.Set(options[i], options[i+1], diag.Pos{})
	}
	if _, ok := t.Options.Get("format"); !ok && t.Connector() == "kafka" {
		if _, ok := t.Options.Get("value.format"); !ok {
			t.Options.Set("format", "json", diag.Pos{})
		}
	}
	return t
}

func without(o *catalog.Options, key string) *catalog.Options {
	n := catalog.NewOptions()
	for _, k := range o.Keys() {
		if v, _ := o.Get(k); k != key {
			n.Set(k, v, diag.Pos{})
		}
	}
	return n
}

func phys(name string, t types.Type) catalog.Column { return catalog.Column{Name: name, Type: t} }

func meta(name, key string, t types.Type, virtual bool) catalog.Column {
	return catalog.Column{Name: name, Type: t, Kind: catalog.Metadata, Key: key, Virtual: virtual}
}

var idCols = []catalog.Column{phys("id", types.BigIntType)}

func job(name string) connectors.JobInfo {
	return connectors.JobInfo{Name: name, ID: name, Lineage: "lin-" + name, Fence: 1, Shared: &connectors.Shared{}, Log: slog.New(slog.DiscardHandler)}
}

func persisted(t *catalog.Table) *types.Schema {
	s := &types.Schema{}
	for _, c := range t.Columns {
		if c.Kind == catalog.Physical || c.Kind == catalog.Metadata && !c.Virtual {
			s.Columns = append(s.Columns, types.Column{Name: c.Name, Type: c.Type})
		}
	}
	return s
}

func connectorOf(t *catalog.Table) *connectors.Connector {
	if t.Connector() == "upsert-kafka" {
		return UpsertConnector()
	}
	return Connector()
}

// openSink checks and opens a sink for tests, without writers.
func openSink(t *testing.T, tab *catalog.Table, id string, parallel int, j connectors.JobInfo) *sink {
	t.Helper()
	c := connectorOf(tab)
	must(t, c.Check(tab, connectors.UseSink))
	modes, err := c.SinkModes(tab)
	must(t, err)
	s, err := c.NewSink(testCtx(t), connectors.SinkSpec{ID: checkpoint.SinkID(id), Table: tab, Schema: persisted(tab), Mode: modes[0], Parallel: parallel, Job: j})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s.(*sink)
}

func openWriters(t *testing.T, s *sink) []connectors.Writer {
	t.Helper()
	var ws []connectors.Writer
	for i := range s.spec.Parallel {
		w, err := s.Open(testCtx(t), i)
		must(t, err)
		ws = append(ws, w)
	}
	return ws
}

func committerOf(t *testing.T, s *sink) checkpoint.Committer {
	t.Helper()
	c, err := s.Committer(testCtx(t))
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// ids is a batch of the column id.
func ids(from, to int) *batch.Batch {
	b := batch.NewBuilder(types.NewSchema(types.Column{Name: "id", Type: types.BigIntType}))
	for i := from; i < to; i++ {
		b.Cols[0].AppendI64(int64(i))
		b.RowDone()
	}
	return b.Finish()
}

func idJSON(from, to int) []string {
	var out []string
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprintf(`{"id":%d}`, i))
	}
	return out
}

// scan reads a source to its end, or to n rows when it has none, and returns the rows as text: kind and values.
type scanned struct {
	rows []string
	pos  map[checkpoint.Split][]byte
	bad  int
}

func sourceOf(t *testing.T, tab *catalog.Table, j connectors.JobInfo) *source {
	t.Helper()
	c := connectorOf(tab)
	must(t, c.Check(tab, connectors.UseSource))
	spec := connectors.SourceSpec{Table: tab, Job: j, Schema: &types.Schema{}}
	for i, col := range tab.Columns {
		spec.Columns = append(spec.Columns, i)
		spec.Schema.Columns = append(spec.Schema.Columns, types.Column{Name: col.Name, Type: col.Type})
	}
	s, err := c.NewSource(testCtx(t), spec)
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s.(*source)
}

func startPositions(t *testing.T, s *source) []checkpoint.Position {
	t.Helper()
	splits, err := s.Splits(testCtx(t))
	must(t, err)
	var out []checkpoint.Position
	for _, sp := range splits {
		out = append(out, checkpoint.Position{Split: sp})
	}
	return out
}

func scanAll(t *testing.T, tab *catalog.Table, n int) scanned {
	t.Helper()
	s := sourceOf(t, tab, job("scan"))
	r, err := s.Open(testCtx(t), startPositions(t, s))
	must(t, err)
	defer r.Close()
	return readFrom(t, s, r, n)
}

// readFrom reads n rows, or to the end when n < 0.
func readFrom(t *testing.T, s *source, r connectors.Reader, n int) scanned {
	t.Helper()
	out, err := tryRead(t, s, r, n)
	must(t, err)
	return out
}

func tryRead(t *testing.T, s *source, r connectors.Reader, n int) (scanned, error) {
	t.Helper()
	ctx := testCtx(t)
	out := scanned{pos: map[checkpoint.Split][]byte{}}
	b := batch.NewBuilder(s.spec.Schema)
	for n < 0 || len(out.rows) < n {
		p, err := r.Next(ctx, b)
		if err == connectors.ErrEnd {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out.bad += p.Skipped
		if p.Position != nil {
			out.pos[p.Split] = p.Position
		}
		out.rows = append(out.rows, rowTexts(b.Finish())...)
		b.Reset()
	}
	return out, nil
}

func rowTexts(b *batch.Batch) []string {
	var out []string
	for r := range b.N {
		var sb strings.Builder
		sb.WriteString(b.Kind(r).String())
		for _, c := range b.Cols {
			sb.WriteString(" " + datumText(c.Datum(r), c.Type))
		}
		out = append(out, sb.String())
	}
	return out
}

func datumText(d types.Datum, t types.Type) string {
	switch {
	case d.IsNull:
		return "NULL"
	case t.IsNested():
		var parts []string
		for i, x := range d.List {
			et := types.StringType
			if t.Kind == types.Row {
				et = t.Fields[i].Type
			} else if t.Kind == types.Array {
				et = *t.Elem
			}
			parts = append(parts, datumText(x, et))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case t.Phys() == types.PhysStr:
		return d.Str
	case t.Phys() == types.PhysBool:
		return fmt.Sprint(d.Bool)
	case t.Phys() == types.PhysF64:
		return fmt.Sprint(d.F64)
	}
	return fmt.Sprint(d.I64)
}

// everywhereKafka runs test on the real broker only.
func everywhereKafka(t *testing.T, test func(t *testing.T, e *env)) {
	e := newEnv(t, harness.SharedKafka(t).Addr())
	e.tv = 2
	test(t, e)
}
