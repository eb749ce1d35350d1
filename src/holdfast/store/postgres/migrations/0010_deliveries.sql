-- Destinations that gave trouble: whether deliveries to them are let through. `state`: 0 closed, 1 open, 2 half-open.
CREATE TABLE holdfast_breakers (
  tenant text COLLATE "C" NOT NULL,
  destination text COLLATE "C" NOT NULL,
  state smallint NOT NULL,
  failures integer NOT NULL,
  openings integer NOT NULL,
  until bigint,
  error text NOT NULL,
  changed_at bigint NOT NULL,
  PRIMARY KEY (tenant, destination)
);

-- What webhooks are signed with. Whoever signs needs it as it is.
CREATE TABLE holdfast_webhook_secrets (
  tenant text COLLATE "C" PRIMARY KEY,
  secret bytea NOT NULL,
  previous bytea,
  previous_until bigint,
  created_at bigint NOT NULL
);
