// Package picture draws the SVG pictures of the examples, for light and for dark
// pages. The same calls give the same bytes.
package picture

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// style gives the classes their colours: page, band, grid and axis; text, small,
// strong; good, bad and plain, of which a line is the stroke.
const style = `<style>
.page { fill: #ffffff } .band { fill: #00000012 } .grid { stroke: #d8dee4 } .axis { stroke: #59636e }
text { font: 13px system-ui, sans-serif; fill: #1f2328 } .small { font-size: 12px; fill: #59636e } .strong { font-weight: 600 }
.good { fill: #0969da } .bad { fill: #bc4c00 } .plain { fill: #59636e }
.line { stroke-width: 2; stroke-linejoin: round } .dashed { stroke-dasharray: 6 3 }
.line.good { fill: none; stroke: #0969da } .line.bad { fill: none; stroke: #bc4c00 } .line.plain { fill: none; stroke: #59636e; stroke-width: 1.5 }
.line.hollow { fill: #ffffff }
@media (prefers-color-scheme: dark) {
.page { fill: #0d1117 } .band { fill: #ffffff1a } .grid { stroke: #30363d } .axis { stroke: #9198a1 }
text { fill: #f0f6fc } .small { fill: #9198a1 }
.good { fill: #58a6ff } .bad { fill: #f0883e } .plain { fill: #9198a1 }
.line.good { stroke: #58a6ff } .line.bad { stroke: #f0883e } .line.plain { stroke: #9198a1 } .line.hollow { fill: #0d1117 }
}
</style>`

// A Picture is drawn from back to front. Make it with New.
type Picture struct{ b strings.Builder }

// New returns a picture with nothing on it but the page. The title and the
// description are for those who do not see it.
func New(width, height int, title, description string) *Picture {
	p := new(Picture)
	p.Addf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="title description">`,
		width, height, width, height)
	p.Addf(`<title id="title">%s</title>`, html.EscapeString(title))
	p.Addf(`<desc id="description">%s</desc>`, html.EscapeString(description))
	p.Addf("%s", style)
	p.Addf(`<rect class="page" width="%d" height="%d"/>`, width, height)
	return p
}

// Addf draws any element.
func (p *Picture) Addf(format string, args ...any) { _, _ = fmt.Fprintf(&p.b, format+"\n", args...) }

// Text writes one line; anchor is start, middle or end.
func (p *Picture) Text(class, anchor string, x, y float64, text string) {
	p.Addf(`<text class="%s" text-anchor="%s" x="%.1f" y="%.1f">%s</text>`, class, anchor, x, y, html.EscapeString(text))
}

// Line draws a straight line.
func (p *Picture) Line(class string, x1, y1, x2, y2 float64) {
	p.Addf(`<line class="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, class, x1, y1, x2, y2)
}

// Arrow draws a line of the class plain that ends in a head.
func (p *Picture) Arrow(x1, y1, x2, y2 float64) {
	const long, wide = 9, 4
	n := math.Hypot(x2-x1, y2-y1)
	dx, dy := (x2-x1)/n, (y2-y1)/n
	bx, by := x2-long*dx, y2-long*dy // where the head begins
	p.Line("line plain", x1, y1, bx, by)
	p.Addf(`<path class="plain" d="M%.1f %.1fL%.1f %.1fL%.1f %.1fZ"/>`, x2, y2, bx-wide*dy, by+wide*dx, bx+wide*dy, by-wide*dx)
}

// Cross draws a cross of the class bad.
func (p *Picture) Cross(x, y float64) {
	const r = 5
	p.Line("line bad", x-r, y-r, x+r, y+r)
	p.Line("line bad", x-r, y+r, x+r, y-r)
}

// String returns the picture as SVG.
func (p *Picture) String() string { return p.b.String() + "</svg>\n" }
