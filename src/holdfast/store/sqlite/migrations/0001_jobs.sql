-- Times are microseconds since 1970 UTC by this machine's clock. Status: 0 ready, 1 running, 2 succeeded, 3 dead,
-- 4 cancelled, 5 scheduled, 6 retrying, 7 blocked. Ids are the 16 bytes of a UUID. The view holdfast_jobs shows all
-- three in words.

-- The last position given out. Only ever raised, by whoever holds the write lock: later inserts come later in line.
CREATE TABLE holdfast_counter (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL) STRICT;
INSERT INTO holdfast_counter (one, seq) VALUES (1, 0);

-- What is not finished. Stays small, however long the history. The position in line is the rowid, so that every index
-- ends in it without storing it twice.
CREATE TABLE holdfast_live (
  seq INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE,
  created_at INTEGER NOT NULL,
  scheduled_at INTEGER,
  started_at INTEGER,
  worker INTEGER,
  timeout INTEGER,
  deadline INTEGER,
  fence INTEGER NOT NULL DEFAULT 0,
  cost INTEGER NOT NULL DEFAULT 1,
  status INTEGER NOT NULL,
  priority INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0,
  max_attempts INTEGER NOT NULL,
  releases INTEGER NOT NULL DEFAULT 0,
  generation INTEGER NOT NULL DEFAULT 0,
  tenant TEXT NOT NULL,
  queue TEXT NOT NULL,
  type TEXT NOT NULL,
  concurrency_key TEXT,
  idempotency_key TEXT,
  payload BLOB NOT NULL,
  retry BLOB,
  tags BLOB,
  attempt_log BLOB
) STRICT;

-- Claim rides this: equality on the lane, then order of arrival, which is the rowid.
CREATE INDEX holdfast_live_ready ON holdfast_live (queue, tenant, priority) WHERE status = 0;
CREATE INDEX holdfast_live_due ON holdfast_live (scheduled_at) WHERE status IN (5, 6);
-- Reap and recovery ride this.
CREATE INDEX holdfast_live_held ON holdfast_live (worker) WHERE status = 1;

-- What succeeded or was cancelled, in order of finish.
CREATE TABLE holdfast_history (
  id BLOB NOT NULL UNIQUE,
  seq INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  scheduled_at INTEGER,
  started_at INTEGER,
  finished_at INTEGER NOT NULL,
  worker INTEGER,
  timeout INTEGER,
  deadline INTEGER,
  fence INTEGER NOT NULL,
  cost INTEGER NOT NULL,
  status INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL,
  releases INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  tenant TEXT NOT NULL,
  queue TEXT NOT NULL,
  type TEXT NOT NULL,
  concurrency_key TEXT,
  idempotency_key TEXT,
  payload BLOB NOT NULL,
  retry BLOB,
  tags BLOB,
  attempt_log BLOB,
  result BLOB,
  reason TEXT,
  fingerprint TEXT
) STRICT;
CREATE INDEX holdfast_history_tenant ON holdfast_history (tenant, id);
CREATE INDEX holdfast_history_finished ON holdfast_history (finished_at);

-- What failed for good: kept longer, looked at, replayed.
CREATE TABLE holdfast_dead (
  id BLOB NOT NULL UNIQUE,
  seq INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  scheduled_at INTEGER,
  started_at INTEGER,
  finished_at INTEGER NOT NULL,
  worker INTEGER,
  timeout INTEGER,
  deadline INTEGER,
  fence INTEGER NOT NULL,
  cost INTEGER NOT NULL,
  status INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL,
  releases INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  tenant TEXT NOT NULL,
  queue TEXT NOT NULL,
  type TEXT NOT NULL,
  concurrency_key TEXT,
  idempotency_key TEXT,
  payload BLOB NOT NULL,
  retry BLOB,
  tags BLOB,
  attempt_log BLOB,
  result BLOB,
  reason TEXT,
  fingerprint TEXT
) STRICT;
CREATE INDEX holdfast_dead_tenant ON holdfast_dead (tenant, id);
CREATE INDEX holdfast_dead_finished ON holdfast_dead (finished_at);

-- Idempotency keys (kind 0) and keys of unique jobs (kind 1): which job a key belongs to.
CREATE TABLE holdfast_keys (
  tenant TEXT NOT NULL,
  kind INTEGER NOT NULL,
  key TEXT NOT NULL,
  job_id BLOB NOT NULL,
  fingerprint BLOB NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, kind, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_keys_expiry ON holdfast_keys (expires_at);

-- One row for each incarnation of a worker; its lease is the lease of all the jobs it holds.
CREATE TABLE holdfast_workers (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  version TEXT NOT NULL,
  queues TEXT NOT NULL,
  slots INTEGER NOT NULL,
  tenant TEXT,
  started_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX holdfast_workers_expiry ON holdfast_workers (expires_at);

-- Which upkeep was done when, so that of many nodes one does it.
CREATE TABLE holdfast_upkeep (name TEXT PRIMARY KEY, done_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- For people with a console.
CREATE VIEW holdfast_jobs AS
SELECT lower(substr(hex(id), 1, 8) || '-' || substr(hex(id), 9, 4) || '-' || substr(hex(id), 13, 4) || '-' ||
             substr(hex(id), 17, 4) || '-' || substr(hex(id), 21)) AS id,
  tenant, queue, type,
  CASE status WHEN 0 THEN 'ready' WHEN 1 THEN 'running' WHEN 2 THEN 'succeeded' WHEN 3 THEN 'dead'
    WHEN 4 THEN 'cancelled' WHEN 5 THEN 'scheduled' WHEN 6 THEN 'retrying' WHEN 7 THEN 'blocked' END AS status,
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
