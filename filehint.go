package streamsql

import (
	"errors"

	"github.com/streamsql/streamsql/connectors/file"
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
