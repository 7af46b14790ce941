// Package exec runs a physical graph: one goroutine per chain of subtasks, hash exchanges over bounded queues, barrier
// alignment, watermarks, timers, and the job loop that carries out what the checkpoint coordinator decides.
//
// It knows nothing of SQL statements: the planner hands it a Graph of constructors. It imports the leaves of sql,
// checkpoint and connectors (interfaces only). Operators are in exec/op, which imports this package.
package exec
