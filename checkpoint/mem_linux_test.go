package checkpoint

// Goal: memory for rows is zeroed, aligned and its own, whichever pages the kernel is asked for. Method: both ways by hand.

import (
	"testing"
	"unsafe"
)

func TestChunkPages(t *testing.T) {
	defer smallPages.Store(smallPages.Load())
	for _, small := range []int32{0, smallPageTurns} {
		smallPages.Store(small)
		a, rawA := offHeapChunk()
		b, rawB := offHeapChunk()
		if len(a) != hugePage || cap(a) != hugePage || len(b) != hugePage {
			t.Fatalf("%d and %d bytes, want %d", len(a), len(b), hugePage)
		}
		if at := uintptr(unsafe.Pointer(&a[0])); at%hugePage != 0 {
			t.Errorf("a chunk at %x", at)
		}
		for i := range a {
			a[i] = 1
		}
		for i, x := range b {
			if x != 0 {
				t.Fatalf("byte %d of a new chunk is %d", i, x)
			}
		}
		freeOffHeap(rawA)
		freeOffHeap(rawB)
	}
}
