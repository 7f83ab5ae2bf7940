package journal

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStats(t *testing.T) {
	stores(t, func(t *testing.T, s store) {
		j := s.journal(t, testConfig(s.dialect))
		got, err := j.Stats(t.Context())
		require.NoError(t, err)
		assert.Zero(t, got)

		for i, row := range []struct {
			state, age, left, next string // intervals in seconds from now; empty: NULL
		}{
			{"minted", "-60", "", "0"},
			{"minted", "-50", "", "0"},
			{"unknown", "-7200", "3600", "0"},
			{"unknown", "-40", "7200", "0"},
			{"stuck", "-30", "-90", "0"},
			{"settled", "-100000", "-1", ""},
			{"expired", "-100000", "-9000", ""},
			{"cancelled", "-100000", "", ""},
		} {
			at := func(seconds string) string {
				switch {
				case seconds == "":
					return "NULL"
				case s.dialect == SQLite:
					return j.dialect.spell("{now}") + " + 1000 * " + seconds
				}
				return "now() + interval '" + seconds + " seconds'"
			}
			_, err := j.db.Exec("INSERT INTO idem_intents (scope, ref, key, state, created_at, key_deadline, next_at) VALUES ('s', '" +
				testRef(i).ID + "', '" + testRef(i).ID + "', '" + row.state + "', " + at(row.age) + ", " + at(row.left) + ", " + at(row.next) + ")")
			require.NoError(t, err)
		}
		got, err = j.Stats(t.Context())
		require.NoError(t, err)
		assert.InDelta(t, 2*time.Hour, got.Oldest, float64(30*time.Second))
		assert.InDelta(t, -90*time.Second, got.Window, float64(30*time.Second), "the least, and it is over")
		got.Oldest, got.Window = 0, 0
		assert.Equal(t, Stats{Minted: 2, Unknown: 2, Stuck: 1, Expired: 1}, got)

		require.NoError(t, j.db.Close())
		_, err = j.Stats(t.Context())
		assert.ErrorContains(t, err, "journal: read the stats")
	})
}
