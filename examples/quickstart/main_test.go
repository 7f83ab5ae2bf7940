package main

import (
	"bytes"
	"testing"
	"testing/synctest"

	"github.com/idem-go/idem/contract"
	"github.com/idem-go/idem/examples/internal/page"
	"github.com/idem-go/idem/mockserver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestQuickstart(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, "", mockserver.Config{}))
	story := out.String()
	t.Log(story)
	assert.Contains(t, story, "6 attempts, 6 sends, replayed, outcome: answered")
	assert.Contains(t, story, "effects: 1\n")
	assert.Contains(t, story, "effects: 3\n")
	page.Shows(t, "quickstart", story)
}

func TestQuickstartAgainstAnotherServer(t *testing.T) {
	server, err := mockserver.Start(mockserver.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, server.URL, mockserver.Config{}))
	assert.Contains(t, out.String(), "1 attempts, 1 sends")
}

// A server that ignores keys does the work again, and the program says so.
func TestQuickstartTellsTheTruth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		ignoresKeys := mockserver.Config{Addr: "memory", Contract: contract.Contract{Methods: []string{}}}
		require.ErrorIs(t, run(t.Context(), &out, "", ignoresKeys), errNotOnce)
	})
}
