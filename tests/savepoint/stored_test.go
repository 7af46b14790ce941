package savepoint

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/diag"
)

// Goal: a savepoint of every format that a release has written is restored with the right answer, or refused by name, never
// misread. Method: testdata/stored holds savepoints taken in the middle of testdata/stored.sql, in memory's segments and in
// Pebble, with what becomes of each in a file "expect": the word "restores", or what the refusal says.
//
// Who changes an encoding and means it: writes what the refusal says into "expect" of the savepoints that no longer fit,
// and stores new ones with -store NAME.

var store = flag.String("store", "", "store savepoints of the present format as testdata/stored/NAME-segments and NAME-pebble")

// storedRun runs stored.sql in a new state directory, at a rate.
func storedRun(t *testing.T, out string, l life) (*streamsql.Engine, *streamsql.Job) {
	t.Helper()
	text, err := os.ReadFile("testdata/stored.sql")
	if err != nil {
		t.Fatal(err)
	}
	eng, err := streamsql.Open(filepath.Join(t.TempDir(), "state"), &streamsql.Options{Restore: l.restore, Memory: l.memory, Settings: map[string]string{
		"parallelism.default": fmt.Sprint(l.parallelism), "table.local-time-zone": "UTC", "execution.checkpointing.interval": "0"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = eng.Close() })
	script := eng.Script(strings.NewReplacer("$OUT", out, "$RATE", fmt.Sprint(l.rate)).Replace(string(text)))
	var job *streamsql.Job
	for {
		res, err := script.Next(context.Background())
		if err != nil {
			if job != nil {
				return eng, job
			}
			t.Fatal(err)
		}
		job = res.Job
	}
}

// storedSinks are the tables of stored.sql.
func storedSinks(t *testing.T, out string) *world {
	w := &world{t: t, dir: filepath.Dir(out)}
	for _, name := range []string{"grouped", "tumbled", "sessions", "joined", "ranked", "lasts", "totals", "matched"} {
		w.sinks = append(w.sinks, sink{name: name})
	}
	return w
}

func TestStoredSavepoints(t *testing.T) {
	if *store != "" {
		storeSavepoints(t)
	}
	answer := filepath.Join("testdata", "stored.json")
	out := filepath.Join(t.TempDir(), "out")
	_, job := storedRun(t, out, life{parallelism: 1, rate: fast})
	if err := job.Wait(patient(t)); err != nil {
		t.Fatal(err)
	}
	calm := storedSinks(t, out)
	if *store != "" {
		text, err := json.MarshalIndent(calm.contents(), "", " ")
		if err == nil {
			err = os.WriteFile(answer, append(text, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var want map[string]map[string]int
	text, err := os.ReadFile(answer)
	if err == nil {
		err = json.Unmarshal(text, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	calm.compare(want)

	all, err := filepath.Glob(filepath.Join("testdata", "stored", "*"))
	if err != nil {
		t.Fatal(err)
	}
	restores := 0
	for _, dir := range all {
		expect, err := os.ReadFile(filepath.Join(dir, "expect"))
		if err != nil {
			t.Fatal(err)
		}
		says := strings.TrimSpace(string(expect))
		if says == "restores" {
			restores++
		}
		t.Run(filepath.Base(dir), func(t *testing.T) { restoreStored(t, dir, says, want) })
	}
	if restores < 2 {
		t.Errorf("%d stored savepoints are of the present format, want one in segments and one in Pebble: store them with -store NAME", restores)
	}
}

func restoreStored(t *testing.T, dir, says string, want map[string]map[string]int) {
	saved := filepath.Join(t.TempDir(), "saved")
	if err := os.CopyFS(saved, os.DirFS(filepath.Join(dir, "savepoint"))); err != nil {
		t.Fatal(err)
	}
	// The rows of before the savepoint are in what it was stored with.
	out := filepath.Join(t.TempDir(), "out")
	if err := os.CopyFS(out, os.DirFS(filepath.Join(dir, "out"))); err != nil {
		t.Fatal(err)
	}
	_, job := storedRun(t, out, life{parallelism: 2, rate: fast, restore: streamsql.Restore{Path: saved}})
	err := job.Wait(patient(t))
	if says == "restores" {
		if err != nil {
			t.Fatalf("it is not restored; if that is meant, write what this says into %s/expect and store new ones: %s", dir, diag.Render(err, "", ""))
		}
		storedSinks(t, out).compare(want)
		return
	}
	if text := diag.Render(err, "", ""); diag.CodeOf(err) != diag.Config || !strings.Contains(text, says) {
		t.Fatalf("want a refusal that says %q: %s", says, text)
	}
}

// storeSavepoints takes savepoints in the middle of the input.
func storeSavepoints(t *testing.T) {
	for kind, memory := range map[string]int64{"segments": 0, "pebble": tiny} {
		dir, err := filepath.Abs(filepath.Join("testdata", "stored", *store+"-"+kind))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		_, job := storedRun(t, filepath.Join(dir, "out"), life{parallelism: 1, rate: 100, memory: memory})
		read(t, job, 150)
		if err := job.Stop(patient(t), streamsql.StopOptions{Savepoint: filepath.Join(dir, "savepoint")}); err != nil {
			t.Fatal(err)
		}
		forgetOrigin(t, filepath.Join(dir, "savepoint"))
		hidden, err := filepath.Glob(filepath.Join(dir, "out", "*", ".*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range hidden { // working files of the sinks
			if err := os.RemoveAll(h); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "expect"), []byte("restores\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// forgetOrigin puts a path of no machine into the manifest of a stored savepoint.
func forgetOrigin(t *testing.T, savepoint string) {
	t.Helper()
	c, err := checkpoint.ReadSavepoint(vfs.Default, savepoint)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"MANIFEST", "MANIFEST.2"} {
		file := filepath.Join(savepoint, fmt.Sprintf("chk-%d", c.ID), name)
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		b = bytes.Replace(b, []byte(c.From), []byte("/somewhere/jobs/stored"), 1)
		b = b[:bytes.LastIndex(b, []byte("crc32c "))]
		b = fmt.Appendf(b, "crc32c %08x %d\n", crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)), len(b))
		if err := os.WriteFile(file, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
