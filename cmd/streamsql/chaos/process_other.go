//go:build !linux

package chaos

import (
	"errors"
	"syscall"
)

// canLimit says that limitFiles works here.
const canLimit = false

// childAttributes give the child a process group of its own: Ctrl-C reaches this process only. The child ends when its
// standard input does.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func limitFiles(int, uint64) error {
	return errors.New("limits of other processes can be set on Linux only")
}
