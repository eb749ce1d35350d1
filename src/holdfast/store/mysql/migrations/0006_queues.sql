-- What is set for queues; others are open. `paused` is 0 or 1, and over at `until` if that is set.
CREATE TABLE IF NOT EXISTS holdfast_queues (
  name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  paused TINYINT NOT NULL,
  reason TEXT NOT NULL,
  until BIGINT,
  changed_at BIGINT NOT NULL,
  changed_by TEXT NOT NULL,
  PRIMARY KEY (name)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- When a worker was last heard of. Added only where it is missing: this step may have stopped in the middle.
SET @holdfast_step = IF(
  (SELECT COUNT(*) FROM information_schema.columns
   WHERE table_schema = DATABASE() AND table_name = 'holdfast_workers' AND column_name = 'renewed_at') = 0,
  'ALTER TABLE holdfast_workers ADD COLUMN renewed_at BIGINT NOT NULL DEFAULT 0', 'DO 0');
PREPARE holdfast_step FROM @holdfast_step;
EXECUTE holdfast_step;
DEALLOCATE PREPARE holdfast_step;
