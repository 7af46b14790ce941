//go:build !unix

package op

import "time"

var started = time.Now()

// cpuTime is the time that went by: there is no processor time to be had.
func cpuTime() time.Duration { return time.Since(started) }
