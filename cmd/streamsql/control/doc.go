// Package control is how one process asks another, which owns a state directory and runs its jobs, to do something: take
// a savepoint, stop a job, list jobs. The running process serves HTTP with JSON bodies on the Unix socket control.sock in
// the state directory; paths begin with the version of the protocol, and whoever may write the socket, which is the
// user of the process alone (mode 0600), may ask anything.
//
//	curl --unix-socket .streamsql/job/control.sock http://streamsql/v1/jobs
//
// It imports the engine and sql/diag. Invariant: only the process that holds the state directory's lock makes, replaces
// or removes its socket; a socket that a killed process left is recognised by nobody answering.
package control
