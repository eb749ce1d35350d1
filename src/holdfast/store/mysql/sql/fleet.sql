-- Workers, and what they hold. A worker of 0 is none. What is held is found by `watch`: see the table.

-- name: held_by
-- Rides holdfast_live_watch. Locked, so that what is decided on these rows is decided once.
SELECT {job} FROM holdfast_live FORCE INDEX (holdfast_live_watch)
WHERE parked = 0 AND watch = :worker AND status = 1 LIMIT :limit FOR UPDATE;

-- name: ghosts
-- Rides holdfast_live_watch from one worker to the next. Not locked: an incarnation that is gone never comes back.
SELECT d.watch
FROM (SELECT watch FROM holdfast_live FORCE INDEX FOR GROUP BY (holdfast_live_watch)
      WHERE parked = 0 AND watch > 0 GROUP BY parked, watch) AS d
LEFT JOIN holdfast_workers w ON w.id = d.watch
WHERE w.id IS NULL LIMIT :limit;

-- name: held_by_ghosts
-- Rides holdfast_live_watch.
SELECT {job} FROM holdfast_live FORCE INDEX (holdfast_live_watch)
WHERE parked = 0 AND watch IN :workers AND status = 1 LIMIT :limit FOR UPDATE SKIP LOCKED;

-- name: expired
-- Rides holdfast_workers_expiry. Locked: a renewal or a claim waits for the verdict, another reaper passes by.
SELECT id FROM holdfast_workers FORCE INDEX (holdfast_workers_expiry)
WHERE expires_at <= clock() ORDER BY expires_at LIMIT :limit FOR UPDATE SKIP LOCKED;

-- name: depart
DELETE FROM holdfast_workers WHERE id = :worker
  AND NOT EXISTS (SELECT 1 FROM holdfast_live l FORCE INDEX (holdfast_live_watch)
                  WHERE l.parked = 0 AND l.watch = :worker AND l.status = 1);

-- name: forget
DELETE FROM holdfast_workers WHERE id = :worker AND expires_at <= clock()
  AND NOT EXISTS (SELECT 1 FROM holdfast_live l FORCE INDEX (holdfast_live_watch)
                  WHERE l.parked = 0 AND l.watch = :worker AND l.status = 1);
