package streamsql

import (
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/planner"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
)

// JobComparison is a checkpoint held against the job of an INSERT or statement set.
type JobComparison struct {
	Name       string // of the job
	Comparison *checkpoint.Comparison
}

// CompareState plans the INSERTs and statement sets of a script, as Check does, and says for each what a restore from the
// savepoint or checkpoint at path, as Restore.Path names it, would go on with, start anew and drop. It runs nothing.
func (e *Engine) CompareState(text, path string) ([]JobComparison, error) {
	c, err := checkpoint.Locate(vfs.Default, path)
	if err != nil {
		return nil, err
	}
	var out []JobComparison
	s := sql.NewScript(text)
	for {
		st, err := s.Next()
		if st == nil || err != nil {
			return out, suggestTable(err)
		}
		switch st.Stmt.(type) {
		case *sql.Insert, *sql.StatementSet:
			if set, ok := st.Stmt.(*sql.StatementSet); ok && len(set.Inserts) == 0 {
				continue
			}
			plan, err := e.planner.Plan(st.Stmt, e.conf, planner.Options{Embedded: e.embedded})
			if err != nil {
				return out, suggestTable(diag.At(err, st.Pos))
			}
			out = append(out, JobComparison{plan.Name, checkpoint.Compare(c, plan.Graph.IdentitiesFor(c), plan.Graph.Operators)})
		default:
			if _, err := e.check(st); err != nil {
				return out, suggestTable(diag.At(err, st.Pos))
			}
		}
	}
}
