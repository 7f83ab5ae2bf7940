package proof_test

import (
	"slices"
	"strings"

	"github.com/idem-go/idem/mockserver"
)

// An end is what one attempt meets: a fault of the mock server, and beside it
//
//	refuse@dial          nobody listens: what is dialled is refused
//	refuse@dial send=2   the same, once the pooled connection has died
type end struct {
	text    string
	fault   mockserver.Fault
	trip    int  // the number of the attempt
	refuse  bool // every dial
	refuse2 bool // every dial after the pooled connection
}

func parseEnd(text string) end {
	e := end{text: text}
	var rest []string
	for clause := range strings.SplitSeq(text, ";") {
		switch clause = strings.TrimSpace(clause); clause {
		case "refuse@dial":
			e.refuse = true
		case "refuse@dial send=2":
			e.refuse2 = true
		default:
			rest = append(rest, clause)
		}
	}
	if e.fault = mockserver.Fault(strings.Join(rest, "; ")); e.fault == "" {
		e.fault = "pass"
	}
	return e
}

// connections are the two ways in which an attempt finds its connection.
type connections uint8

const (
	fresh  connections = iota // each attempt dials
	reused                    // each attempt finds one idle connection, and no other
)

func (c connections) String() string { return [...]string{"fresh", "reused"}[c] }

// ends are the ends that an attempt can come to. What tells kinds of server apart
// is in every list; the others are in those of a kind that is thorough.
func (k kind) ends(c connections) []string {
	if k.only != nil {
		return k.only
	}
	list := []string{
		"pass",
		"hang@received",          // no answer; it arrives after the call has returned
		"delay@received for=31s", // no answer; it arrives while the call goes on
		"429@received",
		"409@received",
		"crash@claimed", // the claim goes stale
		"401@received",
		"502@received forward=now",
		"402@claimed",              // the handler declines
		"402@claimed; drop@stored", // and the answer is lost
	}
	if c == fresh {
		list = append(list,
			"refuse@dial",
			"503@received", // a gateway's, before it forwards
			"drop@stored",
			"reset@received forward=late",
			"cut@body",
		)
	} else {
		// net/http sends again by itself: what the second send meets.
		list = append(list,
			"drop@stored send=1",                     // the first has worked: a replay
			"reset@received send=1",                  // the first has not
			"drop@stored send=1; refuse@dial send=2", // nobody listens any more
			"reset@received forward=late send=1; 401@received send=2",
			"drop@stored send=1; 429@received send=2",
		)
	}
	if k.thorough {
		list = append(list,
			"cut@head",
			"503@received retry-after=30",
			"409@received retry-after=5",
			"408@received forward=late",
		)
		if c == fresh {
			list = append(list, "drop@received")
		}
	}
	list = slices.DeleteFunc(list, func(e string) bool { return slices.Contains(k.without, e) })
	return append(list, k.extra...)
}
