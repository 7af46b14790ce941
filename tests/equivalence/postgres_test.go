package equivalence

// Goal: joins and set operations give what PostgreSQL gives. Method: random queries over random tables with NULLs and
// equal rows, on both; the changes of the streaming query are folded to its final table.

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/tests/harness"
)

var joinSeeds = flag.Int("joins", 150, "how many random joins to compare with PostgreSQL")

func TestMain(m *testing.M) { harness.Main(m) }

func TestJoinsLikePostgres(t *testing.T) {
	pg := harness.SharedPostgres(t)
	db := pg.CreateDatabase(t)
	conn := pg.Conn(t, db)
	start := time.Now()
	for seed := range uint64(*joinSeeds) {
		if time.Since(start) > 2*enough && *joinSeeds == 150 {
			t.Logf("stopped after %d queries", seed)
			break
		}
		g := &joinGen{r: rand.New(rand.NewPCG(seed, 7))}
		eng, err := streamsql.Open("", &streamsql.Options{Settings: map[string]string{"parallelism.default": fmt.Sprint(1 + seed%3)}})
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"t0", "t1", "t2"} {
			values := g.rows(1 + g.r.IntN(8))
			if _, err := eng.Exec(context.Background(), fmt.Sprintf("CREATE VIEW %s AS SELECT * FROM (VALUES %s) AS v(k%d, v%d)", name, values, i, i)); err != nil {
				t.Fatal(err)
			}
			pg.Exec(t, db, "DROP TABLE IF EXISTS "+name, fmt.Sprintf("CREATE TABLE %s (k%d BIGINT, v%d BIGINT)", name, i, i), "INSERT INTO "+name+" VALUES "+values)
		}
		q := g.query()
		want := pgRows(t, func() ([]string, error) {
			rows, err := conn.Query(context.Background(), strings.ReplaceAll(q, "CAST(NULL AS BIGINT)", "NULL::BIGINT"))
			if err != nil {
				return nil, err
			}
			defer rows.Close()
			var out []string
			for rows.Next() {
				v, err := rows.Values()
				if err != nil {
					return nil, err
				}
				cells := make([]string, len(v))
				for i, x := range v {
					if cells[i] = fmt.Sprint(x); x == nil {
						cells[i] = "NULL"
					}
				}
				out = append(out, strings.Join(cells, "|"))
			}
			return out, rows.Err()
		}, q)
		got := engineRows(t, eng, q)
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: %s\n got %v\nwant %v", seed, q, got, want)
		}
		eng.Close()
	}
}

func pgRows(t *testing.T, f func() ([]string, error), q string) []string {
	t.Helper()
	rows, err := f()
	if err != nil {
		t.Fatalf("%s: %v", q, err)
	}
	slices.Sort(rows)
	return rows
}

// engineRows is the final table of a streaming query.
func engineRows(t *testing.T, eng *streamsql.Engine, q string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), stuck)
	defer cancel()
	res, err := eng.Exec(ctx, q)
	if err != nil {
		t.Fatalf("%s: %v", q, err)
	}
	count := map[string]int{}
	for c, err := range res.Rows() {
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		cells := make([]string, c.Len())
		for i := range cells {
			text, null := c.Text(i)
			if cells[i] = text; null {
				cells[i] = "NULL"
			}
		}
		row := strings.Join(cells, "|")
		if c.Kind.IsRetract() {
			if count[row]--; count[row] < 0 {
				t.Fatalf("%s takes back %s, which is not there", q, row)
			}
		} else {
			count[row]++
		}
	}
	var out []string
	for row, n := range count {
		for range n {
			out = append(out, row)
		}
	}
	slices.Sort(out)
	return out
}

// joinGen writes random queries that both systems understand.
type joinGen struct{ r *rand.Rand }

func (g *joinGen) pick(list ...string) string { return list[g.r.IntN(len(list))] }

func (g *joinGen) rows(n int) string {
	cell := func() string {
		if g.r.IntN(6) == 0 {
			return "CAST(NULL AS BIGINT)"
		}
		return fmt.Sprintf("CAST(%d AS BIGINT)", g.r.IntN(4))
	}
	out := make([]string, n)
	for i := range out {
		out[i] = "(" + cell() + ", " + cell() + ")"
	}
	return strings.Join(out, ", ")
}

// side is a table as columns k<i> and v<i>, sometimes aggregated, so that it updates.
func (g *joinGen) side(i int) string {
	switch g.r.IntN(4) {
	case 0:
		return fmt.Sprintf("(SELECT k%d, COUNT(v%d) AS v%d FROM t%d GROUP BY k%d) AS s%d", i, i, i, i, i, i)
	case 1:
		return fmt.Sprintf("(SELECT k%d, v%d FROM t%d WHERE v%d > 0 OR v%d IS NULL) AS s%d", i, i, i, i, i, i)
	}
	return fmt.Sprintf("t%d AS s%d", i, i)
}

// cond is a condition over the columns of tables up to i, the last joined one included.
func (g *joinGen) cond(i int) string {
	j := g.r.IntN(i)
	var parts []string
	if g.r.IntN(6) > 0 {
		parts = append(parts, fmt.Sprintf("%s%d = %s%d", g.pick("k", "v"), j, g.pick("k", "v"), i))
	}
	for g.r.IntN(3) == 0 {
		parts = append(parts, g.atom(i+1))
	}
	if parts == nil {
		parts = append(parts, g.atom(i+1))
	}
	return strings.Join(parts, " AND ")
}

// atom is a comparison over the columns of the first n tables.
func (g *joinGen) atom(n int) string {
	c := func() string { return fmt.Sprintf("%s%d", g.pick("k", "v"), g.r.IntN(n)) }
	switch g.r.IntN(7) {
	case 0:
		return c() + " IS NOT NULL"
	case 1:
		return c() + " IS NULL"
	case 2:
		return fmt.Sprintf("(%s = %s OR %s > 2)", c(), c(), c())
	case 3:
		return fmt.Sprintf("%s + 1 = %s * 2", c(), c())
	case 4:
		return fmt.Sprintf("%s IS NOT DISTINCT FROM %s", c(), c())
	case 5:
		return fmt.Sprintf("COALESCE(%s, 1) < %s", c(), c())
	}
	return fmt.Sprintf("%s %s %s", c(), g.pick("<", ">", "<=", "<>"), c())
}

func (g *joinGen) query() string {
	if g.r.IntN(6) == 0 {
		return g.setOp()
	}
	n := 2 + g.r.IntN(2)
	from := g.side(0)
	var cols []string
	for i := range n {
		cols = append(cols, fmt.Sprintf("k%d", i), fmt.Sprintf("v%d", i))
	}
	for i := 1; i < n; i++ {
		switch kind := g.pick("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", ","); kind {
		case "CROSS JOIN", ",":
			if n > 2 { // a comma beside joins binds another way in PostgreSQL
				kind = "CROSS JOIN"
			}
			from += " " + kind + " " + g.side(i)
		case "FULL JOIN": // PostgreSQL needs a condition that it can hash or merge
			from += fmt.Sprintf(" FULL JOIN %s ON k%d = %s%d", g.side(i), g.r.IntN(i), g.pick("k", "v"), i)
		default:
			from += " " + kind + " " + g.side(i) + " ON " + g.cond(i)
		}
	}
	q := "SELECT " + strings.Join(cols, ", ") + " FROM " + from
	if g.r.IntN(2) == 0 {
		q += " WHERE " + g.atom(n)
		if g.r.IntN(2) == 0 {
			q += " AND " + g.atom(n)
		}
	}
	if g.r.IntN(4) == 0 {
		q = fmt.Sprintf("SELECT k0, COUNT(*) AS n, SUM(v1) AS s, MAX(k1) AS m FROM (%s) AS j GROUP BY k0", q)
		if strings.Contains(q, "v1") {
			q = strings.Replace(q, "SUM(v1) AS s", "MIN(v1) AS s", 1) // SUM of BIGINT is NUMERIC in PostgreSQL
		}
	}
	return q
}

func (g *joinGen) setOp() string {
	part := func(i int) string {
		return fmt.Sprintf("SELECT %s%d AS a, %s%d AS b FROM %s", g.pick("k", "v"), i, g.pick("k", "v"), i, g.side(i))
	}
	op := func() string {
		return " " + g.pick("INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL", "UNION", "UNION ALL") + " "
	}
	q := part(0) + op() + part(1)
	if g.r.IntN(2) == 0 {
		q += op() + part(2)
	}
	return q
}
