package chaos

import (
	"slices"
	"strings"

	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
)

// step is a part of the rewritten script: definitions, or with job the statement of that job.
type step struct {
	Job  string `json:"job,omitempty"`
	Text string `json:"text"`
}

// edit is a change of a table's options: "" removes one.
type edit struct{ key, value string }

// ours are settings that a run sets itself; what the script sets is left out.
var ours = []string{
	"pipeline.name", "parallelism.default", "table.exec.resource.default-parallelism", "execution.checkpointing.interval", "execution.checkpointing.min-pause",
	"execution.checkpointing.dir", "execution.checkpointing.savepoint-dir", "execution.checkpointing.tolerable-failed-checkpoints", "streamsql.preset",
}

// isOurs reports settings that a run sets itself, under any of their names.
func isOurs(key string) bool {
	return slices.Contains(ours, key) || strings.HasPrefix(key, "restart-strategy") || strings.HasPrefix(key, "execution.state-recovery.") ||
		strings.HasPrefix(key, "state.checkpoints.") || strings.HasPrefix(key, "state.savepoints.") || key == "execution.savepoint.path"
}

// rewrite is the script with other options of tables and other names of jobs. Statements that only show something are left
// out. names are those of the jobs, in the order of their statements.
func rewrite(script string, edits map[string][]edit, names []string) ([]step, error) {
	var out []step
	defs := ""
	for s := sql.NewScript(script); ; {
		st, err := s.Next()
		if err != nil {
			return nil, err
		}
		if st == nil {
			if defs != "" {
				out = append(out, step{Text: defs})
			}
			return out, nil
		}
		switch x := st.Stmt.(type) {
		case *sql.CreateTable:
			if e, ok := edits[x.Path.Last()]; ok {
				if x.Like != nil {
					return nil, diag.New(diag.Unsupported, x.Position(), "table %s is defined by LIKE, and its options cannot be changed one by one", x.Path.Last()).
						WithHint("write its columns and options out for the check")
				}
				t := *x
				t.Options = apply(x.Options, e)
				defs += sql.Format(&t) + ";\n"
				continue
			}
			defs += st.Text + "\n;\n"
		case *sql.Set:
			if x.Option != nil && !isOurs(x.Option.Key) {
				defs += st.Text + "\n;\n"
			}
		case *sql.Reset:
			if x.Key != "" && !isOurs(x.Key) {
				defs += st.Text + "\n;\n"
			}
			if x.Key == "" {
				return nil, diag.New(diag.Unsupported, x.Position(), "RESET of all settings would undo those of the check").WithHint("name the settings to reset")
			}
		case *sql.Insert, *sql.StatementSet:
			if set, ok := x.(*sql.StatementSet); ok && len(set.Inserts) == 0 {
				continue
			}
			if defs != "" {
				out = append(out, step{Text: defs})
				defs = ""
			}
			name := names[0]
			names = names[1:]
			out = append(out, step{Job: name, Text: "SET 'pipeline.name' = " + sql.QuoteString(name) + ";\n" + st.Text + "\n;\n"})
		case *sql.QueryStmt, *sql.StopJob, *sql.Explain, *sql.Show, *sql.Describe:
		default:
			defs += st.Text + "\n;\n"
		}
	}
}

// apply changes options: those that are there stay where they are.
func apply(options []sql.Option, edits []edit) []sql.Option {
	out := slices.Clone(options)
	for _, e := range edits {
		i := slices.IndexFunc(out, func(o sql.Option) bool { return o.Key == e.key })
		switch {
		case e.value == "" && i >= 0:
			out = slices.Delete(out, i, i+1)
		case e.value == "":
		case i >= 0:
			out[i].Value = e.value
		default:
			out = append(out, sql.Option{Key: e.key, Value: e.value})
		}
	}
	return out
}

// textOf is the script of steps.
func textOf(steps []step) string {
	var sb strings.Builder
	for _, s := range steps {
		sb.WriteString(s.Text)
	}
	return sb.String()
}
