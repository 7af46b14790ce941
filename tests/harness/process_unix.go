//go:build unix && !linux

package harness

import "syscall"

// sysProcAttr: only Linux ties a child's life to its parent's; elsewhere Ctrl-C reaches the children through the common
// process group, and the sweep of the next run ends what is left.
func sysProcAttr(cred *syscall.Credential, _ syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: cred}
}
