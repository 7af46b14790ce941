// Package savepoint tests savepoints of whole jobs: moved, started from at another parallelism, with less and more
// memory, by a changed statement, by a later release; and made and removed by processes that are killed.
//
// Invariant: what a test compares with was written by an undisturbed run of the same statements.
package savepoint
