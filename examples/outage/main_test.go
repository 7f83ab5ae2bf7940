package main

import (
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/examples/internal/page"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The picture and the numbers in the documentation are those of seed 1.
func TestPictureIsCurrent(t *testing.T) {
	without, with := both(1)
	var out strings.Builder
	table(&out, without, with)
	page.Shows(t, "outage", out.String())
	want, err := os.ReadFile("../../docs/outage.svg")
	require.NoError(t, err)
	same := string(want) == draw(without, with)
	assert.True(t, same, "docs/outage.svg is not current: go run ./examples/outage -o docs/outage.svg")
	for dec := xml.NewDecoder(strings.NewReader(string(want))); ; {
		if _, err = dec.Token(); err != nil {
			break
		}
	}
	assert.ErrorIs(t, err, io.EOF, "not well formed")
}

// What the picture shows does not hang on the seed: with a Budget the fleet is
// back soon after the outage, without one the load of the repeated attempts keeps
// the service busy with what nobody waits for any more.
func TestOutage(t *testing.T) {
	for seed := range uint64(20) {
		without, with := both(seed)
		end := int(with.outage[1] / time.Second)
		assert.InDelta(t, 70, with.rate(0, 20), 6, "before, seed %d", seed)
		assert.InDelta(t, 70, without.rate(0, 20), 6, "before, seed %d", seed)
		assert.Zero(t, with.rate(end-15, end), "during, seed %d", seed)
		assert.InDelta(t, 70, with.rate(end+15, len(with.good)), 5, "after, with a Budget, seed %d", seed)
		assert.Less(t, without.rate(end+15, len(without.good)), 10.0, "after, without one, seed %d", seed)
	}
}

// The simulated budget allows as many attempts as the real one.
func TestBudgetIsTheRealOne(t *testing.T) {
	const calls = 300
	for _, c := range []struct {
		ratio float64
		floor int
	}{{0.1, 10}, {0.3, 0}, {1, 5}} {
		hits := 0
		transport := &idem.Transport{
			Base: base(func(r *http.Request) (*http.Response, error) {
				hits++
				return nil, errors.New("down")
			}),
			Backoff: idem.Exponential(0, 0), MaxAttempts: 4, Budget: idem.NewBudget(c.ratio, c.floor),
		}
		for range calls {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://service.test/", nil)
			require.NoError(t, err)
			_, err = transport.RoundTrip(req)
			require.Error(t, err)
		}
		simulated, b := 0, newBudget(c.ratio, c.floor)
		for range calls {
			b.earn()
			simulated++
			for n := 1; n < 4 && b.spend(); n++ {
				simulated++
			}
		}
		assert.Equal(t, hits, simulated, "%+v", c)
	}
}

type base func(*http.Request) (*http.Response, error)

func (f base) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
