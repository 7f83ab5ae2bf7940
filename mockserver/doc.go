// Package mockserver is a server that keeps a key contract, breaks the network
// on demand, and knows what really happened. It shows whether a client causes an
// effect once, and whether the client tells the truth about it.
//
// A [Server] wraps any http.Handler. From the outside to the inside: a network
// that can break (in memory or TCP, with or without TLS, HTTP/1.1 or HTTP/2), the
// scripted faults, the key layer that keeps the contract, the handler, and the
// ledger of effects behind it. The faults lie outside the key layer: an answer
// that is lost on the way is kept all the same, and a repeat gets it.
//
//	srv := mockserver.New(t, mockserver.Config{})
//	srv.On("POST /charges").Then("reset@stored", "503@received retry-after=30")
//	// … let a client with srv.Transport() make a charge …
//	if err := srv.Verify(); err != nil { t.Fatal(err) }
//
// In memory a server runs inside a testing/synctest bubble, where hours of
// backoff pass in microseconds and every run is the same.
//
// # Points
//
// A request passes points, in this order: [Dial], [Handshake] (only if a
// connection is made for it), [Received], [Claimed], [Worked], [Stored], [Head],
// [Body]. A request without a key passes all of them. One that the key layer
// answers by itself (a replay, 409, 422) does not pass Claimed, Worked and Stored.
// An answer that its handler streams passes Head, but not Body. A fault at a point
// that its attempt does not pass is not met, and an unmet fault fails the test.
//
// # Faults
//
// A [Fault] is text: action@point options. What breaks the connection at
// Received happens instead of the work, after the request was read whole; at
// Claimed the server, which knows nothing of it, works on; at Worked it happens
// once the answer is kept.
//
//	pass                    nothing
//	drop@…                  FIN without a (further) byte of an answer
//	reset@…                 RST
//	freeze@…                the connection goes silent, in both directions, for good
//	hang@…                  held until Release, then it goes on
//	delay@… for=2s          goes on after the time
//	crash@…                 the connection is dropped and the process gone: nothing
//	                        is tidied up, a claim stays until its lease is over
//	503@received            answered in front of the server, instead of the work
//	503@claimed, @worked    the handler's answer: before, or after it worked
//	503@stored, @head       answered instead of what is kept
//	raw@… text="HTTP/1."    these bytes, then the end
//	cut@head after=9        the first bytes of the answer's head, then the end
//	cut@body after=9        the head and the first bytes of the body, then the end
//	dribble@body size=1 every=10ms
//	malformed@head          a head that is none: a bad status line, no :status
//	lengths@head            two Content-Length that differ
//	badchunk@body           a bad chunk size; an oversized frame in HTTP/2
//	abort@… code=8          RST_STREAM with this code; a drop in HTTP/1.1
//	goaway@… code=0         GOAWAY that disowns the stream; a drop in HTTP/1.1
//	refuse@dial             connection refused
//	drop@dial, reset@dial   at the first byte that arrives
//	alert, garbage, plain, stall, untrusted, expired, wrongname, drop,
//	reset@handshake         TLS: an alert (code=40), bytes that are no TLS, an HTTP
//	                        answer, silence, certificates that do not verify
//	copy@received           a gateway sends the request twice: the copy comes first
//
// Options: retry-after=, header="Name: value", type=, body= (of a status); code=
// (HTTP/2 error code, TLS alert); after= (bytes of the body that come before the
// fault, without it half of them); end=fin or end=reset (of raw and cut);
// last=this (a GOAWAY that counts the stream in, then FIN); send=1 (only the
// first send of the attempt: net/http sends some requests again by itself, and
// after some HTTP/2 faults without end).
//
// forward=now and forward=late make a fault at received that of a gateway in
// front: it sends a copy of the request on, before the client sees anything or
// when [Server.Release] says so, even after the client's call has returned.
//
//	504@received forward=late    the gateway gives up, the request arrives later
//	401@received forward=now     the gateway lies: the work is done
//	reset@received forward=late  the request is in flight when the connection dies
//	copy@received forward=late   the request is answered, and arrives again later
//
// # For clients in any language
//
// A request to the mocked API may bring two headers, which neither the log nor
// the handler shows. Mock-Fault is the fault that this very request meets,
// instead of a script's; one that is no fault is answered with 400 and what would
// be right. Mock-Scope names a part of the server that has scripts, keys, log,
// clock and ledger of its own, so that parallel tests share one server; the
// network is shared, so that a scope knows no faults of the connection. What an
// HTTP stack sends again by itself is told from an attempt if the client gives
// each attempt a Mock-Stamp of its own, any text.
//
// [Server.Control] serves the rest over HTTP, with a live page; the command
// cmd/idem-mock is such a server by itself.
//
// # Exactness
//
// The same script gives the same bytes and the same errors each time. The
// request is read whole before anything is broken; on HTTP/2 both settings are
// exchanged first; nothing is drawn from a generator that goroutines share. What
// a kernel decides is its own: on TCP, bytes that were written before a reset may
// be lost if they are many.
package mockserver
