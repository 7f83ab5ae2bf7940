package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/idem-go/idem/examples/internal/picture"
)

// The picture's measures.
const (
	width, height             = 760, 400
	left, right, top, bottom  = 64, 24, 56, 56
	plotWidth, plotHeight     = width - left - right, height - top - bottom
	mostGood, gridGood, ticks = 100, 25, 20 // calls a second, and seconds
)

// draw draws goodput against time as SVG, for light and dark pages.
func draw(without, with *result) string {
	seconds := len(with.good)
	x := func(second float64) float64 { return left + second/float64(seconds)*plotWidth }
	y := func(good float64) float64 { return top + (1-good/mostGood)*plotHeight }
	p := picture.New(width, height, "Calls that succeed, through an outage, with and without a Budget", description(without, with))

	from, to := with.outage[0].Seconds(), with.outage[1].Seconds()
	p.Addf(`<rect class="band" x="%.1f" y="%d" width="%.1f" height="%d"/>`, x(from), top, x(to)-x(from), plotHeight)
	p.Text("small", "middle", x((from+to)/2), top+16, "outage")
	for good := 0.0; good <= mostGood; good += gridGood {
		p.Line("grid", left, y(good), width-right, y(good))
		p.Text("small", "end", left-8, y(good)+4, fmt.Sprint(good))
	}
	for second := 0; second <= seconds; second += ticks {
		at := x(float64(second))
		p.Line("axis", at, height-bottom, at, height-bottom+5)
		p.Text("small", "middle", at, height-bottom+20, fmt.Sprint(second))
	}
	p.Line("axis", left, height-bottom, width-right, height-bottom)
	p.Text("small", "middle", left+plotWidth/2, height-12, "seconds")
	p.Addf(`<text class="small" text-anchor="middle" transform="translate(18 %d) rotate(-90)">calls a second that succeed</text>`, top+plotHeight/2)
	for i, line := range []struct {
		line, text, name string
		r                *result
	}{
		{"line bad dashed", "bad", "without a Budget", without},
		{"line good", "good", "with NewBudget(0.1, 10) in each client", with},
	} {
		points := make([]string, 0, seconds)
		for second, good := range line.r.good {
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(float64(second)+0.5), y(float64(min(good, mostGood)))))
		}
		p.Addf(`<polyline class="%s" points="%s"/>`, line.line, strings.Join(points, " "))
		at := float64(left + 240*i)
		p.Line(line.line, at, 28, at+28, 28)
		p.Text(line.text, "start", at+36, 32, line.name)
	}
	return p.String()
}

// description says in words what is seen.
func description(without, with *result) string {
	end := int(with.outage[1] / time.Second)
	n := len(with.good)
	return fmt.Sprintf("Before the outage %.0f calls a second succeed. In the last minute, well after it has ended, %.0f do with a Budget and %.0f without one. The outage lasts from second %d to %d.",
		with.rate(0, int(with.outage[0]/time.Second)), with.rate(n-60, n), without.rate(n-60, n), int(with.outage[0]/time.Second), end)
}
