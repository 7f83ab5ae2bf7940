package idem

import (
	"errors"
	"hash/maphash"
	"net/http"
)

// Bind fixes the method, URL and body that the Intent stands for before the
// first send, so that a State taken now carries the fingerprint. It sends
// nothing. The body is read and put back: one without GetBody is read into
// memory, up to 1 MiB, and r's Body, GetBody and ContentLength are set anew.
//
// It returns an error that matches ErrIntentReused if the Intent is bound to
// another request, ErrNotRepeatable if the body cannot be read and put back,
// and ErrNoIntent for an Intent that cannot be used.
func (in *Intent) Bind(r *http.Request) error {
	if err := in.usable(); err != nil {
		return err
	}
	if r == nil || r.URL == nil {
		return errors.New("idem: Bind needs a request with a URL")
	}
	body := new(source)
	body.own(r)
	if err := body.take(r, defaultMax, true); err != nil {
		return err
	}
	body.restore(r)
	if body.once {
		return because(ErrNotRepeatable, "%s", body.whyOnce)
	}
	return in.bind(r, body, false, true)
}

// bind binds the Intent to a request, or checks that it is the one bound to. Of
// a hop of a redirect it only takes the hash of the body. kept says that somebody
// may write the Intent down before the call ends.
func (in *Intent) bind(r *http.Request, body *source, hop, kept bool) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.seed == (maphash.Seed{}) {
		in.seed = maphash.MakeSeed()
	}
	quick, err := body.quick(r, in.seed)
	if err != nil || hop {
		return err
	}
	if in.bound && quick != in.quick {
		return ErrIntentReused
	}
	if !in.bound && in.sha != "" || in.sha == "" && (kept || in.written || in.around != nil) {
		sha, err := body.fingerprint(r)
		if err != nil {
			return err
		}
		if in.sha != "" && body.once { // not "open a new one": it may be the same request
			return because(ErrNotRepeatable, "%s, and so cannot be compared with the one that the Intent is bound to", body.whyOnce)
		}
		if in.sha != "" && sha != in.sha {
			return ErrIntentReused
		}
		in.sha = sha
	}
	in.bound, in.quick = true, quick
	if in.sha == "" && body.inMem() {
		in.asking, in.request = body, r
	}
	return nil
}

// remember makes sure that the fingerprint of the bound request is known in the
// form that can be written down.
func (in *Intent) remember(r *http.Request, body *source) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.sha == "" {
		in.sha, _ = body.fingerprint(r) // not readable again: the State stays unbound
	}
}

// fingerprint is remember for a body in memory, which is not hashed before
// somebody asks: few calls need it. in.mu is held.
func (in *Intent) fingerprint() string {
	if in.sha == "" && in.asking != nil && in.asking.unchanged() {
		in.sha, _ = in.asking.fingerprint(in.request)
	}
	return in.sha
}

// forget lets go of the body of a call that ends.
func (in *Intent) forget(body *source, settled bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !settled {
		in.fingerprint()
	}
	if in.asking == body {
		in.asking, in.request = nil, nil
	}
}
