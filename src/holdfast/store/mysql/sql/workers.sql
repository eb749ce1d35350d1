-- Workers, and what they hold. A worker of 0 is none. What is held is found by what was claimed: see holdfast_claims.

-- name: claims_of
-- Uses the primary key, from one row to the next.
SELECT id, fence, ids FROM holdfast_claims FORCE INDEX (PRIMARY)
WHERE worker = :worker AND (id > :id OR id = :id AND fence > :fence) ORDER BY id, fence LIMIT :limit;

-- name: lock_holding
-- Uses holdfast_live_id. Locked, so that what is decided on these rows is decided once.
SELECT {job} FROM holdfast_live FORCE INDEX (holdfast_live_id)
WHERE id IN :ids AND worker = :worker AND status = {RUNNING} FOR UPDATE;

-- name: lock_orphaned
-- As lock_holding; what another node is at, it does.
SELECT {job} FROM holdfast_live FORCE INDEX (holdfast_live_id)
WHERE id IN :ids AND worker = :worker AND status = {RUNNING} FOR UPDATE SKIP LOCKED;

-- name: orphaned_claims
-- Uses the primary key from one worker to the next. Not locked: an incarnation that is gone never comes back.
SELECT d.worker
FROM (SELECT worker FROM holdfast_claims FORCE INDEX FOR GROUP BY (PRIMARY) GROUP BY worker) AS d
LEFT JOIN holdfast_workers w ON w.id = d.worker
WHERE w.id IS NULL LIMIT :limit;

-- name: lock_claims
-- Reads the whole table, which is small, until there are enough.
SELECT worker, id, fence, looks, ids FROM holdfast_claims WHERE look_at <= clock() LIMIT :limit FOR UPDATE SKIP LOCKED;

-- name: forget_claims
-- Uses the primary key.
DELETE c FROM :rows AS m STRAIGHT_JOIN holdfast_claims c FORCE INDEX (PRIMARY)
  ON c.worker = m.of_worker AND c.id = m.of_id AND c.fence = m.of_fence;

-- name: keep_claims
-- Uses the primary key. Looked at again after twice as long.
UPDATE :rows AS m STRAIGHT_JOIN holdfast_claims c FORCE INDEX (PRIMARY)
  ON c.worker = m.of_worker AND c.id = m.of_id AND c.fence = m.of_fence
SET c.ids = m.held, c.looks = m.next_checks, c.look_at = clock() + m.pause;

-- name: expired
-- Uses holdfast_workers_expiry. Locked: a renewal or a claim waits for the verdict, another reaper passes by.
SELECT id FROM holdfast_workers FORCE INDEX (holdfast_workers_expiry)
WHERE expires_at <= clock() ORDER BY expires_at LIMIT :limit FOR UPDATE SKIP LOCKED;

-- name: depart
-- Of a worker that holds nothing.
DELETE FROM holdfast_workers WHERE id = :worker;

-- name: forget
-- Of a worker that holds nothing.
DELETE FROM holdfast_workers WHERE id = :worker AND expires_at <= clock();
