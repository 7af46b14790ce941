package examples

// Goal: every file in examples/ does what it says. Method: run each with the program in a fresh folder that holds
// examples/, and compare what it prints with testdata/<name>.txt (-update writes those files). A file without an entry
// here is an error.

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/tests/harness"
)

var update = flag.Bool("update", false, "record the examples' output")

// scripts are the examples that end by themselves and need nothing else.
var scripts = []struct {
	file string
	args []string
	sort bool // rows come in any order
}{
	{file: "datagen_print.sql"},
	{file: "files_to_files.sql"},
	{file: "kafka_to_kafka.sql", args: []string{"--embedded-kafka"}, sort: true},
	{file: "upsert.sql", args: []string{"--embedded-kafka"}},
	{file: "views_and_settings.sql"},
}

// elsewhere are examples with a test of their own.
var elsewhere = []string{"kafka_to_postgres.sql"}

// workspace is a fresh folder with examples/ in it.
func workspace(t *testing.T) string {
	t.Helper()
	root, err := harness.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(root, "examples"), filepath.Join(dir, "examples")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestScripts(t *testing.T) {
	for _, s := range scripts {
		t.Run(s.file, func(t *testing.T) {
			p := harness.Start(t, harness.Command{Path: harness.BuildStreamsql(t), Dir: workspace(t),
				Args: append([]string{"run", "examples/" + s.file}, s.args...)})
			if code, err := p.Wait(patience); err != nil || code != 0 {
				t.Fatalf("exit %d, %v", code, err)
			}
			compare(t, strings.TrimSuffix(s.file, ".sql"), p.Stdout(), s.sort)
		})
	}
}

// compare compares out with the recorded text; with sort, line by line in any order.
func compare(t *testing.T, name, out string, sort bool) {
	t.Helper()
	if sort {
		lines := strings.SplitAfter(out, "\n")
		slices.Sort(lines)
		out = strings.TrimLeft(strings.Join(lines, ""), "\n")
	}
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(out), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if out != string(want) {
		t.Errorf("%s printed\n%s\nwant\n%s", name, out, want)
	}
}

func TestEveryExampleIsRun(t *testing.T) {
	files, err := filepath.Glob("../../examples/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal(err, len(files))
	}
	known := slices.Clone(elsewhere)
	for _, s := range scripts {
		known = append(known, s.file)
	}
	for _, f := range files {
		if !slices.Contains(known, filepath.Base(f)) {
			t.Errorf("no test runs examples/%s", filepath.Base(f))
		}
	}
}

// The Go example is run as its users would: go run.
func TestEmbedding(t *testing.T) {
	root, err := harness.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	p := harness.Start(t, harness.Command{Path: "go", Args: []string{"run", "./examples/embedding"}, Dir: root})
	if code, err := p.Wait(patience); err != nil || code != 0 {
		t.Fatalf("exit %d, %v", code, err)
	}
	compare(t, "embedding", p.Stdout(), false)
}
