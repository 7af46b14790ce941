package exec

import (
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/diag"
)

// fit holds the checkpoint to be restored against the graph and settles which operator goes on with which state. It
// refuses what would lose state, unless the user allowed that.
func (at *attempt) fit(cp *checkpoint.Checkpoint) error {
	if cp == nil {
		return nil
	}
	j := at.job
	r := checkpoint.Compare(cp, j.g.IdentitiesFor(cp), j.g.Operators)
	if r.Exact() {
		return at.fitFlights(cp)
	}
	if err := r.Check(j.o.Restore.AllowDropped); err != nil {
		return err
	}
	at.was = r.Restored()
	if err := at.fitFlights(cp); err != nil {
		return err
	}
	for _, m := range r.Matches {
		switch {
		case m.Fit.Lossy():
			j.o.Log.Warn("state is dropped, as allowed", "job", j.o.Name, "checkpoint", cp.ID, "operator", m.String())
		case m.Fit != checkpoint.FitSame:
			j.o.Log.Info("the statement differs from the checkpoint's", "job", j.o.Name, "checkpoint", cp.ID, "operator", m.String())
		}
	}
	return nil
}

// fitFlights refuses a checkpoint with rows in flight to an operator that the graph does not have. Nothing may drop them: they
// have no other place, and an operator without state has them too.
func (at *attempt) fitFlights(cp *checkpoint.Checkpoint) error {
	taken := map[checkpoint.OperatorID]bool{}
	for _, n := range at.job.g.Nodes {
		id := n.ID
		if was, other := at.was[id]; other {
			id = was
		}
		taken[id] = true
	}
	for _, s := range cp.Subtasks {
		if !taken[s.Subtask.Operator] && hasFlight(s) {
			return diag.New(diag.Config, diag.Pos{}, "checkpoint %d holds rows in flight to %s, which this plan does not have", cp.ID, s.Subtask.Operator).
				WithHint("start with the statement and the settings of the checkpoint, stop with a savepoint, which holds no rows in flight, and change them then")
		}
	}
	return nil
}
