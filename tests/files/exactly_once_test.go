package files

// Goal: a job that fails at any step of the file sink's protocol or of the engine's leaves every row in the directory
// exactly once, and no unfinished file. Method: a failpoint stops the job once, the restart strategy brings it back, and
// a second job counts what a reader sees.

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors/memory"
	"github.com/streamsql/streamsql/sql/types"
)

func TestExactlyOnceOverFailures(t *testing.T) {
	for _, point := range []string{
		"file.precommit.synced:2", "file.precommit.renamed:2", "file.commit.linked:4",
		"precommit.after:2", "publish.before:2", "publish.after:2", "commit.before:2", "confirm.after:1",
	} {
		t.Run(point, func(t *testing.T) {
			dir := t.TempDir()
			var out bytes.Buffer
			bus := memory.NewBus()
			e, err := streamsql.Open(t.TempDir(), &streamsql.Options{Connectors: append(streamsql.DefaultConnectors(&out), *bus.Connector()), Settings: map[string]string{
				"parallelism.default": "2", "execution.checkpointing.interval": "1000 d",
				"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "1 ms", "restart-strategy.fixed-delay.attempts": "5",
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			}()
			exec(t, e, `CREATE TABLE made (id BIGINT, s STRING) WITH ('connector'='memory', 'bounded'='true')`)
			exec(t, e, fmt.Sprintf(`CREATE TABLE kept (id BIGINT, s STRING, p BIGINT) PARTITIONED BY (p)
				WITH ('connector'='filesystem', 'path'='%s', 'format'='json')`, dir))
			exec(t, e, `CREATE TABLE shown (n BIGINT, ids BIGINT, last_id BIGINT) WITH ('connector'='print')`)
			if err := checkpoint.SetFailpoint(point + ":error"); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = checkpoint.SetFailpoint("") })
			made := bus.Feed("made").SetSplits(2) // before the job looks: it looks once
			r, err := e.Exec(context.Background(), `INSERT INTO kept SELECT id, s, MOD(id, 3) FROM made`)
			if err != nil {
				t.Fatal(err)
			}
			feed(t, made, r.Job)
			if err := r.Job.Wait(context.Background()); err != nil {
				t.Fatal(err)
			}
			if !checkpoint.FailpointHit() {
				t.Fatal("the failpoint was not reached")
			}
			_ = checkpoint.SetFailpoint("")
			exec(t, e, `INSERT INTO shown SELECT COUNT(*), COUNT(DISTINCT id), MAX(id) FROM kept`)
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if last := lines[len(lines)-1]; !strings.HasSuffix(last, "[4000, 4000, 4000]") {
				t.Errorf("a reader sees %s", last)
			}
			residue(t, dir)
		})
	}
}

// feed gives the job 4000 rows, with a checkpoint after each 500 of them. One that the failpoint spoils is told as an error.
func feed(t *testing.T, f *memory.Feed, j *streamsql.Job) {
	t.Helper()
	for id := int64(1); id <= 4000; id++ {
		f.Append(int(id%2), memory.Insert(types.IntDatum(id), types.StrDatum(fmt.Sprintf("%04d", id))))
		if id%500 != 0 {
			continue
		}
		if _, err := j.Checkpoint(context.Background()); err != nil && j.Status().State.Ended() {
			t.Fatal(j.Wait(context.Background()))
		}
	}
	f.Close()
}

// exec runs a statement and, when it starts a job, waits for its end.
func exec(t *testing.T, e *streamsql.Engine, q string) {
	t.Helper()
	r, err := e.Exec(context.Background(), q)
	if err == nil && r.Job != nil {
		err = r.Job.Wait(context.Background())
	}
	if err != nil {
		t.Fatalf("%s: %v", q, err)
	}
}

func residue(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), ".") {
			t.Errorf("left behind: %s", p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
