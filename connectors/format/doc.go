// Package format turns bytes into rows and back: json, csv, raw, debezium-json and changelog-json, with Flink's options.
// Decoders append straight into the columns a query needs; encoders write whole batches into one buffer.
//
// It imports the leaves of sql and catalog. Connectors (kafka, file, …) import it.
package format
