package draw

import (
	"fmt"
	"math"
	"strings"
)

// Lines is a plot of several numbers against one that grows tenfold.
type Lines struct {
	Title, X, Y string
	Lines       []Line
}

// A Line is one of them. Its points are those of X at the same index.
type Line struct {
	Name   string
	X, Y   []float64
	Series int // its colour, from 0 to 2
}

// SVG draws the lines, with X on a logarithmic scale.
func (p Lines) SVG() string {
	const (
		width, height            = 760, 360
		left, right, top, bottom = 64, 32, 72, 52
	)
	decades, most := 1.0, 0.0
	for _, l := range p.Lines {
		for i := range l.X {
			decades = math.Max(decades, math.Log10(l.X[i]))
			most = math.Max(most, l.Y[i])
		}
	}
	x := func(v float64) float64 { return left + math.Log10(v)/decades*(width-left-right) }
	y := func(v float64) float64 { return height - bottom - v/math.Max(most, 1)*(height-top-bottom) }
	c := newCanvas(width, height, p.Title, p.description())
	c.text("", "start", 12, 24, fmt.Sprintf("%s (%s)", p.Title, p.Y))
	for v := 0.0; v <= most; v += Step(most) {
		c.line("grid", left, y(v), width-right, y(v))
		c.text("small", "end", left-8, y(v)+4, fmt.Sprintf("%g", v))
	}
	for d := 0.0; d <= decades; d++ {
		at := x(math.Pow(10, d))
		c.line("axis", at, height-bottom, at, height-bottom+5)
		c.text("small", "middle", at, height-bottom+20, fmt.Sprintf("%.0f", math.Pow(10, d)))
	}
	c.line("axis", left, height-bottom, width-right, height-bottom)
	c.text("small", "middle", (left+width-right)/2, height-12, p.X)
	for i, l := range p.Lines {
		series := fmt.Sprintf("s%d", l.Series)
		points := make([]string, 0, len(l.X))
		for at := range l.X {
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(l.X[at]), y(l.Y[at])))
		}
		c.putf(`<polyline class="%s line" points="%s"/>`, series, strings.Join(points, " "))
		c.text(series, "start", float64(left+180*i), 48, l.Name)
	}
	return c.String()
}

func (p Lines) description() string {
	var words []string
	for _, l := range p.Lines {
		for i := range l.X {
			words = append(words, fmt.Sprintf("%s at %.0f: %.0f", l.Name, l.X[i], l.Y[i]))
		}
	}
	return strings.Join(words, "; ")
}
