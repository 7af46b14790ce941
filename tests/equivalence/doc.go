// Package equivalence holds the oracle test: a random query over random changes, in random batches, with random
// checkpoints, failures and restarts at other parallelisms, in little memory, leaves the table that a naive evaluation in Go
// of the same query over the final input gives. Each kind of query is an operator in a file op_*_test.go: how SQL says it,
// and what it means by nested loops over rows. A run is its seed:
//
//	make equivalence T=10m
//	go test ./tests/equivalence -seed 4711
//	go test ./tests/equivalence -seeds 100000 -timeout 0
//	go test ./tests/equivalence -fuzz FuzzEquivalence
//	go test ./tests/equivalence -focus interval -for 10m
//
// Of eight seeds one is about the clock (clocked_test.go), one runs in batch mode, and of sixteen one joins many rows of few
// keys (deep_test.go).
package equivalence
