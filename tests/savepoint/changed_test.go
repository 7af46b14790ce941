package savepoint

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/sql/diag"
)

// Goal: a changed statement goes on with every state whose content is the same, wherever it stands in the new plan; what it
// would lose is refused by operator and field, and dropped only when that is allowed, without touching the rest.

const counts = "SELECT k, COUNT(*), MAX(id) FROM ev GROUP BY k"

var (
	grouped = sink{"grouped", "k BIGINT, n BIGINT, hi BIGINT", counts}
	// The aggregation is the same, but stands below a union now: another place, another id.
	below = sink{"grouped", grouped.columns, counts + " UNION ALL SELECT k, id, id FROM ev WHERE id < 0"}
	lasts = sink{"last_rows", "v BIGINT, id BIGINT", "SELECT v, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY v ORDER BY ts DESC) AS rn FROM ev) WHERE rn = 1"}
)

func TestMovedState(t *testing.T) {
	want := undisturbed(t, []sink{grouped, lasts})
	for _, memory := range []int64{0, tiny} {
		w := newWorld(t, []sink{grouped, lasts})
		var from streamsql.Restore
		for i, sinks := range [][]sink{{grouped, lasts}, {below, lasts}, {lasts, grouped}, {below, lasts}} {
			from.Path = w.stopped(life{parallelism: 1 + i/2, memory: memory, restore: from, sinks: sinks}, 100)
		}
		w.finish(life{parallelism: 2, memory: memory, restore: from})
		w.compare(want)
	}
}

func TestChangedState(t *testing.T) {
	want := undisturbed(t, []sink{grouped, lasts})
	w := newWorld(t, []sink{grouped, lasts})
	save := w.stopped(life{parallelism: 2}, 100)
	for name, c := range map[string]struct {
		query string
		says  []string
	}{
		"type of a field":   {"SELECT k, COUNT(*), MAX(CAST(id AS INT)) FROM ev GROUP BY k", []string{"sink[grouped]/aggregate", "BIGINT", "is INT"}},
		"type of the key":   {"SELECT k, n, hi FROM (SELECT CAST(k AS BIGINT) AS k, COUNT(*) AS n, MAX(id) AS hi FROM ev GROUP BY CAST(k AS BIGINT))", []string{"sink[grouped]/aggregate", "key was k INT", "BIGINT"}},
		"another key":       {"SELECT v, COUNT(*), MAX(id) FROM ev GROUP BY v", []string{"sink[grouped]/aggregate", "key was k INT, is v INT"}},
		"another condition": {"SELECT k, COUNT(*), MAX(id) FROM ev WHERE v > 5 GROUP BY k", []string{"sink[grouped]/aggregate", "input was", "v > 5"}},
		"state dropped":     {"SELECT k, id, id FROM ev", []string{"sink[grouped]/aggregate", "gone, its state would be dropped"}},
		"state started":     {"SELECT k, COUNT(*), MAX(n) FROM (SELECT k, COUNT(*) AS n FROM ev GROUP BY k) GROUP BY k", []string{"would start empty"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, job := w.start(life{parallelism: 2, rate: slowly, restore: streamsql.Restore{Path: save},
				sinks: []sink{{grouped.name, grouped.columns, c.query}, lasts}})
			err := job.Wait(patient(t))
			text := diag.Render(err, "", "")
			if diag.CodeOf(err) != diag.Config {
				t.Fatal(text)
			}
			for _, s := range append(c.says, "--allow-dropped-state") {
				if !strings.Contains(text, s) {
					t.Errorf("it does not say %q: %s", s, text)
				}
			}
		})
	}

	// Allowed: the changed operator starts empty at the positions of the savepoint, the other one keeps what it has.
	from := streamsql.Restore{Path: save, AllowDropped: true}
	w.sinks = []sink{{"above", "k BIGINT, n BIGINT", "SELECT k, COUNT(*) FROM ev WHERE v >= 0 GROUP BY k"}, lasts}
	w.finish(life{parallelism: 1, restore: from})
	counted := 0
	for row := range w.contents()["above"] {
		var r struct{ N int }
		if err := json.Unmarshal([]byte(row), &r); err != nil {
			t.Fatal(err)
		}
		counted += r.N
	}
	if counted == 0 || counted >= pastRows+genRows {
		t.Errorf("an operator that started empty has counted %d rows of %d", counted, pastRows+genRows)
	}
	delete(want, "grouped")
	w.compare(want)
}

// STOP JOB … WITH SAVEPOINT as Flink has it: a savepoint below the directory that the setting names, or the state directory.
func TestStopJobStatement(t *testing.T) {
	w := newWorld(t, []sink{grouped})
	into := filepath.Join(w.dir, "backup")
	for _, set := range []string{"", "file://" + into} {
		eng, job := w.start(life{parallelism: 1, rate: slowly})
		if set != "" {
			job.Cancel()
			_ = job.Wait(patient(t))
			if _, err := eng.Exec(context.Background(), "SET 'execution.checkpointing.savepoint-dir' = '"+set+"'"); err != nil {
				t.Fatal(err)
			}
			res, err := eng.Exec(context.Background(), "INSERT INTO grouped "+grouped.query)
			if err != nil {
				t.Fatal(err)
			}
			job = res.Job
		}
		read(t, job, 10)
		res, err := eng.Exec(context.Background(), "STOP JOB '"+job.ID()+"' WITH SAVEPOINT")
		if err != nil {
			t.Fatal(err)
		}
		path := ""
		for row, err := range res.Rows() {
			if err != nil {
				t.Fatal(err)
			}
			path, _ = row.Row.Text(0)
		}
		if set != "" && filepath.Dir(path) != into || set == "" && filepath.Base(filepath.Dir(path)) != streamsql.SavepointsDir {
			t.Errorf("setting %q: savepoint %s", set, path)
		}
		all, err := eng.CompareState("INSERT INTO grouped "+grouped.query, path)
		if err != nil || len(all) != 1 || !all[0].Comparison.Exact() {
			t.Errorf("%+v %v", all, err)
		}
	}
}
