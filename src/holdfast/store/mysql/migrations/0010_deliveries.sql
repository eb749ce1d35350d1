-- Destinations that gave trouble: whether deliveries to them are let through. `state`: 0 closed, 1 open, 2 half-open.
CREATE TABLE IF NOT EXISTS holdfast_breakers (
  tenant VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  destination VARCHAR(300) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  state TINYINT NOT NULL,
  failures INT NOT NULL,
  openings INT NOT NULL,
  until BIGINT,
  error TEXT NOT NULL,
  changed_at BIGINT NOT NULL,
  PRIMARY KEY (tenant, destination)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- What webhooks are signed with. Whoever signs needs it as it is.
CREATE TABLE IF NOT EXISTS holdfast_webhook_secrets (
  tenant VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  secret VARBINARY(64) NOT NULL,
  previous VARBINARY(64),
  previous_until BIGINT,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (tenant)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
