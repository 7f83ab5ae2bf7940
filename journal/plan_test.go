package journal

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The query that takes what is due reads the index of what is open, however many
// rows are settled: a million in the long form.
func TestPlan(t *testing.T) {
	stores(t, func(t *testing.T, s store) {
		j := s.journal(t, Config{})
		series := "generate_series(1, %d) AS g (n)"
		analyze := "ANALYZE idem_intents"
		settled := 20_000 // with fewer PostgreSQL would rather read them all
		if s.dialect == SQLite {
			settled = 2_000
		}
		if long() {
			settled = 1_000_000
		}
		if s.dialect == SQLite {
			series = "(WITH RECURSIVE g (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < %d) SELECT n FROM g)"
		}
		_, err := j.db.Exec(j.dialect.spell("INSERT INTO idem_intents (scope, ref, key, state, created_at, next_at) SELECT 'old', 'order-' || n, 'key-' || n, 'settled', {now}, NULL FROM " + fmt.Sprintf(series, settled)))
		require.NoError(t, err)
		_, err = j.db.Exec(j.dialect.spell("INSERT INTO idem_intents (scope, ref, key, created_at, next_at) SELECT 'new', 'order-' || n, 'new-' || n, {now}, {now} FROM " + fmt.Sprintf(series, 500)))
		require.NoError(t, err)
		_, err = j.db.Exec(analyze)
		require.NoError(t, err)
		for _, scopes := range []int{0, 2} {
			explain := "EXPLAIN "
			if s.dialect == SQLite {
				explain = "EXPLAIN QUERY PLAN "
			}
			args := []any{30_000, 32, "new", "newer"}[:2+scopes]
			plan := planOf(t, j, explain+j.dueQuery(scopes), args...)
			t.Log(plan)
			assert.Contains(t, plan, "idem_due")
			for _, whole := range []string{"Seq Scan", "SCAN idem_intents"} {
				assert.NotContains(t, plan, whole)
			}
		}
		explain := map[Dialect]string{SQLite: "EXPLAIN QUERY PLAN ", Postgres: "EXPLAIN "}[s.dialect]
		plan := planOf(t, j, explain+j.q.stats)
		assert.Contains(t, plan, "idem_due")
		assert.Contains(t, plan, "idem_expired")
		assert.NotContains(t, plan, "Seq Scan")
	})
}

func planOf(t *testing.T, j *Journal, query string, args ...any) string {
	rows, err := j.db.Query(query, args...)
	require.NoError(t, err)
	defer func() { _ = rows.Close() }()
	var plan strings.Builder
	for rows.Next() {
		var a, b, c any
		var line string
		if j.dialect == SQLite {
			require.NoError(t, rows.Scan(&a, &b, &c, &line))
		} else {
			require.NoError(t, rows.Scan(&line))
		}
		plan.WriteString(line + "\n")
	}
	require.NoError(t, rows.Err())
	return plan.String()
}
