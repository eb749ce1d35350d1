-- Uses only syntax that MariaDB 10.6 and MySQL 8.0 share: no RETURNING, no LATERAL. Rows are locked, then written. A
-- set of ids is written (…, …), a set of rows as VALUES or as a derived table of UNION ALL. Statements have index
-- hints wherever a full scan would lock rows of other transactions, because statistics lag behind a table that fills
-- and empties.

-- columns: position
-- Position of a job in its lane: the real clock of the server, even if a test replaces `clock()`.
TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6))

-- name: next_positions
-- Sets the time and the first position for the inserts in the same message.
SET @holdfast_at = clock(), @holdfast_seq = {position};

-- name: read_positions
SELECT @holdfast_at, @holdfast_seq;

-- name: insert
INSERT INTO holdfast_live (parked, queue, tenant, priority, seq, id, created_at, scheduled_at, due, timeout, deadline,
                           cost, status, max_attempts, type, concurrency_key, idempotency_key, payload, retry, tags)
VALUES :rows;

-- name: take_keys
-- Waits for a concurrent insert of the same key. Leaves an existing key unchanged.
INSERT INTO holdfast_job_keys (tenant, kind, name, job_id, fingerprint, expires_at)
SELECT of_tenant, of_kind, of_name, next_job, next_fingerprint, clock() + span FROM :rows AS a
ON DUPLICATE KEY UPDATE job_id = holdfast_job_keys.job_id;

-- name: lock_keys
-- Uses the primary key, once per key, in the given order.
SELECT k.tenant, k.kind, k.name, k.job_id, k.fingerprint,
       k.expires_at > clock() OR EXISTS (SELECT 1 FROM holdfast_live l WHERE l.id = k.job_id) AS valid
FROM :rows AS a STRAIGHT_JOIN holdfast_job_keys k FORCE INDEX (PRIMARY)
  ON k.tenant = a.of_tenant AND k.kind = a.of_kind AND k.name = a.of_name
FOR UPDATE;

-- name: reassign_keys
UPDATE :rows AS a STRAIGHT_JOIN holdfast_job_keys k FORCE INDEX (PRIMARY)
  ON k.tenant = a.of_tenant AND k.kind = a.of_kind AND k.name = a.of_name
SET k.job_id = a.next_job, k.fingerprint = a.next_fingerprint, k.expires_at = clock() + a.span;

-- name: lanes
-- Uses the primary key as a skip scan over lanes, then reads each lane up to its first ready job. The LIMIT keeps the
-- planner from turning the subquery into a join over all jobs.
SELECT d.tenant, d.priority,
       (SELECT l.seq FROM holdfast_live l FORCE INDEX (PRIMARY)
        WHERE l.parked = {NOT_PARKED} AND l.queue = :queue AND l.tenant = d.tenant AND l.priority = d.priority
          AND l.status = {READY}
        ORDER BY l.seq LIMIT 1) AS first
FROM (SELECT tenant, priority FROM holdfast_live FORCE INDEX FOR GROUP BY (PRIMARY)
      WHERE parked = {NOT_PARKED} AND queue = :queue GROUP BY parked, queue, tenant, priority) AS d
HAVING first IS NOT NULL
LIMIT :max_lanes;

-- name: ready_queues
-- Uses the primary key, once per queue, and reads each up to its first ready job. As for lanes, the LIMIT prevents a join.
SELECT q.of_queue, (SELECT 1 FROM holdfast_live l FORCE INDEX (PRIMARY)
                    WHERE l.parked = {NOT_PARKED} AND l.queue = q.of_queue AND l.status = {READY} LIMIT 1) AS first
FROM :rows AS q
HAVING first IS NOT NULL;

-- name: read_lease
-- Checks without a lock whether the lease is valid, and reads the time of the claim.
SELECT clock() FROM holdfast_workers WHERE id = :worker AND expires_at > clock();

-- name: lock_lease
-- Shared lock: a renewal waits for the commit of the claim, which is in the same message; a reap skips the row. The
-- result decides whether the rest of the message has an effect. The join returns one row even if there is no lease.
SELECT w.id INTO @holdfast_lease
FROM (SELECT 1) AS claim LEFT JOIN holdfast_workers w FORCE INDEX (PRIMARY) ON w.id = :worker AND w.expires_at > clock()
LOCK IN SHARE MODE;

-- name: claim_lane
-- Uses the primary key, in its order: rows are locked one by one up to :max_jobs.
SELECT {job} FROM holdfast_live FORCE INDEX (PRIMARY)
WHERE parked = {NOT_PARKED} AND queue = :queue AND tenant = :tenant AND priority = :priority AND seq > :floor
  AND status = {READY} AND (deadline IS NULL OR deadline > clock())
ORDER BY seq LIMIT :max_jobs FOR UPDATE SKIP LOCKED;

-- name: claim_lane_types
-- As claim_lane, for workers that handle only some types.
SELECT {job} FROM holdfast_live FORCE INDEX (PRIMARY)
WHERE parked = {NOT_PARKED} AND queue = :queue AND tenant = :tenant AND priority = :priority AND seq > :floor
  AND status = {READY} AND (deadline IS NULL OR deadline > clock())
  AND type IN :types
ORDER BY seq LIMIT :max_jobs FOR UPDATE SKIP LOCKED;

-- name: claim_lane_without
-- As claim_lane, while some types are paused.
SELECT {job} FROM holdfast_live FORCE INDEX (PRIMARY)
WHERE parked = {NOT_PARKED} AND queue = :queue AND tenant = :tenant AND priority = :priority AND seq > :floor
  AND status = {READY} AND (deadline IS NULL OR deadline > clock())
  AND type NOT IN :types
ORDER BY seq LIMIT :max_jobs FOR UPDATE SKIP LOCKED;

-- name: assign_jobs
-- For rows that claim_lane locked, if lock_lease found a lease.
UPDATE holdfast_live FORCE INDEX (holdfast_live_id)
SET status = {RUNNING}, attempts = attempts + 1, fence = fence + 1, worker = :worker, started_at = :at, slots = :slots
WHERE id IN :ids AND @holdfast_lease IS NOT NULL;

-- name: record_claim
-- For a worker whose row lock_lease locked, so that it cannot be reaped in between.
INSERT INTO holdfast_claims (worker, id, fence, check_at, ids)
SELECT of_worker, of_id, of_fence, next_check, claimed FROM :rows AS m WHERE @holdfast_lease IS NOT NULL;

-- name: lock_live
-- Uses holdfast_live_id.
SELECT id, fence, status, worker, queue, tenant, priority, {position} FROM holdfast_live FORCE INDEX (holdfast_live_id)
WHERE id IN :ids FOR UPDATE;

-- name: finish_history
-- Uses holdfast_live_id. Locks the rows that it compares, which `delete_live` then deletes.
INSERT INTO holdfast_history ({finished})
SELECT {finishing}
FROM :rows AS m STRAIGHT_JOIN holdfast_live FORCE INDEX (holdfast_live_id)
  ON id = of_id AND fence = of_fence AND worker = of_worker
    AND (status = of_status OR status = {AWAITING_KEY} AND of_status = {READY})
FOR UPDATE;

-- name: finish_dead
-- As finish_history.
INSERT INTO holdfast_dead ({finished})
SELECT {finishing}
FROM :rows AS m STRAIGHT_JOIN holdfast_live FORCE INDEX (holdfast_live_id)
  ON id = of_id AND fence = of_fence AND worker = of_worker
    AND (status = of_status OR status = {AWAITING_KEY} AND of_status = {READY})
FOR UPDATE;

-- name: copied_to_history
-- Only the transaction that finishes a job sees it in both tables, between the insert and the delete.
SELECT l.id FROM holdfast_live l FORCE INDEX (holdfast_live_id)
STRAIGHT_JOIN holdfast_history h FORCE INDEX (holdfast_history_id) ON h.id = l.id
WHERE l.id IN :ids;

-- name: copied_to_dead
SELECT l.id FROM holdfast_live l FORCE INDEX (holdfast_live_id)
STRAIGHT_JOIN holdfast_dead d FORCE INDEX (PRIMARY) ON d.id = l.id
WHERE l.id IN :ids;

-- name: delete_live
-- A join, here and below: for a DELETE with IN, MariaDB scans the whole table despite the hint.
DELETE l FROM :rows AS m STRAIGHT_JOIN holdfast_live l FORCE INDEX (holdfast_live_id) ON l.id = m.of_id;

-- name: requeue
-- For rows that lock_live locked. Updates in place, so that the job never leaves the table.
UPDATE :rows AS m STRAIGHT_JOIN holdfast_live l FORCE INDEX (holdfast_live_id) ON l.id = m.of_id
SET l.status = m.becomes,
    l.parked = CASE m.becomes WHEN {READY} THEN {NOT_PARKED} WHEN {AWAITING_KEY} THEN {PARKED_FOR_KEY}
                              ELSE {PARKED_UNTIL_DUE} END,
    l.slots = 0,
    l.seq = m.next_seq, l.attempts = m.next_attempts,
    l.releases = m.next_releases, l.scheduled_at = clock() + m.delay,
    l.due = CASE WHEN m.becomes IN ({READY}, {AWAITING_KEY}) THEN 0 ELSE clock() + m.delay END, l.worker = 0,
    l.attempt_log = COALESCE(m.log, l.attempt_log);

-- name: lock_dead
-- Uses the primary key.
SELECT id, fence, status, worker, queue, tenant, priority, {position} FROM holdfast_dead FORCE INDEX (PRIMARY)
WHERE id IN :ids FOR UPDATE;

-- name: lock_history
-- Uses holdfast_history_id.
SELECT id, fence, status, worker, queue, tenant, priority, {position}
  FROM holdfast_history FORCE INDEX (holdfast_history_id)
WHERE id IN :ids FOR UPDATE;

-- name: revive_dead
-- For rows that lock_dead locked. Starts a new generation of the same job; its fence keeps rising.
INSERT INTO holdfast_live (parked, seq, {revived})
SELECT IF(concurrency_key IS NULL, {NOT_PARKED}, {PARKED_FOR_KEY}), next_seq, {reviving}
FROM :rows AS m STRAIGHT_JOIN holdfast_dead FORCE INDEX (PRIMARY) ON id = of_id;

-- name: revive_history
-- For rows that lock_history locked.
INSERT INTO holdfast_live (parked, seq, {revived})
SELECT IF(concurrency_key IS NULL, {NOT_PARKED}, {PARKED_FOR_KEY}), next_seq, {reviving}
FROM :rows AS m STRAIGHT_JOIN holdfast_history FORCE INDEX (holdfast_history_id) ON id = of_id;

-- name: delete_dead
DELETE d FROM :rows AS m STRAIGHT_JOIN holdfast_dead d FORCE INDEX (PRIMARY) ON d.id = m.of_id;

-- name: delete_history
DELETE h FROM :rows AS m STRAIGHT_JOIN holdfast_history h FORCE INDEX (holdfast_history_id) ON h.id = m.of_id;

-- name: lock_due
-- Uses holdfast_live_due, in its order.
SELECT id, queue, tenant, priority, {position}, type, attempts, fence, concurrency_key
FROM holdfast_live FORCE INDEX (holdfast_live_due)
WHERE parked = {PARKED_UNTIL_DUE} AND due <= clock() ORDER BY due LIMIT :limit FOR UPDATE SKIP LOCKED;

-- name: promote
-- For rows that lock_due locked. Updates in place, so that a job always has exactly one state.
UPDATE :rows AS m STRAIGHT_JOIN holdfast_live l FORCE INDEX (holdfast_live_id) ON l.id = m.of_id
SET l.status = IF(l.concurrency_key IS NULL, {READY}, {AWAITING_KEY}),
    l.parked = IF(l.concurrency_key IS NULL, {NOT_PARKED}, {PARKED_FOR_KEY}), l.due = 0,
    l.seq = m.next_seq;

-- name: next_due
-- Uses holdfast_live_due; reads its first entry.
SELECT MIN(due) - clock() FROM holdfast_live WHERE parked = {PARKED_UNTIL_DUE} AND due < 9223372036854775807;

-- name: get
-- Uses the indexes of the ids. One statement reads one snapshot, so that a job that changes tables is seen once.
SELECT {job}, NULL AS finished_at, NULL AS result, NULL AS reason, NULL AS fingerprint
FROM holdfast_live FORCE INDEX (holdfast_live_id) WHERE id IN :ids
UNION ALL
SELECT {past}, {ended} FROM holdfast_dead FORCE INDEX (PRIMARY) WHERE id IN :ids
UNION ALL
SELECT {past}, {ended} FROM holdfast_history FORCE INDEX (holdfast_history_id) WHERE id IN :ids;

-- name: still_held
-- Uses holdfast_live_id.
SELECT id, fence, worker FROM holdfast_live FORCE INDEX (holdfast_live_id) WHERE id IN :ids AND status = {RUNNING};

-- name: watch_deadlines
-- For jobs that the same message inserts.
INSERT INTO holdfast_deadlines (id, check_at)
SELECT of_id, LEAST(its_deadline, @holdfast_at + 3600000000) FROM :rows AS m;

-- name: watch_again
-- Uses holdfast_live_id. For jobs that returned to the live table.
INSERT INTO holdfast_deadlines (id, check_at)
SELECT l.id, LEAST(l.deadline, clock() + 3600000000) FROM :rows AS m
STRAIGHT_JOIN holdfast_live l FORCE INDEX (holdfast_live_id) ON l.id = m.of_id WHERE l.deadline IS NOT NULL
ON DUPLICATE KEY UPDATE check_at = VALUES(check_at);

-- name: lock_deadlines
-- Uses holdfast_deadlines_check, in its order. Skips rows that another node checks.
SELECT id FROM holdfast_deadlines FORCE INDEX (holdfast_deadlines_check)
WHERE check_at <= clock() ORDER BY check_at LIMIT :limit FOR UPDATE SKIP LOCKED;

-- name: watched
-- Uses holdfast_live_id. Locks nothing: the decision on these jobs is applied only if they are unchanged.
SELECT {job}, clock() FROM holdfast_live FORCE INDEX (holdfast_live_id) WHERE id IN :ids;

-- name: check_deadline_later
-- Uses the primary key, for rows that lock_deadlines locked. A job past its deadline is checked until it is gone,
-- because it may run and then wait again.
UPDATE :rows AS m STRAIGHT_JOIN holdfast_deadlines d FORCE INDEX (PRIMARY) ON d.id = m.of_id
SET d.check_at = GREATEST(clock() + 1000000, LEAST(m.its_deadline, clock() + 3600000000));

-- name: unwatch
-- Uses the primary key, for rows that lock_deadlines locked.
DELETE d FROM :rows AS m STRAIGHT_JOIN holdfast_deadlines d FORCE INDEX (PRIMARY) ON d.id = m.of_id;

-- name: ahead
-- Uses the primary key, twice, up to :max_count rows each.
SELECT count(*), coalesce(sum(c.cost), 0) FROM (
  SELECT cost FROM (
    SELECT cost FROM holdfast_live FORCE INDEX (PRIMARY)
    WHERE parked = {NOT_PARKED} AND status = {READY} AND queue = :queue AND tenant = :tenant AND priority > :priority
    LIMIT :max_count) AS a
  UNION ALL
  SELECT cost FROM (
    SELECT cost FROM holdfast_live FORCE INDEX (PRIMARY)
    WHERE parked = {NOT_PARKED} AND status = {READY} AND queue = :queue AND tenant = :tenant AND priority = :priority
      AND seq < :seq
    LIMIT :max_count) AS b) AS c;

-- name: ready_tenants
-- Uses the primary key as a skip scan over up to :max_count tenants, then reads each up to its first ready job. The LIMIT
-- keeps the planner from turning the subquery into a join over all jobs.
SELECT d.tenant,
       (SELECT 1 FROM holdfast_live l FORCE INDEX (PRIMARY)
        WHERE l.parked = {NOT_PARKED} AND l.queue = :queue AND l.tenant = d.tenant
          AND l.status = {READY} LIMIT 1) AS waits
FROM (SELECT tenant FROM holdfast_live FORCE INDEX FOR GROUP BY (PRIMARY)
      WHERE parked = {NOT_PARKED} AND queue = :queue GROUP BY parked, queue, tenant LIMIT :max_count) AS d
HAVING waits IS NOT NULL;

-- name: prune_history
-- Uses the primary key, oldest first: pages that empty are reused.
DELETE FROM holdfast_history WHERE finished_at < clock() - :keep ORDER BY finished_at LIMIT :limit;

-- name: prune_dead
-- Uses holdfast_dead_finished.
DELETE FROM holdfast_dead WHERE finished_at < clock() - :keep ORDER BY finished_at LIMIT :limit;

-- name: prune_keys
-- Uses holdfast_job_keys_expiry. An expired key is kept while its job is unfinished.
DELETE FROM holdfast_job_keys WHERE expires_at <= clock()
  AND NOT EXISTS (SELECT 1 FROM holdfast_live l WHERE l.id = holdfast_job_keys.job_id)
ORDER BY expires_at LIMIT :limit;
