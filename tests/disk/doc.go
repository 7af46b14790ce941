// Package disk tests jobs on a disk that fails: operations that end with an error, writes that stop half way, a disk that is
// full, syncs that take their time, power cuts, and files that are damaged, cut off, empty or gone when a job is started again.
package disk
