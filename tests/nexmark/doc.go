// Package nexmark measures the Nexmark queries on this engine and on Apache Flink, in turn on one machine, with exactly-once
// checkpoints in both: make nexmark. docs/benchmarks.md says what is counted. A plain test run puts few events through this engine only.
//
// The queries are those of tests/flink, where their results are compared with Flink's; testdata has those that are measured in
// another form, and the jobs from Kafka to Kafka of make kafka. flink and java/ are the part that runs Flink, with Maven and a JDK.
//
// It may import tests/harness and nothing else of the module.
package nexmark
