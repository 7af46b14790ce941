package streamsql

import (
	"errors"
	"slices"

	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/connectors/file"
	"github.com/streamsql/streamsql/planner"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
)

// suggestTable turns the hint of an error about a file in the place of a table into the CREATE TABLE for that file, if it
// can be looked at. Other errors, and nil, are returned as they are.
func suggestTable(err error) error {
	var named *sql.FileAsTable
	var d *diag.Error
	if errors.As(err, &named) && errors.As(err, &d) {
		d.WithHint("%s", file.Suggest(named.Path))
	}
	return err
}

// pathRemarks tells which files of a plan are not where they should be on this machine.
func pathRemarks(plan *planner.Plan) (out []string) {
	for _, n := range plan.Graph.Nodes {
		text := ""
		switch {
		case n.Source != nil:
			text = file.Remark(n.Source.Spec.Table, connectors.UseSource)
		case n.Sink != nil && n.Sink.Spec.Table != nil:
			text = file.Remark(n.Sink.Spec.Table, connectors.UseSink)
		}
		if text != "" && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}
