// Package short says how much a test does under -short: what one goroutine computes has nothing to race, and is ten times slower
// under the race detector, which CI runs with -short. Invariant: without -short a test does all it can.
package short
