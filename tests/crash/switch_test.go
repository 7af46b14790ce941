package crash

import (
	"strings"
	"testing"
)

// Goal: a table that is written at least once from some start on does not lose what was pre-committed before, nor does it leave
// transactions behind. Method: a job with a table of Kafka and two of PostgreSQL, by both protocols, is killed when its third checkpoint lists
// their output; then all three ask for 'at-least-once', and the job goes on to its end without another kill: every row is there once.
func TestSwitchToAtLeastOnce(t *testing.T) {
	t.Parallel()
	f := newFixtureWith(t, setup{sinks: "kpw"})
	f.crashAt("publish.after:3")
	if w := f.world(); w.open == 0 {
		t.Fatalf("nothing is open at the kill: %+v", w)
	}
	const asked = "'sink.delivery-guarantee' = 'at-least-once')"
	lines := strings.Split(f.fileText, "\n")
	changed := 0
	for i, l := range lines {
		for table, was := range map[string]string{"k": "'format' = 'json')", "p": "'sink.commit-protocol' = 'prepared')", "w": "'sink.commit-protocol' = 'write-ahead')"} {
			if !strings.HasPrefix(l, "CREATE TABLE "+table+" (") {
				continue
			}
			is := asked
			if table == "k" {
				is = "'format' = 'json', " + asked
			}
			lines[i] = strings.Replace(l, was, is, 1)
			if lines[i] != l {
				changed++
			}
		}
	}
	if changed != 3 {
		t.Fatalf("%d of 3 tables changed:\n%s", changed, f.fileText)
	}
	f.write(strings.Join(lines, "\n"))
	if p := f.finish(); !strings.Contains(p.Output(), "it is settled first") {
		t.Errorf("the log does not tell of it:\n%s", p.Output())
	}
	f.check(f.rows)
}
