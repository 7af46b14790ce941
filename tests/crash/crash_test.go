package crash

import "testing"

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

// A crash at every arrow, at its first and its second visit.
func TestCrashAtEveryPoint(t *testing.T) {
	for _, p := range points {
		t.Run(p, func(t *testing.T) {
			f := newFixture(t)
			f.crashAt(p)
			f.crashAt(p + ":2")
			f.finish()
			f.check(rows)
		})
	}
}

// A crash during restore, from a checkpoint whose output is prepared but not committed.
func TestCrashDuringRestore(t *testing.T) {
	for _, p := range []string{"restore.begin", "commit.before", "commit.during", "kafka.commit.during", "postgres.commit.during", "file.commit.linked", "commit.after", "restore.committed", "restore.aborted"} {
		t.Run(p, func(t *testing.T) {
			f := newFixture(t)
			f.crashAt("publish.after")
			f.crashAt(p)
			f.crashAt(p)
			f.finish()
			f.check(rows)
		})
	}
}

// A crash in the last checkpoint of a bounded job, the only one here, up to the moment when all is done and nobody knows
// yet: the next start must not read the input again.
func TestCrashInTheFinalCheckpoint(t *testing.T) {
	for _, p := range []string{"precommit.after", "publish.before", "publish.after", "commit.during", "commit.after", "confirm.after"} {
		t.Run(p, func(t *testing.T) {
			f := newFixtureWith(t, setup{settings: "SET 'execution.checkpointing.interval' = '5 min';\nSET 'execution.checkpointing.timeout' = '1 min';"})
			f.crashAt(p)
			f.finish()
			f.check(rows)
		})
	}
}
