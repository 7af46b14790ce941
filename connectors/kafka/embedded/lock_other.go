//go:build !unix

package embedded

import (
	"os"
	"path/filepath"
	"strconv"

	"github.com/streamsql/streamsql/sql/diag"
)

// lockDir opens the lock file; elsewhere than on Unix two processes on one directory are not detected.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "streamsql.lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, diag.New(diag.External, diag.Pos{}, "the embedded broker's directory cannot be locked").Wrap(err)
	}
	return f, nil
}

func unlock(f *os.File) { _ = f.Close() }

func portText(p int) string { return strconv.Itoa(p) }
