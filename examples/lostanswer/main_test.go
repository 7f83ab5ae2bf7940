package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idem-go/idem/examples/internal/page"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The picture on the README's first screen is what a run shows today.
func TestPictureIsCurrent(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lost-answer.svg")
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, file))
	page.Shows(t, "lostanswer", out.String())
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	want, err := os.ReadFile(filepath.Join("..", "..", "docs", "lost-answer.svg"))
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got), "docs/lost-answer.svg is not current: go run ./examples/lostanswer -o docs/lost-answer.svg")
	for dec := xml.NewDecoder(bytes.NewReader(got)); ; {
		if _, err = dec.Token(); err != nil {
			break
		}
	}
	assert.ErrorIs(t, err, io.EOF, "not well formed")
}

// Without an Intent the second request is a second charge; with one it has the
// first one's key and gets the stored answer.
func TestStories(t *testing.T) {
	stories, err := both(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []story{
		{"Without an Intent", []exchange{
			{what: "POST /charges", effect: 1},
			{what: "POST /charges", effect: 2, status: 201},
		}, 2},
		{"With an Intent", []exchange{
			{what: "POST /charges", key: "A", effect: 1},
			{what: "POST /charges", key: "A", replayed: true, status: 201},
		}, 1},
	}, stories)
}

// A picture of something else looks otherwise: nothing in it is fixed.
func TestDrawShowsWhatWas(t *testing.T) {
	svg := draw([]story{{"One", []exchange{{what: "PUT /a", key: "B", status: 503}}, 0}, {"Two", nil, 3}})
	for _, text := range []string{"PUT /a, key B", "503 Service Unavailable", ">nothing<", "0 effects", "3 effects"} {
		assert.Contains(t, svg, text)
	}
	assert.NotContains(t, svg, "answer lost")
	assert.Equal(t, 1, strings.Count(svg, "<circle"))
}

// A client that gives up is an error, not a picture.
func TestTellFails(t *testing.T) {
	gaveUp := errors.New("gave up")
	_, err := tell("", func(http.RoundTripper, string) error { return gaveUp })
	assert.ErrorIs(t, err, gaveUp)
}
