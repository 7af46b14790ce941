// Package embedded runs a Kafka broker inside the process (franz-go's kfake) with its data on disk, so that a first
// pipeline needs nothing else. Tables without 'properties.bootstrap.servers' use it.
//
// Its guarantees are weaker than a cluster's: see Weakness, which EXPLAIN prints. It imports franz-go and sql/diag only;
// whoever starts a broker passes its address on as SourceSpec.Embedded and SinkSpec.Embedded.
package embedded
