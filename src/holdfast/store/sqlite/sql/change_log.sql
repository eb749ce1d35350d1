-- Writes to the change log, in the transaction of the change.

-- name: append_change
INSERT INTO holdfast_change_log (at, body) VALUES (clock(), :body);

-- name: changes_at
-- Uses the primary key.
SELECT seq, at, body FROM holdfast_change_log WHERE seq IN (SELECT value FROM json_each(:numbers)) ORDER BY seq;

-- name: begin_rollup_cursor
INSERT INTO holdfast_rollup_position (one, seq, gaps, pruned, hours) VALUES (1, 0, x'5b5d', 0, 0)
  ON CONFLICT (one) DO NOTHING;

-- name: lock_rollup_cursor
-- An UPDATE without effect, which acquires the write lock.
UPDATE holdfast_rollup_position SET seq = seq WHERE one = 1 RETURNING seq, gaps, pruned, hours, lost;

-- name: save_rollups
INSERT INTO holdfast_rollup (span, {stats})
VALUES (:span, :tenant, :at, :queue, :type, :submitted, :started, :succeeded, :failed, :dead, :cancelled, :wait, :run,
        :cost, :waited, :reaped)
ON CONFLICT (span, tenant, at, queue, type) DO UPDATE
SET submitted = excluded.submitted, started = excluded.started, succeeded = excluded.succeeded,
    failed = excluded.failed, dead = excluded.dead, cancelled = excluded.cancelled, wait = excluded.wait, run = excluded.run,
    cost = excluded.cost, waited = excluded.waited, reaped = excluded.reaped;

-- name: prune_rollups
-- Uses holdfast_rollup_at.
DELETE FROM holdfast_rollup WHERE (span, tenant, at, queue, type) IN (
  SELECT span, tenant, at, queue, type FROM holdfast_rollup WHERE span = :span AND at < :before LIMIT :limit);
