package otelidem

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// other stands for a method that is not known.
const other = "_OTHER"

// method returns the request's method, if it is known.
func (t *telemetry) method(r *http.Request) string {
	known := t.cfg.Methods
	if known == nil {
		known = []string{
			http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
			http.MethodConnect, http.MethodOptions, http.MethodTrace, "QUERY",
		}
	}
	method := r.Method
	if method == "" {
		method = http.MethodGet
	}
	if !slices.Contains(known, method) {
		return other
	}
	return method
}

// spanName returns the name of an attempt's span, and the template in it.
func (t *telemetry) spanName(r *http.Request) (name, template string) {
	if name = t.method(r); name == other {
		name = "HTTP"
	}
	if t.cfg.Template != nil {
		template = t.cfg.Template(r)
	}
	if template != "" {
		name += " " + template
	}
	return name, template
}

// server returns whom the request is for: the Host header, or else the URL.
func server(r *http.Request) []attribute.KeyValue {
	u := &url.URL{Scheme: r.URL.Scheme, Host: r.Host}
	if u.Host == "" {
		u.Host = r.URL.Host
	}
	address := semconv.ServerAddress(u.Hostname())
	port, err := strconv.Atoi(u.Port())
	switch {
	case err == nil:
	case u.Scheme == "https":
		port = 443
	case u.Scheme == "http":
		port = 80
	default:
		return []attribute.KeyValue{address}
	}
	return []attribute.KeyValue{address, semconv.ServerPort(port)}
}

// fullURL returns the URL without credentials, and without the values of query
// parameters that are to be redacted.
func (t *telemetry) fullURL(from *url.URL) string {
	const redacted = "REDACTED"
	secret := t.cfg.Redact
	if secret == nil {
		secret = []string{"X-Amz-Signature", "X-Amz-Credential", "X-Amz-Security-Token", "sig", "X-Goog-Signature"}
	}
	u := *from
	if u.User != nil {
		u.User = url.UserPassword(redacted, redacted)
	}
	pairs := strings.Split(u.RawQuery, "&")
	for i, pair := range pairs {
		raw, _, _ := strings.Cut(pair, "=")
		if name, err := url.QueryUnescape(raw); err == nil && slices.Contains(secret, name) {
			pairs[i] = raw + "=" + redacted
		}
	}
	u.RawQuery = strings.Join(pairs, "&")
	return u.String()
}

// protocol returns the version of HTTP that the answer came in: "1.1", "2".
func protocol(resp *http.Response) string {
	switch {
	case resp.ProtoMajor == 0:
		return "" // of a stub
	case resp.ProtoMajor >= 2 && resp.ProtoMinor == 0:
		return strconv.Itoa(resp.ProtoMajor)
	}
	return fmt.Sprintf("%d.%d", resp.ProtoMajor, resp.ProtoMinor)
}
