package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkMockServer is the mock server's part of G, for go test's own tools.
func BenchmarkMockServer(b *testing.B) {
	cost, err := measureMock(b.N)
	require.NoError(b, err)
	b.ReportMetric(perSecond(cost), "requests/s")
}
