package main

import (
	"fmt"
	"strings"
	"time"
)

// The picture's measures.
const (
	width, height             = 760, 400
	left, right, top, bottom  = 64, 24, 56, 56
	plotWidth, plotHeight     = width - left - right, height - top - bottom
	mostGood, gridGood, ticks = 100, 25, 20 // calls a second, and seconds
)

// picture draws goodput against time as SVG, for light and dark pages.
func picture(without, with *result) string {
	seconds := len(with.good)
	x := func(second float64) float64 { return left + second/float64(seconds)*plotWidth }
	y := func(good float64) float64 { return top + (1-good/mostGood)*plotHeight }
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	text := func(class, anchor string, x, y float64, s string) {
		p(`<text class="%s" text-anchor="%s" x="%.1f" y="%.1f">%s</text>`, class, anchor, x, y, s)
	}

	p(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="title description">`, width, height, width, height)
	p(`<title id="title">Calls that succeed, through an outage, with and without a Budget</title>`)
	p(`<desc id="description">%s</desc>`, description(without, with))
	p(`<style>
.page { fill: #ffffff } .outage { fill: #00000012 } .grid { stroke: #d8dee4 } .axis { stroke: #59636e }
text { font: 13px system-ui, sans-serif; fill: #1f2328 } .small { font-size: 12px; fill: #59636e }
.line { fill: none; stroke-width: 2; stroke-linejoin: round } .with { stroke: #0969da } .without { stroke: #bc4c00; stroke-dasharray: 6 3 }
text.with { fill: #0969da; stroke: none } text.without { fill: #bc4c00; stroke: none }
@media (prefers-color-scheme: dark) {
.page { fill: #0d1117 } .outage { fill: #ffffff1a } .grid { stroke: #30363d } .axis { stroke: #9198a1 }
text { fill: #f0f6fc } .small { fill: #9198a1 } .with { stroke: #58a6ff } .without { stroke: #f0883e }
text.with { fill: #58a6ff } text.without { fill: #f0883e }
}
</style>`)
	p(`<rect class="page" width="%d" height="%d"/>`, width, height)
	from, to := with.outage[0].Seconds(), with.outage[1].Seconds()
	p(`<rect class="outage" x="%.1f" y="%d" width="%.1f" height="%d"/>`, x(from), top, x(to)-x(from), plotHeight)
	text("small", "middle", x((from+to)/2), top+16, "outage")
	for good := 0; good <= mostGood; good += gridGood {
		p(`<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>`, left, width-right, y(float64(good)), y(float64(good)))
		text("small", "end", left-8, y(float64(good))+4, fmt.Sprint(good))
	}
	for second := 0; second <= seconds; second += ticks {
		p(`<line class="axis" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>`, x(float64(second)), x(float64(second)), height-bottom, height-bottom+5)
		text("small", "middle", x(float64(second)), height-bottom+20, fmt.Sprint(second))
	}
	p(`<line class="axis" x1="%d" x2="%d" y1="%d" y2="%d"/>`, left, width-right, height-bottom, height-bottom)
	text("small", "middle", left+plotWidth/2, height-12, "seconds")
	p(`<text class="small" text-anchor="middle" transform="translate(18 %d) rotate(-90)">calls a second that succeed</text>`, top+plotHeight/2)
	for i, line := range []struct {
		class, name string
		r           *result
	}{{"without", "without a Budget", without}, {"with", "with NewBudget(0.1, 10) in each client", with}} {
		points := make([]string, 0, seconds)
		for second, good := range line.r.good {
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(float64(second)+0.5), y(float64(min(good, mostGood)))))
		}
		p(`<polyline class="line %s" points="%s"/>`, line.class, strings.Join(points, " "))
		at := float64(left + 240*i)
		p(`<line class="line %s" x1="%.1f" x2="%.1f" y1="28" y2="28"/>`, line.class, at, at+28)
		text(line.class, "start", at+36, 32, line.name)
	}
	p(`</svg>`)
	return b.String()
}

// description says in words what is seen.
func description(without, with *result) string {
	end := int(with.outage[1] / time.Second)
	n := len(with.good)
	return fmt.Sprintf("Before the outage %.0f calls a second succeed. In the last minute, well after it has ended, %.0f do with a Budget and %.0f without one. The outage lasts from second %d to %d.",
		with.rate(0, int(with.outage[0]/time.Second)), with.rate(n-60, n), without.rate(n-60, n), int(with.outage[0]/time.Second), end)
}
