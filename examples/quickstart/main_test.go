package main

import (
	"bytes"
	"testing"

	"github.com/idem-go/idem/mockserver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestQuickstart(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, ""))
	story := out.String()
	t.Log(story)
	assert.Contains(t, story, "6 attempts, 6 sends, replayed, outcome: answered")
	assert.Contains(t, story, "effects: 1\n")
	assert.Contains(t, story, "effects: 3\n")
}

func TestQuickstartAgainstAnotherServer(t *testing.T) {
	server, err := mockserver.Start(mockserver.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, server.URL))
	assert.Contains(t, out.String(), "1 attempts, 1 sends")
}

// A server that does not keep the contract does the work again.
func TestQuickstartTellsTheTruth(t *testing.T) {
	var out bytes.Buffer
	p := printer{out: &out, server: mockserver.New(t, mockserver.Config{})}
	assert.Zero(t, p.effects("no such key"))
}
