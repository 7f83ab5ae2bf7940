// Package idem is a client for idempotent HTTP APIs: a caller opens an [Intent]
// once; however often the network makes the client ask, the server sees one key
// and does the work once, and the caller is told the truth about what happened.
//
//	client, err := idem.NewClient(idem.Config{BaseURL: "https://api.example.com"})
//	…
//	charge := idem.Open() // at the click, not where the request is built
//	res, err := client.Call(ctx, charge, "POST", "/charges", order, &receipt)
//
// [Client] is the API for JSON; [Transport] is the http.RoundTripper below it,
// which works under any other client, with the Intent in the context
// ([WithIntent]).
//
// # What is repeated
//
// A request is repeatable if it carries a key, or if its method is idempotent
// (RFC 9110, 9.2.2). It is sent again after every error of the network or of the
// attempt's own time, after 408, 423, 425, 429 and 5xx, and, if it carries a
// key, after 409, which says that the first request still runs. It is not sent
// again after a 422, whatever a header says; after an answer that is marked as a
// replay; after 501, 505, 506, 508, 510 and 511 or any other 4xx; when its body
// or the server's certificate is at fault; after the third attempt on a host name
// that does not exist; and when the caller's context is done. The contract can
// say more, by codes in the body and by hint headers. A request without a key
// whose method is not idempotent is sent once, unless nothing of it has left this
// machine.
//
// Waits are drawn from the upper half of [Backoff]. A wait that the server asks
// for, on any status, is never cut short; if it is longer than MaxRetryAfter, or
// would pass the context's deadline or the key's window, the call ends at once
// and hands over the response that asked. Retry-After-Ms (milliseconds, which some
// APIs send) is read before Retry-After (RFC 9110, 10.2.3). A fraction of a second
// in the latter is rounded up; zero, past and malformed values do not count.
//
// # Guarantees
//
// Every attempt of every call with one Intent carries the same key, byte for
// byte, on one header line, and the same body, to one origin. Another request
// with that Intent is refused before the network.
//
// [Outcome] is never wrong. It counts sends, as httptrace shows them leave: a
// send stays open until there is proof that it cannot have an effect.
// NotExecuted means that none is open: none was made, or each was refused with a
// status that the contract lists as given before the work. Answered means an
// answer that stands: 2xx, one marked as a replay, one that the contract lists,
// or a final 4xx to the only send there was. Everything else is OutcomeUnknown:
// also a 5xx that is marked as a replay, because a failure that was stored may
// have come before the work or after it, and a 404, 402 or 409 after a send whose
// answer was lost, because that send may yet work.
//
// # Not guaranteed
//
// That the work is done at most once rests on the server: it must keep the key
// for the contract's window, and claim, work and stored answer must be one fact
// there. A client cannot see whether a gateway has forwarded what it refused,
// whether a 2xx came from a captive portal, or whether a body that only the end
// of its connection delimits was cut (of JSON it can, and does). NotExecuted
// speaks of this Intent in this process up to this moment.
//
// No attempt, and no re-send by net/http, starts after the key's window, less a
// margin for what is on its way then: the greater of AttemptTimeout and two
// minutes, at most half the window. The window runs from the first send; for an
// Intent that was not opened in this process, from the time it was given.
//
// # Sends and attempts
//
// net/http sends again by itself what it finds repeatable, and the key header
// makes it so: once for each pooled connection that turns out to be dead.
// Result.Sends and Attempt.Sends count these, to at most 32 an attempt; an
// attempt that is cancelled while it sends may count one too many, never too
// few. What a layer below sends for itself with the attempt's context counts as
// well. HTTP/2 does the same to requests without a key when a server disowns
// them; those are left as net/http treats them.
//
// # Bodies
//
// A body that is in memory (bytes.Reader, bytes.Buffer, strings.Reader) is sent
// as it is and not copied: do not change it before the call returns. If it was
// changed all the same, the call ends with [ErrNotRepeatable]; two bodies never
// go out under one key. Files are read again from where they stood. Any other
// body is read into memory up to Transport.MaxBody; of a longer one GetBody is
// used, which must give the same bytes, and without it the body is sent once.
//
// An answer to a request with a key is read inside the attempt, if its length is
// at most Transport.MaxResponse or if it is JSON: a body that is cut half way is
// asked for again. If it is cut on every attempt, the outcome is OutcomeUnknown
// even though the head said 2xx: asking again with the Intent is what gets it whole.
// Larger bodies, event streams and upgrades pass through, and
// what breaks there later is the reader's error.
//
// # Redirects
//
// A 307 or 308 within the same origin (scheme, host and port) keeps the key and
// the count of attempts. To another origin a write with a key is refused
// ([ErrCrossOrigin]): sending it there, with or without its key, is how two
// effects come about. [Client] does not follow 301, 302 and 303 from such a
// write; a bare http.Client does, with a GET that carries no key and whose
// answer is not that of the write. Of other headers http.Client takes only
// Authorization and Cookie off on the way to another host: a secret in a header
// of another name follows a redirected GET there.
//
// # Keys
//
// A key is never minted by the Transport. A key header that the caller has set
// is adopted when there is no Intent, and must agree with the Intent when there
// is one (but see Transport.IntentWins). Keys are not shown in full by errors
// and logs; [State] and Result.Key hold them.
package idem
