// Package draw makes the report's tables and plots.
package draw

import (
	"strings"
	"unicode/utf8"
)

// A Table is text in rows. The first column is on the left, the others on the right.
type Table struct {
	Columns []string
	Rows    [][]string
}

// Add appends a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// String returns the table in Markdown, aligned so that it reads as text as well.
func (t *Table) String() string {
	widths := make([]int, len(t.Columns))
	for _, row := range append([][]string{t.Columns}, t.Rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell), 3)
		}
	}
	var b strings.Builder
	line := func(cell func(i int) string) {
		for i := range widths {
			b.WriteString("| " + cell(i) + " ")
		}
		b.WriteString("|\n")
	}
	line(func(i int) string { return pad(t.Columns[i], widths[i], i > 0) })
	line(func(i int) string {
		if i == 0 {
			return strings.Repeat("-", widths[i])
		}
		return strings.Repeat("-", widths[i]-1) + ":"
	})
	for _, row := range t.Rows {
		line(func(i int) string { return pad(row[i], widths[i], i > 0) })
	}
	return b.String()
}

func pad(s string, width int, right bool) string {
	space := strings.Repeat(" ", width-utf8.RuneCountInString(s))
	if right {
		return space + s
	}
	return s + space
}
