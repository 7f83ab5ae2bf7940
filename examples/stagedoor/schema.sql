-- One schema for SQLite and PostgreSQL: text and whole numbers. Times are
-- milliseconds since 1970, by the database's clock.

CREATE TABLE claims (            -- one row for each key of each buyer
  buyer      text   NOT NULL,
  key        text   NOT NULL,
  print      text   NOT NULL,    -- SHA-256 over method, path and body
  order_id   text   NOT NULL,
  token      bigint NOT NULL,    -- the fence: raised by each take-over
  held_until bigint NOT NULL,    -- then the claim is stale, and may be taken over
  created_at bigint NOT NULL,
  status     integer,            -- the answer, as it was given; NULL: none yet
  location   text   NOT NULL DEFAULT '',
  body       text   NOT NULL DEFAULT '',
  PRIMARY KEY (buyer, key)       -- the whole of deduplication rests on this line
);
CREATE INDEX claims_open ON claims (order_id) WHERE status IS NULL;
CREATE INDEX claims_old  ON claims (created_at) WHERE status IS NOT NULL;

CREATE TABLE seats (
  id    text   PRIMARY KEY,
  price bigint NOT NULL
);
CREATE TABLE holds (
  seat     text PRIMARY KEY REFERENCES seats (id), -- no seat is sold twice
  order_id text NOT NULL UNIQUE
);
CREATE TABLE orders (
  id     text   PRIMARY KEY,     -- the public id
  buyer  text   NOT NULL,
  seat   text   NOT NULL,
  card   text   NOT NULL,        -- the provider's token for it, never a number
  amount bigint NOT NULL,
  state  text   NOT NULL CHECK (state IN ('pending', 'paid', 'declined'))
);

CREATE TABLE outbox (            -- what has happened, for others to be told
  id           text   PRIMARY KEY,
  kind         text   NOT NULL,
  order_id     text   NOT NULL,
  buyer        text   NOT NULL,
  created_at   bigint NOT NULL,
  delivered_at bigint            -- NULL: not yet, or the answer was lost
);
CREATE INDEX outbox_due ON outbox (created_at, id) WHERE delivered_at IS NULL;

CREATE TABLE inbox (             -- what each receiver has received
  receiver text NOT NULL,
  event    text NOT NULL,
  PRIMARY KEY (receiver, event)
);
CREATE TABLE mails (             -- no constraint: a double mail would be seen here
  recipient text NOT NULL,
  order_id  text NOT NULL
);
CREATE TABLE wallets (
  buyer   text    PRIMARY KEY,
  balance bigint  NOT NULL,
  credits integer NOT NULL       -- how often it was credited
);
