package crash

import (
	"testing"

	"github.com/streamsql/streamsql/tests/harness"
)

// aheadSetup is the job of the crash points with the records of Kafka kept in the checkpoint.
func aheadSetup(t *testing.T) setup {
	name := harness.UniqueName(t)
	return setup{name: name, kafka: `, 'sink.commit-protocol' = 'write-ahead', 'sink.write-ahead.marker-topic' = '` + name + `_markers'`}
}

// A crash around every step that the write-ahead protocol of Kafka has of its own, at its first and its second visit: rows taken into the
// checkpoint, written with their marker and not committed, committed by one subtask and not by the other.
func TestCrashWithWriteAhead(t *testing.T) {
	t.Parallel()
	newFixtureWith(t, chainOf(aheadSetup(t))).killedAt(visits([]string{"kafka.precommit.after", "publish.after", "kafka.commit.before",
		"kafka.ahead.flushed", "kafka.commit.during", "kafka.commit.after", "confirm.after"}, "", ":2")...)
}

// A crash in the restore that commits what the checkpoint keeps.
func TestCrashDuringRestoreWithWriteAhead(t *testing.T) {
	t.Parallel()
	newFixtureWith(t, chainOf(aheadSetup(t))).killedAt(twiceInRestore([]string{"kafka.ahead.flushed", "kafka.commit.during", "restore.committed"})...)
}
