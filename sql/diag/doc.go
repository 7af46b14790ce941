// Package diag is the one error type a user of streamsql sees.
//
// Every error that a statement, a table option, a record or a job can cause is a *Error: what failed and where (in the
// user's words), why, and the edit that fixes it. Render draws it with the offending line and a caret. diag imports
// nothing of ours, so that every layer can return it.
package diag
