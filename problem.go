package idem

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
)

// Problem is a problem document (RFC 9457). Type is the identifier to decide
// by; absent members are empty, and members of a wrong JSON type are ignored,
// as the RFC asks. Extra holds all other members.
type Problem struct {
	Type, Title, Detail, Instance string
	Status                        int
	Extra                         map[string]json.RawMessage
}

// parseProblem returns the problem document in body, or nil if it is none.
func parseProblem(header http.Header, body []byte) *Problem {
	media, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(media), "application/problem+json") {
		return nil
	}
	var members map[string]json.RawMessage
	if json.NewDecoder(bytes.NewReader(body)).Decode(&members) != nil || members == nil {
		return nil
	}
	p := &Problem{Type: "about:blank"} // RFC 9457, 3.1.1
	for member, into := range map[string]any{
		"type": &p.Type, "title": &p.Title, "detail": &p.Detail, "instance": &p.Instance, "status": &p.Status,
	} {
		if raw, ok := members[member]; ok {
			_ = json.Unmarshal(raw, into) // a member of a wrong type is ignored (RFC 9457, 3.1)
			delete(members, member)
		}
	}
	if len(members) > 0 {
		p.Extra = members
	}
	return p
}
