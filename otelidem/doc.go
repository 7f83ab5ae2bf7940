// Package otelidem shows what an [idem.Transport] does to OpenTelemetry: as spans
// and as metrics.
//
//	transport, err := otelidem.Instrument(&idem.Transport{}, otelidem.Config{})
//	…
//	client, err := idem.NewClient(idem.Config{BaseURL: url, Transport: transport})
//
// # Spans
//
// Each call is a span of kind INTERNAL with attributes of this package, and below
// it each attempt is one of kind CLIENT that keeps OpenTelemetry's HTTP
// conventions (https://opentelemetry.io/docs/specs/semconv/http/http-spans/), with
// http.request.resend_count from the second on. Each hop of a redirect is a call
// of its own here, and its attempts are numbered on from those before.
//
//	idem POST /charges          INTERNAL  idem.outcome=answered idem.attempts=2 idem.sends=2
//	├─ POST /charges            CLIENT    error.type=connection_reset
//	└─ POST /charges            CLIENT    http.response.status_code=201 http.request.resend_count=1
//
// The attributes of a call are idem.contract (its name), idem.keyed, idem.outcome,
// idem.replay, idem.attempts, idem.sends, and idem.reason if it ended other than
// by a final answer (see below). Its status is Error when there is no response or
// one of 400 and above.
//
// An attempt's span ends when the Transport has judged its end: with its answer
// read, if that is read inside the attempt, and otherwise with the head of the
// answer. A body that is streamed to the caller is not part of it. Nothing that
// ends a call leaves a span open, a panic included. A call that is refused before
// it begins, as with idem.ErrNoIntent, has no span and counts nowhere.
//
// The trace is put into the headers of each attempt, below everything that the
// Intent is bound to: a traceparent is another on each attempt, and changes
// neither the key nor the fingerprint nor the caller's request.
//
// # Metrics
//
// As OpenTelemetry names them, and as its Prometheus exporter does:
//
//	http.client.request.duration  http_client_request_duration_seconds  attempts, as the HTTP conventions have it
//	idem.attempts                 idem_attempts_total                   attempts by idem.outcome and error.type
//	idem.attempt.duration         idem_attempt_duration_seconds         until its end was judged
//	idem.wait.duration            idem_wait_duration_seconds            the waits before further attempts
//	idem.resends                  idem_resends_total                    what net/http sent again by itself
//	idem.calls                    idem_calls_total                      calls by idem.keyed, outcome, replay and reason
//
// and with [ObserveJournal]
//
//	idem.intents                  idem_intents                          unresolved Intents by idem.state
//	idem.oldest_unresolved_age    idem_oldest_unresolved_age_seconds
//	idem.key_window_remaining     idem_key_window_remaining_seconds     the least that is left to any of them
//	idem.expired                  idem_expired_total                    not settled when the window had ended
//
// All of idem.… carry idem.contract, except those of a journal. A key, a path or
// a business id is never a label, nor an attribute of a span but for the path in
// url.full.
//
// error.type is the status of 400 and above, or canceled and deadline_exceeded
// (the caller's context), timeout, expired (the key's window), name_not_resolved,
// connection_refused, connection_reset, connection_closed,
// server_certificate_invalid, panic, or the Go type of another error. Texts of
// errors are not recorded: what a Base writes into them is not known.
//
// idem.reason is exhausted, wait_too_long, not_repeatable, over_budget, expired,
// mismatch, reused, canceled, deadline_exceeded, panic or other, and redirected for
// an answer that sends the client on. A client that follows makes another call;
// for one that does not, as idem.Client after a 302 to a write, it is the end.
package otelidem
