package planner

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql"
)

// planOf plans one statement over the goldens' kind of tables.
func planOf(t *testing.T, text string, settings ...string) *Plan {
	t.Helper()
	h := newHarness(t)
	h.standIns()
	if _, err := h.run("ddl", fuzzTables); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(settings); i += 2 {
		if _, err := h.conf.Set(settings[i], settings[i+1], posNone); err != nil {
			t.Fatal(err)
		}
	}
	st, err := sql.ParseScript(text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := h.p.Plan(st[0].Stmt, h.conf, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// stateIDs are the ids of what a checkpoint holds something of.
func stateIDs(p *Plan) []string {
	var out []string
	for _, n := range p.Graph.Nodes {
		out = append(out, string(n.ID))
	}
	slices.Sort(out)
	return out
}

// A checkpoint must fit the same statement planned again, at another parallelism, and with another filter or projection
// where no state depends on it; it must not fit when what is in the state changes.
func TestIdentities(t *testing.T) {
	base := "INSERT INTO pk_k SELECT k, COUNT(*) FROM src WHERE v > 1 GROUP BY k"
	stateless := "INSERT INTO app SELECT k, v FROM src WHERE v > 1"
	for _, c := range []struct {
		name, a, b string
		settings   []string
		same       bool
	}{
		{"again", base, base, nil, true},
		{"spelling", base, "insert  into pk_k\nselect k, count(*) from src where v > 1 group by k", nil, true},
		{"names of columns", base, "INSERT INTO pk_k SELECT a, COUNT(*) AS b FROM (SELECT k AS a, v AS c FROM src) AS t WHERE c > 1 GROUP BY a", nil, true},
		{"time zone", base, base, []string{"table.local-time-zone", "Asia/Tokyo"}, true},
		{"parallelism", base, base, []string{keyParallelism, "7"}, true},
		{"another key", base, "INSERT INTO pk_k SELECT v, COUNT(*) FROM src WHERE v > 1 GROUP BY v", nil, false},
		{"another aggregate", base, "INSERT INTO pk_k SELECT k, SUM(v) FROM src WHERE v > 1 GROUP BY k", nil, false},
		{"another filter below state", base, "INSERT INTO pk_k SELECT k, COUNT(*) FROM src WHERE v > 2 GROUP BY k", nil, false},
		{"a filter above state", base, "INSERT INTO pk_k SELECT k, COUNT(*) FROM src WHERE v > 1 GROUP BY k HAVING COUNT(*) > 3", nil, true},
		{"another sink", base, "INSERT INTO pr SELECT k, COUNT(*) FROM src WHERE v > 1 GROUP BY k", nil, false},
		{"no state, another filter", stateless, "INSERT INTO app SELECT k + 1, v FROM src WHERE v > 2 AND k < 1", nil, true},
		{"no state, another source", stateless, "INSERT INTO app SELECT id, v FROM done", nil, false},
	} {
		if c.name == "no state, another source" {
			c.b = "INSERT INTO app SELECT v, v FROM done"
		}
		a, b := planOf(t, c.a), planOf(t, c.b, c.settings...)
		if got := maps.Equal(a.Graph.Identities, b.Graph.Identities); got != c.same {
			t.Errorf("%s: same identities is %v, want %v\n%v\n%v", c.name, got, c.same, stateIDs(a), stateIDs(b))
		}
	}
}

// The ids of stateful operators do not change when a stateless one appears above or below them.
func TestOperatorIDs(t *testing.T) {
	a := stateIDs(planOf(t, "INSERT INTO pr SELECT k, COUNT(*) FROM src GROUP BY k"))
	b := stateIDs(planOf(t, "INSERT INTO pr SELECT k + 1, COUNT(*) FROM src WHERE v > 1 GROUP BY k HAVING COUNT(*) > 1", keyParallelism, "1"))
	for _, id := range []string{"sink[pr]", "sink[pr]/aggregate", "source[src]"} {
		if !slices.Contains(a, id) || !slices.Contains(b, id) {
			t.Errorf("%s is missing in %v or %v", id, a, b)
		}
	}
}

// One plan does not change with another statement of the session: what SET does later is not seen by it.
func TestPlanKeepsSettings(t *testing.T) {
	h := newHarness(t)
	st, err := sql.ParseScript("SELECT 1")
	if err != nil {
		t.Fatal(err)
	}
	p, err := h.p.Plan(st[0].Stmt, h.conf, Options{})
	if err != nil {
		t.Fatal(err)
	}
	before := p.Explain()
	if _, err := h.conf.Set(keyInterval, "0", posNone); err != nil {
		t.Fatal(err)
	}
	if p.Explain() != before {
		t.Error("the plan changed")
	}
}

// identityText is what the identities of a plan are made of.
func identityText(p *Plan) string {
	texts := identityTexts(p, p.Graph.Session.Zone, false)
	var sb strings.Builder
	for _, id := range slices.Sorted(maps.Keys(texts)) {
		fmt.Fprintf(&sb, "%s: %s\n", id, texts[id])
	}
	return sb.String()
}

// Windows over TIMESTAMP_LTZ are cut on the wall clock and their state is named by it: another zone is another plan, another name of
// the zone is not.
func TestIdentitiesOfZones(t *testing.T) {
	query := "SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ptime), INTERVAL '1' DAY)) GROUP BY window_start, window_end"
	in := func(zone string) map[checkpoint.OperatorID]string {
		return planOf(t, query, "table.local-time-zone", zone).Graph.Identities
	}
	if maps.Equal(in("UTC"), in("Europe/Berlin")) {
		t.Error("UTC and Berlin are alike")
	}
	if !maps.Equal(in("Europe/Paris"), in("Europe/Berlin")) {
		t.Error("Paris and Berlin differ")
	}
}

// What another INSERT reads of the same table says nothing about the state of its neighbours: every operator of one that stands
// alone keeps its identity beside readers of other columns, more fields and other filters.
func TestIdentitiesBesideOthers(t *testing.T) {
	alone := []string{
		"INSERT INTO pk_k SELECT k, COUNT(*) FROM src GROUP BY k",
		"INSERT INTO pk_k SELECT k, COUNT(*) FROM src WHERE v > 3 GROUP BY k",
		"INSERT INTO pk_k SELECT k, SUM(v + 1) FROM src GROUP BY k",
		"INSERT INTO pk_k SELECT k, COUNT(DISTINCT r.x) FROM src GROUP BY k",
		"INSERT INTO pr SELECT v, SUM(k) FROM TABLE(TUMBLE(TABLE src, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY v, window_start, window_end",
		"INSERT INTO app SELECT a.k, b.v FROM src a JOIN src b ON a.k = b.v AND a.ts BETWEEN b.ts AND b.ts + INTERVAL '1' MINUTE",
		"INSERT INTO app SELECT a.k, o.id FROM src a JOIN orders o ON a.s = o.user_id",
	}
	beside := []string{
		"INSERT INTO up_out SELECT v, MAX(k), u FROM src GROUP BY v, u",
		"INSERT INTO up_out SELECT v, k, r.y FROM src WHERE k < 5",
		"INSERT INTO up_out SELECT 1, CAST(COUNT(*) AS INT), 'all' FROM src",
		"INSERT INTO up_out SELECT qty, CAST(COUNT(id) AS INT), MAX(user_id) FROM orders GROUP BY qty",
	}
	for _, a := range alone {
		want := planOf(t, a).Graph.Identities
		for _, b := range beside {
			got := planOf(t, "EXECUTE STATEMENT SET BEGIN "+a+"; "+b+"; END").Graph.Identities
			for id, x := range want {
				if got[id] != x {
					t.Errorf("%s beside %s: %s has another identity", a, b, id)
				}
			}
		}
	}
}
