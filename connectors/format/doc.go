// Package format is bytes to rows and back: json, csv, raw and the changelog envelopes debezium-json and changelog-json.
// Decoders append straight into the columns a query needs; encoders write whole batches into one buffer.
//
//	WITH options ── Choose ──▶ Choice{Value, Key} ── NewDecoder ──▶ Decoder: messages ──▶ batch.Builder
//	                                              └─ NewEncoder ──▶ Encoder: batch.Batch ──▶ Messages
//
// The rules are Flink's (docs/connectors.md lists where we differ). A decoder never panics and never guesses: what it
// cannot read is a *BadRecord, unless the table asked for ignore-parse-errors, and then it is counted.
//
// It imports the leaves of sql, catalog and its parent package for options. Connectors (kafka, file, …) import it.
package format
