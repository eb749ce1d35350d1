-- Sets of rows are passed as VALUES, repeated to fixed numbers of rows, or the statement runs once per row. Rows are
-- not locked: a writing transaction holds the only write lock and sees all earlier commits.

-- name: next_positions
-- Reserves :positions positions, which follow the returned one.
UPDATE holdfast_sequence SET seq = seq + :positions RETURNING seq - :positions, clock();

-- name: insert
INSERT INTO holdfast_live (seq, id, tenant, queue, type, payload, priority, max_attempts, cost, created_at,
                           scheduled_at, timeout, deadline, retry, tags, concurrency_key, idempotency_key, status)
VALUES (:seq, :id, :tenant, :queue, :type, :payload, :priority, :max_attempts, :cost, :created_at, :scheduled_at,
        :timeout, :deadline, :retry, :tags, :concurrency_key, :idempotency_key, :status);

-- name: take_keys
INSERT INTO holdfast_job_keys (tenant, kind, key, job_id, fingerprint, expires_at)
VALUES (:tenant, :kind, :key, :id, :fingerprint, clock() + :span)
ON CONFLICT (tenant, kind, key) DO NOTHING;

-- name: lock_keys
-- Uses the primary key.
SELECT tenant, kind, key, job_id, fingerprint,
       expires_at > clock() OR EXISTS (SELECT 1 FROM holdfast_live l WHERE l.id = k.job_id)
FROM holdfast_job_keys k WHERE tenant = :tenant AND kind = :kind AND key = :key;

-- name: reassign_keys
UPDATE holdfast_job_keys SET job_id = :id, fingerprint = :fingerprint, expires_at = clock() + :span
WHERE tenant = :tenant AND kind = :kind AND key = :key;

-- name: lanes
-- Uses holdfast_live_ready as a skip scan over lanes: each step has the position of a lane's first job, and the last
-- step finds none. A comparison of the pair (tenant, priority) would read all jobs of the previous lane, because
-- SQLite seeks to the beginning of such a pair instead of its end.
WITH RECURSIVE lane (first) AS (
  SELECT (SELECT seq FROM holdfast_live INDEXED BY holdfast_live_ready
          WHERE status = {READY} AND queue = :queue ORDER BY tenant, priority LIMIT 1)
  UNION ALL
  SELECT coalesce(
    (SELECT n.seq FROM holdfast_live n INDEXED BY holdfast_live_ready
     WHERE n.status = {READY} AND n.queue = :queue AND n.tenant = l.tenant AND n.priority > l.priority
     ORDER BY n.priority LIMIT 1),
    (SELECT n.seq FROM holdfast_live n INDEXED BY holdfast_live_ready
     WHERE n.status = {READY} AND n.queue = :queue AND n.tenant > l.tenant
     ORDER BY n.tenant, n.priority LIMIT 1))
  FROM lane CROSS JOIN holdfast_live l ON l.seq = lane.first
  LIMIT :max_lanes)
SELECT l.tenant, l.priority, l.seq FROM lane CROSS JOIN holdfast_live l ON l.seq = lane.first;

-- name: ready_queues
-- Uses holdfast_live_ready, once per queue.
SELECT q.value FROM json_each(:queues) q
WHERE EXISTS (SELECT 1 FROM holdfast_live l INDEXED BY holdfast_live_ready
              WHERE l.status = {READY} AND l.queue = q.value);

-- name: lease
-- Uses the primary key. Runs under the write lock, so that neither a reap nor a renewal can precede the claim.
SELECT 1 FROM holdfast_workers WHERE id = :worker AND expires_at > clock();

-- name: claim
-- Uses holdfast_live_ready, once per lane; the hint makes the planner use it whatever the statistics say.
UPDATE holdfast_live
SET status = {RUNNING}, attempts = attempts + 1, fence = fence + 1, worker = :worker, started_at = clock(),
  slots = :slots
WHERE seq IN (
  SELECT seq FROM holdfast_live INDEXED BY holdfast_live_ready
  WHERE status = {READY} AND queue = :queue AND tenant = :tenant AND priority = :priority AND seq > :floor
    AND (:types IS NULL OR type IN (SELECT value FROM json_each(:types)))
    AND (:without IS NULL OR type NOT IN (SELECT value FROM json_each(:without)))
    AND (deadline IS NULL OR deadline > clock())
  ORDER BY seq LIMIT :max_jobs)
RETURNING {job};

-- name: finish_history
-- Uses the unique id. `delete_live` deletes the job from the live table in the same transaction.
WITH m (job, token, was, holder, becomes, result, log, reason, fingerprint) AS (
  VALUES (:id, :fence, :was, :worker, :becomes, :result, :log, :reason, :fingerprint))
INSERT INTO holdfast_history ({finished})
SELECT {finishing}
FROM m CROSS JOIN holdfast_live l
  ON l.id = m.job AND l.fence = m.token AND l.worker IS m.holder
    AND (l.status = m.was OR l.status = {AWAITING_KEY} AND m.was = {READY});

-- name: finish_dead
WITH m (job, token, was, holder, becomes, result, log, reason, fingerprint) AS (
  VALUES (:id, :fence, :was, :worker, :becomes, :result, :log, :reason, :fingerprint))
INSERT INTO holdfast_dead ({finished})
SELECT {finishing}
FROM m CROSS JOIN holdfast_live l
  ON l.id = m.job AND l.fence = m.token AND l.worker IS m.holder
    AND (l.status = m.was OR l.status = {AWAITING_KEY} AND m.was = {READY});

-- name: unchanged
-- Uses the unique id. Runs between a finish and `delete_live` to find the jobs that the finish copied.
SELECT id FROM holdfast_live WHERE id = :id AND fence = :fence AND {visible_status} = :was AND worker IS :worker;

-- name: delete_live
-- Uses the unique id; for jobs that a finish copied.
DELETE FROM holdfast_live WHERE id IN (VALUES (:id));

-- name: requeue
-- Uses the unique id. Updates in place, so that the job never leaves the table.
UPDATE holdfast_live
SET status = :becomes, attempts = :attempts, releases = :releases, scheduled_at = clock() + :delay, worker = NULL,
    attempt_log = coalesce(:log, attempt_log), seq = :seq, slots = 0
WHERE id = :id AND fence = :fence AND {visible_status} = :was AND worker IS :worker
RETURNING id, status, queue, tenant, priority, seq;

-- name: revive_dead
-- Uses the unique id of the dead letters. Starts a new generation of the same job; its fence keeps rising.
INSERT INTO holdfast_live (seq, {revived})
SELECT :seq, {reviving}
FROM (SELECT *, :generation AS next_generation FROM holdfast_dead WHERE id = :id AND fence = :fence AND status = :was)
WHERE true
RETURNING id, status, queue, tenant, priority, seq;

-- name: revive_history
-- Uses the unique id of the history.
INSERT INTO holdfast_live (seq, {revived})
SELECT :seq, {reviving}
FROM (SELECT *, :generation AS next_generation FROM holdfast_history WHERE id = :id AND fence = :fence
  AND status = :was)
WHERE true
RETURNING id, status, queue, tenant, priority, seq;

-- name: delete_dead
DELETE FROM holdfast_dead WHERE id = :id;

-- name: delete_history
DELETE FROM holdfast_history WHERE id = :id;

-- name: due
-- Uses holdfast_live_due.
SELECT seq FROM holdfast_live INDEXED BY holdfast_live_due
WHERE status IN ({SCHEDULED}, {RETRYING}) AND scheduled_at <= clock() ORDER BY scheduled_at, seq LIMIT :limit;

-- name: promote
-- Uses the primary key. Updates in place, so that a job always has exactly one state.
UPDATE holdfast_live SET status = CASE WHEN concurrency_key IS NULL THEN {READY} ELSE {AWAITING_KEY} END, seq = :becomes
WHERE seq = :seq
RETURNING id, queue, tenant, priority, seq, type, attempts, fence, concurrency_key;

-- name: next_due
-- Uses holdfast_live_due; reads its first entry.
SELECT (SELECT scheduled_at FROM holdfast_live INDEXED BY holdfast_live_due
        WHERE status IN ({SCHEDULED}, {RETRYING}) AND scheduled_at IS NOT NULL ORDER BY scheduled_at LIMIT 1) - clock();

-- name: get
-- Uses the unique ids.
SELECT {job}, NULL, NULL, NULL, NULL FROM holdfast_live WHERE id = :id
UNION ALL
SELECT {past}, {ended} FROM holdfast_dead WHERE id = :id
UNION ALL
SELECT {past}, {ended} FROM holdfast_history WHERE id = :id;

-- name: held_by
-- Uses holdfast_live_held.
SELECT {job} FROM holdfast_live WHERE worker = :worker AND status = {RUNNING} LIMIT :limit;

-- name: lock_held_by
-- Uses holdfast_live_held. As held_by: a transaction that writes has locked the whole database.
SELECT {job} FROM holdfast_live WHERE worker = :worker AND status = {RUNNING} LIMIT :limit;

-- name: held_attempts
-- Uses holdfast_live_held.
SELECT id, fence FROM holdfast_live INDEXED BY holdfast_live_held
WHERE worker = :worker AND status = {RUNNING} LIMIT :limit;

-- name: still_held
-- Uses the unique id.
SELECT id FROM holdfast_live WHERE id = :id AND fence = :fence AND worker = :worker AND status = {RUNNING};

-- name: orphans
-- Uses holdfast_live_held; reads only running jobs.
SELECT {job}
FROM holdfast_live l INDEXED BY holdfast_live_held
WHERE status = {RUNNING} AND NOT EXISTS (SELECT 1 FROM holdfast_workers w WHERE w.id = l.worker)
LIMIT :limit;

-- name: lock_expired
-- Uses holdfast_workers_expiry.
SELECT id FROM holdfast_workers WHERE expires_at <= clock() ORDER BY expires_at LIMIT :limit;

-- name: lock_expired_worker
-- Uses the primary key.
SELECT id FROM holdfast_workers WHERE id = :worker AND expires_at <= clock();

-- name: overdue
-- Uses holdfast_live_deadline.
SELECT {job} FROM holdfast_live INDEXED BY holdfast_live_deadline
WHERE deadline <= clock() AND status <> {RUNNING} ORDER BY deadline LIMIT :limit;

-- name: ahead
-- Uses holdfast_live_ready, twice, up to :max_count rows each.
SELECT count(*), coalesce(sum(c.cost), 0) FROM (
  SELECT cost FROM (
    SELECT cost FROM holdfast_live INDEXED BY holdfast_live_ready
    WHERE status = {READY} AND queue = :queue AND tenant = :tenant AND priority > :priority LIMIT :max_count) AS a
  UNION ALL
  SELECT cost FROM (
    SELECT cost FROM holdfast_live INDEXED BY holdfast_live_ready
    WHERE status = {READY} AND queue = :queue AND tenant = :tenant AND priority = :priority AND seq < :seq
    LIMIT :max_count) AS b) AS c;

-- name: ready_tenants
-- Uses holdfast_live_ready as a skip scan over tenants. The last step finds none.
WITH RECURSIVE tenants (tenant) AS (
  SELECT (SELECT tenant FROM holdfast_live INDEXED BY holdfast_live_ready
          WHERE status = {READY} AND queue = :queue ORDER BY tenant LIMIT 1)
  UNION ALL
  SELECT (SELECT n.tenant FROM holdfast_live n INDEXED BY holdfast_live_ready
          WHERE n.status = {READY} AND n.queue = :queue AND n.tenant > c.tenant ORDER BY n.tenant LIMIT 1)
  FROM tenants c WHERE c.tenant IS NOT NULL
  LIMIT :max_count)
SELECT tenant FROM tenants WHERE tenant IS NOT NULL;

-- name: prune_history
-- Uses holdfast_history_finished.
DELETE FROM holdfast_history WHERE rowid IN (
  SELECT rowid FROM holdfast_history WHERE finished_at < clock() - :keep ORDER BY finished_at LIMIT :limit);

-- name: prune_dead
-- Uses holdfast_dead_finished.
DELETE FROM holdfast_dead WHERE rowid IN (
  SELECT rowid FROM holdfast_dead WHERE finished_at < clock() - :keep ORDER BY finished_at LIMIT :limit);

-- name: prune_keys
-- Uses holdfast_job_keys_expiry. An expired key is kept while its job is unfinished.
DELETE FROM holdfast_job_keys WHERE (tenant, kind, key) IN (
  SELECT tenant, kind, key FROM holdfast_job_keys k
  WHERE expires_at <= clock() AND NOT EXISTS (SELECT 1 FROM holdfast_live l WHERE l.id = k.job_id)
  ORDER BY expires_at LIMIT :limit);

-- name: lock_worker
-- The write lock is already held.
SELECT id FROM holdfast_workers WHERE id = :worker;
