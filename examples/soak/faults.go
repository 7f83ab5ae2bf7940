package main

import "github.com/idem-go/idem/mockserver"

// A kind of server.
type kind struct {
	name       string
	tls, http2 bool
}

func kindsOfServer() []kind {
	return []kind{
		{name: "HTTP/1.1"},
		{name: "HTTP/1.1 over TLS", tls: true},
		{name: "HTTP/2", http2: true},
		{name: "HTTP/2 over TLS", tls: true, http2: true},
	}
}

// faults returns what attempts meet at a server of this kind.
//
// Left out is what no client can do anything against: a gateway that forwards a
// request and says 401 or 429 all the same, and a 2xx by somebody else than the
// server.
func (k kind) faults() []mockserver.Fault {
	list := []mockserver.Fault{
		"refuse@dial", "drop@dial", "reset@dial", "delay@dial for=20ms", "hang@dial",
		"drop@received", "reset@received", "freeze@received", "hang@received", "delay@received for=60ms",
		"delay@received for=600ms", "crash@received", "abort@received", "copy@received", "copy@received forward=late",
		"drop@received forward=now", "reset@received forward=late", "504@received forward=now", "504@received forward=late",
		"503@received", `503@received header="Retry-After-Ms: 7"`, "500@received", "408@received", "425@received", "423@received",
		"429@received", `429@received header="Retry-After-Ms: 5"`, "429@received retry-after=1", "401@received",
		"409@received", `409@received header="Retry-After-Ms: 9"`, "502@received type=text/html body=<html>",
		`raw@received text="HTTP/1."`, `raw@stored text="nonsense"`,
		"drop@claimed", "reset@claimed", "freeze@claimed", "delay@claimed for=40ms", "crash@claimed", "503@claimed",
		"drop@worked", "reset@worked", "freeze@worked", "503@worked", "crash@worked",
		"drop@stored", "reset@stored", "freeze@stored", "hang@stored", "502@stored", "500@stored", "crash@stored",
		"drop@head", "reset@head", "cut@head after=9", "cut@head end=reset after=20", "malformed@head", "lengths@head", "badchunk@body", "503@head",
		"drop@body", "reset@body", "cut@body after=3", "cut@body after=9 end=reset", "freeze@body",
		"dribble@body size=16 every=2ms",
		"reset@received send=1; drop@stored send=2", "drop@stored send=1; 503@received send=2",
	}
	if k.tls {
		list = append(list,
			"alert@handshake", "garbage@handshake", "plain@handshake", "stall@handshake", "drop@handshake", "reset@handshake",
			"untrusted@handshake", "expired@handshake", "wrongname@handshake",
		)
	}
	if k.http2 {
		list = append(list,
			"abort@received code=7", "abort@stored code=2", "abort@head code=8", "abort@body code=11",
			"goaway@received", "goaway@received last=this", "goaway@stored last=this", "goaway@head code=2 last=this",
			"abort@received code=7 send=1",
		)
	}
	return list
}
