-- Destinations that gave trouble: whether deliveries to them are let through. `state`: 0 closed, 1 open, 2 half-open.
CREATE TABLE holdfast_breakers (
  tenant TEXT NOT NULL,
  destination TEXT NOT NULL,
  state INTEGER NOT NULL,
  failures INTEGER NOT NULL,
  openings INTEGER NOT NULL,
  until INTEGER,
  error TEXT NOT NULL,
  changed_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, destination)
) STRICT, WITHOUT ROWID;

-- What webhooks are signed with. Whoever signs needs it as it is.
CREATE TABLE holdfast_webhook_secrets (
  tenant TEXT PRIMARY KEY NOT NULL,
  secret BLOB NOT NULL,
  previous BLOB,
  previous_until INTEGER,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
