// Package planner turns statements into physical graphs, in named steps:
//
//	statement -> bind (names, types) -> logical plan -> rules -> physical plan -> traits (changelog mode, upsert keys)
//	          -> delivery of each sink -> exec.Graph
//
// bind.go and its neighbours resolve names and types; node.go holds the logical nodes; rules.go the rewriting rules in
// order; physical.go chooses operators and exchanges; changelog.go, keys.go infer what flows over every edge; sink.go
// chooses and explains each sink's delivery; lower.go makes the graph; explain.go prints. Nothing here contacts an
// external system.
//
// Invariant: a statement is either planned with exactly the meaning Flink SQL gives it, or refused by name.
//
// It imports sql, catalog, checkpoint (ids), connectors (interfaces) and exec.
package planner
