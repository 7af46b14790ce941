package streamsql

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
)

// showCheckpoints answers SHOW CHECKPOINTS: the last checkpoints of the jobs, newest first, and a notice per job that adds
// them up. Job ids may be shortened; a job's name will do as well.
func (e *Engine) showCheckpoints(x *sql.Show) (*Result, error) {
	res := table("job name", "id", "kind", "state", "trigger time", "duration", "bytes", "new bytes", "in-flight bytes", "commit time", "slowest subtask", "cause")
	found := x.Job == ""
	for _, j := range e.Jobs() {
		if x.Job != "" && j.Name() != x.Job && !strings.HasPrefix(j.ID(), x.Job) {
			continue
		}
		found = true
		st := j.Status()
		now := j.now()
		for _, t := range j.Checkpoints() {
			res.add(j.Name(), fmt.Sprint(t.ID), t.Kind, string(t.State), clockText(t.Triggered), checkpoint.Short(t.Duration(now)),
				sizeText(t.Completed, t.Bytes), sizeText(t.Completed, t.NewBytes), inFlightText(&t), clockText(t.Committed), slowestText(&t), t.Why(now))
		}
		res.Notices = append(res.Notices, checkpointSummary(j.Name(), st))
		if r := st.Checkpoint.Restore; r != nil {
			res.Notices = append(res.Notices, j.Name()+": "+r.String())
		}
		for _, text := range []string{storeSummary(&st.Store), syncSummary(&st.Syncs)} {
			if text != "" {
				res.Notices = append(res.Notices, j.Name()+": "+text)
			}
		}
		for _, d := range st.Degraded {
			res.Notices = append(res.Notices, j.Name()+": "+d.String())
		}
		for _, a := range st.Alarms() {
			res.Notices = append(res.Notices, fmt.Sprintf("%s: alarm %s: %s", j.Name(), a.Name, a.Text))
		}
		for i := range st.Sinks {
			if text := sinkSummary(&st.Sinks[i]); text != "" {
				res.Notices = append(res.Notices, j.Name()+": "+text)
			}
		}
	}
	if !found {
		return nil, diag.New(diag.Semantic, x.Position(), "there is no job %q", x.Job).WithHint("SHOW JOBS lists them")
	}
	return res, nil
}

// checkpointSummary adds up the checkpoints of a job since this process runs it.
func checkpointSummary(name string, s Status) string {
	c := s.Checkpoint
	parts := []string{fmt.Sprintf("%d completed", c.Counts.Completed)}
	if c.Overtaken > 0 {
		parts[0] += fmt.Sprintf(" of which %d unaligned", c.Overtaken)
	}
	for _, p := range []struct {
		n    int
		what string
	}{{c.Counts.Expired, "expired"}, {c.Counts.Failed, "failed"}, {c.Counts.Declined, "declined"}, {c.Counts.Subsumed, "subsumed"}, {c.Counts.Aborted, "aborted"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	text := fmt.Sprintf("%s: %s (success rate %s %%)", name, strings.Join(parts, ", "), strconv.FormatFloat(100*c.Counts.Rate(), 'f', 1, 64))
	if c.P99 > 0 {
		text += fmt.Sprintf(", duration p50 %s, p99 %s", checkpoint.Short(c.P50), checkpoint.Short(c.P99))
	}
	switch {
	case c.TolerableLeft < 0:
		text += fmt.Sprintf("; %d failed in a row, any number is tolerated", c.FailedInARow)
	default:
		text += fmt.Sprintf("; %d failed in a row, %d more are tolerated", c.FailedInARow, c.TolerableLeft)
	}
	if c.Warning != "" {
		text += "; " + c.Warning
	}
	return text
}

// storeSummary is how keyed state is held once rows are on disk, "" before.
func storeSummary(f *checkpoint.StoreFigures) string {
	if f.Databases == 0 {
		return ""
	}
	text := fmt.Sprintf("state on disk: %d task(s), %d file(s) of %d bytes, %d not merged yet; %d compaction(s), %d bytes due; block cache hits %s %%",
		f.Databases, f.Files, f.Bytes, f.NewFiles, f.Compactions, f.CompactionDebt, strconv.FormatFloat(100*f.CacheHitRatio(), 'f', 1, 64))
	if f.Stalls > 0 {
		text += fmt.Sprintf("; writes were held back %d time(s), %s in all", f.Stalls, checkpoint.Short(f.StallTime))
	}
	return text
}

// syncSummary is how fast the state directory's disk is, "" where there is none.
func syncSummary(f *checkpoint.SyncFigures) string {
	if f.Count == 0 {
		return ""
	}
	return fmt.Sprintf("fsync: p50 %s, p99 %s over the last %d; %d in all, %s",
		checkpoint.Short(f.P50), checkpoint.Short(f.P99), f.Samples, f.Count, checkpoint.Short(f.Total))
}

// sinkSummary is what a sink has not committed and how long its part takes, "" before its first checkpoint.
func sinkSummary(s *exec.SinkStatus) string {
	if s.PreCommit.Samples == 0 {
		return ""
	}
	text := fmt.Sprintf("sink %s: pre-commit p50 %s, p99 %s", s.Node, checkpoint.Short(s.PreCommit.P50), checkpoint.Short(s.PreCommit.P99))
	if s.Commit.Samples > 0 {
		text += fmt.Sprintf(", commit p50 %s, p99 %s", checkpoint.Short(s.Commit.P50), checkpoint.Short(s.Commit.P99))
	}
	if n := len(s.Open); n > 0 {
		text += fmt.Sprintf("; %d open transaction(s), the oldest %s", n, checkpoint.Short(s.Open[0].Age))
		if s.Timeout > 0 {
			text += " of " + checkpoint.Short(s.Timeout)
		}
	}
	if s.Pending > 0 {
		text += fmt.Sprintf("; %d output(s) to commit, the oldest pre-committed %s ago", s.Pending, checkpoint.Short(s.OldestPending))
	}
	return text
}

func clockText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// sizeText is a size once it is known.
func sizeText(completed time.Time, n int64) string {
	if completed.IsZero() {
		return ""
	}
	return fmt.Sprint(n)
}

// inFlightText is how much the barriers of a checkpoint overtook, "" when they were aligned.
func inFlightText(t *CheckpointTrace) string {
	if !t.Unaligned {
		return ""
	}
	return sizeText(t.Completed, t.InFlight)
}

func slowestText(t *CheckpointTrace) string {
	if s := t.Slowest(); s != nil && t.State != checkpoint.TraceInProgress {
		return s.String()
	}
	return ""
}
