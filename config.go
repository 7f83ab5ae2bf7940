package idem

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/idem-go/idem/contract"
)

// Config is what a [Client] is made of.
type Config struct {
	// BaseURL is scheme, host and, if need be, the path under which the API
	// lives: "https://api.example.com/v1". Required; no query, no fragment.
	BaseURL string
	// Header is sent with every request, such as an API version; nil: nothing.
	// The key does not belong here.
	Header http.Header
	// Transport sends; nil: &Transport{}. It may be shared between Clients.
	Transport *Transport

	_ [0]func() // forbids comparison and literals without field names
}

// NewClient returns a Client. It checks everything and returns all faults at
// once; it copies cfg.
func NewClient(cfg Config) (*Client, error) {
	transport := cfg.Transport
	if transport == nil {
		transport = &Transport{}
	}
	base, err := parseBase(cfg.BaseURL)
	faults := []error{err}
	resolved, err := transport.settings()
	faults = append(faults, err)
	for name, values := range cfg.Header {
		if strings.EqualFold(name, resolved.contract.Header) {
			faults = append(faults, fmt.Errorf("idem: Config.Header holds %s: one key for all requests is the wrong way round", name))
		}
		if !isToken(name) || slices.ContainsFunc(values, isNoFieldValue) {
			faults = append(faults, fmt.Errorf("idem: Config.Header: %q is no valid header", name))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return &Client{
		base: base, header: cfg.Header.Clone(), timeout: resolved.attemptTimeout,
		http: &http.Client{Transport: transport, CheckRedirect: checkRedirect(resolved.contract)},
	}, nil
}

// isToken reports whether s is a token (RFC 9110, 5.6.2).
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		alnum := r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		return !alnum && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

// isNoFieldValue reports whether v cannot be the value of a header (RFC 9110, 5.5).
func isNoFieldValue(v string) bool {
	return strings.ContainsFunc(v, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

func parseBase(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("idem: Config.BaseURL is not a URL")
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return nil, errors.New("idem: Config.BaseURL needs http or https and a host")
	case u.RawQuery != "", u.Fragment != "", u.ForceQuery:
		return nil, errors.New("idem: Config.BaseURL must have no query and no fragment")
	}
	return u, nil
}

// checkRedirect does not follow 301, 302 and 303 from a write with a key: they
// turn it into a GET, whose answer is not that of the write.
func checkRedirect(k contract.Contract) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		if len(via) >= 10 {
			return errors.New("idem: stopped after 10 redirects")
		}
		if first := methodOf(via[0]); k.Keys(first) && methodOf(req) != first {
			return http.ErrUseLastResponse
		}
		return nil
	}
}
