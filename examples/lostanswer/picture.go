package main

import (
	"fmt"
	"strings"

	"github.com/idem-go/idem/examples/internal/picture"
)

// The picture's measures: two panels side by side, in each a lane for the client
// and one for the server, and time runs downwards.
const (
	width, height = 760, 232
	panel         = width / 2
	client        = 36.0 // of a panel
	server        = 232.0
	top, bottom   = 62.0, 196.0
	each          = 66.0 // an exchange
	slope         = 12.0 // of a message
)

// draw draws the stories.
func draw(stories []story) string {
	p := picture.New(width, height, "A lost answer, without an Intent and with one", describe(stories))
	for i, s := range stories {
		x := float64(i * panel)
		if i > 0 {
			p.Line("grid", x, 16, x, height-16)
		}
		p.Text("strong", "start", x+client-12, 26, s.title)
		drawLane(p, x+client, "client")
		drawLane(p, x+server, "server")
		for n, e := range s.exchanges {
			drawExchange(p, x, top+12+each*float64(n), e)
		}
		p.Text("strong "+colour(s.effects), "middle", x+server, bottom+20, s.verdict())
	}
	return p.String()
}

func drawLane(p *picture.Picture, x float64, name string) {
	p.Text("small", "middle", x, top-10, name)
	p.Line("axis", x, top, x, bottom)
}

// colour is good for the first effect of a charge and bad for any further one.
func colour(effect int) string {
	if effect > 1 {
		return "bad"
	}
	return "good"
}

// drawExchange draws a request, what the server does, and the answer, from y on.
func drawExchange(p *picture.Picture, x, y float64, e exchange) {
	const gap = 3 // between a message and a lane
	from, to := x+client+gap, x+server-gap
	middle := (from + to) / 2
	p.Arrow(from, y, to, y+slope)
	p.Text("small", "middle", middle, y-2, e.asked())

	work, answer := y+slope+9, y+slope+18
	class := "line plain hollow" // no effect
	if e.effect > 0 {
		class = colour(e.effect)
	}
	p.Addf(`<circle class="%s" cx="%.1f" cy="%.1f" r="5"/>`, class, x+server, work)
	p.Text("", "start", x+server+14, work+4.5, e.did())

	if e.status == 0 {
		p.Line("line plain dashed", to, answer, middle, answer+slope/2)
		p.Cross(middle, answer+slope/2)
		p.Text("bad", "end", middle-12, answer+slope/2+4.5, "answer lost")
		return
	}
	p.Arrow(to, answer, from, answer+slope)
	p.Text("small", "middle", middle, answer+slope+9, e.met())
}

// describe says in words what is seen.
func describe(stories []story) string {
	var b strings.Builder
	for _, s := range stories {
		fmt.Fprintf(&b, "%s, %s. ", s.title, s.verdict())
		for n, e := range s.exchanges {
			fmt.Fprintf(&b, "Request %d, %s: the server, %s; the client, %s. ", n+1, e.asked(), e.did(), e.met())
		}
	}
	return strings.TrimSpace(b.String())
}
