-- When to look whether a job has missed its deadline: a row for each unfinished job that has one, and for some that are
-- finished since. No index of holdfast_live, which every job would pay for. A look is at the deadline, and once an hour
-- before it: so a row goes within an hour of its job.
CREATE TABLE IF NOT EXISTS holdfast_deadlines (
  id BINARY(16) NOT NULL,
  look_at BIGINT NOT NULL,
  PRIMARY KEY (id),
  KEY holdfast_deadlines_look (look_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
INSERT IGNORE INTO holdfast_deadlines (id, look_at) SELECT id, deadline FROM holdfast_live WHERE deadline IS NOT NULL;

-- What attempts that ended in it cost together, and how long the one had waited in line that waited longest. Columns are
-- added only where they are missing: this step may have stopped in the middle.
SET @holdfast_step = IF(
  (SELECT COUNT(*) FROM information_schema.columns
   WHERE table_schema = DATABASE() AND table_name = 'holdfast_rollup' AND column_name = 'waited') = 0,
  'ALTER TABLE holdfast_rollup ADD COLUMN cost BIGINT NOT NULL DEFAULT 0, ADD COLUMN waited BIGINT NOT NULL DEFAULT 0', 'DO 0');
PREPARE holdfast_step FROM @holdfast_step;
EXECUTE holdfast_step;
DEALLOCATE PREPARE holdfast_step;

-- Which types of jobs a worker has handlers for, as JSON; NULL: any.
SET @holdfast_step = IF(
  (SELECT COUNT(*) FROM information_schema.columns
   WHERE table_schema = DATABASE() AND table_name = 'holdfast_workers' AND column_name = 'types') = 0,
  'ALTER TABLE holdfast_workers ADD COLUMN types MEDIUMTEXT', 'DO 0');
PREPARE holdfast_step FROM @holdfast_step;
EXECUTE holdfast_step;
DEALLOCATE PREPARE holdfast_step;

-- Workers that left or were lost, for a day: when somebody was last there for a type of jobs.
CREATE TABLE IF NOT EXISTS holdfast_departed (
  id BIGINT NOT NULL,
  name TEXT NOT NULL,
  host TEXT NOT NULL,
  queues TEXT NOT NULL,
  types MEDIUMTEXT,
  tenant VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin,
  seen_at BIGINT NOT NULL,
  PRIMARY KEY (id),
  KEY holdfast_departed_seen (seen_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
