package draw

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTable(t *testing.T) {
	table := Table{Columns: []string{"client", "×"}}
	table.Add("net/http", "1.00")
	table.Add("idem", "12.50")
	assert.Equal(t, strings.TrimPrefix(`
| client   |     × |
| -------- | ----: |
| net/http |  1.00 |
| idem     | 12.50 |
`, "\n"), table.String())
}

func TestStep(t *testing.T) {
	for most, want := range map[float64]float64{0: 1, 1: 0.2, 5: 1, 6: 1, 7: 2, 22_000: 5000, 384: 100} {
		assert.InDelta(t, want, Step(most), 1e-9, "%g", most)
	}
}

// wellFormed returns nil for a picture that a browser would show.
func wellFormed(svg string) error {
	for dec := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := dec.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func TestBars(t *testing.T) {
	svg := Bars{
		Title: "A < B", Unit: "bytes", Parts: []string{"heap", "stack"}, Format: func(v float64) string { return "about " + string('0'+rune(v)) },
		Bars: []Bar{{Name: "one & only", Value: 2, Second: 1, Series: 2}, {Name: "none"}},
	}.SVG()
	assert.NoError(t, wellFormed(svg))
	assert.Contains(t, svg, "one &amp; only")
	assert.Contains(t, svg, "one &amp; only: about 3; none: about 0")
	assert.Equal(t, 1+2+1, strings.Count(svg, "<rect"), "the page, a bar each, and a second part")
}

func TestBarsOfNothing(t *testing.T) {
	svg := Bars{Title: "nothing", Format: func(float64) string { return "0" }, Bars: []Bar{{Name: "a"}}}.SVG()
	assert.NoError(t, wellFormed(svg))
	assert.NotContains(t, svg, "NaN")
	assert.NotContains(t, svg, "Inf")
}

func TestLines(t *testing.T) {
	svg := Lines{Title: "cost", X: "calls", Y: "ns", Lines: []Line{
		{Name: "a", X: []float64{1, 10, 100}, Y: []float64{1, 2, 4}},
		{Name: "b", X: []float64{1, 10, 100}, Y: []float64{4, 4, 4}, Series: 1},
	}}.SVG()
	assert.NoError(t, wellFormed(svg))
	assert.Equal(t, 2, strings.Count(svg, "<polyline"))
	assert.Contains(t, svg, `points="64.0,249.0 396.0,190.0 728.0,72.0"`) // ten times more is as far again, twice as much half as high
	assert.NotContains(t, svg, "NaN")
}
