package proof_test

import "testing"

// redirecting are servers that redirect a write: to the same origin, to another
// one, to a login page, or to the result after the work. The 200 of a page is
// not the answer to the write, and a write never goes to another origin.
func redirecting() kind {
	k := kinds()[0]
	k.redirects = true
	k.onceUnkeyed = false // a 307 after the work makes http.Client send it again
	k.only = []string{
		"pass", "drop@stored", "503@received", "401@received", "429@received", "402@claimed", "hang@received", "refuse@dial",
		`307@received header="Location: /elsewhere"`,
		`308@received header="Location: /elsewhere"`,
		`307@stored header="Location: /elsewhere"`,
		`307@received header="Location: http://other.test/charges"`,
		`307@received header="Location: http://other.test/charges" forward=late`,
		`302@received header="Location: /login"`,
		`301@received header="Location: http://other.test/login"`,
		`303@stored header="Location: /charges/1"`,
	}
	return k
}

// TestExhaustiveRedirects redirects at each attempt, before and after sends that
// are open, through a bare http.Client and through one of ours. A 307 to another
// path makes another request to the server, which says so by 422.
func TestExhaustiveRedirects(t *testing.T) {
	for name, careful := range map[string]bool{"http.Client": false, "idem.Client": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := redirecting()
			k.careful = careful
			sum := new(tally)
			for _, conn := range []connections{fresh, reused} {
				for _, unkeyed := range []bool{false, true} {
					sum.add(sweepWith(t, k, schedule{conn: conn, unkeyed: unkeyed}, depth(2, 3)))
				}
			}
			t.Logf("%v", sum)
		})
	}
}
