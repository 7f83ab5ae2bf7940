package mockserver

import (
	_ "embed" // the page and the description of the API are files of their own
	"net/http"
)

//go:embed page.html
var pageHTML string

//go:embed openapi.json
var openAPI string

// servePage serves the live page, which needs nothing from elsewhere.
func (s *Server) servePage(w http.ResponseWriter, _ *http.Request) error {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:; "+
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	_, err := w.Write([]byte(pageHTML))
	return err
}

func (s *Server) serveOpenAPI(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json")
	_, err := w.Write([]byte(openAPI))
	return err
}
