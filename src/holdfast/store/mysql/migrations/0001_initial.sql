-- Schema of holdfast on MySQL and MariaDB.
--
-- Times are microseconds since 1970 UTC by the clock of this server. `status` holds the code of a job's status; the
-- view holdfast_jobs shows statuses and times in readable form. A `started_at` or `worker` of 0 means none: with
-- NULL, a claim would change the size of the row. Columns of keys are VARBINARY, so that they are compared byte by
-- byte.
--
-- These servers commit each DDL statement by itself, so a migration can stop halfway. Every statement can be run again.

-- Unfinished jobs, clustered in the order in which they are claimed. Jobs that wait for their time or their
-- concurrency key are parked in another part of the table, so that neither a claim nor the search for lanes reads
-- them. Every job pays for each index of this table, and twice more for an index on its holder: see holdfast_claims
-- instead. `progress` is JSON, such as {"fraction": 0.9, "note": "written"}. `slots` says which limits count a
-- running job: bit 1 its queue's, bit 2 its tenant's. holdfast_live_key has the jobs of a concurrency key, waiting
-- ones in their order.
CREATE TABLE IF NOT EXISTS holdfast_live (
  parked TINYINT NOT NULL COMMENT '0 ready or running; 1 scheduled, retrying or blocked; 2 waits for its key',
  queue VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  tenant VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  priority SMALLINT NOT NULL DEFAULT 0,
  seq BIGINT NOT NULL COMMENT 'position in its lane: the time at which it became ready, in microseconds',
  id BINARY(16) NOT NULL,
  created_at BIGINT NOT NULL,
  scheduled_at BIGINT,
  started_at BIGINT NOT NULL DEFAULT 0,
  worker BIGINT NOT NULL DEFAULT 0,
  due BIGINT NOT NULL DEFAULT 0 COMMENT 'due time of a scheduled or retrying job; otherwise 0',
  timeout BIGINT,
  deadline BIGINT,
  fence INT NOT NULL DEFAULT 0,
  cost INT NOT NULL DEFAULT 1,
  status TINYINT NOT NULL,
  attempts SMALLINT NOT NULL DEFAULT 0,
  max_attempts SMALLINT NOT NULL,
  releases SMALLINT NOT NULL DEFAULT 0,
  generation SMALLINT NOT NULL DEFAULT 0,
  type VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  concurrency_key VARBINARY(1020),
  idempotency_key VARBINARY(1020),
  payload LONGBLOB NOT NULL,
  retry MEDIUMBLOB,
  tags MEDIUMBLOB,
  attempt_log LONGBLOB,
  progress BLOB,
  slots TINYINT NOT NULL DEFAULT 0,
  PRIMARY KEY (parked, queue, tenant, priority, seq, id),
  UNIQUE KEY holdfast_live_id (id),
  KEY holdfast_live_due (parked, due),
  KEY holdfast_live_key (concurrency_key, tenant, parked, priority, seq)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Jobs that a worker claimed, one row per claim: finds the jobs of a worker that is gone. Only the claim writes a
-- row, so that it also names jobs that the worker no longer holds; holdfast_live decides. Maintenance later deletes
-- rows whose worker holds none of their jobs.
CREATE TABLE IF NOT EXISTS holdfast_claims (
  worker BIGINT NOT NULL,
  id BINARY(16) NOT NULL COMMENT 'first of ids; identifies the row together with its fence at this claim',
  fence INT NOT NULL,
  checks TINYINT NOT NULL DEFAULT 0 COMMENT 'number of checks by maintenance so far',
  check_at BIGINT NOT NULL COMMENT 'time of the next check',
  ids BLOB NOT NULL COMMENT '16 bytes each',
  PRIMARY KEY (worker, id, fence)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Times to check whether a job missed its deadline: one row per unfinished job with a deadline. An index of
-- holdfast_live would cost every job. A row is checked at the deadline and once an hour before, so that it is deleted
-- within an hour of its job.
CREATE TABLE IF NOT EXISTS holdfast_deadlines (
  id BINARY(16) NOT NULL,
  check_at BIGINT NOT NULL,
  PRIMARY KEY (id),
  KEY holdfast_deadlines_check (check_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Jobs that succeeded or were cancelled, clustered by the time they finished: inserts append, retention deletes at the
-- other end.
CREATE TABLE IF NOT EXISTS holdfast_history (
  finished_at BIGINT NOT NULL,
  id BINARY(16) NOT NULL,
  seq BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  scheduled_at BIGINT,
  started_at BIGINT NOT NULL DEFAULT 0,
  worker BIGINT NOT NULL DEFAULT 0,
  timeout BIGINT,
  deadline BIGINT,
  fence INT NOT NULL,
  cost INT NOT NULL,
  status TINYINT NOT NULL,
  priority SMALLINT NOT NULL,
  attempts SMALLINT NOT NULL,
  max_attempts SMALLINT NOT NULL,
  releases SMALLINT NOT NULL,
  generation SMALLINT NOT NULL,
  tenant VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  queue VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  type VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  concurrency_key VARBINARY(1020),
  idempotency_key VARBINARY(1020),
  payload LONGBLOB NOT NULL,
  retry MEDIUMBLOB,
  tags MEDIUMBLOB,
  attempt_log LONGBLOB,
  result LONGBLOB,
  reason LONGTEXT,
  fingerprint VARCHAR(255),
  progress BLOB,
  PRIMARY KEY (finished_at, id),
  KEY holdfast_history_id (id),
  KEY holdfast_history_tenant (tenant, id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Dead letters: kept longer than history, so that operators can inspect and replay them. holdfast_dead_fingerprint
-- groups those with the same error.
CREATE TABLE IF NOT EXISTS holdfast_dead (
  id BINARY(16) NOT NULL,
  finished_at BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  scheduled_at BIGINT,
  started_at BIGINT NOT NULL DEFAULT 0,
  worker BIGINT NOT NULL DEFAULT 0,
  timeout BIGINT,
  deadline BIGINT,
  fence INT NOT NULL,
  cost INT NOT NULL,
  status TINYINT NOT NULL,
  priority SMALLINT NOT NULL,
  attempts SMALLINT NOT NULL,
  max_attempts SMALLINT NOT NULL,
  releases SMALLINT NOT NULL,
  generation SMALLINT NOT NULL,
  tenant VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  queue VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  type VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  concurrency_key VARBINARY(1020),
  idempotency_key VARBINARY(1020),
  payload LONGBLOB NOT NULL,
  retry MEDIUMBLOB,
  tags MEDIUMBLOB,
  attempt_log LONGBLOB,
  result LONGBLOB,
  reason LONGTEXT,
  fingerprint VARCHAR(255),
  progress BLOB,
  PRIMARY KEY (id),
  KEY holdfast_dead_tenant (tenant, id),
  KEY holdfast_dead_finished (finished_at),
  KEY holdfast_dead_fingerprint (tenant, fingerprint, id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Idempotency keys (kind 0) and unique keys (kind 1), each with the job that it belongs to.
CREATE TABLE IF NOT EXISTS holdfast_job_keys (
  tenant VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  kind TINYINT NOT NULL,
  name VARBINARY(1020) NOT NULL,
  job_id BINARY(16) NOT NULL,
  fingerprint BLOB NOT NULL,
  expires_at BIGINT NOT NULL,
  PRIMARY KEY (tenant, kind, name),
  KEY holdfast_job_keys_expiry (expires_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Records of attempts: results of steps, and guards that commit with a handler's transaction. `state` is 0 started,
-- 1 done; `fence` is that of the attempt that wrote the record. Records are deleted after their job.
-- The key is called `name`, as in holdfast_job_keys.
CREATE TABLE IF NOT EXISTS holdfast_steps (
  job_id BINARY(16) NOT NULL,
  name VARBINARY(1020) NOT NULL,
  state TINYINT NOT NULL,
  result LONGBLOB,
  fence INT NOT NULL,
  recorded_at BIGINT NOT NULL,
  PRIMARY KEY (job_id, name),
  KEY holdfast_steps_recorded (recorded_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Running incarnations of workers. A worker's lease is the lease of all jobs that it holds. `types` is a JSON list of
-- the job types that it handles, NULL for all; `node` groups the processes of one node; `drain_at` is when it was told
-- to drain; `lease` is the lease's length in microseconds: a lease that ends later than that from now was granted
-- before the clock was set back, and is shortened. `unresponsive_since` is set while the process does not respond;
-- `blocked_by` is then the job type whose handler blocks its event loop, NULL if the process gives no sign of life.
CREATE TABLE IF NOT EXISTS holdfast_workers (
  id BIGINT NOT NULL,
  name TEXT NOT NULL,
  host TEXT NOT NULL,
  pid INT NOT NULL,
  version TEXT NOT NULL,
  queues TEXT NOT NULL,
  slots INT NOT NULL,
  tenant VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin,
  started_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  lease BIGINT NOT NULL,
  renewed_at BIGINT NOT NULL DEFAULT 0,
  types MEDIUMTEXT,
  node VARCHAR(255) NOT NULL DEFAULT '',
  memory BIGINT,
  drain_at BIGINT,
  unresponsive_since BIGINT,
  blocked_by VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin,
  PRIMARY KEY (id),
  KEY holdfast_workers_expiry (expires_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Workers that left or lost their lease within the last day: when a worker for a job type was last seen.
CREATE TABLE IF NOT EXISTS holdfast_departed_workers (
  id BIGINT NOT NULL,
  name TEXT NOT NULL,
  host TEXT NOT NULL,
  queues TEXT NOT NULL,
  types MEDIUMTEXT,
  tenant VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin,
  seen_at BIGINT NOT NULL,
  PRIMARY KEY (id),
  KEY holdfast_departed_workers_seen (seen_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Descriptions of job types as reported by workers; `tenant` is '' for workers that serve all tenants.
CREATE TABLE IF NOT EXISTS holdfast_types (
  tenant VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  type VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  digest VARCHAR(64) NOT NULL,
  about MEDIUMTEXT NOT NULL,
  seen_at BIGINT NOT NULL,
  PRIMARY KEY (tenant, type)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Quotas and weights of tenants. NULL is the default of the installation; a tenant without a row has all defaults.
-- `rate` is cost per `rate_window` microseconds; the backlogs are numbers of unfinished jobs.
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

-- Quota usage of tenants with quotas: the cost spent in the window and an upper bound of the backlog. Submissions
-- lock the tenant's row.
CREATE TABLE IF NOT EXISTS holdfast_quota_usage (
  tenant VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  state BLOB NOT NULL,
  PRIMARY KEY (tenant)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- API keys. `digest` is the SHA-256 of the secret, which is not stored; `scopes` are separated by spaces. Revoked
-- keys stay, so that an audit can name them.
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

-- Settings of queues; a queue without a row is not paused. `paused` is 0 or 1; a pause ends at `until` if that is set.
CREATE TABLE IF NOT EXISTS holdfast_queues (
  name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  paused TINYINT NOT NULL,
  reason TEXT NOT NULL,
  until BIGINT,
  changed_at BIGINT NOT NULL,
  changed_by TEXT NOT NULL,
  PRIMARY KEY (name)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Pauses of job types (kind 0) and tenants (kind 1), until `until` if that is set.
CREATE TABLE IF NOT EXISTS holdfast_pauses (
  kind TINYINT NOT NULL,
  name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  reason TEXT NOT NULL,
  until BIGINT,
  changed_at BIGINT NOT NULL,
  changed_by TEXT NOT NULL,
  PRIMARY KEY (kind, name)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Concurrency and rate limits of queues (kind 0), tenants (kind 1) and concurrency keys (kind 2; only these have a
-- `tenant`, the others ''). NULL is unlimited, or the default for a key. `used` counts the running jobs of kinds 0
-- and 1; the jobs of a key are counted when needed. `unsettled` is 1 while jobs may run that started before all nodes
-- knew the limit and so are missing from `used`. The token bucket gets `rate` tokens per `per` microseconds, up to
-- `burst`; `tokens` is in millionths.
CREATE TABLE IF NOT EXISTS holdfast_limits (
  kind TINYINT NOT NULL,
  tenant VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  name VARBINARY(1020) NOT NULL,
  max_running BIGINT,
  rate BIGINT,
  per BIGINT,
  burst BIGINT,
  used BIGINT NOT NULL DEFAULT 0,
  unsettled TINYINT NOT NULL DEFAULT 0,
  tokens BIGINT NOT NULL DEFAULT 0,
  refilled_at BIGINT NOT NULL DEFAULT 0,
  changed_at BIGINT NOT NULL DEFAULT 0,
  changed_by VARCHAR(255) NOT NULL DEFAULT '',
  PRIMARY KEY (kind, tenant, name)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Version of the dispatch settings: every change of a pause, limit or weight increments it, so that a node with cached
-- settings needs to read only this row.
CREATE TABLE IF NOT EXISTS holdfast_dispatch_version (
  one TINYINT NOT NULL,
  version BIGINT NOT NULL,
  PRIMARY KEY (one)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
INSERT IGNORE INTO holdfast_dispatch_version (one, version) VALUES (1, 0);

-- Change log: one small row per transaction that changes jobs, written by that transaction; the source of event
-- streams and rollups. A row lists up to 20 changes and counts more. Numbers are assigned before the commit, so that
-- a lower one can appear after a higher one, and the number of a transaction that rolled back never appears.
CREATE TABLE IF NOT EXISTS holdfast_change_log (
  seq BIGINT NOT NULL AUTO_INCREMENT,
  at BIGINT NOT NULL,
  body LONGBLOB NOT NULL,
  PRIMARY KEY (seq)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Rollup cursor, one row, created on first use. Rows of the change log up to `seq` are rolled up, except the gaps in
-- `gaps` (JSON), which had not appeared yet. Rows up to `pruned` may be deleted. Minutes before `hours` are added to
-- their hours. `lost` counts all workers that ever lost their lease.
CREATE TABLE IF NOT EXISTS holdfast_rollup_position (
  one TINYINT NOT NULL,
  seq BIGINT NOT NULL,
  gaps LONGBLOB NOT NULL,
  pruned BIGINT NOT NULL,
  hours BIGINT NOT NULL,
  lost BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (one)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Stats per minute (span 60), hour (3600) and day (86400) by tenant, queue and type; tenant '' is all tenants
-- together. `wait` and `run` are histograms as JSON: the number of durations per bucket, where bucket n begins at
-- 1.2^n microseconds. `cost` is the cost of the attempts that ended, `waited` the longest wait among them, `reaped`
-- the jobs whose lease expired.
CREATE TABLE IF NOT EXISTS holdfast_rollup (
  span INT NOT NULL,
  tenant VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  at BIGINT NOT NULL,
  queue VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  type VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  submitted BIGINT NOT NULL,
  started BIGINT NOT NULL,
  succeeded BIGINT NOT NULL,
  failed BIGINT NOT NULL,
  dead BIGINT NOT NULL,
  cancelled BIGINT NOT NULL,
  wait BLOB NOT NULL,
  run BLOB NOT NULL,
  cost BIGINT NOT NULL DEFAULT 0,
  waited BIGINT NOT NULL DEFAULT 0,
  reaped BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (span, tenant, at, queue, type),
  KEY holdfast_rollup_at (span, at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Circuit breakers of destinations that failed recently. `state` is 0 closed, 1 open, 2 half-open.
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

-- Webhook signing keys, in plain text because signing needs them.
CREATE TABLE IF NOT EXISTS holdfast_webhook_secrets (
  tenant VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  secret VARBINARY(64) NOT NULL,
  previous VARBINARY(64),
  previous_until BIGINT,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (tenant)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- All jobs in readable form, for people with a SQL console; times are in UTC, whatever the time zone of the session.
CREATE OR REPLACE SQL SECURITY INVOKER VIEW holdfast_jobs AS
SELECT LOWER(CONCAT_WS('-', HEX(SUBSTR(id, 1, 4)), HEX(SUBSTR(id, 5, 2)), HEX(SUBSTR(id, 7, 2)), HEX(SUBSTR(id, 9, 2)),
                       HEX(SUBSTR(id, 11)))) AS id,
  tenant, queue, type,
  ELT(status + 1, 'ready', 'running', 'succeeded', 'dead', 'cancelled', 'scheduled', 'retrying', 'blocked', 'ready')
    AS status,
  priority, attempts, max_attempts,
  TIMESTAMPADD(MICROSECOND, created_at, TIMESTAMP '1970-01-01 00:00:00') AS created_at,
  TIMESTAMPADD(MICROSECOND, scheduled_at, TIMESTAMP '1970-01-01 00:00:00') AS scheduled_at,
  TIMESTAMPADD(MICROSECOND, NULLIF(started_at, 0), TIMESTAMP '1970-01-01 00:00:00') AS started_at,
  TIMESTAMPADD(MICROSECOND, finished_at, TIMESTAMP '1970-01-01 00:00:00') AS finished_at,
  NULLIF(worker, 0) AS worker, CONVERT(payload USING utf8mb4) AS payload, CONVERT(result USING utf8mb4) AS result,
  CONVERT(attempt_log USING utf8mb4) AS attempt_log, reason
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
) AS j;

-- Comments for people with a SQL console. docs/guide/tables.md repeats them.
ALTER TABLE holdfast_live COMMENT =
  'Unfinished jobs: ready, running, scheduled, retrying, or waiting for their concurrency key';
ALTER TABLE holdfast_claims COMMENT = 'Jobs that each worker holds';
ALTER TABLE holdfast_deadlines COMMENT = 'Jobs with a deadline that have not started';
ALTER TABLE holdfast_history COMMENT = 'Jobs that succeeded or were cancelled, deleted after their retention';
ALTER TABLE holdfast_dead COMMENT = 'Dead letters, kept longer than the history, to be inspected and replayed';
ALTER TABLE holdfast_job_keys COMMENT = 'Idempotency keys (kind 0) and unique keys (kind 1), each with its job';
ALTER TABLE holdfast_steps COMMENT = 'Recorded results of steps and transactions, deleted after their job';
ALTER TABLE holdfast_workers COMMENT =
  'Running worker processes and their leases. A lease covers all jobs of its worker';
ALTER TABLE holdfast_departed_workers COMMENT = 'Workers that left or lost their lease within the last day';
ALTER TABLE holdfast_types COMMENT = 'Job types and their schemas, as workers reported them';
ALTER TABLE holdfast_tenants COMMENT = 'Weights and quotas of tenants. A tenant without a row has the defaults';
ALTER TABLE holdfast_quota_usage COMMENT = 'Use of quotas, one row per tenant with quotas';
ALTER TABLE holdfast_api_keys COMMENT = 'API keys. Only a hash of the secret is stored, and revoked keys stay';
ALTER TABLE holdfast_queues COMMENT = 'Pauses of queues. A queue without a row is not paused';
ALTER TABLE holdfast_pauses COMMENT = 'Pauses of job types (kind 0) and tenants (kind 1)';
ALTER TABLE holdfast_limits COMMENT =
  'Concurrency and rate limits of queues (kind 0), tenants (kind 1) and concurrency keys (kind 2)';
ALTER TABLE holdfast_dispatch_version COMMENT = 'Version of pauses, limits and weights, by which nodes notice a change';
ALTER TABLE holdfast_change_log COMMENT =
  'One row per transaction that changed jobs, the source of event streams and statistics';
ALTER TABLE holdfast_rollup_position COMMENT = 'How far the change log has been added to the statistics';
ALTER TABLE holdfast_rollup COMMENT = 'Statistics per minute (span 60), hour (3600) and day (86400)';
ALTER TABLE holdfast_breakers COMMENT =
  'Circuit breakers of webhook destinations. State 0 is closed, 1 open, 2 half-open';
ALTER TABLE holdfast_webhook_secrets COMMENT = 'Signing keys of webhooks, in plain text because signing needs them';
