package contract

import (
	"net/http"
	"slices"
	"strings"
)

// Classify returns what the contract says of an answer, by status and, where
// the contract has codes, by a prefix of the body. The prefix may be cut
// anywhere; a member that lies beyond the cut, or is cut itself, does not match.
func (c Contract) Classify(status int, header http.Header, prefix []byte) Meaning {
	if c.Answers == nil {
		c.Answers = defaultAnswers()
	}
	var path string // the member that was read last, and what it holds: lists name one path several times in a row
	var values []string
	for i := range c.Answers {
		m := &c.Answers[i]
		if !m.covers(status) || m.repeats(status) {
			continue
		}
		if m.Path == "" {
			return m.Means
		}
		if m.Path != path {
			path, values = m.Path, scalars(prefix, m.Path)
		}
		if slices.ContainsFunc(values, m.holds) {
			return m.Means
		}
	}
	return Unclassified
}

// Peeks reports whether Classify or Advice can make use of the body of an
// answer with this status.
func (c Contract) Peeks(status int) bool {
	// nil lists need no look: none of Default's entries reads a body.
	for i := range c.Answers {
		if m := &c.Answers[i]; m.Path != "" && m.covers(status) {
			return true
		}
	}
	return !isSuccess(status) && slices.ContainsFunc(c.Hints, func(h Hint) bool { return h.Path != "" })
}

// covers reports whether m speaks of answers with this status.
func (m *Match) covers(status int) bool {
	return m.Status == status || m.Status == 0 && !isSuccess(status)
}

// repeats reports whether m would repeat a 422 without a code that says so.
func (m *Match) repeats(status int) bool {
	return status == http.StatusUnprocessableEntity &&
		(m.Path == "" || m.Value == "") && (m.Means == InProgress || m.Means == Transient)
}

// holds reports whether a member with this value is the one that m names.
func (m *Match) holds(value string) bool {
	if m.Value == "" || value == m.Value {
		return true
	}
	rest, ok := strings.CutSuffix(value, m.Value)
	return ok && m.Path == "type" && rest != "" && strings.IndexByte("/#:", rest[len(rest)-1]) >= 0
}

func isSuccess(status int) bool { return status >= 200 && status < 300 }
