-- The journal of Intents, version 1, for PostgreSQL.
-- Rows are never deleted: a row that is gone would be minted again, with another
-- key. Bytes may be purged.
CREATE TABLE idem_intents (
  scope         text        NOT NULL,            -- the operation, the provider, the account
  ref           text        NOT NULL,            -- the caller's business id within it
  key           text        NOT NULL UNIQUE,
  state         text        NOT NULL DEFAULT 'minted'
    CHECK (state IN ('minted', 'unknown', 'stuck', 'settled', 'expired', 'cancelled')),
  fingerprint   text,                            -- of method, URL and body; NULL: not bound to a request yet
  request       bytea,                           -- what is sent again; dropped when settled
  outcome       bytea,                           -- the answer, as it came
  status        integer,                         -- of the answer; NULL: none, or not known
  attempts      integer     NOT NULL DEFAULT 0,  -- calls that were begun
  created_at    timestamptz NOT NULL,
  first_sent_at timestamptz,                     -- written before the first byte leaves
  key_deadline  timestamptz,                     -- when the last attempt may start; NULL: not sent, or no window
  next_at       timestamptz,                     -- when a dispatcher may take it; NULL: never again
  lease_token   bigint      NOT NULL DEFAULT 0,  -- counts the claims: what is written must carry it
  lease_until   timestamptz,
  last_error    text,
  settled_at    timestamptz,
  PRIMARY KEY (scope, ref),
  CHECK ((next_at IS NULL) = (state IN ('settled', 'expired', 'cancelled')))
);
CREATE INDEX idem_due ON idem_intents (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX idem_expired ON idem_intents (key_deadline) WHERE state = 'expired';
