//go:build unix

package exec

import (
	"syscall"
	"testing"
	"time"
)

// BenchmarkShip is the processor time of an exchange to two subtasks per row of six columns: what make bench prints.
func BenchmarkShip(b *testing.B) {
	cpu := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	for _, ship := range []Ship{Forward, Hash, Rebalance} {
		b.Run(ship.String(), func(b *testing.B) {
			one, rows := exchange(ship, 2)
			one()
			b.ResetTimer()
			began := cpu()
			for range b.N {
				one()
			}
			b.ReportMetric(float64((cpu()-began).Nanoseconds())/float64(b.N*rows), "cpu-ns/row")
			allocs := testing.AllocsPerRun(10, one)
			b.ReportMetric(allocs/float64(rows), "allocs/row")
			b.ReportMetric(0, "ns/op")
		})
	}
}
