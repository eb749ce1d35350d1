-- Reads of the change log and rollups.

-- name: changes_after
-- Uses the primary key.
SELECT seq, at, body FROM holdfast_change_log WHERE seq > :seq ORDER BY seq LIMIT :limit;

-- name: change_numbers
-- Uses the primary key.
SELECT seq FROM holdfast_change_log WHERE seq > :seq ORDER BY seq LIMIT :limit;

-- name: change_log_range
-- Uses the primary keys; reads the last row.
SELECT (SELECT pruned FROM holdfast_rollup_position WHERE one = 1), (SELECT max(seq) FROM holdfast_change_log);

-- name: rollup_cursor
-- Uses the primary key.
SELECT seq, gaps, pruned, hours, lost FROM holdfast_rollup_position WHERE one = 1;

-- name: lock_rollup_cursor
-- Uses the primary key. A concurrent caller gets no row.
SELECT seq, gaps, pruned, hours, lost FROM holdfast_rollup_position WHERE one = 1 FOR UPDATE SKIP LOCKED;

-- name: save_rollup_cursor
UPDATE holdfast_rollup_position SET seq = :seq, gaps = :gaps, pruned = :pruned, hours = :hours, lost = :lost
  WHERE one = 1;

-- name: old_changes
-- Uses the primary key, from its beginning. Numbers are in the order of time except for a few seconds.
SELECT max(f.seq) FROM (SELECT seq, at FROM holdfast_change_log WHERE seq <= :upto ORDER BY seq LIMIT :limit) AS f
WHERE f.at < clock() - :keep;

-- name: prune_changes
-- Uses the primary key, from its beginning.
DELETE FROM holdfast_change_log WHERE seq <= :last;

-- columns: stats
tenant, at, queue, type, submitted, started, succeeded, failed, dead, cancelled, wait, run, cost, waited, reaped

-- name: rollups
-- Uses the primary key.
SELECT {stats} FROM holdfast_rollup WHERE span = :span AND tenant = :tenant AND at >= :since AND at < :before
ORDER BY at;

-- name: served
-- Uses holdfast_rollup_at.
SELECT tenant, at, sum(cost), max(waited) FROM holdfast_rollup
WHERE span = :span AND at >= :since AND tenant <> '' GROUP BY tenant, at LIMIT :limit;

-- name: rollups_at
-- Uses holdfast_rollup_at.
SELECT {stats} FROM holdfast_rollup WHERE span = :span AND at = :at;

-- name: remove_rollups
-- Uses the primary key: reads the rollups of the tenant.
DELETE FROM holdfast_rollup WHERE span = :span AND tenant = :tenant AND type = :type;

-- name: census
-- Reads all unfinished jobs; the interval between runs grows with its duration.
SELECT tenant, queue, type, {visible_status}, count(*),
       min(CASE WHEN status IN ({READY}, {AWAITING_KEY})
                THEN CASE WHEN scheduled_at > created_at THEN scheduled_at ELSE created_at END END)
FROM holdfast_live GROUP BY 1, 2, 3, 4;

-- name: dead_census
-- Reads all dead letters; the interval between runs grows with its duration.
SELECT tenant, queue, type, status, count(*), NULL FROM holdfast_dead GROUP BY tenant, queue, type, status;
