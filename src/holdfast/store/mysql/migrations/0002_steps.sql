-- What attempts recorded: results of steps, and guards that commit with the writes of a handler's transaction.
-- State: 0 started, 1 done. The fence is of the attempt that recorded it. They go when their job is gone.
-- The key is called name, as in holdfast_keys, and compared byte by byte.
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

-- How far a job is, as JSON: {"fraction": 0.9, "note": "written"}. Added only where it is missing, in words that
-- both servers know: this step may have stopped in the middle.
SET @holdfast_step = IF(
  (SELECT COUNT(*) FROM information_schema.columns
   WHERE table_schema = DATABASE() AND table_name = 'holdfast_live' AND column_name = 'progress') = 0,
  'ALTER TABLE holdfast_live ADD COLUMN progress BLOB', 'DO 0');
PREPARE holdfast_step FROM @holdfast_step;
EXECUTE holdfast_step;
DEALLOCATE PREPARE holdfast_step;
SET @holdfast_step = IF(
  (SELECT COUNT(*) FROM information_schema.columns
   WHERE table_schema = DATABASE() AND table_name = 'holdfast_history' AND column_name = 'progress') = 0,
  'ALTER TABLE holdfast_history ADD COLUMN progress BLOB', 'DO 0');
PREPARE holdfast_step FROM @holdfast_step;
EXECUTE holdfast_step;
DEALLOCATE PREPARE holdfast_step;
SET @holdfast_step = IF(
  (SELECT COUNT(*) FROM information_schema.columns
   WHERE table_schema = DATABASE() AND table_name = 'holdfast_dead' AND column_name = 'progress') = 0,
  'ALTER TABLE holdfast_dead ADD COLUMN progress BLOB', 'DO 0');
PREPARE holdfast_step FROM @holdfast_step;
EXECUTE holdfast_step;
DEALLOCATE PREPARE holdfast_step;
