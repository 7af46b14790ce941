// Package bench measures what a row costs from Kafka to Kafka, exactly once, on a real broker: the processor time of the
// streamsql process alone, as rows per second and core, and where it goes, from a CPU profile; and what a row costs in each
// operator alone. make bench runs it at full size and writes bin/bench.md and bin/bench.json; a plain test run moves few rows
// and checks the output, not the time.
//
// It may import tests/harness and nothing else of the module.
package bench
