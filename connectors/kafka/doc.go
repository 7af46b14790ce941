// Package kafka is the connectors 'kafka' and 'upsert-kafka': tables over topics, read from positions kept in the
// checkpoint and written in transactions that the checkpoint commits.
//
// The sink's protocol (docs/kafka.md explains it to users):
//
//	slot: FREE ── first row of an epoch ──▶ OPEN ── barrier n ──▶ PREPARED(n) ── manifest n durable ──▶ COMMITTED
//	       ▲                                                                                             │
//	       └──────── a later manifest, which no longer lists the transaction, is durable ◀───────────────┘
//
// With 'sink.commit-protocol' = 'write-ahead' (ahead*.go) the rows of a checkpoint are kept in it instead, and are written after it
// is durable, with a marker record in the same transaction that tells a later process that they are there.
//
// Invariants: a transactional id is used again only after a manifest that does not list its last transaction is
// durable, and then under another epoch (renew.go); a prepared transaction is committed by EndTxn with the stored
// producer id and epoch, never by a call that could initialise the id again, because initialising aborts; the outcome of
// a transaction is read from the control marker in the topic's log, never guessed from an error code; ids are initialised
// (which aborts leftovers and fences writers of earlier incarnations) only after everything the restored manifest lists is
// committed.
//
// The source assigns partitions itself and never resets an offset silently.
//
// It imports connectors, connectors/format, checkpoint, catalog, the leaves of sql, and franz-go.
package kafka
