-- The journal of Intents, version 1, for SQLite. Times are milliseconds since 1970.
-- Rows are never deleted: a row that is gone would be minted again, with another
-- key. Bytes may be purged.
CREATE TABLE idem_intents (
  scope         TEXT    NOT NULL,            -- the operation, the provider, the account
  ref           TEXT    NOT NULL,            -- the caller's business id within it
  key           TEXT    NOT NULL UNIQUE,
  state         TEXT    NOT NULL DEFAULT 'minted'
    CHECK (state IN ('minted', 'unknown', 'stuck', 'settled', 'expired', 'cancelled')),
  fingerprint   TEXT,                        -- of method, URL and body; NULL: not bound to a request yet
  request       BLOB,                        -- what is sent again; dropped when settled
  outcome       BLOB,                        -- the answer, as it came
  status        INTEGER,                     -- of the answer; NULL: none, or not known
  attempts      INTEGER NOT NULL DEFAULT 0,  -- calls that were begun
  created_at    INTEGER NOT NULL,
  first_sent_at INTEGER,                     -- written before the first byte leaves
  key_deadline  INTEGER,                     -- when the last attempt may start; NULL: not sent, or no window
  next_at       INTEGER,                     -- when a dispatcher may take it; NULL: never again
  lease_token   INTEGER NOT NULL DEFAULT 0,  -- counts the claims: what is written must carry it
  lease_until   INTEGER,
  last_error    TEXT,
  settled_at    INTEGER,
  PRIMARY KEY (scope, ref),
  CHECK ((next_at IS NULL) = (state IN ('settled', 'expired', 'cancelled')))
) STRICT, WITHOUT ROWID;
CREATE INDEX idem_due ON idem_intents (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX idem_expired ON idem_intents (key_deadline) WHERE state = 'expired';
