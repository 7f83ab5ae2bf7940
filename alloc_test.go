package idem_test

import (
	"context"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a call that succeeds at once costs over the same request by a bare
// http.Client: not more than today. A change that raises it has to say why.
func TestCostOfACall(t *testing.T) {
	if testing.Short() {
		t.Skip("short is how the mutants are tried, and a function with mutants in it costs more")
	}
	bare := cost(t, &http.Client{Transport: canned{}}, false)
	ours := &http.Client{Transport: &idem.Transport{Base: canned{}}}
	for _, test := range []struct {
		name   string
		intent bool
		most   usage
	}{
		{"an Intent a call", true, usage{allocs: 17, bytes: 2710}},
		{"without a key", false, usage{allocs: 15, bytes: 2060}},
	} {
		if raceDetector {
			test.most.allocs++
			test.most.bytes += 40
		}
		c := cost(t, ours, test.intent)
		t.Logf("%s: %.1f allocations and %.0f bytes over %v", test.name, c.allocs-bare.allocs, c.bytes-bare.bytes, bare)
		assert.LessOrEqual(t, c.allocs-bare.allocs, test.most.allocs+0.5, test.name)
		assert.LessOrEqual(t, c.bytes-bare.bytes, test.most.bytes, test.name)
	}
}

type usage struct{ allocs, bytes float64 }

// cost measures one call, over many.
func cost(t *testing.T, client *http.Client, intent bool) usage {
	const calls = 2000
	call := func() {
		ctx := context.Background()
		if intent {
			ctx = idem.WithIntent(ctx, idem.Open())
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://api.example.com/charges", strings.NewReader("order=1"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	call() // what is made once
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range calls {
		call()
	}
	runtime.ReadMemStats(&after)
	return usage{float64(after.Mallocs-before.Mallocs) / calls, float64(after.TotalAlloc-before.TotalAlloc) / calls}
}
