// Package batch is the data plane: rows move between operators as struct-of-columns batches.
//
// A Batch has N physical rows in columns (Vec), an optional selection vector (the rows that count, ascending), and an
// optional row-kind column. Ownership is by borrowing: a batch handed to a call is valid, and must not be changed, until
// that call returns. Whoever keeps rows copies them. The bytes behind strings are the exception: they are immutable
// and garbage collected, so a string taken from a batch stays good (but pins the buffer it aliases: state copies it).
//
// Why so, and what was measured against it: docs/performance.md. It imports sql/types.
package batch
