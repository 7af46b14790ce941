package harness

import "syscall"

// sysProcAttr has the kernel send death to the child when this process ends, however it ends. The child gets a process
// group of its own so that Ctrl-C reaches only the test binary, which then stops its children in order.
func sysProcAttr(cred *syscall.Credential, death syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: cred, Pdeathsig: death, Setpgid: true}
}
