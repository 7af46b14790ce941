package checkpoint

import (
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const hugePage = 2 << 20

// physicalMemory is the machine's memory in bytes.
func physicalMemory() int64 {
	var si unix.Sysinfo_t
	if err := unix.Sysinfo(&si); err != nil {
		return 4 << 30
	}
	return int64(si.Totalram) * int64(si.Unit)
}

// offHeap allocates n zeroed bytes, a multiple of hugePage, outside the Go heap and aligned for huge pages: the garbage
// collector neither scans nor counts them, and the kernel may back them by pages that spare the TLB. raw is what
// freeOffHeap takes. nil when the kernel refuses.
func offHeap(n int) (b, raw []byte) {
	if b, raw = mapAligned(n); b != nil {
		_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // refused where huge pages are off: slower, not wrong
	}
	return b, raw
}

// smallPages is how many chunks get small pages before a huge one is tried again.
var smallPages atomic.Int32

const (
	// hugePageTime is how long it takes at most to clear a huge page that the kernel has. More is spent on moving other pages
	// out of the way to make one, where memory is in pieces, and costs more than small pages do.
	hugePageTime   = time.Millisecond
	smallPageTurns = 64
)

// offHeapChunk is offHeap of a huge page for rows that fill it from front to back. All of it is brought into memory at once: a fault
// for each page as it is written would cost more than to clear it.
func offHeapChunk() (b, raw []byte) {
	if b, raw = mapAligned(hugePage); b == nil {
		return nil, nil
	}
	small := smallPages.Load() > 0
	if small {
		smallPages.Add(-1)
	} else {
		small = unix.Madvise(b, unix.MADV_HUGEPAGE) != nil
	}
	if small {
		_ = unix.Madvise(b, unix.MADV_POPULATE_WRITE) // before Linux 5.14: page by page
		return b, raw
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := threadTime()
	if unix.Madvise(b, unix.MADV_POPULATE_WRITE) == nil && threadTime()-began > hugePageTime {
		smallPages.Store(smallPageTurns)
	}
	return b, raw
}

// threadTime is the processor time of the thread.
func threadTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// mapAligned maps n bytes that begin with a huge page.
func mapAligned(n int) (b, raw []byte) {
	raw, err := unix.Mmap(-1, 0, n+hugePage, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil
	}
	at := uintptr(unsafe.Pointer(&raw[0]))
	off := int((at+hugePage-1)&^(hugePage-1) - at)
	return raw[off : off+n : off+n], raw
}

func freeOffHeap(raw []byte) { _ = unix.Munmap(raw) }
