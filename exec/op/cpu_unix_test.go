//go:build unix

package op

import (
	"syscall"
	"time"
)

// cpuTime is the processor time of this process so far, the collector's included: what a benchmark costs on a busy machine.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
