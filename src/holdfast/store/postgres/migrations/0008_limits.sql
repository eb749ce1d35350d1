-- How many jobs may run at once, and how many may start in a span: of a queue (kind 0), a tenant (1), or the jobs of a
-- tenant with the same concurrency_key (2; `tenant` is '' for the others). NULL is no limit, for a key its default.
-- `used` counts running jobs of kinds 0 and 1, given back by whatever ends them; those of a key are counted anew each time.
-- `unsettled` is 1 while jobs may run that began before the limit was known and so are not in `used`. Tokens are a bucket:
-- `rate` of them come in each `per` (microseconds), up to `burst`; `tokens` are millionths.
CREATE TABLE holdfast_limits (
  kind smallint NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  max_running bigint,
  rate bigint,
  per bigint,
  burst bigint,
  used bigint NOT NULL DEFAULT 0,
  unsettled smallint NOT NULL DEFAULT 0,
  tokens bigint NOT NULL DEFAULT 0,
  refilled_at bigint NOT NULL DEFAULT 0,
  changed_at bigint NOT NULL DEFAULT 0,
  changed_by text NOT NULL DEFAULT '',
  PRIMARY KEY (kind, tenant, name)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- In which limits a running job is counted: 1 of its queue, 2 of its tenant.
ALTER TABLE holdfast_live ADD COLUMN slots smallint NOT NULL DEFAULT 0;

-- Status 8 is ready too, but waits for others with its concurrency_key: no claim sees it. These have the key's next ones in
-- their order, and those that have a turn of it. Jobs without a key enter neither.
CREATE INDEX holdfast_live_queued ON holdfast_live (tenant, concurrency_key, priority DESC, seq) WHERE status = 8;
CREATE INDEX holdfast_live_turns ON holdfast_live (tenant, concurrency_key)
WHERE concurrency_key IS NOT NULL AND status < 2;

-- What rests besides queues: types (kind 0) and tenants (kind 1), until `until` if that is set.
CREATE TABLE holdfast_pauses (
  kind smallint NOT NULL,
  name text COLLATE "C" NOT NULL,
  reason text NOT NULL,
  until bigint,
  changed_at bigint NOT NULL,
  changed_by text NOT NULL,
  PRIMARY KEY (kind, name)
);

-- Raised with every change of pauses, limits and weights: who remembers them asks for this alone.
CREATE TABLE holdfast_terms (one smallint PRIMARY KEY CHECK (one = 1), version bigint NOT NULL);
INSERT INTO holdfast_terms (one, version) VALUES (1, 0);

CREATE OR REPLACE VIEW holdfast_jobs AS
SELECT id, tenant, queue, type,
  (ARRAY['ready', 'running', 'succeeded', 'dead', 'cancelled', 'scheduled', 'retrying', 'blocked', 'ready'])[status + 1]
    AS status,
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
