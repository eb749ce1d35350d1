-- Workers and their leases.

-- name: register
INSERT INTO holdfast_workers (id, name, host, pid, version, queues, slots, tenant, types, node, started_at, expires_at,
  lease)
VALUES (:worker, :name, :host, :pid, :version, :queues, :slots, :tenant, :types, :node, clock(), clock() + :lease,
  :lease);

-- name: renew
-- Uses the primary key; `+ 0` excludes the index of expiry, which looks equally good to the planner while there is one
-- worker. An expired lease cannot be renewed.
UPDATE holdfast_workers
SET expires_at = clock() + :lease, lease = :lease, renewed_at = clock(), memory = COALESCE(:memory, memory),
  drain_at = CASE WHEN :draining = 1 THEN COALESCE(drain_at, clock()) ELSE drain_at END,
  unresponsive_since = clock() - :unresponsive, blocked_by = :blocked_by
WHERE id = :worker AND expires_at + 0 > clock();

-- name: lease_state
-- Uses the primary key.
SELECT tenant, expires_at - clock(), drain_at IS NOT NULL FROM holdfast_workers WHERE id = :worker;

-- name: overlong_leases
-- Reads all workers, which are few, without locks.
SELECT id FROM holdfast_workers WHERE expires_at > clock() + lease LIMIT :limit;

-- name: shorten_lease
-- Uses the primary key; `+ 0` as in `renew`.
UPDATE holdfast_workers SET expires_at = clock() + lease WHERE id = :worker AND expires_at + 0 > clock() + lease;

-- name: drain_worker
-- Uses the primary key.
UPDATE holdfast_workers SET drain_at = clock() WHERE id = :worker AND drain_at IS NULL;

-- name: lock_worker
SELECT id FROM holdfast_workers WHERE id = :worker FOR UPDATE;

-- name: depart
DELETE FROM holdfast_workers WHERE id = :worker
  AND NOT EXISTS (SELECT 1 FROM holdfast_live l WHERE l.worker = :worker AND l.status = {RUNNING});

-- name: delete_expired
DELETE FROM holdfast_workers WHERE id = :worker AND expires_at + 0 <= clock()
  AND NOT EXISTS (SELECT 1 FROM holdfast_live l WHERE l.worker = :worker AND l.status = {RUNNING});

-- name: workers
-- Reads all workers, which are few.
SELECT id, name, host, pid, version, queues, slots, tenant, started_at, expires_at, renewed_at, types, node,
       memory, drain_at, unresponsive_since, blocked_by
FROM holdfast_workers WHERE :all_tenants = 1 OR tenant IS NULL OR tenant = :tenant ORDER BY started_at, id;

-- name: count_workers_of
-- Reads all workers, which are few.
SELECT count(*) FROM holdfast_workers WHERE tenant = :tenant;

-- name: worker_page
-- Reads all workers, which are few, and sorts them; omits the job types, which may be long.
SELECT id, name, host, pid, version, queues, slots, tenant, started_at, expires_at, renewed_at, NULL, node,
       memory, drain_at, unresponsive_since, blocked_by
FROM holdfast_workers
WHERE (started_at > :started_at OR (started_at = :started_at AND id > :worker))
  AND (:all_tenants = 1 OR tenant IS NULL OR tenant = :tenant)
ORDER BY started_at, id LIMIT :limit;

-- name: departing_worker
-- Uses the primary key.
SELECT id, name, host, queues, types, tenant, CASE WHEN renewed_at > started_at THEN renewed_at ELSE started_at END
FROM holdfast_workers WHERE id = :worker;

-- name: save_departed_worker
-- Runs after the worker was deleted; worker ids are never reused.
INSERT INTO holdfast_departed_workers (id, name, host, queues, types, tenant, seen_at)
VALUES (:worker, :name, :host, :queues, :types, :tenant, :seen_at);

-- name: departed
-- Uses holdfast_departed_workers_seen, from its end.
SELECT id, name, host, queues, types, tenant, seen_at FROM holdfast_departed_workers ORDER BY seen_at DESC LIMIT :limit;

-- name: prune_departed
-- Uses holdfast_departed_workers_seen.
DELETE FROM holdfast_departed_workers WHERE seen_at < clock() - 86400000000;
