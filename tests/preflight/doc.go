// Package preflight shows that a job which cannot work is refused before a row is read, with the numbers and the fix: the
// program is run against a real broker and a real database, and its messages are golden files.
package preflight
