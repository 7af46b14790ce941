// Package postgres writes tables to PostgreSQL: the connectors 'jdbc' (Flink's name and URL form) and 'postgres' (the
// native URL).
//
// A table without a primary key is appended to in two phases, by one of two protocols (sink.commit-protocol):
//
//	prepared     rows are copied into a transaction as they come; at the barrier it writes its marker row and is
//	             prepared (PREPARE TRANSACTION); committing is COMMIT PREPARED
//	write-ahead  rows are kept in the checkpoint; committing copies them and the marker row in one transaction
//
// The marker is a row of _streamsql_commits written by the very transaction it names, so its presence proves the
// outcome where error codes cannot: 42704 answers both "committed already" and "rolled back". That it is not there proves
// nothing when somebody has deleted it, so that a second witness is asked (proof.go).
//
// A table with a primary key is written by write-ahead too: the last change of each key in a checkpoint (changes.go, keyed.go) is
// kept in it, and deleted or upserted through temporary tables (stage.go) when it is complete. prepared is not for it: the locks of the keys
// would outlast the checkpoint. With sink.commit-protocol = upsert the changes are written at once, before the checkpoint
// (upsert.go): a replay in other batches need not come by a row or a value again that was written, which then stays.
//
// Every incarnation of a job takes the sink before it reads a marker: it raises the epoch of the sink's row in
// _streamsql_owner and ends the sessions of earlier incarnations. Every transaction compares the epoch; one that was
// suspended and wakes up has lost its session and finds another epoch on a new one.
//
// It imports connectors, checkpoint, catalog and the leaves of sql, and pgx.
package postgres
