package proof_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// replay runs one schedule by itself: what a failure prints calls it.
func replay(t *testing.T, s schedule) {
	t.Helper()
	for _, k := range kinds() {
		if k.name != s.kind {
			continue
		}
		for n := range 2 { // both orders of late arrival, both kinds of body
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, k)
				r := w.run(s, n)
				r.report(t, len(s.ends))
				for _, a := range r.attempts {
					t.Logf("attempt %d: %d sends, status %d, %v, %v, wait %v, reason %v", a.Number, a.Sends, a.Status, a.Err, a.Outcome, a.Wait, a.Reason)
				}
				t.Logf("%+v, then %v; %v", r.result, r.after, r.err)
			})
		}
		return
	}
	require.Fail(t, "there is no such kind of server", s.kind)
}

// report fails the test with each broken invariant and the schedule as a test.
func (r *run) report(t *testing.T, met int) {
	t.Helper()
	if len(r.failures) == 0 {
		return
	}
	t.Errorf("%s\n%s", strings.Join(r.failures, "\n"), r.snippet(met))
}

// snippet is the schedule as Go, as far as it was met.
func (s schedule) snippet(met int) string {
	conn := "fresh"
	if s.conn == reused {
		conn = "reused"
	}
	var more strings.Builder
	if s.unkeyed {
		more.WriteString("unkeyed: true, ")
	}
	if s.do != "" {
		fmt.Fprintf(&more, "do: %q, at: %#v, ", s.do, s.at)
	}
	if s.deadline != 0 {
		fmt.Fprintf(&more, "deadline: %d, ", s.deadline)
	}
	return fmt.Sprintf("func TestSchedule(t *testing.T) {\n\treplay(t, schedule{kind: %q, conn: %s, %sends: %#v})\n}",
		s.kind, conn, strings.ReplaceAll(more.String(), "proof_test.", ""), s.ends[:min(met, len(s.ends))])
}
