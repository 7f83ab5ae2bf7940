package journal

import (
	"regexp"
	"strings"
)

// The statements, in the common part of both dialects and these words:
//
//	{now}     the database's time at the start of the statement
//	{in $1}   that many milliseconds later
//	{ms x}    the time x in milliseconds since 1970
//	{skip}    passes over what another claims at this moment
//
// A row is open, which means that a dispatcher may take it, as long as next_at
// is not NULL; the index of what is due has only such rows.
const (
	columns = `scope, ref, key, state, coalesce(fingerprint, ''), request, outcome, coalesce(status, 0), attempts,
		{ms created_at}, coalesce({ms first_sent_at}, 0), coalesce({ms key_deadline}, 0), lease_token,
		coalesce({ms settled_at}, 0), coalesce(last_error, ''), coalesce({ms lease_until}, 0), {ms {now}}`

	mintSQL = `INSERT INTO idem_intents (scope, ref, key, fingerprint, request, created_at, next_at)
		VALUES ($1, $2, $3, $4, $5, {now}, {in $6}) ON CONFLICT (scope, ref) DO NOTHING`

	readSQL = `SELECT ` + columns + ` FROM idem_intents WHERE scope = $1 AND ref = $2`

	cancelSQL = `UPDATE idem_intents SET state = 'cancelled', next_at = NULL, lease_until = NULL, request = NULL, lease_token = lease_token + 1
		WHERE scope = $1 AND ref = $2 AND state = 'minted' AND (lease_until IS NULL OR lease_until <= {now})`

	claimSQL = `UPDATE idem_intents SET lease_token = lease_token + 1, lease_until = {in $3}, next_at = {in $3}
		WHERE scope = $1 AND ref = $2 AND next_at IS NOT NULL
			AND (lease_until IS NULL OR lease_until <= {now}) AND (key_deadline IS NULL OR key_deadline > {now})
		RETURNING ` + columns

	// The choice is made once, before anything is changed: in a sub-select the
	// planner might make it again for every row.
	dueSQL = `WITH due (s, r) AS MATERIALIZED (
			SELECT scope, ref FROM idem_intents WHERE next_at <= {now}{scopes} ORDER BY next_at LIMIT $2 {skip})
		UPDATE idem_intents SET lease_token = lease_token + 1, lease_until = {in $1}, next_at = {in $1}
		FROM due WHERE scope = s AND ref = r
		RETURNING ` + columns

	guard = ` WHERE scope = $1 AND ref = $2 AND lease_token = $3 AND next_at IS NOT NULL`

	bindSQL = `UPDATE idem_intents SET state = 'unknown', attempts = attempts + $4,
			fingerprint = coalesce(fingerprint, $5), request = coalesce(request, $6),
			first_sent_at = coalesce(first_sent_at, {now}), key_deadline = coalesce(key_deadline, {in $7}),
			lease_until = {in $8}, next_at = {in $8}` + guard + ` AND (key_deadline IS NULL OR key_deadline > {now})
		RETURNING coalesce({ms key_deadline}, 0), {ms {now}}`

	extendSQL = `UPDATE idem_intents SET lease_until = {in $4}, next_at = {in $4}` + guard

	settleSQL = `UPDATE idem_intents SET state = 'settled', status = $4, outcome = $5, settled_at = {now},
			next_at = NULL, lease_until = NULL, request = NULL, last_error = NULL` + guard

	// With $7 = 1 nothing has left after all, and the window has not begun.
	deferSQL = `UPDATE idem_intents SET state = $4, lease_until = NULL, last_error = $6,
			next_at = CASE WHEN key_deadline < {in $5} THEN key_deadline ELSE {in $5} END,
			first_sent_at = CASE WHEN $7 = 1 THEN NULL ELSE first_sent_at END,
			key_deadline = CASE WHEN $7 = 1 THEN NULL ELSE key_deadline END` + guard

	// The time is for purgeSQL: the window may have ended long ago.
	expireSQL = `UPDATE idem_intents SET state = 'expired', settled_at = {now}, next_at = NULL, lease_until = NULL, last_error = $4` + guard

	statsSQL = `SELECT state, count(*), coalesce({ms min(created_at)}, 0), coalesce({ms min(key_deadline)}, 0), {ms {now}}
		FROM idem_intents WHERE next_at IS NOT NULL GROUP BY state
		UNION ALL SELECT 'expired', count(*), 0, 0, 0 FROM idem_intents WHERE state = 'expired'`

	purgeSQL = `UPDATE idem_intents SET request = NULL, outcome = NULL
		WHERE next_at IS NULL AND (request IS NOT NULL OR outcome IS NOT NULL)
			AND coalesce(settled_at, key_deadline, created_at) <= {in $1}`
)

// queries are the statements in one dialect.
type queries struct {
	mint, read, cancel, claim, bind, extend, settle, later, expire, stats, purge string
}

func queriesOf(d Dialect) queries {
	return queries{
		mint: d.spell(mintSQL), read: d.spell(readSQL), cancel: d.spell(cancelSQL),
		claim: d.spell(claimSQL), bind: d.spell(bindSQL),
		extend: d.spell(extendSQL), settle: d.spell(settleSQL), later: d.spell(deferSQL),
		expire: d.spell(expireSQL), stats: d.spell(statsSQL), purge: d.spell(purgeSQL),
	}
}

// spell writes a statement as the dialect has it.
func (d Dialect) spell(q string) string {
	now, ms, skip := `CAST(unixepoch('now', 'subsec') * 1000 AS INTEGER)`, `$1`, ``
	in := now + ` + $1`
	if d == Postgres {
		// Not clock_timestamp(), which no index could be asked about.
		now = `statement_timestamp()`
		in = now + ` + $1::bigint * interval '1 millisecond'`
		ms = `(extract(epoch from $1) * 1000)::bigint`
		skip = `FOR UPDATE SKIP LOCKED`
	}
	q = strings.NewReplacer("{now}", now, "{skip}", skip).Replace(q)
	q = regexp.MustCompile(`\{in (\$\d+)\}`).ReplaceAllStringFunc(q, func(m string) string {
		return strings.Replace(in, "$1", m[len("{in "):len(m)-1], 1)
	})
	q = regexp.MustCompile(`\{ms ([^}]+)\}`).ReplaceAllStringFunc(q, func(m string) string {
		return strings.Replace(ms, "$1", m[len("{ms "):len(m)-1], 1)
	})
	if d == SQLite {
		q = strings.ReplaceAll(q, "$", "?")
	}
	return q
}
