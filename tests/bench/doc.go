// Package bench measures what the streamsql process takes: what a row costs from Kafka to Kafka, exactly once, on a real broker, as
// rows per second and core, and where it goes, from a CPU profile; what a row costs in each operator alone, and by the number of keys;
// how long starting, a row's way to a reader of committed records, and a restart after kill -9 take. make bench runs it at full size
// and writes tables and figures into bin; a plain test run moves few rows and checks the output, not the time.
//
// It may import tests/harness and nothing else of the module.
package bench
