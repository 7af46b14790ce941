package repl

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// atPrompt types \q when the newest job has ended: after the prompt that would have told of it.
type atPrompt struct {
	sh *Shell
}

func (a *atPrompt) ReadLine(string) (string, error) {
	jobs := a.sh.Engine.Jobs()
	<-jobs[len(jobs)-1].Done()
	return `\q`, nil
}

func (a *atPrompt) Remember(string) {}

// A job that fails while the shell waits at its last prompt is told of when the shell is left.
func TestLeaveTellsOfFailure(t *testing.T) {
	ctx := context.Background()
	eng := open(t)
	var out bytes.Buffer
	sh := &Shell{Engine: eng, Printer: &Printer{Format: Table, Mode: FinalTable}, Out: &out, Err: &out}
	for _, stmt := range []string{
		"SET 'restart-strategy.type' = 'none';",
		"CREATE TABLE bin (id BIGINT) WITH ('connector' = 'blackhole');",
		"CREATE TABLE g (id BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '1');",
		"INSERT INTO bin SELECT 1 / (id - id) FROM g;",
	} {
		if err := sh.statements(ctx, stmt, ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := sh.read(ctx, &atPrompt{sh}); err != nil {
		t.Fatal(err)
	}
	sh.Announce()
	if n := strings.Count(out.String(), "failed ("); n != 1 || !strings.Contains(out.String(), "division by zero") {
		t.Errorf("the failure is told %d times:\n%s", n, out.String())
	}
}
