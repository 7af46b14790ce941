package savepoint

import (
	"path/filepath"
	"testing"

	"github.com/streamsql/streamsql"
)

// Goal: a savepoint can be moved and started from at another parallelism, as often as one likes, with exact results, and
// it moves between state in memory and state in Pebble. Method: every operator with state, stopped with a savepoint in
// the middle of its input, against an undisturbed run.

// tiny is less memory than any of the jobs' state takes: all of it goes to Pebble.
const tiny = 16 << 10

// some are all jobs, with -short the named one.
func some(jobs map[string][]sink, name string) map[string][]sink {
	if testing.Short() {
		return map[string][]sink{name: jobs[name]}
	}
	return jobs
}

// files counts the state files of a savepoint.
func files(t *testing.T, savepoint, pattern string) int {
	t.Helper()
	m, err := filepath.Glob(filepath.Join(savepoint, "chk-*", "*", pattern))
	if err != nil {
		t.Fatal(err)
	}
	return len(m)
}

func TestRescale(t *testing.T) {
	for name, sinks := range some(jobs, "changes") {
		t.Run(name, func(t *testing.T) {
			want := undisturbed(t, sinks)
			w := newWorld(t, sinks)
			var from streamsql.Restore
			for _, parallelism := range []int{1, 4, 2} {
				from.Path = w.stopped(life{parallelism: parallelism, restore: from}, 150)
			}
			w.finish(life{parallelism: 3, restore: from})
			w.compare(want)
		})
	}
}

func TestBackends(t *testing.T) {
	for name, sinks := range some(jobs, "windows") {
		t.Run(name, func(t *testing.T) {
			want := undisturbed(t, sinks)
			w := newWorld(t, sinks)
			var from streamsql.Restore
			for i, l := range []life{{parallelism: 2}, {parallelism: 2, memory: tiny}, {parallelism: 1}} {
				l.restore = from
				from.Path = w.stopped(l, 150)
				segments, tables := files(t, from.Path, "*.seg"), files(t, from.Path, "*.sst")
				if i == 0 && (segments == 0 || tables > 0) || i == 1 && tables == 0 {
					t.Fatalf("savepoint %d has %d segments and %d tables of Pebble: the test shows nothing", i, segments, tables)
				}
			}
			w.finish(life{parallelism: 2, restore: from})
			w.compare(want)
		})
	}
}
