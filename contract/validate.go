package contract

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Validate reports every fault of c at once, or nil. Each error is one line and
// begins with "contract:".
func (c Contract) Validate() error {
	c = c.WithDefaults()
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("contract: "+format, args...))
	}
	c.checkPlace(fault)
	c.checkKey(fault)
	c.checkServer(fault)
	for i, m := range c.Answers {
		m.check(i, fault)
	}
	for _, s := range c.Refusals {
		if !isStatus(s) || s < 400 {
			fault("Refusals: %d is not a status of refusal", s)
		}
	}
	for i, m := range c.Replayed {
		m.check(i, fault)
	}
	for i, h := range c.Hints {
		h.check(i, fault)
	}
	return errors.Join(faults...)
}

func (c Contract) checkPlace(fault func(string, ...any)) {
	switch {
	case c.Place > InBody:
		fault("Place %v is not known", c.Place)
	case c.Place == InHeader && !isToken(c.Header):
		fault("Header %q is not a header name", c.Header)
	case c.Place == InBody && !isPath(c.Header):
		fault("Header %q is not the path of a member", c.Header)
	}
	if c.Place == InBody && c.Quoted {
		fault("Quoted is for headers, not for the body")
	}
	if c.FirstSentHeader != "" && !isToken(c.FirstSentHeader) {
		fault("FirstSentHeader %q is not a header name", c.FirstSentHeader)
	}
	for _, m := range c.Methods {
		if !isToken(m) { // a method is a token as well (RFC 9110, 9.1)
			fault("Methods: %q is not a method", m)
		}
		switch upper := strings.ToUpper(m); upper {
		case m:
		case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
			fault("Methods: %q is another method than %s", m, upper) // RFC 9110, 9.1: case counts
		}
		if m == http.MethodGet || m == http.MethodHead || m == http.MethodOptions || m == http.MethodTrace {
			fault("Methods: a %s never carries a key", m)
		}
	}
}

func (c Contract) checkKey(fault func(string, ...any)) {
	if c.Format > FormatColon {
		fault("Format %v is not known", c.Format)
	}
	if c.MinKey < 1 || c.MaxKey < c.MinKey {
		fault("keys of %d to %d bytes cannot be", c.MinKey, c.MaxKey)
	}
	if n := c.Format.size(); n != 0 && (n < c.MinKey || n > c.MaxKey) {
		fault("%v makes keys of %d bytes, MinKey and MaxKey take %d to %d", c.Format, n, c.MinKey, c.MaxKey)
	}
}

func (c Contract) checkServer(fault func(string, ...any)) {
	if c.Gap < 0 {
		fault("Gap %v must not be negative", c.Gap)
	}
	if c.Lease < 0 {
		fault("Lease %v must not be negative", c.Lease)
	}
	if c.Stored > StoredAll {
		fault("Stored %v is not known", c.Stored)
	}
}

func (m *Match) check(i int, fault func(string, ...any)) {
	if m.Status != 0 && !isStatus(m.Status) {
		fault("Answers[%d]: %d is not a status", i, m.Status)
	}
	if m.Means == Unclassified || m.Means > Transient {
		fault("Answers[%d]: %v is no meaning", i, m.Means)
	}
	if m.Path == "" && m.Value != "" {
		fault("Answers[%d]: the value %q has no path", i, m.Value)
	}
	if m.Path != "" && !isPath(m.Path) {
		fault("Answers[%d]: %q is not the path of a member", i, m.Path)
	}
	if m.repeats(m.Status) {
		fault("Answers[%d]: only a code can make a 422 %v", i, m.Means)
	}
}

func (m Marker) check(i int, fault func(string, ...any)) {
	if !isToken(m.Header) {
		fault("Replayed[%d]: %q is not a header name", i, m.Header)
	}
	if m.DiffersFrom != "" && !isToken(m.DiffersFrom) {
		fault("Replayed[%d]: DiffersFrom %q is not a header name", i, m.DiffersFrom)
	}
}

func (h Hint) check(i int, fault func(string, ...any)) {
	if (h.Header == "") == (h.Path == "") {
		fault("Hints[%d]: one of Header and Path must be set, and not both", i)
	}
	if h.Header != "" && !isToken(h.Header) {
		fault("Hints[%d]: %q is not a header name", i, h.Header)
	}
	if h.Path != "" && !isPath(h.Path) {
		fault("Hints[%d]: %q is not the path of a member", i, h.Path)
	}
	if h.Retry == "" && h.Stop == "" {
		fault("Hints[%d]: neither Retry nor Stop is set", i)
	}
}

// isToken reports whether s is a token (RFC 9110, 5.6.2), as names of headers
// and methods are.
func isToken(s string) bool {
	for i := range len(s) {
		if !isAlnum(s[i]) && strings.IndexByte("!#$%&'*+-.^_`|~", s[i]) < 0 {
			return false
		}
	}
	return s != ""
}

// isPath reports whether s leads to a member: names joined by dots, none empty.
func isPath(s string) bool {
	return s != "" && !slices.Contains(strings.Split(s, "."), "")
}

func isStatus(s int) bool { return s >= 100 && s <= 599 }
