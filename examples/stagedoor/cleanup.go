package main

import (
	"context"
	"time"
)

// batch is how many rows the clean-up deletes in one transaction: so few that
// whoever waits for it does not notice.
const batch = 25

// cleanUp deletes the claims that are answered and older than the keys live, and
// returns how many they were. Between two batches it rests for as long as the last
// one took, and so takes at most half of the database's time.
//
// A claim without an answer stays, however old: its charge is open, and the key is
// how the buyer will ask for it. The journal's rows stay for good.
func (s *Shop) cleanUp(ctx context.Context) (deleted int64, err error) {
	for {
		s.At("cleaning")
		began := time.Now()
		n, err := s.store.exec(ctx, `DELETE FROM claims WHERE (buyer, key) IN (
			SELECT buyer, key FROM claims WHERE status IS NOT NULL AND created_at <= {now} - $1
			ORDER BY created_at LIMIT $2)`, s.Keep.Milliseconds(), batch)
		took := time.Since(began)
		s.At("cleaned")
		deleted += n
		if err != nil || n < batch {
			return deleted, err
		}
		select {
		case <-time.After(max(took, time.Millisecond)):
		case <-ctx.Done():
			return deleted, ctx.Err()
		}
	}
}
