package main

import (
	"testing"
	"time"

	"github.com/idem-go/idem/benchmarks/internal/peers"
	"github.com/stretchr/testify/assert"
)

// A look at calls that may have stopped waiting is no measurement.
func TestLateLook(t *testing.T) {
	_, err := patientlyWaiting(peers.Named(peers.Floor), 10, time.Millisecond)
	assert.ErrorIs(t, err, errLate)
}
