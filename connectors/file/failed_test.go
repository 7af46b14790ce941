package file

import (
	"io/fs"
	"syscall"
	"testing"

	"github.com/streamsql/streamsql/sql/diag"
)

// Whatever a directory lacks for writing, the error says how to get it.
func TestWriteErrorsHaveHints(t *testing.T) {
	c, err := parse(table(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, cause := range []syscall.Errno{syscall.ENOSPC, syscall.EACCES, syscall.ENOENT} {
		e := c.failed("writing", "x", &fs.PathError{Op: "write", Path: "x", Err: cause})
		if e.Code != diag.External || e.Hint == "" || seen[e.Hint] {
			t.Errorf("%v: %s", cause, diag.Render(e, "", ""))
		}
		seen[e.Hint] = true
	}
}
