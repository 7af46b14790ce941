package planner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/connectors/datagen"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// TestRun runs bounded plans through the executor: planned columns, exchanges and modes have to be what the operators
// expect, which no golden of the plan can show. The single row without FROM and VALUES are the sources.
func TestRun(t *testing.T) {
	data := "(VALUES (1, 'a', 10), (2, 'b', 20), (1, 'a', 30), (3, CAST(NULL AS STRING), 5)) AS t(k, s, v)"
	for _, c := range []struct{ name, query, want string }{
		{"constant", "SELECT 1 + 1 AS two, 'x' || 'y'", "+I(2, xy)"},
		{"values", "VALUES (1, 'a'), (2, CAST(NULL AS STRING))", "+I(1, a) +I(2, NULL)"},
		{"filter", "SELECT v + 1 FROM " + data + " WHERE k < 3 AND v > 10", "+I(21) +I(31)"},
		{"order", "SELECT s, v FROM " + data + " ORDER BY s DESC, v DESC", "+I(b, 20) +I(a, 30) +I(a, 10) +I(NULL, 5)"},
		{"hidden order", "SELECT s FROM " + data + " ORDER BY v LIMIT 2 OFFSET 1", "+I(a) +I(b)"},
		{"final table", "SELECT k, SUM(v) AS n FROM " + data + " GROUP BY k ORDER BY n DESC", "+I(1, 40) +I(2, 20) +I(3, 5)"},
		{"limit", "SELECT v FROM " + data + " LIMIT 2", "+I(10) +I(20)"},
		{"having", "SELECT k, COUNT(*) FROM " + data + " GROUP BY k HAVING COUNT(*) > 1 ORDER BY k", "+I(1, 2)"},
		{"distinct", "SELECT DISTINCT k FROM " + data + " ORDER BY k", "+I(1) +I(2) +I(3)"},
		{"union", "SELECT k FROM " + data + " UNION SELECT 7 ORDER BY k", "+I(1) +I(2) +I(3) +I(7)"},
		{"union all", "SELECT x FROM (SELECT 2 AS x UNION ALL SELECT 1) ORDER BY x", "+I(1) +I(2)"},
		{"aggregates", "SELECT SUM(v) FILTER (WHERE k = 1), COUNT(DISTINCT k), MIN(s), MAX(v), AVG(v) FROM (SELECT * FROM " + data + " ORDER BY v)", "+I(40, 3, a, 30, 16)"},
		{"count of count", "SELECT n, COUNT(*) FROM (SELECT k, COUNT(*) AS n FROM " + data + " GROUP BY k) GROUP BY n ORDER BY n", "+I(1, 2) +I(2, 1)"},
		{"no columns", "SELECT COUNT(*) AS n FROM (SELECT DISTINCT k FROM " + data + ") ORDER BY n", "+I(3)"},
		{"filter above", "SELECT n FROM (SELECT k, COUNT(*) AS n FROM " + data + " GROUP BY k) WHERE k + n > 2 ORDER BY n DESC", "+I(2) +I(1) +I(1)"},
		{"nested", "SELECT r.a, r['b'], r[1], arr[2] FROM (VALUES (CAST(ROW(1, 'x') AS ROW<a INT, b STRING>), ARRAY['p', 'q'])) AS t(r, arr)", "+I(1, x, 1, q)"},
		{"never", "SELECT v FROM " + data + " WHERE FALSE", ""},
		{"with", "WITH a AS (SELECT k, v FROM " + data + "), b (x) AS (SELECT v FROM a WHERE k = 1) SELECT SUM(x) AS s FROM b ORDER BY s", "+I(40)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := runQuery(t, c.query, nil); got != c.want {
				t.Errorf("%s\n got %s\nwant %s", c.query, got, c.want)
			}
		})
	}
}

// TestRunBatchMode has aggregates give their final rows only.
func TestRunBatchMode(t *testing.T) {
	conf := map[string]string{keyRuntimeMode: "batch"}
	got := runQuery(t, "SELECT SUM(v) FROM (VALUES (1), (2), (3)) AS t(v)", conf)
	if got != "+I(6)" {
		t.Errorf("got %s", got)
	}
}

// TestRunStatementSet runs a statement set over a table with event time, at parallelism 2: one scan feeds a filter, a
// keyed aggregation and a window. The table numbers its rows 0 to 999, one a second.
func TestRunStatementSet(t *testing.T) {
	h := newHarness(t)
	sinks := map[string]*collector{}
	h.p.conns = append(h.p.conns, datagen.Connector(), connectors.Connector{Name: "capture",
		SinkModes: func(t *catalog.Table) ([]connectors.SinkMode, error) {
			if len(t.PrimaryKey) > 0 {
				return []connectors.SinkMode{{Delivery: connectors.IdempotentUpsert, Changelog: types.Upsert, Key: t.PrimaryKey}}, nil
			}
			return []connectors.SinkMode{{Delivery: connectors.AtLeastOnce, Changelog: types.AppendOnly}}, nil
		},
		NewSink: func(_ context.Context, spec connectors.SinkSpec) (connectors.Sink, error) {
			return sinks[spec.Table.Name], nil
		}})
	for _, n := range []string{"big", "counts", "windows"} {
		sinks[n] = &collector{keep: true}
	}
	h.p.conns = slices.DeleteFunc(h.p.conns, func(c connectors.Connector) bool { return c.Name == "datagen" && c.Options == nil })
	if out, err := h.run("ddl", `
		CREATE TABLE gen (id BIGINT, ts AS CAST(TIMESTAMP '2024-01-01 00:00:00' + id * INTERVAL '1' SECOND AS TIMESTAMP(3)), WATERMARK FOR ts AS ts)
		WITH ('connector' = 'datagen', 'fields.id.kind' = 'sequence', 'fields.id.start' = '0', 'fields.id.end' = '999', 'rows-per-second' = '1000000');
		CREATE TABLE big (id BIGINT) WITH ('connector' = 'capture');
		CREATE TABLE counts (k BIGINT, n BIGINT, s BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'capture');
		CREATE TABLE windows (ws TIMESTAMP(3), n BIGINT, s BIGINT) WITH ('connector' = 'capture');`); err != nil || out != "" {
		t.Fatal(out, err)
	}
	st, err := sql.ParseScript(`EXECUTE STATEMENT SET BEGIN
		INSERT INTO big SELECT id FROM gen WHERE id >= 990;
		INSERT INTO counts SELECT id % 7, COUNT(*), SUM(id) FROM (SELECT id, CAST(ts AS TIMESTAMP(3)) AS t FROM gen) WHERE t >= TIMESTAMP '2024-01-01 00:00:00' GROUP BY id % 7;
		INSERT INTO windows SELECT CAST(window_start AS TIMESTAMP(3)), COUNT(*), SUM(id) FROM TABLE(TUMBLE(TABLE gen, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end;
		END`)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := h.p.Plan(st[0].Stmt, h.conf, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !plan.Bounded {
		t.Error("the plan is not bounded")
	}
	job, err := exec.NewJob(plan.Graph, exec.JobOptions{Name: plan.Name})
	if err != nil {
		t.Fatal(err)
	}
	if err := job.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	slices.Sort(sinks["big"].rows)
	if got, want := strings.Join(sinks["big"].rows, " "), "+I(990) +I(991) +I(992) +I(993) +I(994) +I(995) +I(996) +I(997) +I(998) +I(999)"; got != want {
		t.Errorf("big: %s", got)
	}
	final := map[int64][2]int64{}
	for _, d := range sinks["counts"].data {
		final[d[0].I64] = [2]int64{d[1].I64, d[2].I64}
	}
	want := map[int64][2]int64{}
	for i := range int64(1000) {
		want[i%7] = [2]int64{want[i%7][0] + 1, want[i%7][1] + i}
	}
	if !maps.Equal(final, want) {
		t.Errorf("counts: %v, want %v", final, want)
	}
	start := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	final, want = map[int64][2]int64{}, map[int64][2]int64{}
	for i, d := range sinks["windows"].data {
		if !strings.HasPrefix(sinks["windows"].rows[i], "+I") {
			t.Errorf("windows: %s", sinks["windows"].rows[i])
		}
		w := (d[0].I64 - start.UnixMicro()) / 60e6
		if _, twice := final[w]; twice {
			t.Errorf("window %d came twice", w)
		}
		final[w] = [2]int64{d[1].I64, d[2].I64}
	}
	for i := range int64(1000) {
		want[i/60] = [2]int64{want[i/60][0] + 1, want[i/60][1] + i}
	}
	if !maps.Equal(final, want) {
		t.Errorf("windows: %v, want %v", final, want)
	}
}

// runQuery plans and runs a query; rows are in the order the result sink saw them.
func runQuery(t *testing.T, query string, conf map[string]string) string {
	t.Helper()
	h := newHarness(t)
	for k, v := range conf {
		if _, err := h.conf.Set(k, v, posNone); err != nil {
			t.Fatal(err)
		}
	}
	stmts, err := sql.ParseScript(query)
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{}
	plan, err := h.p.Plan(stmts[0].Stmt, h.conf, Options{Collect: c.connector()})
	if err != nil {
		t.Fatal(err)
	}
	job, err := exec.NewJob(plan.Graph, exec.JobOptions{Name: plan.Name})
	if err != nil {
		t.Fatal(err)
	}
	if err := job.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	return strings.Join(c.rows, " ")
}

// collector is a sink that keeps rows as text.
type collector struct {
	mu     sync.Mutex
	rows   []string
	schema *types.Schema
	keep   bool // the values too
	data   [][]types.Datum
}

func (c *collector) connector() *connectors.Connector {
	return &connectors.Connector{Name: "collect",
		SinkModes: func(*catalog.Table) ([]connectors.SinkMode, error) {
			return []connectors.SinkMode{{Delivery: connectors.NoGuarantee, Changelog: types.Retract}}, nil
		},
		NewSink: func(_ context.Context, spec connectors.SinkSpec) (connectors.Sink, error) {
			c.schema = spec.Schema
			return c, nil
		}}
}

func (c *collector) Preflight(context.Context) error                         { return nil }
func (c *collector) Committer(context.Context) (checkpoint.Committer, error) { return nil, nil }
func (c *collector) Open(context.Context, int) (connectors.Writer, error)    { return c, nil }
func (c *collector) Committed(context.Context, checkpoint.ID) error          { return nil }
func (c *collector) Close() error                                            { return nil }
func (c *collector) PreCommit(context.Context, checkpoint.ID) ([]checkpoint.Committable, error) {
	return nil, nil
}

func (c *collector) Write(_ context.Context, b *batch.Batch) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range b.Len() {
		r := b.Row(i)
		vals := make([]string, len(b.Cols))
		var data []types.Datum
		for j, v := range b.Cols {
			vals[j] = datumText(v, r)
			if c.keep {
				data = append(data, v.Datum(r))
			}
		}
		c.data = append(c.data, data)
		c.rows = append(c.rows, fmt.Sprintf("%s(%s)", b.Kind(r), strings.Join(vals, ", ")))
	}
	return nil
}

func datumText(v *batch.Vec, r int) string {
	d := v.Datum(r)
	switch {
	case d.IsNull:
		return "NULL"
	case v.Type.Phys() == types.PhysStr:
		return d.Str
	case v.Type.Phys() == types.PhysF64:
		return fmt.Sprint(d.F64)
	case v.Type.Phys() == types.PhysBool:
		return fmt.Sprint(d.Bool)
	}
	return fmt.Sprint(d.I64)
}
