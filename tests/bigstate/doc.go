// Package bigstate tests state that is larger than memory, through the streamsql binary: a GROUP BY with many times more
// keys than its memory limit holds gives the exact result, stays below a bound of resident memory, and survives kill -9
// while most of its rows are on disk only.
//
// It may import tests/harness and nothing else of the module: what it sees is what a user sees.
package bigstate
