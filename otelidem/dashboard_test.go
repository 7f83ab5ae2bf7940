package otelidem_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/mockserver"
	"github.com/idem-go/idem/otelidem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// exported returns the names of all samples that Prometheus finds, each with the
// names of its labels.
func exported(t *testing.T) map[string]map[string]bool {
	t.Helper()
	found := map[string]map[string]bool{}
	synctest.Test(t, func(t *testing.T) {
		meters, handler, err := metrics()
		require.NoError(t, err)
		cfg := otelidem.Config{MeterProvider: meters}
		server := mockserver.New(t, mockserver.Config{})
		server.On("/").Always("503@received")
		client, err := idem.NewClient(idem.Config{BaseURL: server.URL, Transport: func() *idem.Transport {
			transport, err := otelidem.Instrument(&idem.Transport{Base: server.Transport()}, cfg)
			require.NoError(t, err)
			return transport
		}()})
		require.NoError(t, err)
		_, err = otelidem.ObserveJournal(cfg, func(context.Context) (otelidem.JournalStats, error) {
			return otelidem.JournalStats{Window: time.Hour}, nil
		})
		require.NoError(t, err)
		require.ErrorIs(t, charge(t.Context(), client), idem.ErrExhausted)

		scrape := httptest.NewRecorder()
		handler.ServeHTTP(scrape, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		for _, m := range regexp.MustCompile(`(?m)^(\w+)(?:\{(.*)\})? `).FindAllStringSubmatch(scrape.Body.String(), -1) {
			if found[m[1]] == nil {
				found[m[1]] = map[string]bool{}
			}
			for _, label := range labelNames(m[2]) {
				found[m[1]][label] = true
			}
		}
	})
	return found
}

// labelNames returns the names in what stands between braces.
func labelNames(text string) (names []string) {
	for _, m := range regexp.MustCompile(`(\w+)(?:=|!=|=~|!~)"[^"]*"`).FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}

// suffix is what a histogram's samples have behind its name.
var suffix = regexp.MustCompile(`_(bucket|count|sum)$`)

// A board is what the tests read of the dashboard.
type board struct {
	SchemaVersion int `json:"schemaVersion"`
	Templating    struct {
		List []struct {
			Name  string `json:"name"`
			Query any    `json:"query"`
		} `json:"list"`
	} `json:"templating"`
	Panels []struct {
		ID         int               `json:"id"`
		Type       string            `json:"type"`
		Title      string            `json:"title"`
		Datasource map[string]string `json:"datasource"`
		GridPos    struct {
			X int `json:"x"`
			Y int `json:"y"`
			W int `json:"w"`
			H int `json:"h"`
		} `json:"gridPos"`
		Targets []struct {
			Expr string `json:"expr"`
		} `json:"targets"`
	} `json:"panels"`
}

func readDashboard(t *testing.T) (b board) {
	t.Helper()
	raw, err := os.ReadFile("dashboard.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &b))
	return b
}

// exprs returns all expressions of the panels.
func (b board) exprs() (exprs []string) {
	for _, p := range b.Panels {
		for _, target := range p.Targets {
			exprs = append(exprs, target.Expr)
		}
	}
	return exprs
}

// Every metric that the dashboard asks for is exported, with every label that it
// selects or groups by, and every metric of ours is on it.
func TestDashboardAsksForWhatIsExported(t *testing.T) {
	board := readDashboard(t)
	exported := exported(t)
	asked := map[string]bool{}
	selector := regexp.MustCompile(`\b((?:idem|http)_\w+)(?:\{([^}]*)\})?`)
	grouped := regexp.MustCompile(`by \(([^)]*)\)`)
	for _, expr := range board.exprs() {
		labels := map[string]bool{"le": true}
		selectors := selector.FindAllStringSubmatch(grouped.ReplaceAllString(expr, ""), -1)
		assert.NotEmpty(t, selectors, expr)
		for _, sel := range selectors {
			has, ok := exported[sel[1]]
			assert.True(t, ok, "%s is not exported: %s", sel[1], expr)
			for _, label := range labelNames(sel[2]) {
				assert.True(t, has[label], "%s has no label %s: %s", sel[1], label, expr)
			}
			maps.Copy(labels, has)
			asked[suffix.ReplaceAllString(sel[1], "")] = true
		}
		for _, by := range grouped.FindAllStringSubmatch(expr, -1) {
			for label := range strings.SplitSeq(by[1], ", ") {
				assert.True(t, labels[label], "nothing is labelled %s: %s", label, expr)
			}
		}
	}
	for name := range exported {
		if strings.HasPrefix(name, "idem_") {
			assert.True(t, asked[suffix.ReplaceAllString(name, "")], "%s is on no panel", name)
		}
	}
}

// The panels have ids and titles of their own and lie beside each other, each asks
// the data source that is chosen above, and what is chosen can be.
func TestDashboardPanels(t *testing.T) {
	board := readDashboard(t)
	assert.Equal(t, 42, board.SchemaVersion)
	ids, titles := map[int]bool{}, map[string]bool{}
	taken := map[[2]int]string{}
	for _, p := range board.Panels {
		ids[p.ID], titles[p.Title] = true, true
		assert.Contains(t, []string{"row", "stat", "timeseries"}, p.Type)
		if p.Type != "row" {
			assert.NotEmpty(t, p.Targets, p.Title)
			assert.Equal(t, map[string]string{"type": "prometheus", "uid": "${datasource}"}, p.Datasource)
		}
		assert.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24)
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				assert.Empty(t, taken[at], "under %s", p.Title)
				taken[at] = p.Title
			}
		}
	}
	assert.Len(t, ids, len(board.Panels))
	assert.Len(t, titles, len(board.Panels))
	for _, want := range []string{"Attempts by result", "Outcomes", "Replays", "Waits before further attempts", "Re-sends by net/http", "Least window left"} {
		assert.True(t, titles[want], want)
	}
	require.Len(t, board.Templating.List, 2)
	assert.Equal(t, "datasource", board.Templating.List[0].Name)
	assert.Contains(t, board.Templating.List[1].Query, "query")
	assert.Equal(t, "label_values(idem_attempts_total, idem_contract)", board.Templating.List[1].Query.(map[string]any)["query"])
	for _, expr := range board.exprs() {
		for _, name := range regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(expr, -1) {
			assert.Contains(t, []string{"contract", "__rate_interval"}, name[1], expr)
		}
	}
}
