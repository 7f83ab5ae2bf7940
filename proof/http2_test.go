package proof_test

import "testing"

// http2 is a server that disowns streams, before the work and after it: net/http
// sends those again by itself, also without a key. So a request without a key
// may be done more than once: what net/http does there is not changed.
func http2() kind {
	k := kinds()[0]
	k.http2 = true
	k.onceUnkeyed = false
	k.only = []string{
		"pass", "503@received", "401@received", "429@received", "402@claimed", "hang@received", "refuse@dial", "crash@claimed",
		"abort@received code=7 send=1", // REFUSED_STREAM, as it should be
		"abort@stored code=7 send=1",   // and after the work
		"abort@stored code=1 send=1",   // PROTOCOL_ERROR
		"abort@stored code=2",          // INTERNAL_ERROR: nobody sends it again
		"goaway@received send=1",
		"goaway@stored send=1",
		"goaway@stored last=this send=1",
		"abort@stored code=7 send=1; 401@received send=2",
		"goaway@received forward=late send=1; 429@received send=2",
		"drop@stored", "cut@body",
	}
	return k
}

// TestExhaustiveHTTP2 runs the ends that only HTTP/2 has.
func TestExhaustiveHTTP2(t *testing.T) {
	for _, unkeyed := range []bool{false, true} {
		for _, conn := range []connections{fresh, reused} {
			t.Run(keyedness(unkeyed)+" on "+conn.String()+" connections", func(t *testing.T) {
				t.Parallel()
				t.Logf("%v", sweepWith(t, http2(), schedule{conn: conn, unkeyed: unkeyed}, depth(2, 3)))
			})
		}
	}
}
