-- Times are microseconds since 1970 UTC by this server's clock. Status: 0 ready, 1 running, 2 succeeded, 3 dead,
-- 4 cancelled, 5 scheduled, 6 retrying, 7 blocked. The view holdfast_jobs shows both in words.

CREATE SEQUENCE holdfast_seq;

-- What is not finished. Stays small, however long the history.
CREATE TABLE holdfast_live (
  id uuid PRIMARY KEY,
  seq bigint NOT NULL DEFAULT nextval('holdfast_seq'),
  created_at bigint NOT NULL,
  scheduled_at bigint,
  started_at bigint,
  worker bigint,
  timeout bigint,
  deadline bigint,
  fence integer NOT NULL DEFAULT 0,
  cost integer NOT NULL DEFAULT 1,
  status smallint NOT NULL,
  priority smallint NOT NULL DEFAULT 0,
  attempts smallint NOT NULL DEFAULT 0,
  max_attempts smallint NOT NULL,
  releases smallint NOT NULL DEFAULT 0,
  generation smallint NOT NULL DEFAULT 0,
  tenant text COLLATE "C" NOT NULL,
  queue text COLLATE "C" NOT NULL,
  type text COLLATE "C" NOT NULL,
  concurrency_key text COLLATE "C",
  idempotency_key text COLLATE "C",
  payload bytea NOT NULL,
  retry bytea,
  tags bytea,
  attempt_log bytea
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000,
        autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.5);

-- Claim rides this: equality on the lane, then order of arrival.
CREATE INDEX holdfast_live_ready ON holdfast_live (queue, tenant, priority, seq) WHERE status = 0;
CREATE INDEX holdfast_live_due ON holdfast_live (scheduled_at) WHERE status IN (5, 6);
-- Reap and recovery ride this.
CREATE INDEX holdfast_live_held ON holdfast_live (worker) WHERE status = 1;

-- What succeeded or was cancelled, by day of finish: retention drops a day, it deletes no rows.
CREATE TABLE holdfast_history (
  id uuid NOT NULL,
  seq bigint NOT NULL,
  created_at bigint NOT NULL,
  scheduled_at bigint,
  started_at bigint,
  finished_at bigint NOT NULL,
  worker bigint,
  timeout bigint,
  deadline bigint,
  fence integer NOT NULL,
  cost integer NOT NULL,
  status smallint NOT NULL,
  priority smallint NOT NULL,
  attempts smallint NOT NULL,
  max_attempts smallint NOT NULL,
  releases smallint NOT NULL,
  generation smallint NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  queue text COLLATE "C" NOT NULL,
  type text COLLATE "C" NOT NULL,
  concurrency_key text COLLATE "C",
  idempotency_key text COLLATE "C",
  payload bytea NOT NULL,
  retry bytea,
  tags bytea,
  attempt_log bytea,
  result bytea,
  reason text,
  fingerprint text COLLATE "C"
) PARTITION BY RANGE (finished_at);
CREATE INDEX holdfast_history_id ON holdfast_history (id);
CREATE INDEX holdfast_history_tenant ON holdfast_history (tenant, id);
-- Takes what no day was made for, so that a settle never fails for want of one.
CREATE TABLE holdfast_history_default PARTITION OF holdfast_history DEFAULT;

-- What failed for good: kept longer, looked at, replayed.
CREATE TABLE holdfast_dead (LIKE holdfast_history INCLUDING DEFAULTS, PRIMARY KEY (id));
CREATE INDEX holdfast_dead_tenant ON holdfast_dead (tenant, id);
CREATE INDEX holdfast_dead_finished ON holdfast_dead (finished_at);

-- Idempotency keys (kind 0) and keys of unique jobs (kind 1): which job a key belongs to.
CREATE TABLE holdfast_keys (
  tenant text COLLATE "C" NOT NULL,
  kind smallint NOT NULL,
  key text COLLATE "C" NOT NULL,
  job_id uuid NOT NULL,
  fingerprint bytea NOT NULL,
  expires_at bigint NOT NULL,
  PRIMARY KEY (tenant, kind, key)
);
CREATE INDEX holdfast_keys_expiry ON holdfast_keys (expires_at);

-- One row for each incarnation of a worker; its lease is the lease of all the jobs it holds.
CREATE TABLE holdfast_workers (
  id bigint PRIMARY KEY,
  name text NOT NULL,
  host text NOT NULL,
  pid integer NOT NULL,
  version text NOT NULL,
  queues text NOT NULL,
  slots integer NOT NULL,
  tenant text,
  started_at bigint NOT NULL,
  expires_at bigint NOT NULL
);
CREATE INDEX holdfast_workers_expiry ON holdfast_workers (expires_at);

-- Which upkeep was done when, so that of many nodes one does it.
CREATE TABLE holdfast_upkeep (name text PRIMARY KEY, done_at bigint NOT NULL);

-- For people with a console.
CREATE VIEW holdfast_jobs AS
SELECT id, tenant, queue, type,
  (ARRAY['ready', 'running', 'succeeded', 'dead', 'cancelled', 'scheduled', 'retrying', 'blocked'])[status + 1] AS status,
  priority, attempts, max_attempts, to_timestamp(created_at / 1e6) AS created_at,
  to_timestamp(scheduled_at / 1e6) AS scheduled_at, to_timestamp(started_at / 1e6) AS started_at,
  to_timestamp(finished_at / 1e6) AS finished_at, worker, convert_from(payload, 'UTF8') AS payload,
  convert_from(result, 'UTF8') AS result, convert_from(attempt_log, 'UTF8') AS attempt_log, reason
FROM (
  SELECT id, tenant, queue, type, status, priority, attempts, max_attempts, created_at, scheduled_at, started_at,
         NULL::bigint AS finished_at, worker, payload, NULL::bytea AS result, attempt_log, NULL::text AS reason
  FROM holdfast_live
  UNION ALL
  SELECT id, tenant, queue, type, status, priority, attempts, max_attempts, created_at, scheduled_at, started_at,
         finished_at, worker, payload, result, attempt_log, reason FROM holdfast_dead
  UNION ALL
  SELECT id, tenant, queue, type, status, priority, attempts, max_attempts, created_at, scheduled_at, started_at,
         finished_at, worker, payload, result, attempt_log, reason FROM holdfast_history
) AS j;
