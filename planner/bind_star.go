package planner

import (
	"strings"

	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// rowStar is row.* where row is a column or field of ROW type: its fields as columns of their names.
func (b *binder) rowStar(s *scope, e *sql.Star) ([]item, error) {
	x, err := b.expr(s, &sql.Ident{Place: e.Place, Path: e.Qualifier})
	if err != nil || x.Type().Kind != types.Row {
		return nil, diag.New(diag.Semantic, e.Pos, "%s.* names no table of the FROM clause and no ROW", e.Qualifier.Plain()).
			WithHint("write * for all columns, or %s.*", strings.Join(s.tableNames(), ".*, "))
	}
	var out []item
	for _, f := range x.Type().Fields {
		field, err := expr.NewField(x, f.Name)
		if err != nil {
			return nil, diag.At(err, e.Pos)
		}
		out = append(out, item{x: field, name: f.Name})
	}
	return out, nil
}
