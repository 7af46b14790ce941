package exec

import (
	"github.com/streamsql/streamsql/checkpoint"
)

// fit holds the checkpoint to be restored against the graph and settles which operator goes on with which state. It
// refuses what would lose state, unless the user allowed that.
func (at *attempt) fit(cp *checkpoint.Checkpoint) error {
	if cp == nil {
		return nil
	}
	j := at.job
	r := checkpoint.Compare(cp, j.g.Identities, j.g.Operators)
	if r.Exact() {
		return nil
	}
	if err := r.Check(j.o.Restore.AllowDropped); err != nil {
		return err
	}
	at.was = r.Restored()
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
