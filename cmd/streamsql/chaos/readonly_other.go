//go:build !linux

package chaos

import "os"

// sealDir takes away the right to change a directory.
func sealDir(dir string) error { return os.Chmod(dir, 0o555) }

// unsealDir gives it back.
func unsealDir(dir string) error { return os.Chmod(dir, 0o777) }
