package file

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
)

// Remark tells what on this machine stands in the way of using t, "" when nothing does or t is no table of files. It looks
// at the path and changes nothing. A statement that is checked here may run elsewhere, so this is no error.
func Remark(t *catalog.Table, use connectors.Use) string {
	if t.Connector() != Connector().Name {
		return ""
	}
	c, err := parse(t)
	if err != nil {
		return "" // Check reports it
	}
	why := readFault(c.path)
	if use == connectors.UseSink {
		why = writeFault(c.path)
	}
	if why == "" {
		return ""
	}
	return "table " + t.Name + ": " + why
}

func readFault(path string) string {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !filepath.IsAbs(path):
		return "path " + path + " does not exist here; it is relative to the folder the program runs in"
	case errors.Is(err, fs.ErrNotExist):
		return "path " + path + " does not exist on this machine"
	case err != nil:
		return "path " + path + " cannot be read here: " + cause(err)
	case info.IsDir():
		err = unix.Access(path, unix.R_OK|unix.X_OK)
	default:
		err = unix.Access(path, unix.R_OK)
	}
	if err != nil {
		return "path " + path + " cannot be read here: " + err.Error()
	}
	return ""
}

// writeFault looks at the nearest folder of path that exists: those below it are made.
func writeFault(path string) string {
	for p := filepath.Clean(path); ; p = filepath.Dir(p) {
		info, err := os.Stat(p)
		switch {
		case errors.Is(err, fs.ErrNotExist) && p != filepath.Dir(p):
			continue
		case err != nil:
			return "folder " + p + " cannot be used here: " + cause(err)
		case !info.IsDir():
			return p + " is not a folder, and a table is written as several files; set 'path' to a folder"
		}
		if err := unix.Access(p, unix.W_OK|unix.X_OK); err != nil {
			return "folder " + p + " cannot be written here: " + err.Error()
		}
		return ""
	}
}

// cause is err without the path, which the message has already.
func cause(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}
