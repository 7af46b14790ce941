package harness

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
)

// Ports are drawn below the range that kernels give to outgoing connections (from 32768 on Linux, 49152 elsewhere), and
// each is reserved by a locked file until the process ends. Without both, a killed server could find its port taken by
// somebody's client connection when it comes back.
const (
	portFirst = 20000
	portLast  = 32000
)

var ports struct {
	sync.Mutex
	locks []*os.File // held open for the life of the process
}

// freePort returns a TCP port of 127.0.0.1 that nothing listens on and that no other test process will be given.
func freePort() (int, error) {
	dir := filepath.Join(os.TempDir(), "streamsql-test-ports")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return 0, err
	}
	os.Chmod(dir, 0o777|os.ModeSticky) // other users' tests share it; only its owner may and need do this
	last := errors.New("all are reserved by other tests")
	for range 1000 {
		port := portFirst + rand.IntN(portLast-portFirst)
		// The file of a port that another user's test once had cannot be opened: the next port will do.
		lock, err := lockFile(filepath.Join(dir, fmt.Sprint(port)), false)
		if err != nil {
			last = err
		}
		if lock == nil {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			lock.Close()
			last = err
			continue
		}
		l.Close()
		ports.Lock()
		ports.locks = append(ports.locks, lock)
		ports.Unlock()
		return port, nil
	}
	return 0, fmt.Errorf("found no free TCP port on 127.0.0.1 in 1000 tries: %w", last)
}
