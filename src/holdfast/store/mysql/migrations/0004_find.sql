-- Dead letters with the same error. Added only where it is missing, in words that both servers know: this step may have
-- stopped in the middle.
SET @holdfast_step = IF(
  (SELECT COUNT(*) FROM information_schema.statistics
   WHERE table_schema = DATABASE() AND table_name = 'holdfast_dead' AND index_name = 'holdfast_dead_alike') = 0,
  'ALTER TABLE holdfast_dead ADD KEY holdfast_dead_alike (tenant, fingerprint, id)', 'DO 0');
PREPARE holdfast_step FROM @holdfast_step;
EXECUTE holdfast_step;
DEALLOCATE PREPARE holdfast_step;
