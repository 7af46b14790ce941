package slt

// Goal: SQL in, rows out, the same whatever checkpoints, failures and parallelism do. Method: golden scripts, see doc.go.

import (
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/tests/harness"
)

// points are the places of the protocol at which a script fails. The first group is met once per checkpoint, the second
// when a job restarts.
var (
	checkpointPoints = []string{"source.poll", "barrier.inject", "precommit.before", "precommit.after", "publish.before",
		"publish.after", "commit.before", "commit.during", "commit.after", "confirm.after"}
	restorePoints = []string{"restore.begin", "restore.committed", "restore.aborted"}
)

// pointsPerScript is how many points a script fails at in a default run, other ones for each script and on each day; with
// -short it is one, and a script is either resumed or has barriers that overtake, by turns of days.
const pointsPerScript = 2

var allPoints = flag.Bool("allpoints", false, "fail every script at every point")

// mode is one way to run a script.
type mode struct {
	name     string
	straight bool   // the golden file is compared as it is
	barriers bool   // checkpoint after every feed
	crash    string // fail here at the checkpoint after every feed
	resume   bool   // stop after every feed and go on at the next parallelism
	overtake bool   // barriers overtake rows (unaligned checkpoints), at a parallelism of 2
}

func points() []string { return slices.Concat(checkpointPoints, restorePoints) }

func modes(script string, day int) []mode {
	out := []mode{{name: "barriers", barriers: true}, {name: "resume", resume: true}}
	ps, n := points(), pointsPerScript
	sum := int(crc32.ChecksumIEEE([]byte(script)))
	first := (sum + day*3*n) % len(ps)
	i := first % len(checkpointPoints)
	overtaking := checkpointPoints[i : i+1]
	switch {
	case *allPoints:
		n, overtaking = len(ps), checkpointPoints
	case testing.Short():
		// Barriers alone show nothing that a failure at one does not.
		out, n = out[1:], 1
		if resumed := (sum>>8+day)%2 > 0; resumed {
			overtaking = nil
		} else {
			out = nil
		}
	}
	for i := range n {
		p := ps[(first+i*3)%len(ps)]
		out = append(out, mode{name: "crash/" + p, crash: p})
	}
	for _, p := range overtaking {
		out = append(out, mode{name: "unaligned/" + p, crash: p, overtake: true})
	}
	return out
}

func TestScripts(t *testing.T) {
	t.Cleanup(func() { _ = checkpoint.SetFailpoint("") })
	files, err := filepath.Glob("*/*.slt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	day, hits := harness.Day(t), map[string]int{} // by point
	t.Logf("points of $%s=%d; -allpoints fails every script at every point", harness.DayEnv, day)
	inFlight := 0
	for _, f := range files {
		t.Run(strings.TrimSuffix(f, ".slt"), func(t *testing.T) {
			jobs := false
			t.Run("straight", func(t *testing.T) {
				r := runScript(t, f, mode{name: "straight", straight: true})
				jobs = r.started && !r.straightOnly
			})
			if !jobs || t.Failed() {
				return
			}
			for _, m := range modes(f, day) {
				t.Run(m.name, func(t *testing.T) {
					r := runScript(t, f, m)
					hits[m.crash] += r.hits
					inFlight += r.inFlight
				})
			}
		})
	}
	t.Logf("%d checkpoints held rows in flight", inFlight)
	if flag.Lookup("test.run").Value.String() != "" {
		return // not all scripts ran
	}
	if inFlight == 0 && !t.Failed() {
		t.Error("no barrier overtook a row")
	}
	for _, p := range points() {
		if hits[p] == 0 && !t.Failed() {
			t.Errorf("no script failed at %s", p)
		}
	}
}

// runScript runs a script in a mode.
func runScript(t *testing.T, path string, m mode) *runner {
	r := newRunner(t, m)
	defer r.close()
	datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
		r.t, r.at = t, fmt.Sprintf("%s: %s", d.Pos, d.Cmd)
		got := r.run(d)
		if m.straight {
			return got
		}
		if !r.same(d, got) {
			t.Errorf("%s: in mode %s\n got:\n%s\nwant:\n%s", d.Pos, m.name, got, d.Expected)
		}
		return d.Expected
	})
	return r
}

// TestPointsExist: the names of the points are those of the engine; a misspelt one would never fail anything.
func TestPointsExist(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "checkpoint", "failpoint.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range points() {
		if !strings.Contains(string(text), p) {
			t.Errorf("checkpoint/failpoint.go does not name %s", p)
		}
	}
}
