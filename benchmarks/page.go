package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/idem-go/idem/benchmarks/internal/draw"
	"github.com/idem-go/idem/benchmarks/internal/measure"
	"github.com/idem-go/idem/benchmarks/internal/peers"
)

//go:embed performance.md.tmpl
var pageText string

// page returns docs/performance.md.
func (r *results) page() (string, error) {
	byLetter := map[string][]table{}
	for _, t := range r.tables() {
		byLetter[t.Title[:1]] = append(byLetter[t.Title[:1]], t)
	}
	page, err := template.New("page").Option("missingkey=error").Parse(pageText)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = page.Execute(&b, map[string]any{
		"Machine": r.machine, "Goals": goalTable(r.goals()).String(), "Parts": byLetter,
		"Attempts": attempts, "Rounds": r.rounds, "Each": r.each, "Looks": r.looks, "Slow": r.slow,
		"LoopWaits": whole(r.waitOf(peers.RetryableRT).total()),
	})
	return b.String(), err
}

// plots returns the pictures by the names of their files.
func (r *results) plots() map[string]string {
	return map[string]string{
		"performance-stub.svg":     ratioBars("A call that succeeds at once, over a stub", r.stub).SVG(),
		"performance-loopback.svg": ratioBars(fmt.Sprintf("The same over loopback, %d callers", callers), r.parallel).SVG(),
		"performance-waiting.svg":  r.waitBars().SVG(),
		"performance-chaos.svg":    r.chaosBars().SVG(),
		"performance-flat.svg":     r.flatLines().SVG(),
	}
}

// The colours.
const (
	plain = iota
	baseline
	ours
)

func colour(name string) int {
	switch {
	case strings.HasPrefix(name, peers.Idem):
		return ours
	case strings.HasPrefix(name, peers.Bare):
		return baseline
	default:
		return plain
	}
}

func ratioBars(title string, c measure.Costs) draw.Bars {
	bars := draw.Bars{Title: title, Unit: "processor time, × bare net/http", Format: ratio}
	for _, name := range c.Names {
		bare, _ := basesOf(c, name)
		v, _ := c.Ratio(name, bare, measure.CPU)
		bars.Bars = append(bars.Bars, draw.Bar{Name: name, Value: v, Series: colour(name)})
	}
	return bars
}

func (r *results) waitBars() draw.Bars {
	bars := draw.Bars{Title: "A call that waits", Unit: "bytes", Parts: []string{"heap", "stack"}, Format: whole}
	for _, p := range peers.Of("E") {
		w := r.waitOf(p.Name)
		bars.Bars = append(bars.Bars, draw.Bar{Name: p.Name, Value: max(w.heap, 0), Second: max(w.stack, 0), Series: colour(p.Name)})
	}
	return bars
}

func (r *results) chaosBars() draw.Bars {
	bars := draw.Bars{Title: "Through the chaos", Unit: "orders", Parts: []string{"doubled", "lost, unknown or wrong"}, Format: whole}
	for _, c := range r.chaos {
		if c.table == defaultKeys {
			bars.Bars = append(bars.Bars, draw.Bar{Name: c.client, Value: float64(c.Doubled), Second: float64(c.Bad - c.Doubled), Series: colour(c.client)})
		}
	}
	return bars
}

func (r *results) flatLines() draw.Lines {
	p := draw.Lines{Title: "Calls under way at once", X: "calls", Y: "ns of processor time for each"}
	for series, name := range flatPeers() {
		line := draw.Line{Name: name, Series: series}
		for i, c := range r.flat {
			line.X = append(line.X, float64(r.levels[i]))
			line.Y = append(line.Y, c.Median(name, measure.CPU))
		}
		p.Lines = append(p.Lines, line)
	}
	return p
}

// write writes the page and its plots.
func (r *results) write(dir string) error {
	page, err := r.page()
	if err != nil {
		return err
	}
	files := r.plots()
	files["performance.md"] = page
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil { //nolint:gosec // documentation is for all to read
			return err
		}
	}
	return nil
}
