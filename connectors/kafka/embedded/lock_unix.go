//go:build unix

package embedded

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/streamsql/streamsql/sql/diag"
)

// lockDir holds the directory for this process; the operating system releases it when the process ends.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "streamsql.lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, diag.New(diag.External, diag.Pos{}, "the embedded broker's directory cannot be locked").Wrap(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, diag.New(diag.Conflict, diag.Pos{}, "the embedded broker's directory %s is in use", dir).Wrap(err).
			WithHint("stop the other streamsql process, or use another directory")
	}
	return f, nil
}

func unlock(f *os.File) { _ = f.Close() }

func portText(p int) string { return strconv.Itoa(p) }
