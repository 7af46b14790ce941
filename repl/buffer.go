package repl

import (
	"io"
	"sync"
	"time"
)

// showAfter is how long rows may wait to be written together with others.
const showAfter = 30 * time.Millisecond

// bufferBytes is how much is collected before a write.
const bufferBytes = 64 << 10

// rowBuffer collects what is written to it, so that a fast query does not cost a system call a row, and passes it on
// after a short while, so that a slow one is seen as it goes. It is safe for concurrent use.
type rowBuffer struct {
	out io.Writer

	mu    sync.Mutex
	buf   []byte
	timer *time.Timer // set while a flush is due
	err   error       // of an earlier write; every later one repeats it
}

// Write implements io.Writer.
func (b *rowBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return 0, b.err
	}
	b.buf = append(b.buf, p...)
	if len(b.buf) >= bufferBytes {
		return len(p), b.flush()
	}
	if b.timer == nil {
		b.timer = time.AfterFunc(showAfter, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.timer = nil
			_ = b.flush() // the next Write or Flush returns it
		})
	}
	return len(p), nil
}

// Flush writes what is collected.
func (b *rowBuffer) Flush() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	return b.flush()
}

func (b *rowBuffer) flush() error {
	if b.err == nil && len(b.buf) > 0 {
		_, b.err = b.out.Write(b.buf)
		b.buf = b.buf[:0]
	}
	return b.err
}
