// Package jobstate reads what a killed process left in a job's state directory. Package harness,
// which starts such processes, imports nothing of streamsql; this one imports package checkpoint.
//
// Invariant: it changes nothing there but the fence that whoever opens a state directory takes.
package jobstate
