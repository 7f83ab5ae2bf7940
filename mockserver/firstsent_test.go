package mockserver

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/idem-go/idem/contract"
)

// The time of the first send that Azure asks for.
func TestFirstSent(t *testing.T) {
	in(t, Config{Contract: contract.Azure()}, func(t *testing.T, s *Server, c *http.Client) {
		const id = "0f8fad5b-d9cb-469f-a165-70867728950"
		post := func(key, at string) int {
			headers := []string{"Repeatability-Request-Id: " + id + key}
			if at != "" {
				headers = append(headers, "Repeatability-First-Sent: "+at)
			}
			return send(t.Context(), c, http.MethodPost, s.URL+"/orders", "{}", headers...).Status
		}
		at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
		now := at(0)
		assert.Equal(t, 400, post("1", ""), "missing")
		assert.Equal(t, 400, post("1", time.Now().Format(time.RFC3339)), "of another form")
		assert.Equal(t, 412, post("1", at(time.Minute)), "in the future")
		assert.Equal(t, 412, post("1", at(-6*time.Minute)), "too long ago")
		assert.Empty(t, s.Effects(""))
		assert.Equal(t, 201, post("1", now))
		assert.Equal(t, 201, post("1", now))
		assert.Len(t, s.Effects(""), 1)
		time.Sleep(6 * time.Minute)
		assert.Equal(t, 412, post("1", now), "no new request, though the key is forgotten")
	})
}
