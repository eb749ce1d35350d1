-- Workers, and what they hold. A worker of 0 is none.

-- name: held_by
-- Rides holdfast_live_held. Locked, so that what is decided on these rows is decided once.
SELECT {job} FROM holdfast_live FORCE INDEX (holdfast_live_held)
WHERE worker = :worker AND status = 1 LIMIT :limit FOR UPDATE;

-- name: ghosts
-- Rides holdfast_live_held from one worker to the next. Not locked: an incarnation that is gone never comes back.
SELECT d.worker
FROM (SELECT worker FROM holdfast_live FORCE INDEX FOR GROUP BY (holdfast_live_held)
      WHERE worker > 0 GROUP BY worker) AS d
LEFT JOIN holdfast_workers w ON w.id = d.worker
WHERE w.id IS NULL LIMIT :limit;

-- name: held_by_ghosts
-- Rides holdfast_live_held.
SELECT {job} FROM holdfast_live FORCE INDEX (holdfast_live_held)
WHERE worker IN :workers AND status = 1 LIMIT :limit FOR UPDATE SKIP LOCKED;

-- name: expired
-- Rides holdfast_workers_expiry. Locked: a renewal or a claim waits for the verdict, another reaper passes by.
SELECT id FROM holdfast_workers FORCE INDEX (holdfast_workers_expiry)
WHERE expires_at <= clock() ORDER BY expires_at LIMIT :limit FOR UPDATE SKIP LOCKED;
