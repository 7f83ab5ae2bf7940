package main

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/idem-go/idem/examples/internal/page"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSoak(t *testing.T) {
	var out, progress bytes.Buffer
	err := run(t.Context(), plan{orders: 400, seed: 11, parallel: 128}, &out, &progress)
	t.Log("\n" + out.String())
	require.NoError(t, err)
	assert.Regexp(t, `(?m)^orders +400$`, out.String())
	assert.Regexp(t, `(?m)^effects +400$`, out.String())
	assert.Contains(t, progress.String(), "100%  400 orders")
	page.Shows(t, "soak", out.String(), regexp.MustCompile(
		`(?m)^(attempts|sends|restarts of a server|unknown outcomes|  of them done in truth|not executed|asked again) +\d+`))
}

// Each finding makes the run fail, and so does an effect too few.
func TestVerdict(t *testing.T) {
	for name, f := range map[string]func(*tally){
		"doubled": func(t *tally) { t.doublef("order %d", 1) },
		"lost":    func(t *tally) { t.losef("order %d", 1) },
		"wrong":   func(t *tally) { t.wrongf("order %d", 1) },
		"too few": func(t *tally) { t.effects-- },
	} {
		total := &tally{orders: 3, effects: 3}
		require.NoError(t, total.verdict())
		f(total)
		assert.ErrorContains(t, total.verdict(), "3 orders", name)
	}
}

// A client that asks with another key, or with none, is found out.
func TestSoakFindsDoubles(t *testing.T) {
	for name, key := range map[string]string{"another key": "k2", "no key": ""} {
		total := &tally{orders: 1}
		b := &batch{from: 0, to: 1, parallel: 1, total: total}
		require.NoError(t, b.start())
		t.Cleanup(func() { assert.NoError(t, b.server.Close()) })
		for _, key := range []string{b.orders[0].in.Key(), key} {
			b.server.On("POST /orders").Key(key).Then("pass")
			req, err := http.NewRequest(http.MethodPost, b.server.URL+"/orders", strings.NewReader(`{"number":0,"amount":1}`))
			require.NoError(t, err)
			if key != "" {
				req.Header.Set("Idempotency-Key", key)
			}
			resp, err := b.server.Client().Do(req)
			require.NoError(t, err)
			assert.Equal(t, http.StatusCreated, resp.StatusCode)
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		b.audit()
		assert.Equal(t, 1, total.doubled, name)
	}
}
