package mockserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// Control returns the control API of the server and its live page, as a handler
// to serve on a listener of its own, on the loopback interface: the page at /,
// the description of the API at /openapi.json. It lets clients in any language
// do what the methods of a Server do, for the server or, by ?scope= or the
// header Mock-Scope, for one scope of it.
//
// A request that a browser sends for another site is refused, and so is one
// whose Host is no name of this machine's loopback interface.
func (s *Server) Control() http.Handler {
	mux := http.NewServeMux()
	for _, r := range s.routes() {
		mux.HandleFunc(r.pattern, func(w http.ResponseWriter, req *http.Request) {
			sub, err := s.scoped(scopeOf(req))
			if err == nil {
				err = r.serve(sub, w, req)
			}
			if err != nil {
				sayNo(w, err)
			}
		})
	}
	own := http.NewCrossOriginProtection()
	own.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sayNo(w, &refusedError{http.StatusForbidden, fmt.Errorf("mockserver: %s %s is not for pages of other sites", r.Method, r.URL.Path)})
	}))
	return local(own.Handler(mux))
}

// route is one call of the control API.
type route struct {
	pattern string
	serve   func(s *Server, w http.ResponseWriter, r *http.Request) error
}

func (s *Server) routes() []route {
	return []route{
		{"GET /{$}", (*Server).servePage},
		{"GET /openapi.json", (*Server).serveOpenAPI},
		{"DELETE /{$}", (*Server).serveClean},
		{"GET /server", (*Server).serveServer},
		{"POST /scripts", (*Server).serveNewScript},
		{"GET /scripts", (*Server).serveScripts},
		{"DELETE /scripts/{id}", (*Server).serveEndScript},
		{"GET /keys", (*Server).serveKeys},
		{"GET /keys/{key...}", (*Server).serveKey},
		{"GET /requests", (*Server).serveRequests},
		{"GET /requests/{seq}", (*Server).serveRequest},
		{"GET /effects", (*Server).serveEffects},
		{"GET /events", (*Server).serveEvents},
		{"GET /await", (*Server).serveAwait},
		{"POST /release", (*Server).serveRelease},
		{"POST /advance", (*Server).serveAdvance},
		{"POST /restart", (*Server).serveRestart},
		{"POST /believe", (*Server).serveBelieve},
		{"POST /verify", (*Server).serveVerify},
	}
}

// scopeOf names the scope that a control request is about.
func scopeOf(r *http.Request) string {
	if name := r.URL.Query().Get("scope"); name != "" {
		return name
	}
	return r.Header.Get(scopeHeader)
}

// local refuses requests under a host name that is not this machine's: a site
// whose name leads here must not read what the server knows.
func local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		host = strings.Trim(host, "[]")
		if ip := net.ParseIP(host); !strings.EqualFold(host, "localhost") && (ip == nil || !ip.IsLoopback()) {
			sayNo(w, &refusedError{http.StatusForbidden, fmt.Errorf("mockserver: the control API is for localhost, not for %q", r.Host)})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// refusedError is an error with its status.
type refusedError struct {
	status int
	error
}

func notFound(format string, args ...any) error {
	return &refusedError{http.StatusNotFound, fmt.Errorf("mockserver: "+format, args...)}
}

// sayNo answers with a problem document.
func sayNo(w http.ResponseWriter, err error) {
	status := http.StatusBadRequest
	if r, ok := errors.AsType[*refusedError](err); ok {
		status = r.status
	}
	problem(w, status, err.Error())
}

// receive reads the JSON body of a control request; no body is an empty object.
func receive(r *http.Request, into any) error {
	const limit = 1 << 20
	d := json.NewDecoder(io.LimitReader(r.Body, limit))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("mockserver: the body of %s %s: %w", r.Method, r.URL.Path, err)
	}
	return nil
}

// serveServer tells what the server is.
func (s *Server) serveServer(w http.ResponseWriter, _ *http.Request) error {
	reply(w, http.StatusOK, s.doc())
	return nil
}

// serverDoc is a server in the control API.
type serverDoc struct {
	URL      string   `json:"url"`
	Contract string   `json:"contract"`
	Window   float64  `json:"window"` // seconds; negative: for ever
	Lease    float64  `json:"lease"`
	Now      instant  `json:"now"`
	Ahead    float64  `json:"ahead"` // seconds of the server's clock before the machine's
	Scope    string   `json:"scope"`
	Scopes   []string `json:"scopes"` // the names of all scopes
}

func (s *Server) doc() serverDoc {
	root := s
	if s.parent != nil {
		root = s.parent
	}
	all := root.all()[1:]
	scopes := make([]string, 0, len(all)) // not nil: none is [] and not null
	for _, one := range all {
		scopes = append(scopes, one.scope)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return serverDoc{
		s.URL, s.contract.Name, s.contract.Window.Seconds(), s.contract.Lease.Seconds(),
		instant(s.now()), s.ahead.Seconds(), s.scope, scopes,
	}
}
