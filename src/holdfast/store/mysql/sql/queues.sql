-- name: save_queue
INSERT INTO holdfast_queues (name, paused, reason, until, changed_at, changed_by)
VALUES (:name, :paused, :reason, :until, clock(), :changed_by)
ON DUPLICATE KEY UPDATE paused = VALUES(paused), reason = VALUES(reason), until = VALUES(until),
  changed_at = VALUES(changed_at), changed_by = VALUES(changed_by);

-- name: held_counts
-- Uses the primary key; reads all jobs that are not parked. The interval between runs grows with its duration.
SELECT worker, tenant, COUNT(*) FROM holdfast_live WHERE parked = {NOT_PARKED} AND status = {RUNNING}
GROUP BY worker, tenant;
