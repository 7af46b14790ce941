// Package exec runs a physical graph: one goroutine per chain of subtasks, hash exchanges bounded by credits, barrier
// alignment, watermarks, timers, and the job loop that carries out what the checkpoint coordinator decides.
//
//	Job.Run ─▶ attempt: restore ─▶ build ─▶ tasks, coordinated until one fails or the last checkpoint is committed
//	              ▲                                      │ failed, and the restart strategy allows it
//	              └──────────────────────────────────────┘
//
//	source task:  Reader.Next ─▶ computed columns ─▶ watermark per split ─┐
//	gate task:    inbox ─▶ gate (alignment, minimum watermark) ───────────┤
//	                                                                      ▼
//	                         chain of operators, by direct calls ─▶ sink Writer, or shipper ─▶ channels ─▶ next task
//
// Invariants: a batch on a channel is one of the channel's credits, or of a bounded overdraft, so that what is under way, or held at a gate, is
// bounded; every task answers every barrier, in order, by a snapshot or by declining; rows, watermarks and barriers keep
// their order on a channel; only the job loop touches the store; commits never hold up a barrier.
//
// It knows nothing of SQL statements: the planner hands it a Graph of constructors. It imports the leaves of sql,
// checkpoint and connectors (interfaces only). Operators are in exec/op, which imports this package.
package exec
