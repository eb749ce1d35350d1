-- How many jobs may run at once, and how many may start in a span: of a queue (kind 0), a tenant (1), or the jobs of a
-- tenant with the same concurrency_key (2; `tenant` is '' for the others). NULL is no limit, for a key its default.
-- `used` counts running jobs of kinds 0 and 1, given back by whatever ends them; those of a key are counted anew each time.
-- `unsettled` is 1 while jobs may run that began before the limit was known and so are not in `used`. Tokens are a bucket:
-- `rate` of them come in each `per` (microseconds), up to `burst`; `tokens` are millionths. Names are compared byte by byte.
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

-- In which limits a running job is counted: 1 of its queue, 2 of its tenant. Added only where it is missing, in words that
-- both servers know, here and below: this step may have stopped in the middle.
SET @holdfast_step = IF(
  (SELECT COUNT(*) FROM information_schema.columns
   WHERE table_schema = DATABASE() AND table_name = 'holdfast_live' AND column_name = 'slots') = 0,
  'ALTER TABLE holdfast_live ADD COLUMN slots TINYINT NOT NULL DEFAULT 0', 'DO 0');
PREPARE holdfast_step FROM @holdfast_step;
EXECUTE holdfast_step;
DEALLOCATE PREPARE holdfast_step;

-- Status 8 is ready too, but waits for others with its concurrency_key: such jobs lie apart (parked is 2), so that no claim
-- sees them. This has those of a key, the waiting ones in their order.
SET @holdfast_step = IF(
  (SELECT COUNT(*) FROM information_schema.statistics
   WHERE table_schema = DATABASE() AND table_name = 'holdfast_live' AND index_name = 'holdfast_live_key') = 0,
  'ALTER TABLE holdfast_live ADD KEY holdfast_live_key (concurrency_key, tenant, parked, priority, seq)', 'DO 0');
PREPARE holdfast_step FROM @holdfast_step;
EXECUTE holdfast_step;
DEALLOCATE PREPARE holdfast_step;

-- What rests besides queues: types (kind 0) and tenants (kind 1), until `until` if that is set.
CREATE TABLE IF NOT EXISTS holdfast_pauses (
  kind TINYINT NOT NULL,
  name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  reason TEXT NOT NULL,
  until BIGINT,
  changed_at BIGINT NOT NULL,
  changed_by TEXT NOT NULL,
  PRIMARY KEY (kind, name)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Raised with every change of pauses, limits and weights: who remembers them asks for this alone.
CREATE TABLE IF NOT EXISTS holdfast_terms (
  one TINYINT NOT NULL,
  version BIGINT NOT NULL,
  PRIMARY KEY (one)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
INSERT IGNORE INTO holdfast_terms (one, version) VALUES (1, 0);

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
