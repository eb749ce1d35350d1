-- Workers and the jobs they hold, which are found through holdfast_claims. A `worker` of 0 means none.

-- name: claims_of
-- Uses the primary key.
SELECT id, fence, ids FROM holdfast_claims FORCE INDEX (PRIMARY)
WHERE worker = :worker AND (id > :id OR id = :id AND fence > :fence) ORDER BY id, fence LIMIT :limit;

-- name: held_by_ids
-- Uses holdfast_live_id. Locks the rows, so that only one transaction decides on them.
SELECT {job} FROM holdfast_live FORCE INDEX (holdfast_live_id)
WHERE id IN :ids AND worker = :worker AND status = {RUNNING} FOR UPDATE;

-- name: lock_held_by_ids
-- Uses holdfast_live_id. As held_by_ids, but skips rows that another transaction has locked.
SELECT {job} FROM holdfast_live FORCE INDEX (holdfast_live_id)
WHERE id IN :ids AND worker = :worker AND status = {RUNNING} FOR UPDATE SKIP LOCKED;

-- name: orphaned_claims
-- Uses the primary key as a skip scan over workers. Needs no lock: a worker incarnation that is gone never returns.
SELECT d.worker
FROM (SELECT worker FROM holdfast_claims FORCE INDEX FOR GROUP BY (PRIMARY) GROUP BY worker) AS d
LEFT JOIN holdfast_workers w ON w.id = d.worker
WHERE w.id IS NULL LIMIT :limit;

-- name: lock_claims
-- Reads the table, which is small, up to the limit.
SELECT worker, id, fence, checks, ids FROM holdfast_claims WHERE check_at <= clock() LIMIT :limit FOR UPDATE SKIP LOCKED;

-- name: delete_claims
-- Uses the primary key.
DELETE c FROM :rows AS m STRAIGHT_JOIN holdfast_claims c FORCE INDEX (PRIMARY)
  ON c.worker = m.of_worker AND c.id = m.of_id AND c.fence = m.of_fence;

-- name: keep_claims
-- Uses the primary key. The next check follows after twice the interval.
UPDATE :rows AS m STRAIGHT_JOIN holdfast_claims c FORCE INDEX (PRIMARY)
  ON c.worker = m.of_worker AND c.id = m.of_id AND c.fence = m.of_fence
SET c.ids = m.held, c.checks = m.next_checks, c.check_at = clock() + m.delay;

-- name: lock_expired
-- Uses holdfast_workers_expiry. Locks the rows: renewals and claims wait, other reapers skip them.
SELECT id FROM holdfast_workers FORCE INDEX (holdfast_workers_expiry)
WHERE expires_at <= clock() ORDER BY expires_at LIMIT :limit FOR UPDATE SKIP LOCKED;

-- name: lock_expired_worker
-- Uses the primary key. The hint keeps the optimizer from locking entries of the other index.
SELECT id FROM holdfast_workers FORCE INDEX (PRIMARY)
WHERE id = :worker AND expires_at <= clock() FOR UPDATE SKIP LOCKED;

-- name: depart
-- For a worker that holds no jobs.
DELETE FROM holdfast_workers WHERE id = :worker;

-- name: delete_expired
-- For a worker that holds no jobs.
DELETE FROM holdfast_workers WHERE id = :worker AND expires_at <= clock();
