//go:build race

package expr

// raceDetector reports that it is on: sync.Pool then drops items at random, and what uses one allocates.
const raceDetector = true
