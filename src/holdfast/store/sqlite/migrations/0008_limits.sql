-- How many jobs may run at once, and how many may start in a span: of a queue (kind 0), a tenant (1), or the jobs of a
-- tenant with the same concurrency_key (2; `tenant` is '' for the others). NULL is no limit, for a key its default.
-- `used` counts running jobs of kinds 0 and 1, given back by whatever ends them; those of a key are counted anew each time.
-- `unsettled` is 1 while jobs may run that began before the limit was known and so are not in `used`. Tokens are a bucket:
-- `rate` of them come in each `per` (microseconds), up to `burst`; `tokens` are millionths.
CREATE TABLE holdfast_limits (
  kind INTEGER NOT NULL,
  tenant TEXT NOT NULL,
  name TEXT NOT NULL,
  max_running INTEGER,
  rate INTEGER,
  per INTEGER,
  burst INTEGER,
  used INTEGER NOT NULL DEFAULT 0,
  unsettled INTEGER NOT NULL DEFAULT 0,
  tokens INTEGER NOT NULL DEFAULT 0,
  refilled_at INTEGER NOT NULL DEFAULT 0,
  changed_at INTEGER NOT NULL DEFAULT 0,
  changed_by TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (kind, tenant, name)
) STRICT, WITHOUT ROWID;

-- In which limits a running job is counted: 1 of its queue, 2 of its tenant.
ALTER TABLE holdfast_live ADD COLUMN slots INTEGER NOT NULL DEFAULT 0;

-- Status 8 is ready too, but waits for others with its concurrency_key: no claim sees it. These have the key's next ones in
-- their order (seq is the rowid), and those that have a turn of it. Jobs without a key enter neither.
CREATE INDEX holdfast_live_queued ON holdfast_live (tenant, concurrency_key, priority DESC) WHERE status = 8;
CREATE INDEX holdfast_live_turns ON holdfast_live (tenant, concurrency_key)
WHERE concurrency_key IS NOT NULL AND status < 2;

-- What rests besides queues: types (kind 0) and tenants (kind 1), until `until` if that is set.
CREATE TABLE holdfast_pauses (
  kind INTEGER NOT NULL,
  name TEXT NOT NULL,
  reason TEXT NOT NULL,
  until INTEGER,
  changed_at INTEGER NOT NULL,
  changed_by TEXT NOT NULL,
  PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

-- Raised with every change of pauses, limits and weights: who remembers them asks for this alone.
CREATE TABLE holdfast_terms (one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL) STRICT;
INSERT INTO holdfast_terms (one, version) VALUES (1, 0);

DROP VIEW holdfast_jobs;
CREATE VIEW holdfast_jobs AS
SELECT lower(substr(hex(id), 1, 8) || '-' || substr(hex(id), 9, 4) || '-' || substr(hex(id), 13, 4) || '-' ||
             substr(hex(id), 17, 4) || '-' || substr(hex(id), 21)) AS id,
  tenant, queue, type,
  CASE status WHEN 0 THEN 'ready' WHEN 1 THEN 'running' WHEN 2 THEN 'succeeded' WHEN 3 THEN 'dead'
    WHEN 4 THEN 'cancelled' WHEN 5 THEN 'scheduled' WHEN 6 THEN 'retrying' WHEN 7 THEN 'blocked' WHEN 8 THEN 'ready'
  END AS status,
  priority, attempts, max_attempts,
  strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', scheduled_at / 1e6, 'unixepoch') AS scheduled_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', started_at / 1e6, 'unixepoch') AS started_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', finished_at / 1e6, 'unixepoch') AS finished_at,
  worker, CAST(payload AS TEXT) AS payload, CAST(result AS TEXT) AS result, CAST(attempt_log AS TEXT) AS attempt_log,
  reason
FROM (
  SELECT id, tenant, queue, type, status, priority, attempts, max_attempts, created_at, scheduled_at, started_at,
         NULL AS finished_at, worker, payload, NULL AS result, attempt_log, NULL AS reason
  FROM holdfast_live
  UNION ALL
  SELECT id, tenant, queue, type, status, priority, attempts, max_attempts, created_at, scheduled_at, started_at,
         finished_at, worker, payload, result, attempt_log, reason FROM holdfast_dead
  UNION ALL
  SELECT id, tenant, queue, type, status, priority, attempts, max_attempts, created_at, scheduled_at, started_at,
         finished_at, worker, payload, result, attempt_log, reason FROM holdfast_history
);
