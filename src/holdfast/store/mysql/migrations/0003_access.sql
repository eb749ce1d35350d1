-- What tenants may have. NULL is the installation's default; a tenant without a row has all the defaults.
-- rate is cost in each rate_window, a span in microseconds; the backlogs are numbers of unfinished jobs.
CREATE TABLE IF NOT EXISTS holdfast_tenants (
  name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  weight INT,
  rate BIGINT,
  rate_window BIGINT,
  backlog BIGINT,
  queue_backlog BIGINT,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (name)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Keys of the API. The digest is SHA-256 of the secret, which is kept nowhere; scopes are words with spaces between.
-- A revoked key stays, so that what it did can be explained.
CREATE TABLE IF NOT EXISTS holdfast_api_keys (
  id VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  tenant VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  name VARCHAR(255) NOT NULL,
  digest BINARY(32) NOT NULL,
  scopes VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT,
  revoked_at BIGINT,
  last_used_at BIGINT,
  PRIMARY KEY (id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
