package journal

import (
	"context"
	"time"
)

// Stats is what the table holds at one moment. The zero Stats is that of an empty
// one. It has the fields of otelidem.JournalStats, and converts to it.
type Stats struct {
	// Minted, Unknown and Stuck count the unresolved Intents by state.
	Minted, Unknown, Stuck int64
	// Expired counts the Intents, over all time, that a person has to decide.
	Expired int64
	// Oldest is the time since the oldest unresolved Intent was minted; zero:
	// there is none.
	Oldest time.Duration
	// Window is the least time until the last attempt of an unresolved Intent may
	// start, negative if that time is over; zero: no window runs.
	Window time.Duration
}

// Stats reads what to watch: how much is unresolved, and for how long yet. It
// looks at the unresolved and the expired rows only, through indexes. Times are
// by the database's clock.
func (j *Journal) Stats(ctx context.Context) (Stats, error) {
	s, err := j.stats(ctx)
	return s, explain("read the stats", Ref{}, err)
}

func (j *Journal) stats(ctx context.Context) (s Stats, err error) {
	rows, err := j.run.QueryContext(ctx, j.q.stats)
	if err != nil {
		return Stats{}, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var state State
		var n, created, deadline, now int64
		if err := rows.Scan(&state, &n, &created, &deadline, &now); err != nil {
			return Stats{}, err
		}
		switch state {
		case Minted:
			s.Minted = n
		case Unknown:
			s.Unknown = n
		case Stuck:
			s.Stuck = n
		case Expired:
			s.Expired = n
			continue
		}
		s.Oldest = max(s.Oldest, milliseconds(now-created))
		if left := milliseconds(deadline - now); deadline != 0 && (s.Window == 0 || left < s.Window) {
			s.Window = left
		}
	}
	return s, rows.Err()
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
