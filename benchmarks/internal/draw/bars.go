package draw

import (
	"fmt"
	"math"
	"strings"
)

// Bars is a plot of one number, or of a sum of two, for each of several.
type Bars struct {
	Title  string
	Unit   string   // of the numbers
	Parts  []string // what the two parts of a bar are; nil: there is one
	Bars   []Bar
	Format func(float64) string // of the number at the end of a bar
}

// A Bar is one of them.
type Bar struct {
	Name   string
	Value  float64
	Second float64 // comes on top of Value
	Series int     // its colour, from 0 to 2
}

func (b Bar) total() float64 { return b.Value + b.Second }

// SVG draws the bars below each other.
func (p Bars) SVG() string {
	const (
		width, left, right = 760, 300, 70
		top, row, bottom   = 48, 24, 28
	)
	height := top + row*len(p.Bars) + bottom
	most := 0.0
	for _, b := range p.Bars {
		most = math.Max(most, b.total())
	}
	step := Step(most)
	scale := (width - left - right) / math.Max(most, step)
	c := newCanvas(width, height, p.Title, p.description())
	c.text("", "start", 12, 24, p.heading())
	for at := 0.0; at <= most; at += step {
		x := left + at*scale
		c.line("grid", x, top-4, x, float64(height-bottom))
		c.text("small", "middle", x, float64(height-10), fmt.Sprintf("%g", at))
	}
	for i, b := range p.Bars {
		y := float64(top + row*i)
		series := fmt.Sprintf("s%d", b.Series)
		c.text("", "end", left-10, y+14, b.Name)
		c.putf(`<rect class="%s" x="%d" y="%.1f" width="%.1f" height="%d"/>`, series, left, y+3, b.Value*scale, row-8)
		if b.Second > 0 {
			c.putf(`<rect class="%s second" x="%.1f" y="%.1f" width="%.1f" height="%d"/>`, series, left+b.Value*scale, y+3, b.Second*scale, row-8)
		}
		c.text(series, "start", left+b.total()*scale+8, y+14, p.Format(b.total()))
	}
	return c.String()
}

func (p Bars) heading() string {
	if p.Parts == nil {
		return fmt.Sprintf("%s (%s)", p.Title, p.Unit)
	}
	return fmt.Sprintf("%s (%s; dark: %s, light: %s)", p.Title, p.Unit, p.Parts[0], p.Parts[1])
}

func (p Bars) description() string {
	words := make([]string, 0, len(p.Bars))
	for _, b := range p.Bars {
		words = append(words, b.Name+": "+p.Format(b.total()))
	}
	return strings.Join(words, "; ")
}

// Step returns a round distance of grid lines, of which at most six fit into most.
func Step(most float64) float64 {
	if !(most > 0) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(most/6)))
	for _, m := range []float64{1, 2, 5} {
		if m*power*6 >= most {
			return m * power
		}
	}
	return 10 * power
}
