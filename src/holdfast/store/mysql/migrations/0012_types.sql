-- How much memory a worker has, since when it is to end, and which processes are one node's. Added only where it is missing:
-- this step may have stopped in the middle.
SET @holdfast_step = IF(
  (SELECT COUNT(*) FROM information_schema.columns
   WHERE table_schema = DATABASE() AND table_name = 'holdfast_workers' AND column_name = 'node') = 0,
  'ALTER TABLE holdfast_workers ADD COLUMN node VARCHAR(255) NOT NULL DEFAULT ''''', 'DO 0');
PREPARE holdfast_step FROM @holdfast_step;
EXECUTE holdfast_step;
DEALLOCATE PREPARE holdfast_step;
SET @holdfast_step = IF(
  (SELECT COUNT(*) FROM information_schema.columns
   WHERE table_schema = DATABASE() AND table_name = 'holdfast_workers' AND column_name = 'memory') = 0,
  'ALTER TABLE holdfast_workers ADD COLUMN memory BIGINT', 'DO 0');
PREPARE holdfast_step FROM @holdfast_step;
EXECUTE holdfast_step;
DEALLOCATE PREPARE holdfast_step;
SET @holdfast_step = IF(
  (SELECT COUNT(*) FROM information_schema.columns
   WHERE table_schema = DATABASE() AND table_name = 'holdfast_workers' AND column_name = 'drain_at') = 0,
  'ALTER TABLE holdfast_workers ADD COLUMN drain_at BIGINT', 'DO 0');
PREPARE holdfast_step FROM @holdfast_step;
EXECUTE holdfast_step;
DEALLOCATE PREPARE holdfast_step;

-- What workers tell of the types that they handle; `tenant` is '' for workers that serve everybody.
CREATE TABLE IF NOT EXISTS holdfast_types (
  tenant VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  type VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  digest VARCHAR(64) NOT NULL,
  about MEDIUMTEXT NOT NULL,
  seen_at BIGINT NOT NULL,
  PRIMARY KEY (tenant, type)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
