package crash

import (
	"slices"
	"testing"
)

// points are the arrows of the protocol, the executor's and the connectors' own.
var points = []string{
	"source.poll", "barrier.inject",
	"precommit.before", "precommit.after", "kafka.precommit.before", "kafka.precommit.after", "postgres.precommit.before",
	"postgres.precommit.after", "file.precommit.synced", "file.precommit.renamed",
	"publish.before", "publish.after",
	"commit.before", "commit.during", "commit.after", "kafka.commit.before", "kafka.commit.during", "kafka.commit.after",
	"postgres.commit.before", "postgres.commit.during", "postgres.commit.after", "file.commit.linked",
	"confirm.after",
}

// chainOf is a job that lives through many kills. Its input is paced so that it lasts for all of them, on a machine that needs
// seconds for a checkpoint too, and the life that has to come to the end gets the rest at once.
func chainOf(s setup) setup {
	s.rows, s.rate = 2*rows, 200
	return s
}

// killedAt lets the job be killed at the points in turn, then run to its end, and looks at what it leaves.
func (f *fixture) killedAt(points ...string) {
	f.t.Helper()
	for _, p := range points {
		f.crashAt(p)
	}
	f.finish()
	f.check(f.rows)
}

// visits are the points in turn, each once for every suffix: its first visit, its second one, and so on.
func visits(points []string, suffixes ...string) (out []string) {
	for _, p := range points {
		for _, s := range suffixes {
			out = append(out, p+s)
		}
	}
	return out
}

// A crash at every arrow, at its first and its second visit. One job lives through six of them.
func TestCrashAtEveryPoint(t *testing.T) {
	t.Parallel()
	for chain := range slices.Chunk(points, 6) {
		t.Run("from "+chain[0], func(t *testing.T) {
			t.Parallel()
			newFixtureWith(t, chainOf(setup{})).killedAt(visits(chain, "", ":2")...)
		})
	}
}

// A crash during restore, twice at each point, from a checkpoint whose output is prepared but not committed.
func TestCrashDuringRestore(t *testing.T) {
	t.Parallel()
	inRestore := []string{"restore.begin", "commit.before", "commit.during", "kafka.commit.during", "postgres.commit.during", "file.commit.linked",
		"commit.after", "restore.committed", "restore.aborted"}
	for chain := range slices.Chunk(inRestore, 3) {
		t.Run("from "+chain[0], func(t *testing.T) {
			t.Parallel()
			newFixtureWith(t, chainOf(setup{})).killedAt(twiceInRestore(chain)...)
		})
	}
}

// twiceInRestore is a crash that leaves output to commit before two in the restore, for each point.
func twiceInRestore(points []string) (out []string) {
	for _, p := range points {
		out = append(out, "publish.after", p, p)
	}
	return out
}

// A crash in the last checkpoint of a bounded job, the only one here, up to the moment when all is done and nobody knows
// yet: the next start must not read the input again.
func TestCrashInTheFinalCheckpoint(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"precommit.after", "publish.before", "publish.after", "commit.during", "commit.after", "confirm.after"} {
		t.Run(p, func(t *testing.T) {
			t.Parallel()
			newFixtureWith(t, setup{rate: 1_000_000, settings: "SET 'execution.checkpointing.interval' = '5 min';\nSET 'execution.checkpointing.timeout' = '1 min';"}).killedAt(p)
		})
	}
}
