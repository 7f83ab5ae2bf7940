package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// 200 duplicates of one order at once, each repeated until it has an answer: one
// row, one charge, and the same bytes for all.
func TestDuplicates(t *testing.T) {
	onStores(t, func(t *testing.T, s *Store) {
		h := newHouse(t, s, Config{})
		replies := make([]reply, 200)
		tooEarly := make([]int, len(replies))
		var all sync.WaitGroup
		for i := range replies {
			all.Go(func() {
				for {
					replies[i] = h.order("ann", "click", want("S01", "good"))
					if replies[i].status != http.StatusConflict {
						return
					}
					assert.Equal(t, inProgress, replies[i].kind())
					assert.Equal(t, "1", replies[i].header.Get("Retry-After"))
					tooEarly[i]++
					time.Sleep(20 * time.Millisecond) // sooner than asked, to press harder
				}
			})
		}
		all.Wait()
		fresh, early := 0, 0
		for i, r := range replies {
			if !r.replayed() {
				fresh++
			}
			if tooEarly[i] > 0 {
				early++
			}
			assert.Equal(t, http.StatusCreated, r.status)
			assert.Equal(t, replies[0].body, r.body)
			assert.Equal(t, replies[0].header.Get("Location"), r.header.Get("Location"))
			assert.Equal(t, replies[0].header.Get("Content-Type"), r.header.Get("Content-Type"))
		}
		assert.Equal(t, 1, fresh, "the one that did the work")
		assert.Positive(t, early, "nobody came while the first was at work")
		h.one()
		got := send(t, http.MethodGet, h.url+replies[0].header.Get("Location"), "ann", "")
		assert.Equal(t, http.StatusOK, got.status)
		assert.Equal(t, replies[0].body, got.body)
	})
}

// Two buyers with one key do not meet, and do not see each other's order.
func TestSharedKey(t *testing.T) {
	onStores(t, func(t *testing.T, s *Store) {
		h := newHouse(t, s, Config{})
		ann, bob := h.order("ann", "click", want("S01", "good")), h.order("bob", "click", want("S02", "good"))
		assert.Equal(t, 201, ann.status)
		assert.Equal(t, 201, bob.status)
		assert.False(t, bob.replayed())
		assert.NotEqual(t, ann.header.Get("Location"), bob.header.Get("Location"))
		assert.Equal(t, 404, send(t, http.MethodGet, h.url+ann.header.Get("Location"), "bob", "").status)
		assert.Len(t, h.provider.Effects(""), 2)
	})
}

// The same key with another body is 422, while the first is at work and after, and
// changes nothing.
func TestReusedKey(t *testing.T) {
	onStores(t, func(t *testing.T, s *Store) {
		p := newPause("charged")
		h := newHouse(t, s, Config{At: p.at})
		first := make(chan reply)
		go func() { first <- h.order("ann", "click", want("S01", "good")) }()
		p.wait(t)
		during := h.order("ann", "click", want("S02", "good"))
		close(p.release)
		done := <-first
		assert.Equal(t, 201, done.status)
		for _, r := range []reply{during, h.order("ann", "click", want("S02", "good")), h.order("ann", "click", want("S01", "good")+" ")} {
			assert.Equal(t, 422, r.status)
			assert.Equal(t, "idempotency-key-reused", r.kind())
			assert.Equal(t, "application/problem+json", r.header.Get("Content-Type"))
			assert.Empty(t, r.header.Get("Retry-After"))
		}
		again := h.order("ann", "click", want("S01", "good"))
		assert.True(t, again.replayed())
		assert.Equal(t, done.body, again.body)
		h.one()
	})
}

// What two requests must share to be the same: method, path and body, to the byte.
func TestPrint(t *testing.T) {
	base := printOf("POST", "/orders", []byte("{}"))
	assert.Equal(t, base, printOf("POST", "/orders", []byte("{}")))
	assert.Len(t, base, 64)
	for _, other := range []string{
		printOf("PUT", "/orders", []byte("{}")), printOf("POST", "/orders/1", []byte("{}")), printOf("POST", "/orders", []byte("{} ")),
	} {
		assert.NotEqual(t, base, other)
	}
}

// A declined card's 402 is stored, and its seat is free for the next.
func TestDeclined(t *testing.T) {
	onStores(t, func(t *testing.T, s *Store) {
		h := newHouse(t, s, Config{})
		first, again := h.order("ann", "click", want("S01", "declined")), h.order("ann", "click", want("S01", "declined"))
		assert.Equal(t, 402, first.status)
		assert.False(t, first.replayed())
		assert.Equal(t, 402, again.status)
		assert.True(t, again.replayed())
		assert.Equal(t, first.body, again.body)
		assert.Equal(t, 201, h.order("bob", "click", want("S01", "good")).status)
		assert.Equal(t, 402, h.order("ann", "click", want("S01", "declined")).status, "stored, whatever has happened since")
		assert.Len(t, h.provider.Effects(""), 1)
	})
}

// A 5xx is never stored: the same key goes on with the same order and the same
// charge as soon as the provider does.
func TestNo5xxIsStored(t *testing.T) {
	onStores(t, func(t *testing.T, s *Store) {
		h := newHouse(t, s, Config{})
		outage := h.provider.On("POST /charges").Always("503@received")
		for range 2 {
			r := h.order("ann", "click", want("S01", "good"))
			assert.Equal(t, 503, r.status)
			assert.Equal(t, "1", r.header.Get("Retry-After"))
			assert.False(t, r.replayed())
		}
		assert.Equal(t, 0, count(t, s, "SELECT count(*) FROM claims WHERE status IS NOT NULL"))
		outage.Always("pass")
		r := h.order("ann", "click", want("S01", "good"))
		assert.Equal(t, 201, r.status)
		assert.False(t, r.replayed())
		h.one()
		c := claim{buyer: "ann", key: "click", token: 1}
		require.NoError(t, s.inTx(t.Context(), func(tx conn) error {
			assert.ErrorContains(t, storeAnswer(t.Context(), tx, c, problem(503, notYet, "")), "must not be stored")
			return nil
		}))
	})
}

// The last seat is sold once, to the fastest of 50.
func TestLastSeat(t *testing.T) {
	onStores(t, func(t *testing.T, s *Store) {
		h := newHouse(t, s, Config{})
		replies := make([]reply, 50)
		var all sync.WaitGroup
		for i := range replies {
			all.Go(func() { replies[i] = h.order(fmt.Sprint("buyer ", i), "click", want("S20", "good")) })
		}
		all.Wait()
		sold := 0
		for i, r := range replies {
			if r.status == 201 {
				sold++
				continue
			}
			assert.Equal(t, 409, r.status)
			assert.Equal(t, "seat-taken", r.kind())
			assert.Empty(t, r.header.Get("Retry-After"), "nothing to wait for")
			again := h.order(fmt.Sprint("buyer ", i), "click", want("S20", "good"))
			assert.True(t, again.replayed(), "stored, like any answer")
			assert.Equal(t, r.body, again.body)
		}
		assert.Equal(t, 1, sold)
		assert.Len(t, h.provider.Effects(""), 1)
		assert.Equal(t, 1, count(t, s, "SELECT count(*) FROM orders"))
	})
}

// What is malformed is refused before any claim, and the key is still unused.
func TestRefused(t *testing.T) {
	onStores(t, func(t *testing.T, s *Store) {
		h := newHouse(t, s, Config{})
		url, good := h.url+"/orders", want("S01", "good")
		for name, row := range map[string]struct {
			got    reply
			status int
			kind   string
		}{
			"no buyer":    {send(t, "POST", url, "", good, "click"), 401, badRequest},
			"no key":      {send(t, "POST", url, "ann", good), 400, keyMissing},
			"empty key":   {send(t, "POST", url, "ann", good, ""), 400, badRequest},
			"blank key":   {send(t, "POST", url, "ann", good, " "), 400, badRequest},
			"two keys":    {send(t, "POST", url, "ann", good, "click", "click"), 400, badRequest},
			"long key":    {send(t, "POST", url, "ann", good, strings.Repeat("k", 256)), 400, badRequest},
			"no JSON":     {send(t, "POST", url, "ann", "seat", "click"), 400, badRequest},
			"no seat":     {send(t, "POST", url, "ann", `{"card":"good"}`, "click"), 400, badRequest},
			"long body":   {send(t, "POST", url, "ann", good+strings.Repeat(" ", maxBody), "click"), 400, badRequest},
			"other order": {send(t, "GET", url+"/nobodys", "ann", ""), 404, notFound},
		} {
			assert.Equal(t, row.status, row.got.status, name)
			assert.Equal(t, row.kind, row.got.kind(), name)
		}
		assert.Equal(t, 0, count(t, s, "SELECT count(*) FROM claims"))
		assert.Equal(t, 201, send(t, "POST", url, "ann", good, strings.Repeat("k", 255)).status)
		unknown := h.order("ann", "click", want("Z99", "good"))
		assert.Equal(t, 404, unknown.status)
		assert.Equal(t, noSuchSeat, unknown.kind())
	})
}

// The shop's contract tells its clients what to do: wait for what is in progress,
// and no more than that.
func TestContract(t *testing.T) {
	require.NoError(t, shopContract().Validate())
	onFresh(t, "", func(s *Store) {
		h := newHouse(t, s, Config{})
		ask := func(buyer, card string) (idem.Result, error) {
			client, err := idem.NewClient(idem.Config{
				BaseURL: h.url, Header: http.Header{"Authorization": {"Bearer " + buyer}},
				Transport: &idem.Transport{Contract: shopContract()},
			})
			require.NoError(t, err)
			return client.Call(t.Context(), idem.Open(), "POST", "/orders", map[string]string{"seat": "S01", "card": card}, nil)
		}
		for _, row := range []struct {
			buyer, card string
			status      int
		}{{"ann", "declined", 402}, {"bob", "good", 201}, {"cid", "good", 409}} {
			res, _ := ask(row.buyer, row.card)
			assert.Equal(t, row.status, res.Status)
			assert.Equal(t, idem.Answered, res.Outcome)
			assert.Equal(t, idem.NotReplayed, res.Replay)
			assert.Equal(t, 1, res.Attempts)
		}
	})
}
