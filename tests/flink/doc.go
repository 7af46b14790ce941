// Package flink runs scripts and expressions whose answers were recorded from Apache Flink and compares: the same SQL file
// over the same input files, two engines. README.md has the format of the files and how to ask Flink; ask and java/ are the
// part that runs it, with Maven and a JDK, and only to record.
//
// Invariant: an answer comes from Flink, never from this engine. Where this engine differs on purpose the script says why and
// has a second answer beside it.
//
// It imports the root package, connectors/memory and what is below.
package flink
