package repl

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/sql/diag"
)

// Goal: cells stay cells whatever is in them; psql's commands are answered by the way it is done here.
func TestMarkdown(t *testing.T) {
	eng := open(t)
	res, err := eng.Exec(context.Background(), "SELECT * FROM (VALUES (1, 'a|b'), (2, U&'c\\000ad'), (3, NULL)) AS t(id, name)")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if _, err := (&Printer{Out: &out, Format: Markdown}).Print(context.Background(), res); err != nil {
		t.Fatal(err)
	}
	if want := "| id | name |\n|---|---|\n| 1 | a\\|b |\n| 2 | c<br>d |\n| 3 |  |\n"; out.String() != want {
		t.Errorf("got  %q\nwant %q", out.String(), want)
	}
	if f, err := ParseFormat("MARKDOWN"); f != Markdown || err != nil {
		t.Error(f, err)
	}
	for name, want := range map[string]string{`\l`: "SHOW DATABASES", `\copy`: "filesystem", `\watch`: "keeps running", `\c`: "one database"} {
		if _, err := lookup(name, nil); err == nil || !strings.Contains(hintOf(err), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func hintOf(err error) string {
	var d *diag.Error
	if errors.As(err, &d) {
		return d.Hint
	}
	return ""
}
