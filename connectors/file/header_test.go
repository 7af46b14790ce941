package file

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
)

// Goal: a header is neither a row nor lost, whatever the position a reader starts at; what is suggested for a file is a
// statement that reads it. Method: real files.

func TestReadHeader(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/one.csv", "a,b\r\n1,x\r\n2,y\r\n")
	write(t, dir+"/sub/two.csv", "\ufeffA;B\n3,z") // other names than the table's say nothing
	write(t, dir+"/three.csv", "a,b")
	write(t, dir+"/empty.csv", "")
	tab := table(dir, "csv.header=true")
	mustRead(t, tab, "+I1,x +I2,y +I3,z")

	// A position behind the header, and one in front of it.
	r, err := sourceOf(t, tab).Open(ctx, []checkpoint.Position{{Split: checkpoint.Split(dir + "/one.csv")}})
	if err != nil {
		t.Fatal(err)
	}
	start := r.(connectors.Positioner).Positions()
	rows, p, err := step(t, r, tab)
	if rows != "+I1,x +I2,y" || p.Records != 2 || p.Bytes != 15 || err != nil {
		t.Fatal(rows, p, err)
	}
	r.Close()
	for want, ps := range map[string][]checkpoint.Position{"+I1,x +I2,y": start, "": {{Split: start[0].Split, Next: p.Position}}} {
		if got, err := readAll(t, tab, ps); got != want || err != nil {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}

	write(t, dir+"/swapped/f", "b,a\n1,x\n")
	_, err = readAll(t, table(dir+"/swapped", "csv.header=true"), nil)
	if err == nil || !strings.Contains(err.Error(), "line 1: the header has b in place 1, the table in place 2") {
		t.Error(err)
	}
	// The line is counted in messages, and without the option the advice is to set it.
	write(t, dir+"/bad/f", "a,b\n1,x\nno,y\n,z\n")
	_, err = readAll(t, table(dir+"/bad", "csv.header=true"), nil)
	if err == nil || !strings.Contains(err.Error(), "line 3: column a: not an integer") {
		t.Error(err)
	}
	_, err = readAll(t, table(dir+"/bad"), nil)
	if text := diag.Render(err, "", ""); !strings.Contains(text, "line 1: column a") || !strings.Contains(text, "'csv.header' = 'true'") {
		t.Error(text)
	}
	write(t, dir+"/blank/f", ",z\n")
	_, err = readAll(t, table(dir+"/blank"), nil)
	if err == nil || !strings.Contains(err.Error(), "'csv.null-literal' = ''") {
		t.Error(err)
	}
	mustRead(t, table(dir+"/blank", "csv.null-literal="), "+INULL,z")
}

func TestWriteHeader(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	tab := table(dir, "csv.header=true", "csv.field-delimiter=;")
	s := sinkOf(t, tab, 1)
	w, c := openWriter(t, s, 0), committerOf(t, s)
	for id, row := range []string{"1,x", "2,y"} {
		put(t, w, tab, row)
		if err := c.Commit(ctx, preCommit(t, w, checkpoint.ID(id+1))); err != nil {
			t.Fatal(err)
		}
	}
	if got := visible(t, dir); got != "a;b\n1;x\na;b\n2;y\n" {
		t.Errorf("got %q", got)
	}
	mustRead(t, tab, "+I1,x +I2,y")
	if err := Connector().Check(table(dir, "format=json", "csv.header=true"), connectors.UseSource); err == nil ||
		!strings.Contains(err.Error(), "format 'json' has no header") {
		t.Error(err)
	}
}

func TestSuggest(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ name, text, want string }{
		{"people.csv", "id,name,user,age,joined,ok,code\n1,Ann,a,34,2024-01-02 10:00:00,true,007\n2,\"B, C\",b,,2024-01-02 10:00:00.5,false,1\n",
			"CREATE TABLE people (id BIGINT, name STRING, `user` STRING, age BIGINT, joined TIMESTAMP(3), ok BOOLEAN, code STRING)\n" +
				"'path' = '$', 'format' = 'csv', 'csv.header' = 'true', 'csv.null-literal' = ''"},
		{"my-data.tsv", "1\t2.5\t2024-01-01\n2\t3\t2024-01-02\n", "CREATE TABLE `my-data` (c1 BIGINT, c2 DOUBLE, c3 DATE)\n'format' = 'csv', 'csv.field-delimiter' = '\\t')"},
		{"semi.csv", "name;city\nAnn;Oslo\n", "CREATE TABLE semi (name STRING, city STRING)\n'csv.field-delimiter' = ';', 'csv.header' = 'true')"},
		{"names.csv", "Ann,Oslo\nBob,Rome\n", "CREATE TABLE names (c1 STRING, c2 STRING)\n'format' = 'csv')"},
		{"e.jsonl", `{"id":1,"at":"2024-01-02T10:00:00Z","x":null,"o":{"a b":[1,2.5]},"m":{}}` + "\n" + `{"id":2.5,"late":true}` + "\n",
			"CREATE TABLE e (id DOUBLE, `at` TIMESTAMP_LTZ(3), x STRING, o ROW<`a b` ARRAY<DOUBLE>>, m MAP<STRING, STRING>, late BOOLEAN)\n" +
				"'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601')"},
		{"s.json", `{"at":"2024-01-02 10:00:00","b":"2024-01-02T10:00:00Z"}`, "CREATE TABLE s (`at` TIMESTAMP(3), b STRING)\n'format' = 'json')"},
		{"array.json", "[\n{\"a\":1}\n]\n", "jq -c"},
		{"x.parquet", "PAR1", "format 'parquet' is not supported"},
		{"empty.csv", "", "CREATE TABLE `empty` (...)"},
	} {
		path := filepath.Join(dir, c.name)
		write(t, path, c.text)
		got := Suggest(path)
		for want := range strings.SplitSeq(strings.ReplaceAll(c.want, "$", path), "\n") {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is missing in\n%s", c.name, want, got)
			}
		}
		_, statements, ok := strings.Cut(got, ":\n")
		if !ok {
			continue
		}
		if _, err := sql.ParseScript(statements); err != nil {
			t.Errorf("%s: %v in\n%s", c.name, err, statements)
		}
	}
	if got := Suggest(filepath.Join(dir, "absent.csv")); !strings.Contains(got, "no such file") || !strings.Contains(got, "CREATE TABLE `absent`") && !strings.Contains(got, "CREATE TABLE absent") {
		t.Error(got)
	}
	if got := Suggest(dir); !strings.Contains(got, "is not a file") {
		t.Error(got)
	}
}

func TestRemark(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/f.csv", "1,x\n")
	for _, c := range []struct {
		path string
		use  connectors.Use
		want string
	}{
		{dir + "/f.csv", connectors.UseSource, ""},
		{dir, connectors.UseSource, ""},
		{dir + "/none.csv", connectors.UseSource, "table t: path " + dir + "/none.csv does not exist on this machine"},
		{"no/such.csv", connectors.UseSource, "table t: path no/such.csv does not exist here; it is relative to the folder the program runs in"},
		{dir + "/f.csv/x", connectors.UseSource, "table t: path " + dir + "/f.csv/x cannot be read here: not a directory"},
		{dir + "/new/out", connectors.UseSink, ""},
		{dir + "/f.csv", connectors.UseSink, "table t: " + dir + "/f.csv is not a folder, and a table is written as several files; set 'path' to a folder"},
		{dir + "/f.csv/out", connectors.UseSink, "table t: folder " + dir + "/f.csv/out cannot be used here: not a directory"},
	} {
		if got := Remark(table(c.path), c.use); got != c.want {
			t.Errorf("%s: got  %q\nwant %q", c.path, got, c.want)
		}
	}
	if got := Remark(table("x", "connector=print"), connectors.UseSource); got != "" {
		t.Error(got)
	}
	if os.Geteuid() == 0 {
		return // root may write everywhere
	}
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o755)
	if got := Remark(table(dir+"/out"), connectors.UseSink); got != "table t: folder "+dir+" cannot be written here: permission denied" {
		t.Error(got)
	}
}
