package draw

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
)

// style is for light and dark pages. A class of a series colours lines, bars and
// texts.
const style = `<style>
.page { fill: #ffffff } .grid { stroke: #d8dee4 } .axis { stroke: #59636e }
text { font: 13px system-ui, sans-serif; fill: #1f2328 } .small { font-size: 12px; fill: #59636e }
.line { fill: none; stroke-width: 2; stroke-linejoin: round }
.s0 { fill: #59636e; stroke: #59636e } .s1 { fill: #bc4c00; stroke: #bc4c00 } .s2 { fill: #0969da; stroke: #0969da }
.second { opacity: 0.5 } text.s0, text.s1, text.s2 { stroke: none } .line { fill: none }
@media (prefers-color-scheme: dark) {
.page { fill: #0d1117 } .grid { stroke: #30363d } .axis { stroke: #9198a1 }
text { fill: #f0f6fc } .small { fill: #9198a1 }
.s0 { fill: #9198a1; stroke: #9198a1 } .s1 { fill: #f0883e; stroke: #f0883e } .s2 { fill: #58a6ff; stroke: #58a6ff }
.line { fill: none }
}
</style>`

// A canvas collects the elements of a picture.
type canvas struct{ b strings.Builder }

// newCanvas begins a picture with what it shows, in a few words and in more.
func newCanvas(width, height int, title, description string) *canvas {
	c := new(canvas)
	c.putf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="title description">`, width, height, width, height)
	c.putf(`<title id="title">%s</title>`, escape(title))
	c.putf(`<desc id="description">%s</desc>`, escape(description))
	c.putf("%s", style)
	c.putf(`<rect class="page" width="%d" height="%d"/>`, width, height)
	return c
}

func (c *canvas) putf(format string, args ...any) { fmt.Fprintf(&c.b, format+"\n", args...) }

func (c *canvas) text(class, anchor string, x, y float64, s string) {
	c.putf(`<text class="%s" text-anchor="%s" x="%.1f" y="%.1f">%s</text>`, class, anchor, x, y, escape(s))
}

func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	c.putf(`<line class="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, class, x1, y1, x2, y2)
}

func (c *canvas) String() string { return c.b.String() + "</svg>\n" }

func escape(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a Buffer does not fail
	return b.String()
}
