// Package metrics shows the figures of an engine's jobs to Prometheus, and whether the process is well.
//
//	exec.Status of every job ──▶ Collector ──▶ GET /metrics      read when it is asked for: nothing is kept here
//	                                           GET /healthz
//
// Names are Flink's where Flink has the figure, behind streamsql_<scope>_; labels are Flink's as well. docs/metrics.md lists
// them, and a test holds the two together. The package may import the engine; nothing but programs imports it.
package metrics
