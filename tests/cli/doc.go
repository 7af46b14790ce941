// Package cli tests the program from outside: the built binary with its flags, files, signals and exit codes, and the
// interactive shell on a pseudo-terminal.
package cli
