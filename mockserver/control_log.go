package mockserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// instant is a time in the control API: RFC 3339, or null if it has not come.
type instant time.Time

// MarshalJSON implements json.Marshaler.
func (i instant) MarshalJSON() ([]byte, error) {
	if time.Time(i).IsZero() {
		return []byte("null"), nil
	}
	return []byte(`"` + time.Time(i).UTC().Format(time.RFC3339Nano) + `"`), nil
}

// requestDoc is a Request in the control API. Bodies and headers are there only
// where one request is asked for.
type requestDoc struct {
	Scope      string            `json:"scope,omitempty"`
	Seq        int               `json:"seq"`
	Attempt    int               `json:"attempt"`
	Send       int               `json:"send"`
	Copy       bool              `json:"copy,omitempty"`
	Conn       int               `json:"conn"`
	Reused     bool              `json:"reused"`
	Caller     string            `json:"caller"`
	Key        string            `json:"key"`
	Proto      string            `json:"proto"`
	Method     string            `json:"method"`
	Host       string            `json:"host"`
	URL        string            `json:"url"`
	Print      string            `json:"print"`
	Points     map[Point]instant `json:"points"`
	Met        []met             `json:"met,omitempty"`
	Fault      Fault             `json:"fault,omitempty"`
	Script     string            `json:"script,omitempty"` // the pattern, or Mock-Fault
	Answer     Answer            `json:"answer"`
	Status     int               `json:"status"`
	RetryAfter string            `json:"retryAfter,omitempty"`
	Left       bool              `json:"left,omitempty"`
	Lost       bool              `json:"lost,omitempty"` // a fault took the answer or a part of it
	Start      instant           `json:"start"`
	End        instant           `json:"end"`
	Over       instant           `json:"over"`  // when the client could know how it ended
	Asked      float64           `json:"asked"` // the wait in seconds that the answer asks for
	Ahead      float64           `json:"ahead"` // of the server's clock at Start
	Done       bool              `json:"done"`
	Header     http.Header       `json:"header,omitempty"`
	Body       string            `json:"body,omitempty"`
	Reply      *replyDoc         `json:"reply,omitempty"`
}

type replyDoc struct {
	Status int         `json:"status"`
	Header http.Header `json:"header"`
	Body   string      `json:"body"`
}

// doc is the request without headers and bodies. r is a copy.
func (r *Request) doc() requestDoc {
	asked, _ := r.asked()
	points := make(map[Point]instant, len(r.Points))
	for p, at := range r.Points {
		points[p] = instant(at)
	}
	return requestDoc{
		Scope: r.Scope, Seq: r.Seq, Attempt: r.Attempt, Send: r.Send, Copy: r.Copy, Conn: r.Conn, Reused: r.Reused,
		Caller: r.Caller, Key: r.Key, Proto: r.Proto, Method: r.Method, Host: r.Host, URL: r.URL, Print: r.Print,
		Points: points, Met: r.met, Fault: r.Fault, Script: r.script, Answer: r.Answer, Status: r.Status,
		RetryAfter: r.retryAfter, Left: r.Left, Lost: r.unanswered, Start: instant(r.Start), End: instant(r.End),
		Over: instant(r.over), Asked: max(0, asked.Seconds()), Ahead: r.ahead.Seconds(), Done: r.done,
	}
}

// whole is the request with everything.
func (r *Request) whole() requestDoc {
	d := r.doc()
	d.Header, d.Body = r.Header, text(r.Body)
	if r.reply != nil {
		d.Reply = &replyDoc{r.reply.status, r.reply.header, text(r.reply.body)}
	}
	return d
}

// text is a body that can be read, as far as it is not too long to be.
func text(body []byte) string {
	const most = 64 << 10
	if len(body) > most {
		end := most
		for end > most-utf8.UTFMax && !utf8.RuneStart(body[end]) {
			end-- // not within a character
		}
		return text(body[:end]) + "…"
	}
	if !utf8.Valid(body) {
		return strconv.QuoteToASCII(string(body))
	}
	return string(body)
}

func (s *Server) serveRequests(w http.ResponseWriter, r *http.Request) error {
	after, _ := strconv.Atoi(r.URL.Query().Get("after"))
	list := []requestDoc{}
	for _, rec := range s.Requests(r.URL.Query().Get("key")) {
		if rec.Seq > after || rec.Seq == 0 {
			list = append(list, rec.doc())
		}
	}
	reply(w, http.StatusOK, list)
	return nil
}

func (s *Server) serveRequest(w http.ResponseWriter, r *http.Request) error {
	seq, _ := strconv.Atoi(r.PathValue("seq"))
	s.mu.Lock()
	if seq < 1 || seq > len(s.log) {
		s.mu.Unlock()
		return notFound("there is no request %s", r.PathValue("seq"))
	}
	rec := *s.log[seq-1]
	rec.Points = maps.Clone(rec.Points)
	rec.met = slices.Clone(rec.met)
	s.mu.Unlock()
	reply(w, http.StatusOK, rec.whole())
	return nil
}

// effectDoc is an Effect in the control API.
type effectDoc struct {
	Scope   string          `json:"scope,omitempty"`
	Seq     int             `json:"seq"`
	Request int             `json:"request"`
	Caller  string          `json:"caller"`
	Key     string          `json:"key"`
	Name    string          `json:"name"`
	Value   json.RawMessage `json:"value"` // as text if it is no JSON
	At      instant         `json:"at"`
}

func (e Effect) doc(scope string) effectDoc {
	value, err := json.Marshal(e.Value)
	if err != nil {
		value, _ = json.Marshal(fmt.Sprint(e.Value)) //nolint:errchkjson // a string
	}
	return effectDoc{scope, e.Seq, e.Request, e.Caller, e.Key, e.Name, value, instant(e.At)}
}

func (s *Server) serveEffects(w http.ResponseWriter, r *http.Request) error {
	after, _ := strconv.Atoi(r.URL.Query().Get("after"))
	list := []effectDoc{}
	for _, e := range s.Effects(r.URL.Query().Get("key")) {
		if e.Seq > after {
			list = append(list, e.doc(s.scope))
		}
	}
	reply(w, http.StatusOK, list)
	return nil
}
