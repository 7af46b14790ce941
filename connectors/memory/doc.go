// Package memory connects tables to the Go program around the engine: a Feed is a table the program writes and a job
// reads, a Queue a table a job writes and the program reads. Both take part in checkpoints. A Feed keeps rows until a
// checkpoint covers them, so that a restarted job reads them again; a Queue shows rows when the checkpoint that holds
// them is committed (two-phase commit), or at once.
//
// Feeds and queues live in a Bus, which outlives jobs: for the jobs of a process it plays the part of the outside world.
// It also is what tests of the engine use: a Bus can be told to fail, to hold back rows, and to abort transactions.
//
//	Feed.Append ──▶ reader ──▶ operators ──▶ writer ──PreCommit──▶ prepared ──Commit──▶ Queue.Next
//	      ▲                                                          │
//	      └── kept until Committed ──────────────────────            └──Abort──▶ gone
//
// Invariant: a row is visible in a Queue only after Commit of its transaction, and a transaction that was decided once
// stays so.
//
// It imports connectors and what is below.
package memory
