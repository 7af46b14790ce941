package streamsql_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/sql/diag"
)

// Goal: a query of a file is answered by the statement that makes it work. Method: the statement is executed.
func TestFileInPlaceOfTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "people.csv")
	if err := os.WriteFile(path, []byte("id,name,age\n1,Ann,34\n2,Bob,\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	e, err := streamsql.Open("", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ctx := context.Background()
	query := "SELECT * FROM '" + path + "'"
	_, err = e.Exec(ctx, query)
	text := diag.Render(err, "", query)
	if _, cerr := e.Check(query); diag.Render(cerr, "", query) != text {
		t.Errorf("Check: %v", cerr)
	}
	if _, xerr := e.Explain("SELECT * FROM read_csv('" + path + "')"); xerr == nil || !strings.Contains(diag.Render(xerr, "", ""), "CREATE TABLE people") {
		t.Errorf("Explain: %v", xerr)
	}
	_, statements, ok := strings.Cut(text, "use its name:\n")
	if !ok {
		t.Fatal(text)
	}
	script := e.Script(statements)
	if _, err := script.Next(ctx); err != nil {
		t.Fatal(err)
	}
	res, err := script.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for c, err := range res.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		name, _ := c.Text(1)
		age, null := c.Text(2)
		rows = append(rows, name, age, strconv.FormatBool(null))
	}
	if got := strings.Join(rows, " "); got != "Ann 34 false Bob  true" {
		t.Error(got)
	}
}
