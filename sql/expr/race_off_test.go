//go:build !race

package expr

// raceDetector reports that the race detector is off.
const raceDetector = false
