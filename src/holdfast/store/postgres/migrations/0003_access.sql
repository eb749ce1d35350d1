-- What tenants may have. NULL is the installation's default; a tenant without a row has all the defaults.
-- rate is cost in each rate_window, a span in microseconds; the backlogs are numbers of unfinished jobs.
CREATE TABLE holdfast_tenants (
  name text COLLATE "C" PRIMARY KEY,
  weight integer,
  rate bigint,
  rate_window bigint,
  backlog bigint,
  queue_backlog bigint,
  created_at bigint NOT NULL
);

-- Keys of the API. The digest is SHA-256 of the secret, which is kept nowhere; scopes are words with spaces between.
-- A revoked key stays, so that what it did can be explained.
CREATE TABLE holdfast_api_keys (
  id text COLLATE "C" PRIMARY KEY,
  tenant text COLLATE "C" NOT NULL,
  name text NOT NULL,
  digest bytea NOT NULL,
  scopes text NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint,
  revoked_at bigint,
  last_used_at bigint
);
