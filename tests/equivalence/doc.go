// Package equivalence holds the oracle test: a random query over random changes, in random batches, with random
// checkpoints, failures and restarts at other parallelisms, leaves the table that a naive evaluation in Go of the same query
// over the final input gives. A run is its seed:
//
//	go test ./tests/equivalence -seed 4711
//	go test ./tests/equivalence -seeds 100000 -timeout 0
//	go test ./tests/equivalence -fuzz FuzzEquivalence
package equivalence
