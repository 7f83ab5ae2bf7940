package mockserver_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/idem-go/idem/mockserver"
)

// chaos is one fixed plan: half of all attempts meet one of ten faults, drawn
// from the key and the number of the attempt.
func chaos(s *mockserver.Server) {
	s.On("POST /orders").Sometimes(0.5, 2026,
		"drop@received", "reset@stored", "drop@claimed; delay@claimed for=500ms", "503@received retry-after=2", "503@stored",
		"429@received retry-after=1", "cut@body after=3", "cut@head after=9", "crash@claimed", "502@received forward=now",
	)
}

// A client places one order and says what it tells its caller. It notes the key
// that it used last.
type client func(ctx context.Context, s *mockserver.Server, base http.RoundTripper, key *string, body string) mockserver.Belief

// naive is the loop that is in many programs: a stock client, five tries, no
// wait. What is not a 2xx is a failure to it. newKey gives the key of each try.
func naive(newKey func(order string, try int) string) client {
	return func(ctx context.Context, s *mockserver.Server, base http.RoundTripper, key *string, body string) mockserver.Belief {
		c := &http.Client{Transport: base}
		order := *key
		for try := range 5 {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/orders", strings.NewReader(body))
			if err != nil {
				return mockserver.NotDone
			}
			if *key = newKey(order, try); *key != "" {
				req.Header.Set("Idempotency-Key", *key)
			}
			resp, err := c.Do(req)
			if err != nil {
				continue
			}
			_, err = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if err == nil && resp.StatusCode/100 == 2 {
				return mockserver.Done
			}
		}
		return mockserver.NotDone
	}
}

// retryable is go-retryablehttp as its documentation shows it, with a key.
func retryable(ctx context.Context, s *mockserver.Server, base http.RoundTripper, key *string, body string) mockserver.Belief {
	c := retryablehttp.NewClient()
	c.HTTPClient.Transport, c.Logger = base, nil
	req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/orders", []byte(body))
	if err != nil {
		return mockserver.NotDone
	}
	req.Header.Set("Idempotency-Key", *key)
	resp, err := c.Do(req)
	if err != nil {
		return mockserver.NotDone
	}
	_, err = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if err == nil && resp.StatusCode/100 == 2 {
		return mockserver.Done
	}
	return mockserver.NotDone
}

// ours asks with one Intent, and once more with the same one after a while if
// the outcome is unknown. The key is adopted, so that the plan is always the same.
func ours(ctx context.Context, s *mockserver.Server, base http.RoundTripper, key *string, body string) mockserver.Belief {
	in, err := idem.Adopt(*key, time.Now())
	if err != nil {
		return mockserver.Unsure
	}
	c := &http.Client{Transport: &idem.Transport{Base: base, Contract: shortLease()}}
	for range 3 {
		req, err := http.NewRequestWithContext(idem.WithIntent(ctx, in), http.MethodPost, s.URL+"/orders", strings.NewReader(body))
		if err != nil {
			return mockserver.Unsure
		}
		resp, err := c.Do(req)
		status := 0
		if err == nil {
			status = resp.StatusCode
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		switch in.Outcome() {
		case idem.Answered:
			if status/100 == 2 {
				return mockserver.Done
			}
			return mockserver.NotDone
		case idem.NotExecuted:
			return mockserver.NotDone
		}
		time.Sleep(time.Minute)
	}
	return mockserver.Unsure
}

func shortLease() contract.Contract { return contract.Contract{Lease: time.Second} }

// Four clients under the same plan: which breaches the server finds in each.
func TestChaos(t *testing.T) {
	fresh := func(order string, try int) string { return fmt.Sprint(order, "-", try) }
	same := func(order string, _ int) string { return order }
	none := func(string, int) string { return "" }
	for _, row := range []struct {
		name   string
		client client
		want   []string
		counts string // done, not done, unsure; effects, requests
	}{
		{"a loop without a key", naive(none), []string{"doubled"}, "57 3 0; 109 144"},
		{"a loop with a key for each try", naive(fresh), []string{"rekeyed", "unfinished"}, "60 0 0; 91 128"},
		{"a loop with one key", naive(same), []string{"early", "hurried", "phantom", "unfinished"}, "56 4 0; 57 109"},
		{"go-retryablehttp", retryable, []string{"hurried", "phantom"}, "52 8 0; 60 85"},
		{"idem", ours, nil, "60 0 0; 60 102"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := mockserver.New(t, mockserver.Config{Contract: shortLease()})
				chaos(s)
				told := map[mockserver.Belief]int{}
				var mu sync.Mutex
				var all sync.WaitGroup
				for i := range 60 {
					all.Go(func() {
						time.Sleep(time.Duration(i) * 7 * time.Millisecond)
						key := fmt.Sprint("order-", i)
						b := row.client(t.Context(), s, s.Transport(), &key, fmt.Sprintf(`{"order":%d}`, i))
						mu.Lock()
						defer mu.Unlock()
						told[b]++
						if key != "" { // of an order without a key nothing can be believed
							s.Believe(key, b)
						}
					})
				}
				all.Wait()
				err := s.Verify()
				kinds := kindsOf(t, err)
				counts := fmt.Sprintf("%d %d %d; %d %d", told[mockserver.Done], told[mockserver.NotDone], told[mockserver.Unsure],
					len(s.Effects("")), len(s.Requests("")))
				t.Log(counts, kinds)
				assert.Equal(t, row.want, slices.Sorted(maps.Keys(kinds)), "%v", err)
				assert.Equal(t, row.counts, counts, "the plan is the same each time")
			})
		})
	}
}

// kindsOf counts the breaches of each kind.
func kindsOf(t *testing.T, err error) map[string]int {
	t.Helper()
	kinds := map[string]int{}
	if err == nil {
		return kinds
	}
	var joined interface{ Unwrap() []error }
	require.ErrorAs(t, err, &joined)
	for _, e := range joined.Unwrap() {
		var b *mockserver.Breach
		require.ErrorAs(t, e, &b)
		kinds[b.Kind]++
	}
	return kinds
}

// A thousand tests in virtual time, each with a server, a client and half a
// minute of backoff, take less than three seconds under the race detector.
func TestThousandServers(t *testing.T) {
	begin := time.Now()
	for range 1000 {
		synctest.Test(t, func(t *testing.T) {
			s := mockserver.New(t, mockserver.Config{})
			s.On("POST /orders").Then("reset@stored", "503@received retry-after=30")
			in := idem.Open()
			req, err := http.NewRequestWithContext(idem.WithIntent(t.Context(), in), http.MethodPost, s.URL+"/orders", strings.NewReader("{}"))
			require.NoError(t, err)
			resp, err := (&idem.Transport{Base: s.Transport()}).RoundTrip(req)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Len(t, s.Effects(in.Key()), 1)
			require.Len(t, s.Requests(in.Key()), 3)
			require.NoError(t, s.Verify())
		})
	}
	took := time.Since(begin)
	t.Logf("1000 servers took %v", took)
	assert.Less(t, took, 10*time.Second, "3 s on an idle machine of 2 cores; other tests may run beside")
}
