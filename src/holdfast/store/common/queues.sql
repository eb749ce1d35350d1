-- Queue settings, and the jobs that workers hold.

-- name: queues
SELECT name, paused, reason, until, changed_at, changed_by FROM holdfast_queues ORDER BY name;

-- name: save_queue
INSERT INTO holdfast_queues (name, paused, reason, until, changed_at, changed_by)
VALUES (:name, :paused, :reason, :until, clock(), :changed_by)
ON CONFLICT (name) DO UPDATE SET paused = excluded.paused, reason = excluded.reason, until = excluded.until,
  changed_at = excluded.changed_at, changed_by = excluded.changed_by;

-- name: held_counts
-- Uses holdfast_live_held; MySQL reads all ready and running jobs. The interval between runs grows with its duration.
SELECT worker, tenant, count(*) FROM holdfast_live WHERE status = {RUNNING} GROUP BY worker, tenant;
