package idem

import (
	"bytes"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// checkURL refuses what no Base can send.
func checkURL(u *url.URL) error {
	switch {
	case u == nil:
		return errors.New("idem: the request has no URL")
	case u.Scheme == "":
		return errors.New("idem: the request's URL has no scheme")
	case u.Host == "" && (u.Scheme == "http" || u.Scheme == "https"):
		return errors.New("idem: the request's URL has no host")
	case strings.ContainsFunc(u.Host, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return errors.New("idem: the request's URL has a host that cannot be")
	}
	return nil
}

// findKey finds out whether the request carries a key, and which. inHeader are the
// values that the caller's key header has.
func (c *call) findKey(inHeader []string) error {
	req, k := c.original, &c.settings.contract
	in, has := IntentFromContext(c.Context)
	if has {
		if err := in.usable(); err != nil {
			return err
		}
	}
	previous := previousCall(req)
	if !k.Keys(methodOf(req)) {
		if meant := has || strings.Join(inHeader, "") != ""; meant && k.Keys(strings.ToUpper(req.Method)) {
			return errors.New("idem: the method is not in upper case, so that it would carry no key")
		}
		if has && !isSafe(methodOf(req)) {
			c.use(in) // the contract has no key for it; its sends count all the same
		}
		c.continueFrom(previous)
		return nil
	}
	carried, err := c.carried(inHeader, has)
	if err != nil {
		return err
	}
	switch {
	case previous != nil && previous.keyed() && (!has || in == previous.in):
		in = previous.in
		c.continueFrom(previous)
		if from, to := originOf(previous.original), originOf(req); from != to {
			c.use(in)
			c.wire = previous.wire
			return because(ErrCrossOrigin, "from %s to %s", from, to)
		}
	case !has && carried == "":
		c.continueFrom(previous)
		return nil
	case !has:
		key, err := k.Unwire(carried)
		if err != nil {
			return because(ErrInvalidKey, "%s", strings.TrimPrefix(err.Error(), "contract: "))
		}
		if in, err = Adopt(key, time.Now()); err != nil {
			return err
		}
	}
	c.use(in)
	if c.wire, err = k.Wire(in.Key()); err != nil {
		return because(ErrInvalidKey, "%s", strings.TrimPrefix(err.Error(), "contract: "))
	}
	if carried != "" && carried != c.wire && (c.settings.keyHeader == "" || carried != in.Key()) {
		return ErrKeyConflict
	}
	return nil
}

// use makes the call one of in.
func (c *call) use(in *Intent) {
	c.in, c.book, c.about = in, &in.book, &in.book
	c.index = in.nextCall()
}

// reads reports whether the call is about no write: it is not one, and does not
// come from one.
func (c *call) reads() bool { return isSafe(methodOf(c.original)) && c.about == c.book }

// continueFrom makes a hop of a redirect go on with the attempts and the sends of
// the call that was redirected: to its caller they are one request.
func (c *call) continueFrom(previous *call) {
	if previous == nil {
		return
	}
	c.attempts, c.sent = previous.attempts, previous.sent
	switch {
	case c.in != nil:
	case !isSafe(methodOf(c.original)):
		c.book, c.about = previous.book, previous.about
	case !previous.reads():
		c.about = previous.about // a GET that a write was redirected to is not its answer
	}
}

// carried returns the key that the caller has put on the request. Empty values
// count as absent, and so does the nil UUID under an Intent: both are what code
// generators send for a parameter that was left out.
func (c *call) carried(inHeader []string, underIntent bool) (string, error) {
	if c.settings.keyHeader == "" {
		return c.keyInBody(underIntent)
	}
	found := ""
	for _, v := range inHeader {
		switch {
		case v == "", underIntent && isNilUUID(v), v == found:
		case isNilUUID(v):
			return "", because(ErrInvalidKey, "the nil UUID")
		case underIntent && c.transport.IntentWins:
		case found != "":
			return "", because(ErrKeyConflict, "it has two")
		default:
			found = v
		}
	}
	return found, nil
}

// keyInBody returns the key that the body carries, where the contract puts it
// there. It is verified, never put in: a body is the caller's.
func (c *call) keyInBody(underIntent bool) (string, error) {
	if c.body.once {
		return "", because(ErrNotRepeatable, "the contract puts the key into the body, and %s", c.body.whyOnce)
	}
	var body bytes.Buffer
	if _, err := c.body.writeTo(&body); err != nil {
		return "", &bodyError{err}
	}
	key, err := c.settings.contract.FromBody(body.Bytes())
	if err != nil {
		return "", because(ErrKeyConflict, "%s", plain(err))
	}
	if key == "" && underIntent {
		return "", because(ErrInvalidKey, "the body must carry it at %q", c.settings.contract.Header)
	}
	return key, nil
}

// copyHeaders returns a copy of from without the key header, of whatever case,
// and the values of that. Values are shared, but an append to them makes a copy.
func (c *call) copyHeaders(from http.Header) (copied http.Header, keys []string) {
	copied = make(http.Header, len(from)+1)
	for name, values := range from {
		values = slices.Clip(values)
		if c.settings.keyHeader != "" && strings.EqualFold(name, c.settings.keyHeader) {
			keys = append(keys, values...)
		} else {
			copied[name] = values
		}
	}
	return copied, keys
}

// putKey puts the key on one line, which is line.
func (c *call) putKey(h http.Header, line []string) {
	if c.keyed() && c.settings.keyHeader != "" {
		h[c.settings.keyHeader] = line
	}
}

// headers returns a copy of from that has the key on exactly one line, which is
// line, or on none.
func (c *call) headers(from http.Header, line []string) http.Header {
	h, _ := c.copyHeaders(from)
	c.putKey(h, line)
	return h
}

// previousCall is the call of the hop that redirected to req.
func previousCall(req *http.Request) *call {
	if req.Response == nil || req.Response.Request == nil {
		return nil
	}
	return callOf(req.Response.Request.Context())
}

// originOf is scheme, host and port (RFC 6454, 4).
func originOf(req *http.Request) string {
	u := req.URL
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	case u.Scheme == "http":
		port = "80"
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

func methodOf(req *http.Request) string {
	if req.Method == "" {
		return http.MethodGet
	}
	return req.Method
}
