package chaos

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// immutable is FS_IMMUTABLE_FL of linux/fs.h: what `chattr +i` sets. Nothing can be made, renamed or removed in a directory that
// has it, by root neither.
const immutable = 0x10

// sealDir takes away the right to change a directory. The rights of files mean nothing to root, which takes the attribute
// instead.
func sealDir(dir string) error {
	if os.Geteuid() != 0 {
		return os.Chmod(dir, 0o555)
	}
	return setImmutable(dir, true)
}

// unsealDir gives it back.
func unsealDir(dir string) error {
	if os.Geteuid() != 0 {
		return os.Chmod(dir, 0o777)
	}
	return setImmutable(dir, false)
}

func setImmutable(dir string, on bool) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil && (flags&immutable != 0) != on {
		err = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(flags^immutable))
	}
	if errors.Is(err, unix.ENOTTY) && !on {
		err = nil // the file system knows no such attribute, so nothing has it
	}
	if err != nil {
		err = &os.PathError{Op: "change attributes of", Path: dir, Err: err}
	}
	return errors.Join(err, f.Close())
}
