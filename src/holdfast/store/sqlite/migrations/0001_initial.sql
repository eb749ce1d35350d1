-- Schema of holdfast on SQLite.
--
-- Times are microseconds since 1970 UTC by the clock of this machine. `status` holds the code of a job's status; ids
-- are the 16 bytes of a UUID. The view holdfast_jobs shows all three in readable form. A name in braces stands for a
-- stored code: see store/codes.py.

-- Last assigned position, one row. It only grows, and only under the write lock, so that later inserts get higher
-- positions.
CREATE TABLE holdfast_sequence (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL) STRICT;
INSERT INTO holdfast_sequence (one, seq) VALUES (1, 0);

-- Unfinished jobs. The table stays small, however long the history is. The position in the lane is the rowid, so that
-- every index ends in it without storing it twice. `progress` is JSON, such as {"fraction": 0.9, "note": "written"}.
-- `slots` says which limits count a running job: bit 1 its queue's, bit 2 its tenant's.
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
  attempt_log BLOB,
  progress BLOB,
  slots INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Claims use this index: equality on the lane, then order of arrival, which is the rowid.
CREATE INDEX holdfast_live_ready ON holdfast_live (queue, tenant, priority) WHERE status = {READY};
CREATE INDEX holdfast_live_due ON holdfast_live (scheduled_at) WHERE status IN ({SCHEDULED}, {RETRYING});
-- For the reaper and recovery.
CREATE INDEX holdfast_live_held ON holdfast_live (worker) WHERE status = {RUNNING};

-- Statuses from SCHEDULED on are those of jobs that wait. The first index serves searches, the second counts a tenant's
-- jobs; jobs that are ready when submitted enter neither.
CREATE INDEX holdfast_live_parked ON holdfast_live (status, tenant, id) WHERE status >= {SCHEDULED};
CREATE INDEX holdfast_live_parked_in ON holdfast_live (tenant, queue) WHERE status >= {SCHEDULED};

-- Jobs that wait for their concurrency key (claims skip them), in the order in which they get it (seq is the rowid);
-- and jobs that hold a slot of their key: statuses before SUCCEEDED are ready and running. Jobs without a key enter
-- neither.
CREATE INDEX holdfast_live_queued ON holdfast_live (tenant, concurrency_key, priority DESC)
  WHERE status = {AWAITING_KEY};
CREATE INDEX holdfast_live_key_slots ON holdfast_live (tenant, concurrency_key)
WHERE concurrency_key IS NOT NULL AND status < {SUCCEEDED};

-- Jobs that may miss their deadline; jobs without one never enter it.
CREATE INDEX holdfast_live_deadline ON holdfast_live (deadline) WHERE deadline IS NOT NULL AND status <> {RUNNING};

-- Jobs that succeeded or were cancelled.
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
  fingerprint TEXT,
  progress BLOB
) STRICT;
CREATE INDEX holdfast_history_tenant ON holdfast_history (tenant, id);
CREATE INDEX holdfast_history_finished ON holdfast_history (finished_at);

-- Dead letters: kept longer than history, so that operators can inspect and replay them.
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
  fingerprint TEXT,
  progress BLOB
) STRICT;
CREATE INDEX holdfast_dead_tenant ON holdfast_dead (tenant, id);
CREATE INDEX holdfast_dead_finished ON holdfast_dead (finished_at);
-- Groups dead letters with the same error.
CREATE INDEX holdfast_dead_fingerprint ON holdfast_dead (tenant, fingerprint, id);

-- Idempotency keys (kind 0) and unique keys (kind 1), each with the job that it belongs to.
CREATE TABLE holdfast_job_keys (
  tenant TEXT NOT NULL,
  kind INTEGER NOT NULL,
  key TEXT NOT NULL,
  job_id BLOB NOT NULL,
  fingerprint BLOB NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, kind, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_job_keys_expiry ON holdfast_job_keys (expires_at);

-- Records of attempts: results of steps, and guards that commit with a handler's transaction. `state` is 0 started,
-- 1 done; `fence` is that of the attempt that wrote the record. Records are deleted after their job.
CREATE TABLE holdfast_steps (
  job_id BLOB NOT NULL,
  key TEXT NOT NULL,
  state INTEGER NOT NULL,
  result BLOB,
  fence INTEGER NOT NULL,
  recorded_at INTEGER NOT NULL,
  PRIMARY KEY (job_id, key)
) STRICT;
CREATE INDEX holdfast_steps_recorded ON holdfast_steps (recorded_at);

-- Running incarnations of workers. A worker's lease is the lease of all jobs that it holds. `types` is a JSON list of
-- the job types that it handles, NULL for all; `node` groups the processes of one node; `drain_at` is when it was told
-- to drain; `lease` is the lease's length in microseconds: a lease that ends later than that from now was granted
-- before the clock was set back, and is shortened. `unresponsive_since` is set while the process does not respond;
-- `blocked_by` is then the job type whose handler blocks its event loop, NULL if the process gives no sign of life.
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
  expires_at INTEGER NOT NULL,
  lease INTEGER NOT NULL,
  renewed_at INTEGER NOT NULL DEFAULT 0,
  types TEXT,
  node TEXT NOT NULL DEFAULT '',
  memory INTEGER,
  drain_at INTEGER,
  unresponsive_since INTEGER,
  blocked_by TEXT
) STRICT;
CREATE INDEX holdfast_workers_expiry ON holdfast_workers (expires_at);

-- Workers that left or lost their lease within the last day: when a worker for a job type was last seen.
CREATE TABLE holdfast_departed_workers (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  host TEXT NOT NULL,
  queues TEXT NOT NULL,
  types TEXT,
  tenant TEXT,
  seen_at INTEGER NOT NULL
) STRICT;
CREATE INDEX holdfast_departed_workers_seen ON holdfast_departed_workers (seen_at);

-- Descriptions of job types as reported by workers; `tenant` is '' for workers that serve all tenants.
CREATE TABLE holdfast_types (
  tenant TEXT NOT NULL,
  type TEXT NOT NULL,
  digest TEXT NOT NULL,
  about TEXT NOT NULL,
  seen_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, type)
) STRICT, WITHOUT ROWID;

-- Quotas and weights of tenants. NULL is the default of the installation; a tenant without a row has all defaults.
-- `rate` is cost per `rate_window` microseconds; the backlogs are numbers of unfinished jobs.
CREATE TABLE holdfast_tenants (
  name TEXT PRIMARY KEY NOT NULL,
  weight INTEGER,
  rate INTEGER,
  rate_window INTEGER,
  backlog INTEGER,
  queue_backlog INTEGER,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
-- Tenants with quotas.
CREATE INDEX holdfast_tenants_limited ON holdfast_tenants (name)
WHERE rate IS NOT NULL OR backlog IS NOT NULL OR queue_backlog IS NOT NULL;

-- Quota usage of tenants with quotas: the cost spent in the window and an upper bound of the backlog.
CREATE TABLE holdfast_quota_usage (tenant TEXT PRIMARY KEY NOT NULL, state BLOB NOT NULL) STRICT, WITHOUT ROWID;

-- API keys. `digest` is the SHA-256 of the secret, which is not stored; `scopes` are separated by spaces. Revoked
-- keys stay, so that an audit can name them.
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

-- Settings of queues; a queue without a row is not paused. `paused` is 0 or 1; a pause ends at `until` if that is set.
CREATE TABLE holdfast_queues (
  name TEXT PRIMARY KEY,
  paused INTEGER NOT NULL,
  reason TEXT NOT NULL,
  until INTEGER,
  changed_at INTEGER NOT NULL,
  changed_by TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Pauses of job types (kind 0) and tenants (kind 1), until `until` if that is set.
CREATE TABLE holdfast_pauses (
  kind INTEGER NOT NULL,
  name TEXT NOT NULL,
  reason TEXT NOT NULL,
  until INTEGER,
  changed_at INTEGER NOT NULL,
  changed_by TEXT NOT NULL,
  PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

-- Concurrency and rate limits of queues (kind 0), tenants (kind 1) and concurrency keys (kind 2; only these have a
-- `tenant`, the others ''). NULL is unlimited, or the default for a key. `used` counts the running jobs of kinds 0
-- and 1; the jobs of a key are counted when needed. `unsettled` is 1 while jobs may run that started before all nodes
-- knew the limit and so are missing from `used`. The token bucket gets `rate` tokens per `per` microseconds, up to
-- `burst`; `tokens` is in millionths.
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

-- Version of the dispatch settings: every change of a pause, limit or weight increments it, so that a node with cached
-- settings needs to read only this row.
CREATE TABLE holdfast_dispatch_version (one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL) STRICT;
INSERT INTO holdfast_dispatch_version (one, version) VALUES (1, 0);

-- Change log: one small row per transaction that changes jobs, written by that transaction; the source of event
-- streams and rollups. A row lists up to 20 changes and counts more. Numbers are assigned before the commit, so that
-- a lower one can appear after a higher one, and the number of a transaction that rolled back never appears.
CREATE TABLE holdfast_change_log (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  body BLOB NOT NULL
) STRICT;

-- Rollup cursor, one row, created on first use. Rows of the change log up to `seq` are rolled up, except the gaps in
-- `gaps` (JSON), which had not appeared yet. Rows up to `pruned` may be deleted. Minutes before `hours` are added to
-- their hours. `lost` counts all workers that ever lost their lease.
CREATE TABLE holdfast_rollup_position (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  seq INTEGER NOT NULL,
  gaps BLOB NOT NULL,
  pruned INTEGER NOT NULL,
  hours INTEGER NOT NULL,
  lost INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Stats per minute (span 60), hour (3600) and day (86400) by tenant, queue and type; tenant '' is all tenants
-- together. `wait` and `run` are histograms as JSON: the number of durations per bucket, where bucket n begins at
-- 1.2^n microseconds. `cost` is the cost of the attempts that ended, `waited` the longest wait among them, `reaped`
-- the jobs whose lease expired.
CREATE TABLE holdfast_rollup (
  span INTEGER NOT NULL,
  tenant TEXT NOT NULL,
  at INTEGER NOT NULL,
  queue TEXT NOT NULL,
  type TEXT NOT NULL,
  submitted INTEGER NOT NULL,
  started INTEGER NOT NULL,
  succeeded INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  dead INTEGER NOT NULL,
  cancelled INTEGER NOT NULL,
  wait BLOB NOT NULL,
  run BLOB NOT NULL,
  cost INTEGER NOT NULL DEFAULT 0,
  waited INTEGER NOT NULL DEFAULT 0,
  reaped INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (span, tenant, at, queue, type)
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_rollup_at ON holdfast_rollup (span, at);

-- Circuit breakers of destinations that failed recently. `state` is 0 closed, 1 open, 2 half-open.
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

-- Webhook signing keys, in plain text because signing needs them.
CREATE TABLE holdfast_webhook_secrets (
  tenant TEXT PRIMARY KEY NOT NULL,
  secret BLOB NOT NULL,
  previous BLOB,
  previous_until INTEGER,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Times of the last table maintenance, so that one of many nodes does it.
CREATE TABLE holdfast_maintenance (name TEXT PRIMARY KEY, done_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- All jobs in readable form, for people with a SQL console.
CREATE VIEW holdfast_jobs AS
SELECT lower(substr(hex(id), 1, 8) || '-' || substr(hex(id), 9, 4) || '-' || substr(hex(id), 13, 4) || '-' ||
             substr(hex(id), 17, 4) || '-' || substr(hex(id), 21)) AS id,
  tenant, queue, type,
  CASE status WHEN {READY} THEN 'ready' WHEN {RUNNING} THEN 'running' WHEN {SUCCEEDED} THEN 'succeeded'
    WHEN {DEAD} THEN 'dead' WHEN {CANCELLED} THEN 'cancelled' WHEN {SCHEDULED} THEN 'scheduled'
    WHEN {RETRYING} THEN 'retrying' WHEN {BLOCKED} THEN 'blocked' WHEN {AWAITING_KEY} THEN 'ready' END AS status,
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
