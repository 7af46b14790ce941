//go:build !linux

package checkpoint

const hugePage = 2 << 20

// physicalMemory assumes 4 GiB where the system is not asked.
func physicalMemory() int64 { return 4 << 30 }

// offHeap is not available here: callers fall back to the Go heap.
func offHeap(n int) (b, raw []byte) { return nil, nil }

// offHeapChunk is not available either.
func offHeapChunk() (b, raw []byte) { return nil, nil }

func freeOffHeap(raw []byte) {}
