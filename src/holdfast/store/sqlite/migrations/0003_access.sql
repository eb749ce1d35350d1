-- What tenants may have. NULL is the installation's default; a tenant without a row has all the defaults.
-- rate is cost in each rate_window, a span in microseconds; the backlogs are numbers of unfinished jobs.
CREATE TABLE holdfast_tenants (
  name TEXT PRIMARY KEY NOT NULL,
  weight INTEGER,
  rate INTEGER,
  rate_window INTEGER,
  backlog INTEGER,
  queue_backlog INTEGER,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Keys of the API. The digest is SHA-256 of the secret, which is kept nowhere; scopes are words with spaces between.
-- A revoked key stays, so that what it did can be explained.
CREATE TABLE holdfast_api_keys (
  id TEXT PRIMARY KEY NOT NULL,
  tenant TEXT NOT NULL,
  name TEXT NOT NULL,
  digest BLOB NOT NULL,
  scopes TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER,
  last_used_at INTEGER
) STRICT, WITHOUT ROWID;
