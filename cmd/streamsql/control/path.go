package control

import (
	"fmt"
	"os"
	"path/filepath"
)

// maxSocketPath is what the name of a socket may have on every system (macOS: 104 bytes with the end).
const maxSocketPath = 100

// shortPath is a name of the socket in dir that the system takes: names of sockets are short, those of directories are
// not. It is good until done is called.
func shortPath(dir string) (path string, done func(), err error) {
	path = filepath.Join(dir, SocketName)
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	short := fmt.Sprintf("/proc/self/fd/%d", d.Fd())
	if _, err := os.Stat(short); err != nil {
		d.Close()
		return "", nil, fmt.Errorf("the path %s is longer than the %d bytes that a socket's may have", path, maxSocketPath)
	}
	return filepath.Join(short, SocketName), func() { d.Close() }, nil
}
