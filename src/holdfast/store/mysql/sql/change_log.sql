-- Writes to the change log, in the transaction of the change.

-- name: append_change
INSERT INTO holdfast_change_log (at, body) VALUES (clock(), :body);

-- name: append_claim_change
-- Appends only if lock_lease found a lease; otherwise nothing was claimed.
INSERT INTO holdfast_change_log (at, body) SELECT clock(), :body FROM (SELECT 1) AS one
  WHERE @holdfast_lease IS NOT NULL;

-- name: changes_at
-- Uses the primary key.
SELECT seq, at, body FROM holdfast_change_log WHERE seq IN :numbers ORDER BY seq;

-- name: save_rollups
INSERT INTO holdfast_rollup (span, {stats}) VALUES :rows
ON DUPLICATE KEY UPDATE submitted = VALUES(submitted), started = VALUES(started), succeeded = VALUES(succeeded),
  failed = VALUES(failed), dead = VALUES(dead), cancelled = VALUES(cancelled), wait = VALUES(wait), run = VALUES(run),
  cost = VALUES(cost), waited = VALUES(waited), reaped = VALUES(reaped);

-- name: prune_rollups
-- Uses holdfast_rollup_at.
DELETE FROM holdfast_rollup WHERE span = :span AND at < :before ORDER BY span, at LIMIT :limit;

-- name: begin_rollup_cursor
INSERT IGNORE INTO holdfast_rollup_position (one, seq, gaps, pruned, hours) VALUES (1, 0, '[]', 0, 0);
