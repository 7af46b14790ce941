package chaos

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// canLimit says that limitFiles works here.
const canLimit = true

// childAttributes have the kernel end the child with this process, also while it is suspended. The child gets a process group
// of its own: Ctrl-C reaches this process only, which then ends its children in order.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// limitFiles keeps every file of the process from growing beyond size bytes: writes fail, as on a full disk. Only the soft
// limit is set, so that it can be lifted again.
func limitFiles(pid int, size uint64) error {
	var old unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, nil, &old); err != nil {
		return err
	}
	return unix.Prlimit(pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: min(size, old.Max), Max: old.Max}, nil)
}
