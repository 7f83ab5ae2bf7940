package contract

import (
	"net/http"
	"time"
)

// Default is the contract that most servers keep: the key in Idempotency-Key as
// it is, 1 to 255 visible ASCII characters, remembered for 24 h; 409 while the
// first request runs, 422 when the key came before with another request; 401,
// 407, 413 and 429 are given before the work; the headers that mark a replay
// somewhere; the hints X-Should-Retry and Stripe-Should-Retry; 5xx not
// stored.
//
// A bare 409 is taken for "in progress": repeating it with the same key is
// harmless, while an API that means something else by it can say so by a code
// (see [Match]).
func Default() Contract {
	return Contract{
		Name:     "default",
		Source:   "https://www.ietf.org/archive/id/draft-ietf-httpapi-idempotency-key-header-07.html",
		Header:   "Idempotency-Key",
		Methods:  defaultMethods(),
		MinKey:   defaultMinKey,
		MaxKey:   defaultMaxKey,
		Window:   24 * time.Hour,
		Lease:    time.Minute,
		Answers:  defaultAnswers(),
		Refusals: defaultRefusals(),
		Replayed: defaultMarkers(),
		Hints:    defaultHints(),
	}
}

const defaultMinKey, defaultMaxKey = 1, 255

// windowUnknown is the window of an API that publishes none: as short as the
// shortest that is published by another. Whoever knows more sets Window.
const windowUnknown = 5 * time.Minute

// onlyPost are the methods of an API that keys nothing else, or says nothing of
// other methods: a key that is ignored would make a repeat unsafe.
func onlyPost() []string { return []string{http.MethodPost} }

func defaultMethods() []string {
	return []string{http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete}
}

func defaultAnswers() []Match {
	return []Match{
		{Status: http.StatusConflict, Means: InProgress},
		{Status: http.StatusUnprocessableEntity, Means: Mismatch},
	}
}

func defaultRefusals() []int {
	return []int{
		http.StatusUnauthorized, http.StatusProxyAuthRequired,
		http.StatusRequestEntityTooLarge, http.StatusTooManyRequests,
	}
}

func defaultMarkers() []Marker {
	yes, no := []string{"true", "1"}, []string{"false", "0"}
	return []Marker{
		{Header: "Idempotent-Replayed", Yes: yes, No: no},
		{Header: "X-Idempotent-Replayed", Yes: yes, No: no},
		{Header: "Idempotency-Replayed", Yes: yes, No: no},
		{Header: "X-Idempotency-Replayed", Yes: yes, No: no},
		{Header: "Idempotency-Replay", Yes: yes, No: no},
		{Header: "X-Idempotency-Cached", Yes: yes, No: no},
		{Header: "X-Idempotency-Cache-Hit", Yes: yes, No: no},
		{Header: "Chargebee-Idempotency-Replayed", Yes: yes, No: no},
		{Header: "Request-Idempotency", Yes: yes, No: no}, // PPRO
		{Header: "Idempotency-Status", Yes: []string{"Repeated"}, No: []string{"Original"}},
		{Header: "Idempotency-Relayed"}, // holds the first key
		// Stripe has both on first answers too, Worldline its own on every answer
		// but the first; of one in progress, that is no replay.
		{Header: "Original-Request", DiffersFrom: "Request-Id", Success: true},
		{Header: "X-GCS-Idempotence-Request-Timestamp", Success: true},
	}
}

func defaultHints() []Hint {
	return []Hint{
		{Header: "X-Should-Retry", Retry: "true", Stop: "false"},
		{Header: "Stripe-Should-Retry", Retry: "true", Stop: "false"},
	}
}
