//go:build !race

package idem_test

// raceDetector says that the tests run under the race detector, which allocates.
const raceDetector = false
