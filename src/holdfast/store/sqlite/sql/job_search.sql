-- Job search in bounded steps: `window_…` finds the id after :skip rows, `find_…` reads down to that id.

-- columns: filter
(:queue IS NULL OR queue = :queue) AND (:type IS NULL OR type = :type)
  AND (:status IS NULL OR CASE WHEN status = {AWAITING_KEY} THEN {READY} ELSE status END = :status)
  AND (:tag IS NULL OR instr(tags, :tag) > 0) AND (:after IS NULL OR created_at > :after)
  AND (:until IS NULL OR created_at < :until)

-- name: window_live
-- Uses the unique id.
SELECT id FROM holdfast_live WHERE id < :before AND id >= :floor ORDER BY id DESC LIMIT 1 OFFSET :skip;

-- name: find_live
-- Uses the unique id.
SELECT {job} FROM holdfast_live
WHERE id < :before AND id >= :floor AND (:tenant IS NULL OR tenant = :tenant) AND {filter}
ORDER BY id DESC LIMIT :limit;

-- name: window_dead
-- Uses the unique id.
SELECT id FROM holdfast_dead WHERE id < :before AND id >= :floor ORDER BY id DESC LIMIT 1 OFFSET :skip;

-- name: find_dead
-- Uses the unique id.
SELECT {past}, {ended} FROM holdfast_dead
WHERE id < :before AND id >= :floor AND {filter} AND (:fingerprint IS NULL OR fingerprint = :fingerprint)
ORDER BY id DESC LIMIT :limit;

-- name: window_dead_of
-- Uses holdfast_dead_tenant.
SELECT id FROM holdfast_dead INDEXED BY holdfast_dead_tenant
WHERE tenant = :tenant AND id < :before AND id >= :floor ORDER BY id DESC LIMIT 1 OFFSET :skip;

-- name: find_dead_of
-- Uses holdfast_dead_tenant.
SELECT {past}, {ended} FROM holdfast_dead INDEXED BY holdfast_dead_tenant
WHERE tenant = :tenant AND id < :before AND id >= :floor AND {filter}
ORDER BY id DESC LIMIT :limit;

-- name: window_dead_alike
-- Uses holdfast_dead_fingerprint.
SELECT id FROM holdfast_dead INDEXED BY holdfast_dead_fingerprint
WHERE tenant = :tenant AND fingerprint = :fingerprint AND id < :before AND id >= :floor
ORDER BY id DESC LIMIT 1 OFFSET :skip;

-- name: find_dead_alike
-- Uses holdfast_dead_fingerprint.
SELECT {past}, {ended} FROM holdfast_dead INDEXED BY holdfast_dead_fingerprint
WHERE tenant = :tenant AND fingerprint = :fingerprint AND id < :before AND id >= :floor AND {filter}
ORDER BY id DESC LIMIT :limit;

-- name: window_history
-- Uses the unique id.
SELECT id FROM holdfast_history WHERE id < :before AND id >= :floor ORDER BY id DESC LIMIT 1 OFFSET :skip;

-- name: find_history
-- Uses the unique id.
SELECT {past}, {ended} FROM holdfast_history
WHERE id < :before AND id >= :floor AND {filter}
ORDER BY id DESC LIMIT :limit;

-- name: window_history_of
-- Uses holdfast_history_tenant.
SELECT id FROM holdfast_history INDEXED BY holdfast_history_tenant
WHERE tenant = :tenant AND id < :before AND id >= :floor ORDER BY id DESC LIMIT 1 OFFSET :skip;

-- name: find_history_of
-- Uses holdfast_history_tenant.
SELECT {past}, {ended} FROM holdfast_history INDEXED BY holdfast_history_tenant
WHERE tenant = :tenant AND id < :before AND id >= :floor AND {filter}
ORDER BY id DESC LIMIT :limit;

-- name: ready_ids
-- Uses holdfast_live_ready.
SELECT id FROM holdfast_live INDEXED BY holdfast_live_ready WHERE status = {READY} LIMIT :limit;

-- name: ready_ids_of
-- Uses holdfast_live_ready as a skip scan over queues, then for the tenant in each.
WITH RECURSIVE q (queue) AS (
  SELECT (SELECT queue FROM holdfast_live INDEXED BY holdfast_live_ready WHERE status = {READY} ORDER BY queue LIMIT 1)
  UNION ALL
  SELECT (SELECT l.queue FROM holdfast_live l INDEXED BY holdfast_live_ready
          WHERE l.status = {READY} AND l.queue > q.queue ORDER BY l.queue LIMIT 1)
  FROM q WHERE q.queue IS NOT NULL)
SELECT l.id FROM q CROSS JOIN holdfast_live l INDEXED BY holdfast_live_ready
ON l.status = {READY} AND l.queue = q.queue AND l.tenant = :tenant
LIMIT :limit;

-- name: running_ids
-- Uses holdfast_live_held.
SELECT id, tenant FROM holdfast_live INDEXED BY holdfast_live_held WHERE status = {RUNNING} LIMIT :limit;

-- name: waiting_ids
-- Uses holdfast_live_parked.
SELECT id FROM holdfast_live INDEXED BY holdfast_live_parked WHERE status >= {SCHEDULED}
  AND status = :status LIMIT :limit;

-- name: waiting_ids_of
-- Uses holdfast_live_parked.
SELECT id FROM holdfast_live INDEXED BY holdfast_live_parked
WHERE status >= {SCHEDULED} AND status = :status AND tenant = :tenant LIMIT :limit;

-- name: dead_groups
-- Uses holdfast_dead_fingerprint as a skip scan over groups. The last step finds none. A comparison of pairs would read
-- the whole group that it starts from: see `lanes`.
WITH RECURSIVE g (first) AS (
  SELECT coalesce(
    (SELECT rowid FROM holdfast_dead INDEXED BY holdfast_dead_fingerprint
     WHERE tenant = :tenant_after AND fingerprint > :fingerprint_after ORDER BY fingerprint, id LIMIT 1),
    (SELECT rowid FROM holdfast_dead INDEXED BY holdfast_dead_fingerprint
     WHERE tenant > :tenant_after AND tenant <= :tenant_last AND fingerprint IS NOT NULL
     ORDER BY tenant, fingerprint, id LIMIT 1))
  UNION ALL
  SELECT coalesce(
    (SELECT n.rowid FROM holdfast_dead n INDEXED BY holdfast_dead_fingerprint
     WHERE n.tenant = d.tenant AND n.fingerprint > d.fingerprint ORDER BY n.fingerprint, n.id LIMIT 1),
    (SELECT n.rowid FROM holdfast_dead n INDEXED BY holdfast_dead_fingerprint
     WHERE n.tenant > d.tenant AND n.tenant <= :tenant_last AND n.fingerprint IS NOT NULL
     ORDER BY n.tenant, n.fingerprint, n.id LIMIT 1))
  FROM g CROSS JOIN holdfast_dead d ON d.rowid = g.first
  LIMIT :limit)
SELECT d.id, (SELECT n.id FROM holdfast_dead n INDEXED BY holdfast_dead_fingerprint
              WHERE n.tenant = d.tenant AND n.fingerprint = d.fingerprint ORDER BY n.id DESC LIMIT 1),
       d.tenant, d.fingerprint
FROM g CROSS JOIN holdfast_dead d ON d.rowid = g.first;

-- name: remove_live
-- Uses the unique id.
DELETE FROM holdfast_live WHERE id = :id AND fence = :fence AND {visible_status} = :was RETURNING id;

-- name: remove_dead
-- Uses the unique id.
DELETE FROM holdfast_dead WHERE id = :id AND fence = :fence AND status = :was RETURNING id;

-- name: remove_history
-- Uses the unique id.
DELETE FROM holdfast_history WHERE id = :id AND fence = :fence AND status = :was RETURNING id;

-- name: remove_steps
-- Uses the primary key.
DELETE FROM holdfast_steps WHERE job_id = :id;
