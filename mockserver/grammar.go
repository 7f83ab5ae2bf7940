package mockserver

import (
	"fmt"
	"slices"
	"strings"
)

// rule says where an action may stand and which options it takes.
type rule struct {
	points  []Point
	options []string
	needs   string // the option it cannot be without
}

// rules is the grammar. "status" stands for every number from 200 to 599.
func rules() map[string]rule {
	life := []Point{Received, Claimed, Worked, Stored, Head, Body}
	wire := append([]Point{Dial, Handshake}, life...)
	hello := []Point{Handshake}
	head := []Point{Head}
	return map[string]rule{
		"refuse":    {points: []Point{Dial}},
		"alert":     {points: hello, options: []string{"code"}},
		"garbage":   {points: hello},
		"plain":     {points: hello},
		"stall":     {points: hello},
		"untrusted": {points: hello},
		"expired":   {points: hello},
		"wrongname": {points: hello},
		"drop":      {points: wire, options: []string{"after", "forward"}},
		"reset":     {points: wire, options: []string{"after", "forward"}},
		"freeze":    {points: life, options: []string{"after"}},
		"hang":      {points: append([]Point{Dial}, life...), options: []string{"after"}},
		"delay":     {points: append([]Point{Dial}, life...), options: []string{"for", "after"}, needs: "for"},
		"crash":     {points: []Point{Received, Claimed, Worked, Stored}},
		"abort":     {points: life, options: []string{"code", "after", "forward"}},
		"goaway":    {points: life, options: []string{"code", "last", "after", "forward"}},
		"status":    {points: life[:5], options: []string{"retry-after", "header", "type", "body", "forward"}},
		"raw":       {points: []Point{Received, Stored, Head}, options: []string{"text", "end", "forward"}, needs: "text"},
		"copy":      {points: []Point{Received}, options: []string{"forward"}},
		"cut":       {points: []Point{Head, Body}, options: []string{"after", "end"}},
		"dribble":   {points: []Point{Body}, options: []string{"size", "every"}},
		"malformed": {points: head},
		"lengths":   {points: head},
		"badchunk":  {points: []Point{Body}},
		"pass":      {},
	}
}

func names(all map[string]rule) (list []string) {
	for name := range all {
		if name != "status" {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return append(list, "or a status such as 503")
}

// suggest names the nearest of list, or all of it.
func suggest(name string, list []string) string {
	for _, l := range list {
		if distance(name, l) <= 2 {
			return fmt.Sprintf("did you mean %q?", l)
		}
	}
	return "there are " + strings.Join(list, ", ")
}

// distance is the number of edits between two words (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := last
			if a[i] != b[j] {
				cost = 1 + min(last, row[j], row[j+1])
			}
			last, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
