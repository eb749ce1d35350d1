-- Workers and their leases.

-- name: register
INSERT INTO holdfast_workers (id, name, host, pid, version, queues, slots, tenant, started_at, expires_at)
VALUES (:worker, :name, :host, :pid, :version, :queues, :slots, :tenant, clock(), clock() + :lease);

-- name: renew
-- Rides the primary key: `+ 0` keeps the index of expiry out, which looks as good while one worker is there. The lease only ever grows while it lives: an expired one stays expired.
UPDATE holdfast_workers SET expires_at = clock() + :lease, renewed_at = clock() WHERE id = :worker AND expires_at + 0 > clock();

-- name: lease_state
-- Rides the primary key.
SELECT tenant, expires_at - clock() FROM holdfast_workers WHERE id = :worker;

-- name: lock_worker
SELECT id FROM holdfast_workers WHERE id = :worker FOR UPDATE;

-- name: depart
DELETE FROM holdfast_workers WHERE id = :worker
  AND NOT EXISTS (SELECT 1 FROM holdfast_live l WHERE l.worker = :worker AND l.status = 1);

-- name: forget
DELETE FROM holdfast_workers WHERE id = :worker AND expires_at + 0 <= clock()
  AND NOT EXISTS (SELECT 1 FROM holdfast_live l WHERE l.worker = :worker AND l.status = 1);

-- name: workers
SELECT id, name, host, pid, version, queues, slots, tenant, started_at, expires_at, renewed_at
FROM holdfast_workers ORDER BY started_at, id;
