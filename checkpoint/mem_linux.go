package checkpoint

import (
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
	raw, err := unix.Mmap(-1, 0, n+hugePage, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil
	}
	at := uintptr(unsafe.Pointer(&raw[0]))
	off := int((at+hugePage-1)&^(hugePage-1) - at)
	b = raw[off : off+n : off+n]
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // refused where huge pages are off: slower, not wrong
	return b, raw
}

func freeOffHeap(raw []byte) { _ = unix.Munmap(raw) }
