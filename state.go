package idem

import (
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// State is an Intent written down: a plain value to put into a file, a row or a
// message. It holds the key in full.
type State struct {
	Key string `json:"key"`
	// Since is the earliest time at which the key can have been sent by
	// anybody; zero if FirstSent says more.
	Since time.Time `json:"since,omitzero"`
	// FirstSent is when this Intent was first sent; zero: not yet.
	FirstSent time.Time `json:"first_sent,omitzero"`
	// Fingerprint stands for method, URL and body; empty: the State was taken
	// before they were known, and another request cannot be told from the
	// first one after Resume. Bind before taking the State to have it.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Outcome is Answered only for an answer that is settled. It is never
	// NotExecuted: a State may be older than the sends that followed it.
	Outcome Outcome `json:"outcome"`
}

// State returns what to write down to go on in another process: before the
// first send, so that a crash loses nothing, and again after the answer. A State
// that is taken before the first send says with Since "not sent before now".
func (in *Intent) State() State {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.written = true
	s := State{Key: in.Key(), Since: in.since, Fingerprint: in.fingerprint()}
	in.book.mu.Lock()
	defer in.book.mu.Unlock()
	if in.book.settled {
		s.Outcome = Answered
	}
	switch {
	case !in.book.firstSent.IsZero():
		s.FirstSent = in.book.firstSent.Round(0)
	case s.Since.IsZero():
		s.Since = time.Now().Round(0)
		if in.saved.IsZero() {
			in.saved = s.Since
		}
	}
	return s
}

// Resume goes on with an Intent where another process stopped. Whatever the
// State says, it starts as OutcomeUnknown, unless the State says Answered: only
// the process that opened an Intent can prove that nothing was sent. The window
// runs from the earliest of FirstSent and Since.
//
// around, if not nil, wraps every call with the Intent, below Transport.Around:
// it is where a store binds, records and answers. A State that says NotExecuted
// is believed only with one: from a store that lets nobody else send, and knows
// that nobody has. The error matches ErrInvalidKey if the key is not one; a State
// with neither time is an error.
func Resume(s State, around Layer) (*Intent, error) {
	in := new(Intent)
	if err := in.resume(s); err != nil {
		return nil, err
	}
	in.around = around
	in.book.past = around == nil || s.Outcome != NotExecuted
	return in, nil
}

func (in *Intent) resume(s State) error {
	if err := checkKey(s.Key); err != nil {
		return err
	}
	if s.Since.IsZero() && s.FirstSent.IsZero() {
		return errors.New("idem: the State has neither Since nor FirstSent: when the key was first sent is not known")
	}
	if s.Fingerprint != "" && !isFingerprint(s.Fingerprint) {
		return errors.New("idem: the State's Fingerprint is not one of this package")
	}
	if s.Outcome > Answered {
		return errors.New("idem: the State's Outcome is not known")
	}
	in.key, in.since, in.sha, in.written = &s.Key, s.Since.Round(0), s.Fingerprint, true
	if !s.FirstSent.IsZero() && (in.since.IsZero() || s.FirstSent.Before(in.since)) {
		in.since = s.FirstSent.Round(0)
	}
	in.book.past, in.book.firstSent, in.book.sent = true, s.FirstSent, !s.FirstSent.IsZero()
	in.book.lastSent = s.FirstSent // at the earliest
	in.book.settled = s.Outcome == Answered
	return nil
}

// isFingerprint reports whether s has the form that State gives.
func isFingerprint(s string) bool {
	hex, ok := strings.CutPrefix(s, "sha256:")
	return ok && len(hex) == 64 && strings.Trim(hex, "0123456789abcdef") == ""
}

// MarshalJSON writes State. The key stands in it in full.
func (in *Intent) MarshalJSON() ([]byte, error) {
	if err := in.usable(); err != nil {
		return nil, err
	}
	return json.Marshal(in.State())
}

// UnmarshalJSON resumes the Intent from its State, without a Layer. It is for a
// zero Intent; one that has a key already is left as it is, with an error.
func (in *Intent) UnmarshalJSON(data []byte) error {
	if in.key != nil || in.bad != nil {
		return errors.New("idem: the Intent has a key already: unmarshal into a new one")
	}
	var s State
	if err := json.Unmarshal(data, &s); err != nil {
		return errors.New("idem: this is not the State of an Intent")
	}
	return in.resume(s)
}
