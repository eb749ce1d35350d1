-- Job search in bounded steps: `window_…` finds the id after :skip rows, `find_…` reads down to that id.

-- columns: filter
(:queue IS NULL OR queue = :queue) AND (:type IS NULL OR type = :type)
  AND (:status IS NULL OR CASE WHEN status = {AWAITING_KEY} THEN {READY} ELSE status END = :status)
  AND (:tag IS NULL OR LOCATE(:tag, tags) > 0) AND (:after IS NULL OR created_at > :after)
  AND (:until IS NULL OR created_at < :until)

-- name: window_live
-- Uses holdfast_live_id.
SELECT id FROM holdfast_live FORCE INDEX (holdfast_live_id)
WHERE id < :before AND id >= :floor ORDER BY id DESC LIMIT 1 OFFSET :skip;

-- name: find_live
-- Uses holdfast_live_id.
SELECT {job} FROM holdfast_live FORCE INDEX (holdfast_live_id)
WHERE id < :before AND id >= :floor AND (:tenant IS NULL OR tenant = :tenant) AND {filter}
ORDER BY id DESC LIMIT :limit;

-- name: window_dead
-- Uses the primary key.
SELECT id FROM holdfast_dead FORCE INDEX (PRIMARY)
WHERE id < :before AND id >= :floor ORDER BY id DESC LIMIT 1 OFFSET :skip;

-- name: find_dead
-- Uses the primary key.
SELECT {past}, {ended} FROM holdfast_dead FORCE INDEX (PRIMARY)
WHERE id < :before AND id >= :floor AND {filter} AND (:fingerprint IS NULL OR fingerprint = :fingerprint)
ORDER BY id DESC LIMIT :limit;

-- name: window_dead_of
-- Uses holdfast_dead_tenant.
SELECT id FROM holdfast_dead FORCE INDEX (holdfast_dead_tenant)
WHERE tenant = :tenant AND id < :before AND id >= :floor ORDER BY id DESC LIMIT 1 OFFSET :skip;

-- name: find_dead_of
-- Uses holdfast_dead_tenant.
SELECT {past}, {ended} FROM holdfast_dead FORCE INDEX (holdfast_dead_tenant)
WHERE tenant = :tenant AND id < :before AND id >= :floor AND {filter}
ORDER BY id DESC LIMIT :limit;

-- name: window_dead_alike
-- Uses holdfast_dead_fingerprint.
SELECT id FROM holdfast_dead FORCE INDEX (holdfast_dead_fingerprint)
WHERE tenant = :tenant AND fingerprint = :fingerprint AND id < :before AND id >= :floor
ORDER BY id DESC LIMIT 1 OFFSET :skip;

-- name: find_dead_alike
-- Uses holdfast_dead_fingerprint.
SELECT {past}, {ended} FROM holdfast_dead FORCE INDEX (holdfast_dead_fingerprint)
WHERE tenant = :tenant AND fingerprint = :fingerprint AND id < :before AND id >= :floor AND {filter}
ORDER BY id DESC LIMIT :limit;

-- name: window_history
-- Uses holdfast_history_id.
SELECT id FROM holdfast_history FORCE INDEX (holdfast_history_id)
WHERE id < :before AND id >= :floor ORDER BY id DESC LIMIT 1 OFFSET :skip;

-- name: find_history
-- Uses holdfast_history_id.
SELECT {past}, {ended} FROM holdfast_history FORCE INDEX (holdfast_history_id)
WHERE id < :before AND id >= :floor AND {filter}
ORDER BY id DESC LIMIT :limit;

-- name: window_history_of
-- Uses holdfast_history_tenant.
SELECT id FROM holdfast_history FORCE INDEX (holdfast_history_tenant)
WHERE tenant = :tenant AND id < :before AND id >= :floor ORDER BY id DESC LIMIT 1 OFFSET :skip;

-- name: find_history_of
-- Uses holdfast_history_tenant.
SELECT {past}, {ended} FROM holdfast_history FORCE INDEX (holdfast_history_tenant)
WHERE tenant = :tenant AND id < :before AND id >= :floor AND {filter}
ORDER BY id DESC LIMIT :limit;

-- name: live_queues
-- Uses the primary key as a skip scan over queues.
SELECT parked, queue FROM holdfast_live FORCE INDEX FOR GROUP BY (PRIMARY) GROUP BY parked, queue LIMIT :limit;

-- name: live_ids
-- Uses the primary key: the ready and running jobs, or those that wait.
SELECT id, status FROM holdfast_live FORCE INDEX (PRIMARY) WHERE parked = :parked LIMIT :limit;

-- name: live_ids_of
-- Uses the primary key: the jobs of a tenant in one queue.
SELECT id, status FROM holdfast_live FORCE INDEX (PRIMARY)
WHERE parked = :parked AND queue = :queue AND tenant = :tenant LIMIT :limit;

-- name: claimed_ids
-- Reads the table, which is small, up to the limit.
SELECT ids FROM holdfast_claims LIMIT :limit;

-- name: dead_groups
-- Uses holdfast_dead_fingerprint as a skip scan over groups.
SELECT MIN(id), MAX(id), tenant, fingerprint FROM holdfast_dead FORCE INDEX FOR GROUP BY (holdfast_dead_fingerprint)
WHERE (tenant > :tenant_after OR tenant = :tenant_after AND fingerprint > :fingerprint_after) AND tenant <= :tenant_last
GROUP BY tenant, fingerprint LIMIT :limit;

-- name: remove_steps
-- Uses the primary key.
DELETE s FROM :rows AS m STRAIGHT_JOIN holdfast_steps s FORCE INDEX (PRIMARY) ON s.job_id = m.of_id;
