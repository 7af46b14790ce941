package lookup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/connectors/memory"
	"github.com/streamsql/streamsql/sql/types"
	"github.com/streamsql/streamsql/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

const (
	orders    = 20_000
	customers = 500 // each third has two addresses, each fifth none
	splits    = 4
)

func addresses(customer int) []string {
	switch {
	case customer%5 == 0:
		return nil
	case customer%3 == 0:
		return []string{fmt.Sprintf("a%d", customer), fmt.Sprintf("b%d", customer)}
	}
	return []string{fmt.Sprintf("a%d", customer)}
}

// env is an engine with a feed of orders and a table of addresses in PostgreSQL.
type env struct {
	t   *testing.T
	ctx context.Context
	bus *memory.Bus
	eng *streamsql.Engine
	pg  *harness.PG
	db  string
}

func newEnv(t *testing.T, tableOptions string) *env {
	t.Helper()
	e := &env{t: t, bus: memory.NewBus(), pg: harness.SharedPostgres(t)}
	var cancel context.CancelFunc
	e.ctx, cancel = context.WithTimeout(context.Background(), 10*time.Minute) // a hang, also on a loaded machine
	t.Cleanup(cancel)
	e.db = e.pg.CreateDatabase(t)
	e.pg.Exec(t, e.db, `CREATE TABLE address (customer int, city varchar(20)); CREATE INDEX ON address (customer)`)
	var values []string
	for c := range customers {
		for _, a := range addresses(c) {
			values = append(values, fmt.Sprintf("(%d, '%s')", c, a))
		}
	}
	e.pg.Exec(t, e.db, "INSERT INTO address VALUES "+strings.Join(values, ", "))
	var err error
	e.eng, err = streamsql.Open("", &streamsql.Options{
		Connectors: append([]connectors.Connector{*e.bus.Connector()}, streamsql.DefaultConnectors(io.Discard)...),
		Settings: map[string]string{"parallelism.default": "2", "execution.checkpointing.interval": "20 ms",
			"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "1 ms", "restart-strategy.fixed-delay.attempts": "20"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.eng.Close() })
	e.exec(`CREATE TABLE o (id INT, customer INT, proc AS PROCTIME()) WITH ('connector' = 'memory', 'bounded' = 'true')`)
	e.exec(fmt.Sprintf(`CREATE TABLE d (customer BIGINT, city STRING) WITH ('connector' = 'jdbc', 'url' = '%s', 'table-name' = 'address'%s)`,
		strings.ReplaceAll(e.pg.DSN(e.db), "'", "''"), tableOptions))
	e.exec(`CREATE TABLE s (id INT, city STRING) WITH ('connector' = 'memory')`)
	return e
}

func (e *env) exec(text string) *streamsql.Result {
	e.t.Helper()
	r, err := e.eng.Exec(e.ctx, text)
	if err != nil {
		e.t.Fatal(err)
	}
	return r
}

// feed gives order i to split i modulo splits; each split fails once on the way.
func (e *env) feed() {
	f := e.bus.Feed("o").SetSplits(splits)
	for i := range orders {
		f.Append(i%splits, memory.Insert(types.IntDatum(int64(i)), types.IntDatum(int64(i%customers))))
	}
	for s := range splits {
		f.Fail(s, int64(orders/splits/(s+2)), &checkpoint.FailpointError{Name: "feed"})
	}
	f.Close()
}

func (e *env) rows() []string {
	var out []string
	for _, r := range e.bus.Queue("s").Rows() {
		city := "-"
		if !r.Values[1].IsNull {
			city = r.Values[1].Str
		}
		out = append(out, fmt.Sprintf("%s %06d %s", r.Kind, r.Values[0].I64, city))
	}
	slices.Sort(out)
	return out
}

func expected(outer bool) []string {
	var out []string
	for i := range orders {
		cities := addresses(i % customers)
		if cities == nil && outer {
			cities = []string{"-"}
		}
		for _, c := range cities {
			out = append(out, fmt.Sprintf("+I %06d %s", i, c))
		}
	}
	slices.Sort(out)
	return out
}

// TestExactlyOnce: goal: no row is lost or repeated by a failure while lookups are on the way. Method: four failures,
// checkpoints every 20 ms, every way to look up; the committed rows are compared with all that must come.
func TestExactlyOnce(t *testing.T) {
	for _, c := range []struct{ name, options, hint, join string }{
		{"sync", "", "", "LEFT JOIN"},
		{"cached", ", 'lookup.cache' = 'PARTIAL', 'lookup.partial-cache.max-rows' = '300', 'lookup.partial-cache.expire-after-write' = '1 min'", "", "JOIN"},
		{"ordered", "", "/*+ LOOKUP('table'='d', 'async'='true', 'capacity'='8') */", "JOIN"},
		{"unordered", "", "/*+ LOOKUP('table'='d', 'async'='true', 'output-mode'='allow_unordered') */", "LEFT JOIN"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEnv(t, c.options)
			e.feed()
			r := e.exec(fmt.Sprintf("INSERT INTO s SELECT %s o.id, d.city FROM o %s d FOR SYSTEM_TIME AS OF o.proc ON o.customer = d.customer", c.hint, c.join))
			if err := r.Job.Wait(e.ctx); err != nil {
				t.Fatal(err)
			}
			got, want := e.rows(), expected(c.join == "LEFT JOIN")
			if !slices.Equal(got, want) {
				for i := range min(len(got), len(want)) {
					if got[i] != want[i] {
						t.Fatalf("%d rows, want %d; row %d is %q, want %q", len(got), len(want), i, got[i], want[i])
					}
				}
				t.Fatalf("%d rows, want %d", len(got), len(want))
			}
		})
	}
}

// TestFailures: what cannot work fails the job before a row is read, and names table and fix.
func TestFailures(t *testing.T) {
	e := newEnv(t, "")
	e.feed()
	for _, c := range []struct{ ddl, want string }{
		{`CREATE TABLE bad (customer BIGINT, town STRING) WITH ('connector' = 'jdbc', 'url' = '%s', 'table-name' = 'address')`, `has no column "town"`},
		{`CREATE TABLE bad (customer BIGINT, city STRING) WITH ('connector' = 'jdbc', 'url' = '%s', 'table-name' = 'adress')`, `table "adress" does not exist`},
	} {
		e.exec(fmt.Sprintf(c.ddl, e.pg.DSN(e.db)))
		r, err := e.eng.Exec(e.ctx, `INSERT INTO s SELECT o.id, 'x' FROM o JOIN bad FOR SYSTEM_TIME AS OF o.proc AS d ON o.customer = d.customer`)
		if strings.Contains(c.ddl, "town") {
			r, err = e.eng.Exec(e.ctx, `INSERT INTO s SELECT o.id, d.town FROM o JOIN bad FOR SYSTEM_TIME AS OF o.proc AS d ON o.customer = d.customer`)
		}
		if err == nil {
			err = r.Job.Wait(e.ctx)
		}
		if err == nil || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
		e.exec(`DROP TABLE bad`)
	}
	if n := len(e.rows()); n != 0 {
		t.Errorf("%d rows were written", n)
	}
}
