package file

// Goal: what belongs to a table, and that a position is exact or refused. Method: real files.

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

func TestReadDirectory(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/one.csv", "1,x\r\n2,y\n")
	write(t, dir+"/sub/two.csv", "3,z") // no line end: a record all the same
	write(t, dir+"/.hidden", "9,no\n")
	write(t, dir+"/_SUCCESS", "9,no\n")
	write(t, dir+"/_tmp/three.csv", "9,no\n")
	write(t, dir+"/empty.csv", "")
	mustRead(t, table(dir), "+I1,x +I2,y +I3,z")
	mustRead(t, table(dir+"/one.csv"), "+I1,x +I2,y")
	mustRead(t, table("file://"+dir+"/one.csv"), "+I1,x +I2,y")
	mustRead(t, table(dir, `source.path.regex-pattern=.*/t\w+\.csv`), "+I3,z")
}

func TestFormats(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/j/f", "{\"a\":1,\"b\":\"x\"}\n[{\"a\":2},{\"a\":3}]\n")
	write(t, dir+"/d/f", `{"before":{"a":1,"b":"x"},"after":{"a":1,"b":"y"},"op":"u"}`+"\n")
	write(t, dir+"/c/f", `{"data":{"a":1},"op":"-D"}`+"\n")
	write(t, dir+"/r/f", "one\ntwo\n")
	mustRead(t, table(dir+"/j", "format=json"), "+I1,x +I2,NULL +I3,NULL")
	mustRead(t, table(dir+"/d", "format=debezium-json"), "-U1,x +U1,y")
	mustRead(t, table(dir+"/c", "format=changelog-json"), "-D1,NULL")
	raw := table(dir+"/r", "format=raw")
	raw.Columns = raw.Columns[1:]
	mustRead(t, raw, "+Ione +Itwo")
	// A byte order mark at the beginning of a file is no part of its text; elsewhere, and of bytes, it is.
	write(t, dir+"/b/f", "\ufeff1,x\n2,\ufeffy\n")
	mustRead(t, table(dir+"/b"), "+I1,x +I2,\ufeffy")
	write(t, dir+"/br/f", "\ufeffone\n")
	raw = table(dir+"/br", "format=raw")
	raw.Columns = raw.Columns[1:]
	mustRead(t, raw, "+I\ufeffone")
	for name, want := range map[string]types.ChangelogMode{"json": types.AppendOnly, "debezium-json": types.Retract} {
		if got, err := Connector().SourceMode(table(dir, "format="+name)); err != nil || got != want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestPartitionsAndMetadata(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/day=2024-01-02/f", "1,x\n")
	write(t, dir+"/day=a%2Fb/f", "2,y\n")
	write(t, dir+"/day=__DEFAULT_PARTITION__/f", "3,z\n")
	write(t, dir+"/other=1/f", "9,no\n")
	write(t, dir+"/f", "9,no\n")
	mustRead(t, partitioned(dir), "+I1,x,2024-01-02 +I3,z,NULL +I2,y,a/b")

	tab := table(dir+"/day=2024-01-02", "format=csv")
	for _, k := range []string{"file.name", "file.size"} {
		ty := types.StringType
		if k == "file.size" {
			ty = types.BigIntType
		}
		tab.Columns = append(tab.Columns, catalog.Column{Name: k, Key: k, Kind: catalog.Metadata, Virtual: true, Type: ty})
	}
	mustRead(t, tab, "+I1,x,f,4")

	days := partitioned(dir)
	days.Columns[2].Type = types.DateType
	if _, err := readAll(t, days, nil); err == nil || !strings.Contains(err.Error(), "partition column day") {
		t.Fatal(err)
	}
}

// From every position a reader hands out, exactly the rest is read.
func TestResumeIsExact(t *testing.T) {
	dir := t.TempDir()
	var sb strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&sb, "%d,%s\n", i, strings.Repeat("v", i%50))
	}
	write(t, dir+"/f", sb.String())
	tab := table(dir)
	all, err := readAll(t, tab, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := sourceOf(t, tab)
	r, err := s.Open(ctx, []checkpoint.Position{{Split: checkpoint.Split(dir + "/f")}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ps := r.(connectors.Positioner).Positions()
	head := ""
	for n := 0; ; n++ {
		rest, err := readAll(t, tab, ps)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(head + " " + rest); got != all {
			t.Fatalf("position %d: %d bytes of rows, want %d", n, len(got), len(all))
		}
		rows, p, err := step(t, r, tab)
		if err != nil || p.Done {
			if n < 4 {
				t.Fatalf("only %d positions", n)
			}
			break
		}
		head = strings.TrimSpace(head + " " + rows)
		ps = []checkpoint.Position{{Split: p.Split, Next: p.Position}}
	}
}

func TestChangedFileIsAnError(t *testing.T) {
	dir := t.TempDir()
	path := dir + "/f"
	write(t, path, "1,x\n2,y\n3,z\n")
	tab := table(dir)
	at := position{offset: 4, record: 1, size: 12}
	at.tail = 0
	f := &file{data: []byte("1,x\n")}
	f.consume(4, 1)
	at.tail = f.pos.tail
	ps := []checkpoint.Position{{Split: checkpoint.Split(path), Next: at.encode()}}
	if got, err := readAll(t, tab, ps); err != nil || got != "+I2,y +I3,z" {
		t.Fatal(got, err)
	}
	for _, c := range []struct{ name, content, want string }{
		{"shrunk", "1,x\n", "12 bytes at the checkpoint and has 4 now"},
		{"replaced", "1,q\n2,y\n3,z\n", "bytes before offset 4 differ"},
	} {
		write(t, path, c.content)
		if _, err := readAll(t, tab, ps); err == nil || !strings.Contains(diag.Render(err, "", ""), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	write(t, path, "1,x\n2,y\n3,z\n4,more\n") // a bounded read ends where the file ended at the start
	if got, err := readAll(t, tab, ps); err != nil || got != "+I2,y +I3,z" {
		t.Error(got, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := readAll(t, tab, ps); err == nil {
		t.Error("a removed file was accepted")
	}
	for _, b := range [][]byte{{2}, {1}, {1, 2, 2, 2, 9}} {
		write(t, path, "1,x\n")
		if _, err := readAll(t, tab, []checkpoint.Position{{Split: checkpoint.Split(path), Next: b}}); err == nil {
			t.Errorf("position %x accepted", b)
		}
	}
}

// A file whose last line is being written fails a bounded read rather than giving half a record.
func TestGrowingLastLine(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/f", "1,x\n2,ha")
	tab := table(dir)
	r, err := sourceOf(t, tab).Open(ctx, []checkpoint.Position{{Split: checkpoint.Split(dir + "/f")}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	write(t, dir+"/f", "1,x\n2,half\n")
	if rows, _, err := step(t, r, tab); rows != "+I1,x" || err != nil {
		t.Fatal(rows, err)
	}
	if _, _, err := step(t, r, tab); err == nil || !strings.Contains(diag.Render(err, "", ""), "last line was incomplete") {
		t.Fatal(err)
	}
}

func TestMonitoredDirectory(t *testing.T) {
	dir := t.TempDir()
	tab := table(dir, "source.monitor-interval=1 s")
	if bounded, err := Connector().Bounded(tab); err != nil || bounded {
		t.Fatal(bounded, err)
	}
	s := sourceOf(t, tab)
	if s.DiscoveryInterval() != 1000 {
		t.Fatal(s.DiscoveryInterval())
	}
	write(t, dir+"/f", "1,x\n2,ha")
	r, err := s.Open(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Add(ctx, checkpoint.Position{Split: checkpoint.Split(dir + "/f")}); err != nil {
		t.Fatal(err)
	}
	if err := r.Add(ctx, checkpoint.Position{Split: checkpoint.Split(dir + "/gone")}); err != nil {
		t.Fatal("a file that was removed at once:", err)
	}
	if rows, _, err := step(t, r, tab); rows != "+I1,x" || err != nil {
		t.Fatal(rows, err)
	}
	// The unfinished line waits, and is read when it is complete.
	if rows, p, err := step(t, r, tab); rows != "" || p.Done || err != nil {
		t.Fatal(rows, p, err)
	}
	write(t, dir+"/f", "1,x\n2,half\n")
	var got string
	for range 10 {
		rows, p, err := step(t, r, tab)
		if err != nil {
			t.Fatal(err)
		}
		got += rows
		if p.Done {
			break
		}
	}
	if got != "+I2,half" {
		t.Fatal(got)
	}
}

func TestBadLines(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/f", "1,x\nno,y\n3,z\nbad\n")
	_, err := readAll(t, table(dir), nil)
	text := diag.Render(err, "", "")
	for _, want := range []string{"table t: file " + dir + "/f, line 2: column a: not an integer", ": no", "starts at byte 4", "'scan.on-error' = 'skip'"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %s", want, text)
		}
	}
	tab := table(dir, "scan.on-error=skip")
	r, err := sourceOf(t, tab).Open(ctx, []checkpoint.Position{{Split: checkpoint.Split(dir + "/f")}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rows, p, err := step(t, r, tab)
	if rows != "+I1,x +I3,z" || p.Records != 4 || p.Skipped != 2 || err != nil {
		t.Fatal(rows, p, err)
	}
	lenient := table(dir, "csv.ignore-parse-errors=true")
	mustRead(t, lenient, "+I1,x +INULL,y +I3,z +INULL,NULL")
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	c := Connector()
	all := partitioned(dir)
	all.Columns = all.Columns[2:]
	dbl := partitioned(dir)
	dbl.Columns[2].Type = types.DoubleType
	for want, tab := range map[string]*catalog.Table{
		"file system 's3' is not supported":              table("s3://x/y"),
		"format 'parquet' is not supported":              table(dir, "format=parquet"),
		"'auto-compaction': 'true': only 'false'":        table(dir, "auto-compaction=true"),
		"'compaction.file-size' is not supported":        table(dir, "compaction.file-size=1mb"),
		"only 'process-time' is supported":               partitioned(dir, "sink.partition-commit.trigger=partition-time"),
		"only 'success-file' is supported":               partitioned(dir, "sink.partition-commit.policy.kind=metastore,success-file"),
		"no partitions to commit":                        table(dir, "sink.partition-commit.policy.kind=success-file"),
		"'sink.partition-commit.policy.class' is not":    partitioned(dir, "sink.partition-commit.policy.class=x"),
		"every column is a partition column":             all,
		"partition column day has type DOUBLE":           dbl,
		"not a regular expression":                       table(dir, "source.path.regex-pattern=("),
		"does not support option 'json.ignore":           table(dir, "json.ignore-parse-errors=true"),
		"option 'source.monitor-interval': '0 s' is not": table(dir, "source.monitor-interval=0 s"),
	} {
		if err := c.Check(tab, connectors.UseSource); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	if _, err := readAll(t, table(filepath.Join(dir, "absent")), nil); err == nil {
		t.Error("an absent path was accepted")
	}
}
