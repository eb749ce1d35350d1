-- Of how many jobs the lease was lost, and (in the one row of what was folded) of how many workers, ever. Added only where
-- it is missing: this step may have stopped in the middle.
SET @holdfast_step = IF(
  (SELECT COUNT(*) FROM information_schema.columns
   WHERE table_schema = DATABASE() AND table_name = 'holdfast_rollup' AND column_name = 'reaped') = 0,
  'ALTER TABLE holdfast_rollup ADD COLUMN reaped BIGINT NOT NULL DEFAULT 0', 'DO 0');
PREPARE holdfast_step FROM @holdfast_step;
EXECUTE holdfast_step;
DEALLOCATE PREPARE holdfast_step;
SET @holdfast_step = IF(
  (SELECT COUNT(*) FROM information_schema.columns
   WHERE table_schema = DATABASE() AND table_name = 'holdfast_folded' AND column_name = 'lost') = 0,
  'ALTER TABLE holdfast_folded ADD COLUMN lost BIGINT NOT NULL DEFAULT 0', 'DO 0');
PREPARE holdfast_step FROM @holdfast_step;
EXECUTE holdfast_step;
DEALLOCATE PREPARE holdfast_step;
