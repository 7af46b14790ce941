// Command limit runs some of the Nexmark queries as a program written by hand would, on one core: the yardstick that
// tests/nexmark prints beside the engines. No SQL, no exchange, no checkpoints, no NULLs; events are made column by column, only the
// columns that are read, and the query's loops are fused to them. What a query must keep is kept: every bid of a join, the rows
// of a deduplication; and its changes go into output columns, a mini-batch at a time.
//
//	limit -query q4 -events 10000000 -rate 1000000
//
// It imports nothing of the module. The events are those of connectors/nexmark.
package main
