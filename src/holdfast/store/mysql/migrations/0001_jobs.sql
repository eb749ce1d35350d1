-- Times are microseconds since 1970 UTC by this server's clock. Status: 0 ready, 1 running, 2 succeeded, 3 dead,
-- 4 cancelled, 5 scheduled, 6 retrying, 7 blocked. The view holdfast_jobs shows both in words.
-- A started_at or worker of 0 means none: not NULL, so that a claim does not change the size of the row.
-- Every statement can be run again: this database commits each by itself, so a step may stop in the middle.

-- What is not finished, in the order it is claimed. Jobs that wait for their time or for others are parked: they lie
-- apart from the ready and running ones, so that neither a claim nor the search for lanes walks over them.
-- Every index on this table is paid for with each job, and an index on who holds it twice more: see holdfast_claims.
CREATE TABLE IF NOT EXISTS holdfast_live (
  parked TINYINT NOT NULL COMMENT '1 scheduled, retrying, blocked; 0 ready, running',
  queue VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  tenant VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  priority SMALLINT NOT NULL DEFAULT 0,
  seq BIGINT NOT NULL COMMENT 'position in its lane: when it took it, in microseconds',
  id BINARY(16) NOT NULL,
  created_at BIGINT NOT NULL,
  scheduled_at BIGINT,
  started_at BIGINT NOT NULL DEFAULT 0,
  worker BIGINT NOT NULL DEFAULT 0,
  due BIGINT NOT NULL DEFAULT 0 COMMENT 'if parked, when; else 0',
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
  PRIMARY KEY (parked, queue, tenant, priority, seq, id),
  UNIQUE KEY holdfast_live_id (id),
  KEY holdfast_live_due (parked, due)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Which jobs a worker took, a row for each claim: how what it holds is found when it is gone. Written with the claim and
-- with nothing else, so it names jobs too that the worker has let go of: holdfast_live decides. A row that names no job
-- any more that its worker holds is tidied away some time later.
CREATE TABLE IF NOT EXISTS holdfast_claims (
  worker BIGINT NOT NULL,
  id BINARY(16) NOT NULL COMMENT 'the first of ids; with its fence at this claim it names the row',
  fence INT NOT NULL,
  looks TINYINT NOT NULL DEFAULT 0 COMMENT 'how often it was looked at for tidying',
  look_at BIGINT NOT NULL COMMENT 'when to look next',
  ids BLOB NOT NULL COMMENT '16 bytes each',
  PRIMARY KEY (worker, id, fence)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- What succeeded or was cancelled, in the order it finished: appended at one end, pruned at the other.
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
  PRIMARY KEY (finished_at, id),
  KEY holdfast_history_id (id),
  KEY holdfast_history_tenant (tenant, id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- What failed for good: kept longer, looked at, replayed.
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
  PRIMARY KEY (id),
  KEY holdfast_dead_tenant (tenant, id),
  KEY holdfast_dead_finished (finished_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Idempotency keys (kind 0) and keys of unique jobs (kind 1): which job a key belongs to. Compared byte by byte.
CREATE TABLE IF NOT EXISTS holdfast_keys (
  tenant VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  kind TINYINT NOT NULL,
  name VARBINARY(1020) NOT NULL,
  job_id BINARY(16) NOT NULL,
  fingerprint BLOB NOT NULL,
  expires_at BIGINT NOT NULL,
  PRIMARY KEY (tenant, kind, name),
  KEY holdfast_keys_expiry (expires_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- One row for each incarnation of a worker; its lease is the lease of all the jobs it holds.
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
  PRIMARY KEY (id),
  KEY holdfast_workers_expiry (expires_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- For people with a console; times in UTC, whatever the session's time zone.
CREATE OR REPLACE SQL SECURITY INVOKER VIEW holdfast_jobs AS
SELECT LOWER(CONCAT_WS('-', HEX(SUBSTR(id, 1, 4)), HEX(SUBSTR(id, 5, 2)), HEX(SUBSTR(id, 7, 2)), HEX(SUBSTR(id, 9, 2)),
                       HEX(SUBSTR(id, 11)))) AS id,
  tenant, queue, type,
  ELT(status + 1, 'ready', 'running', 'succeeded', 'dead', 'cancelled', 'scheduled', 'retrying', 'blocked') AS status,
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
