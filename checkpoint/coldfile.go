package checkpoint

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"unsafe"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// coldFile holds chunks of a table's arena that memory has no room for, as they were in memory. It is of the process and
// worth nothing after it: what makes rows durable are the segments. Room of chunks that came back is used again.
type coldFile struct {
	fs   vfs.FS
	path string
	f    vfs.File // nil until the first chunk
	end  int64
	free map[int64][]int64 // places to use again, by their size

	// buf has what was read last, have bytes at from.
	buf  []uint64
	from int64
	have int
}

// room is the size of the place for n bytes.
func (c *coldFile) room(n int) int64 {
	size := int64(firstChunk)
	for size < int64(n) {
		size *= 2
	}
	return size
}

// put writes a chunk and returns where it is.
func (c *coldFile) put(mem []byte) (at int64, err error) {
	if c.f == nil {
		if c.f, err = c.fs.Create(c.path, vfs.WriteCategoryUnspecified); err != nil {
			return 0, err
		}
		c.free = map[int64][]int64{}
	}
	size := c.room(len(mem))
	if l := c.free[size]; len(l) > 0 {
		at, c.free[size] = l[len(l)-1], l[:len(l)-1]
	} else {
		at, c.end = c.end, c.end+size
	}
	c.have = 0
	if _, err := c.f.WriteAt(mem, at); err != nil {
		c.drop(at, len(mem))
		return 0, err
	}
	return at, nil
}

// drop gives the place of n bytes at at back.
func (c *coldFile) drop(at int64, n int) {
	size := c.room(n)
	c.free[size] = append(c.free[size], at)
}

// read reads n bytes at at. They are aligned for row heads and valid until the next call.
func (c *coldFile) read(at int64, n int) ([]byte, error) {
	if len(c.buf)*8 < n {
		c.buf = make([]uint64, (max(n, coldRead)+7)/8)
	}
	c.have = 0
	p, err := c.readTo(c.buf, at, n)
	if err == nil {
		c.from, c.have = at, n
	}
	return p, err
}

// held is what read has read already at at.
func (c *coldFile) held(at int64) []byte {
	if at < c.from || at >= c.from+int64(c.have) {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(c.buf))), c.have)[at-c.from:]
}

func (c *coldFile) readTo(buf []uint64, at int64, n int) ([]byte, error) {
	p := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(buf))), n)
	got, err := c.f.ReadAt(p, at)
	if got == n {
		return p, nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = fmt.Errorf("%q is %w: it ends after %d bytes", c.path, errDamaged, at+int64(got))
	}
	return nil, err
}

func (c *coldFile) close() error {
	if c.f == nil {
		return nil
	}
	f := c.f
	*c = coldFile{fs: c.fs, path: c.path}
	return f.Close()
}

// remove ends the file for good: it may be large.
func (c *coldFile) remove() error {
	if c.f == nil {
		return nil
	}
	return errors.Join(c.close(), c.fs.Remove(c.path))
}

const (
	// coldRead is what is read of a row whose size is not known yet.
	coldRead = 512
	// Rows of a batch that begin within coldGap bytes of each other are read at once, up to coldRun bytes.
	coldGap = 4 << 10
	coldRun = 64 << 10
)

// sealCold puts the checksum of a row where its flags are, which mean nothing in the file.
func sealCold(row []byte) {
	h := (*rowHead)(unsafe.Pointer(unsafe.SliceData(row)))
	h.flags = 0
	h.flags = crc32.Checksum(row, castagnoli)
}

// openCold checks a row that was read. Its flags stay what they are in the file.
func openCold(row []byte) bool {
	h := (*rowHead)(unsafe.Pointer(unsafe.SliceData(row)))
	sum := h.flags
	h.flags = 0
	ok := crc32.Checksum(row, castagnoli) == sum
	h.flags = sum
	return ok
}
