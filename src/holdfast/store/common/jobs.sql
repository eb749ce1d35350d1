-- Statements that all dialects share.

-- name: now
SELECT clock();

-- name: next_due
-- Uses holdfast_live_due; reads its first entry.
SELECT min(scheduled_at) - clock() FROM holdfast_live WHERE status IN ({SCHEDULED}, {RETRYING});

-- name: counts_live
SELECT tenant, queue, type, {visible_status}, count(*) FROM holdfast_live
WHERE (:tenant IS NULL OR tenant = :tenant) AND (:queue IS NULL OR queue = :queue)
  AND (:type IS NULL OR type = :type) AND (:status IS NULL OR {visible_status} = :status)
GROUP BY 1, 2, 3, 4;

-- name: counts_dead
SELECT tenant, queue, type, status, count(*) FROM holdfast_dead
WHERE (:tenant IS NULL OR tenant = :tenant) AND (:queue IS NULL OR queue = :queue)
  AND (:type IS NULL OR type = :type) AND (:status IS NULL OR status = :status)
GROUP BY tenant, queue, type, status;
