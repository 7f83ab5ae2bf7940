package mockserver

import (
	"net/http"
	"slices"
)

// plan finds what an attempt meets. s.mu is held.
func (s *Server) plan(r *http.Request, who scope, stamp string, commit bool) *step {
	for _, sc := range s.matching(r, who) {
		if st := sc.step(who, stamp, commit); st != nil {
			return st
		}
	}
	return nil
}

// matching returns the scripts for a request, the most specific first.
func (s *Server) matching(r *http.Request, who scope) []*Script {
	var list []*Script
	var patterns []string
	for _, sc := range s.scripts {
		if sc.key != nil && *sc.key != who.key || sc.caller != nil && *sc.caller != who.caller {
			continue
		}
		if _, p := sc.mux.Handler(r); p != "" {
			list = append(list, sc)
			if !slices.Contains(patterns, sc.pattern) {
				patterns = append(patterns, sc.pattern)
			}
		}
	}
	rank := ranks(r, patterns)
	narrow := func(sc *Script) (n int) {
		if sc.key != nil {
			n += 2
		}
		if sc.caller != nil {
			n++
		}
		return n
	}
	slices.SortStableFunc(list, func(a, b *Script) int {
		if d := rank[a.pattern] - rank[b.pattern]; d != 0 {
			return d
		}
		return narrow(b) - narrow(a)
	})
	return list
}

// ranks orders patterns that all match r, the most specific first, by asking
// ServeMux again and again which one it would take. Two of which neither is the
// more specific cannot stand in one ServeMux; the earlier comes first.
func ranks(r *http.Request, patterns []string) map[string]int {
	rank := make(map[string]int, len(patterns))
	for left := slices.Clone(patterns); len(left) > 0; {
		mux := http.NewServeMux()
		for _, p := range left {
			_ = handle(mux, p) // it has been tried in On; what conflicts waits for its turn
		}
		_, first := mux.Handler(r)
		i := max(0, slices.Index(left, first))
		rank[left[i]] = len(rank)
		left = slices.Delete(left, i, i+1)
	}
	return rank
}
