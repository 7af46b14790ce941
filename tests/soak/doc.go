// Package soak lets two jobs run for a long time on real servers: one in a process that is killed again and again and comes back
// at another parallelism, one in this process that nobody disturbs. It imports the engine and the harness. Invariant: at the end each
// row is in every output once, and what the processes hold did not grow.
package soak
