-- Sets of rows are passed as arrays, so that the text of a statement does not depend on the number of rows.
--
-- A join on a key is written `= ANY (ARRAY[…])`, so that the planner can use the index but no merge join. With a
-- plain `=` it reads the whole index if the statistics are from when the table was empty. For the same reason,
-- conditions on a running job that is selected by id are written `status::int = …` and `worker IS NOT DISTINCT FROM
-- …`: otherwise the planner may read the index of all held jobs.
--
-- Every statement that changes the state of jobs also appends to the change log: see change_log.sql.

-- name: insert
WITH fresh AS (
  INSERT INTO holdfast_live (id, tenant, queue, type, payload, priority, max_attempts, cost, created_at, scheduled_at,
                             timeout, deadline, retry, tags, concurrency_key, idempotency_key, status)
  SELECT id, tenant, queue, type, payload, priority, max_attempts, cost, at,
         coalesce(scheduled_at, at + delay), timeout, deadline, retry, tags, concurrency_key, idempotency_key,
         CASE WHEN coalesce(scheduled_at, at + delay) > at THEN {SCHEDULED}
              WHEN concurrency_key IS NULL THEN {READY} ELSE {AWAITING_KEY} END
  FROM unnest(:ids::uuid[], :tenants::text[], :queues::text[], :types::text[], :payloads::bytea[],
              :priorities::smallint[], :max_attempts::smallint[], :costs::int[], :scheduled::bigint[], :delays::bigint[], :timeouts::bigint[],
              :deadlines::bigint[], :retries::bytea[], :tags::bytea[], :concurrency_keys::text[],
              :idempotency_keys::text[])
       AS j(id, tenant, queue, type, payload, priority, max_attempts, cost, scheduled_at, delay, timeout,
            deadline, retry, tags, concurrency_key, idempotency_key),
       (SELECT clock() AS at) AS c
  RETURNING queue, tenant, priority, status, seq, created_at),
logged AS (
  INSERT INTO holdfast_change_log (at, body)
  SELECT max(created_at), CASE WHEN count(*) FILTER (WHERE status = {SCHEDULED}) = :later::bigint THEN :body::text END
  FROM fresh
  HAVING :strict::boolean OR count(*) FILTER (WHERE status = {SCHEDULED}) = :later)
SELECT queue, tenant, priority, status, min(seq), max(created_at) FROM fresh GROUP BY queue, tenant, priority, status;

-- name: insert_plain
-- As `insert`, for jobs without options: half as many columns. All columns except the payloads are passed as texts
-- that are split here, because the driver encodes arrays slowly. No name contains character 31; if one did, the
-- columns would have different lengths and nothing would be inserted.
WITH fresh AS (
  INSERT INTO holdfast_live (id, tenant, queue, type, payload, priority, max_attempts, cost, created_at, status)
  SELECT id, tenant, queue, type, payload, priority, max_attempts, cost, at, {READY}
  FROM unnest(string_to_array(:ids, ',')::uuid[], string_to_array(:tenants, chr(31)), string_to_array(:queues, chr(31)),
              string_to_array(:types, chr(31)), :payloads::bytea[], string_to_array(:priorities, ',')::smallint[],
              string_to_array(:max_attempts, ',')::smallint[], string_to_array(:costs, ',')::int[])
       AS j(id, tenant, queue, type, payload, priority, max_attempts, cost),
       (SELECT clock() AS at) AS c
  RETURNING queue, tenant, priority, status, seq, created_at),
logged AS (
  INSERT INTO holdfast_change_log (at, body) SELECT max(created_at), :body::text FROM fresh)
SELECT queue, tenant, priority, status, min(seq), max(created_at) FROM fresh GROUP BY queue, tenant, priority, status;

-- name: take_keys
-- Waits for a concurrent insert of the same key. Runs in the order of keys, so that two batches cannot deadlock.
INSERT INTO holdfast_job_keys (tenant, kind, key, job_id, fingerprint, expires_at)
SELECT tenant, kind, key, job_id, fingerprint, clock() + span
FROM unnest(:tenants::text[], :kinds::smallint[], :keys::text[], :ids::uuid[], :fingerprints::bytea[], :spans::bigint[])
     AS k(tenant, kind, key, job_id, fingerprint, span)
ORDER BY tenant, kind, key
ON CONFLICT (tenant, kind, key) DO NOTHING;

-- name: lock_keys
-- Uses the primary key, once per key.
SELECT k.tenant, k.kind, k.key, k.job_id, k.fingerprint,
       k.expires_at > clock() OR EXISTS (SELECT 1 FROM holdfast_live l WHERE l.id = k.job_id) AS valid
FROM unnest(:tenants::text[], :kinds::smallint[], :keys::text[]) WITH ORDINALITY AS a(tenant, kind, key, n)
JOIN holdfast_job_keys k ON k.tenant = ANY (ARRAY[a.tenant]) AND k.kind = ANY (ARRAY[a.kind])
  AND k.key = ANY (ARRAY[a.key])
ORDER BY a.n FOR UPDATE OF k;

-- name: reassign_keys
UPDATE holdfast_job_keys k SET job_id = a.job_id, fingerprint = a.fingerprint, expires_at = clock() + a.span
FROM unnest(:tenants::text[], :kinds::smallint[], :keys::text[], :ids::uuid[], :fingerprints::bytea[], :spans::bigint[])
     AS a(tenant, kind, key, job_id, fingerprint, span)
WHERE k.tenant = ANY (ARRAY[a.tenant]) AND k.kind = ANY (ARRAY[a.kind]) AND k.key = ANY (ARRAY[a.key]);

-- name: lanes
-- Uses holdfast_live_ready as a skip scan over lanes.
WITH RECURSIVE lane AS (
  (SELECT tenant, priority, seq FROM holdfast_live
   WHERE status = {READY} AND queue = :queue ORDER BY queue, tenant, priority, seq LIMIT 1)
  UNION ALL
  SELECT n.tenant, n.priority, n.seq FROM lane CROSS JOIN LATERAL (
    SELECT tenant, priority, seq FROM holdfast_live l
    WHERE l.status = {READY} AND l.queue = :queue AND (l.tenant, l.priority) > (lane.tenant, lane.priority)
    ORDER BY l.queue, l.tenant, l.priority, l.seq LIMIT 1) AS n)
SELECT tenant, priority, seq FROM lane LIMIT :max_lanes;

-- name: ready_queues
-- Uses holdfast_live_ready, once per queue.
SELECT q.queue FROM unnest(:queues::text[]) AS q(queue) CROSS JOIN LATERAL (
  SELECT 1 FROM holdfast_live l
  WHERE l.status = {READY} AND l.queue = q.queue ORDER BY l.queue, l.tenant, l.priority, l.seq LIMIT 1) AS first;

-- name: claim
-- Uses holdfast_live_ready, once per lane. Locks the worker's row first, which blocks a reap but not a renewal. The
-- candidates are an array, so that the planner cannot run their query twice and claim more than the limit.
WITH me AS MATERIALIZED (
  SELECT clock() AS at FROM holdfast_workers WHERE id = :worker AND expires_at + 0 > clock() FOR KEY SHARE),
changed AS (
UPDATE holdfast_live
SET status = {RUNNING}, attempts = attempts + 1, fence = fence + 1, worker = :worker, started_at = (SELECT at FROM me),
    slots = CASE WHEN queue = ANY (:counted_queues::text[]) THEN {QUEUE_SLOT} ELSE 0 END
          + CASE WHEN tenant = ANY (:counted_tenants::text[]) THEN {TENANT_SLOT} ELSE 0 END
WHERE ctid = ANY (ARRAY(
  SELECT x.ctid
  FROM me, unnest(:queues::text[], :tenants::text[], string_to_array(:priorities, ',')::smallint[],
                  string_to_array(:max_jobs, ',')::int[], string_to_array(:floors, ',')::bigint[])
            AS a(queue, tenant, priority, max_jobs, floor),
       LATERAL (SELECT l.ctid FROM holdfast_live l
                WHERE l.status = {READY} AND l.queue = a.queue AND l.tenant = a.tenant AND l.priority = a.priority
                  AND l.seq > a.floor AND (:types::text[] IS NULL OR l.type = ANY (:types::text[]))
                  AND (:without::text[] IS NULL OR l.type <> ALL (:without::text[]))
                  AND (l.deadline IS NULL OR l.deadline > me.at)
                ORDER BY l.seq LIMIT a.max_jobs FOR UPDATE SKIP LOCKED) AS x
  LIMIT :limit))
RETURNING {job}),
logged AS (INSERT INTO holdfast_change_log (at, body) SELECT (SELECT at FROM me), {changed_json}
  WHERE EXISTS (SELECT FROM changed))
SELECT {job} FROM changed;

-- name: finish
-- Uses the primary key. Moves jobs from the live table to history or the dead letters. If all were moved, it also
-- releases their slots, last and in the order of names, so that limits are locked briefly. That is written without a
-- join, so that it uses the primary key of the limits whatever the planner estimates. Columns of numbers are passed
-- as texts, as for `insert_plain`; a column without values may be passed without rows.
WITH applied AS (
  DELETE FROM holdfast_live l
  USING unnest(string_to_array(:ids, ',')::uuid[], string_to_array(:fences, ',')::int[],
               string_to_array(:was, ',')::smallint[], string_to_array(:workers, ',', '')::bigint[],
               string_to_array(:becomes, ',')::smallint[], :results::bytea[], :logs::bytea[], :reasons::text[],
               :fingerprints::text[])
        AS m(id, fence, was, worker, becomes, result, log, reason, fingerprint)
  WHERE l.id = ANY (ARRAY[m.id]) AND l.fence = m.fence AND (l.status = m.was OR l.status = {AWAITING_KEY}
    AND m.was = {READY})
    AND l.worker IS NOT DISTINCT FROM m.worker
  RETURNING l.*, m.becomes, m.result, m.log, m.reason, m.fingerprint),
dead AS (
  INSERT INTO holdfast_dead ({finished})
  SELECT {finishing}
  FROM applied WHERE becomes = {DEAD}),
done AS (
  INSERT INTO holdfast_history ({finished})
  SELECT {finishing}
  FROM applied WHERE becomes <> {DEAD}),
freed AS (
  UPDATE holdfast_limits n
  SET used = n.used - (:freed::bigint[])[array_position(:limits::text[], concat(n.kind, n.name))]
  WHERE n.kind = ANY (:kinds::smallint[]) AND n.tenant = '' AND n.name = ANY (:names::text[])
    AND concat(n.kind, n.name) = ANY (:limits) AND (SELECT count(*) FROM applied) = :expected::bigint),
logged AS (
  {append_change})
SELECT id FROM applied;

-- name: requeue
-- Uses the primary key. Updates in place, so that the job never leaves the table.
WITH applied AS (
UPDATE holdfast_live l
SET status = m.becomes, attempts = m.attempts, releases = m.releases, scheduled_at = clock() + m.delay, worker = NULL,
    attempt_log = coalesce(m.log, l.attempt_log), seq = nextval('holdfast_seq'), slots = 0
FROM unnest(:ids::uuid[], :fences::int[], :was::smallint[], :workers::bigint[], :becomes::smallint[],
            :attempts::smallint[], :releases::smallint[], :delays::bigint[], :logs::bytea[])
     AS m(id, fence, was, worker, becomes, attempts, releases, delay, log)
WHERE l.id = ANY (ARRAY[m.id]) AND l.fence = m.fence AND l.status = m.was AND l.worker IS NOT DISTINCT FROM m.worker
RETURNING l.id, l.status, l.queue, l.tenant, l.priority, l.seq),
logged AS (
  {append_change})
SELECT * FROM applied;

-- name: revive_dead
-- Uses the primary key of the dead letters. Starts a new generation of the same job; its fence keeps rising.
WITH back AS (
  DELETE FROM holdfast_dead d
  USING unnest(:ids::uuid[], :fences::int[], :was::smallint[], :generations::smallint[]) AS m(id, fence, was,
    generation)
  WHERE d.id = ANY (ARRAY[m.id]) AND d.fence = m.fence AND d.status = m.was
  RETURNING d.*, m.generation AS next_generation),
applied AS (
  INSERT INTO holdfast_live ({revived})
  SELECT {reviving} FROM back
  RETURNING id, status, queue, tenant, priority, seq),
logged AS (
  {append_change})
SELECT * FROM applied;

-- name: revive_history
-- Uses holdfast_history_id, in each partition.
WITH back AS (
  DELETE FROM holdfast_history d
  USING unnest(:ids::uuid[], :fences::int[], :was::smallint[], :generations::smallint[]) AS m(id, fence, was,
    generation)
  WHERE d.id = ANY (ARRAY[m.id]) AND d.fence = m.fence AND d.status = m.was
  RETURNING d.*, m.generation AS next_generation),
applied AS (
  INSERT INTO holdfast_live ({revived})
  SELECT {reviving} FROM back
  RETURNING id, status, queue, tenant, priority, seq),
logged AS (
  {append_change})
SELECT * FROM applied;

-- name: promote
-- Uses holdfast_live_due. Updates in place, so that a job always has exactly one state.
WITH changed AS (
  UPDATE holdfast_live
  SET status = CASE WHEN concurrency_key IS NULL THEN {READY} ELSE {AWAITING_KEY} END, seq = nextval('holdfast_seq')
  WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM holdfast_live WHERE status IN ({SCHEDULED}, {RETRYING}) AND scheduled_at <= clock()
    ORDER BY scheduled_at LIMIT :limit FOR UPDATE SKIP LOCKED))
  RETURNING queue, tenant, priority, seq, concurrency_key, id, type, {READY} AS status, attempts, fence),
logged AS (INSERT INTO holdfast_change_log (at, body) SELECT clock(), {changed_json} WHERE EXISTS (SELECT FROM changed))
SELECT queue, tenant, priority, min(seq), count(*), concurrency_key FROM changed
GROUP BY queue, tenant, priority, concurrency_key;

-- name: get
-- Uses the primary keys and holdfast_history_id. One statement reads one snapshot, so that a job that changes tables is
-- seen once.
SELECT {job}, NULL::bigint AS finished_at, NULL::bytea AS result, NULL AS reason, NULL AS fingerprint
FROM holdfast_live WHERE id = ANY (:ids::uuid[])
UNION ALL
SELECT {past}, {ended} FROM holdfast_dead WHERE id = ANY (:ids::uuid[])
UNION ALL
SELECT {past}, {ended} FROM holdfast_history WHERE id = ANY (:ids::uuid[]);

-- name: counts_live
SELECT tenant, queue, type, {visible_status}, count(*) FROM holdfast_live
WHERE (:tenant::text IS NULL OR tenant = :tenant) AND (:queue::text IS NULL OR queue = :queue)
  AND (:type::text IS NULL OR type = :type) AND (:status::smallint IS NULL OR {visible_status} = :status)
GROUP BY 1, 2, 3, 4;

-- name: counts_dead
SELECT tenant, queue, type, status, count(*) FROM holdfast_dead
WHERE (:tenant::text IS NULL OR tenant = :tenant) AND (:queue::text IS NULL OR queue = :queue)
  AND (:type::text IS NULL OR type = :type) AND (:status::smallint IS NULL OR status = :status)
GROUP BY tenant, queue, type, status;

-- name: held_by
-- Uses holdfast_live_held. Locks the rows, so that only one transaction decides on them.
SELECT {job}
FROM holdfast_live WHERE worker = :worker AND status = {RUNNING} LIMIT :limit FOR UPDATE;

-- name: lock_held_by
-- Uses holdfast_live_held. As held_by, but skips rows that another transaction has locked.
SELECT {job}
FROM holdfast_live WHERE worker = :worker AND status = {RUNNING} LIMIT :limit FOR UPDATE SKIP LOCKED;

-- name: held_attempts
-- Uses holdfast_live_held.
SELECT id, fence FROM holdfast_live WHERE worker = :worker AND status = {RUNNING} LIMIT :limit;

-- name: still_held
-- Uses the primary key.
SELECT l.id FROM unnest(:ids::uuid[], :fences::int[], :workers::bigint[]) AS h(id, fence, worker)
JOIN holdfast_live l ON l.id = ANY (ARRAY[h.id]) AND l.fence = h.fence AND l.worker IS NOT DISTINCT FROM h.worker
                    AND l.status::int = {RUNNING};

-- name: orphans
-- Uses holdfast_live_held; reads only running jobs.
SELECT {job}
FROM holdfast_live l
WHERE status = {RUNNING} AND NOT EXISTS (SELECT 1 FROM holdfast_workers w WHERE w.id = l.worker)
LIMIT :limit FOR UPDATE OF l SKIP LOCKED;

-- name: lock_expired
-- Uses holdfast_workers_expiry. Locks the rows: renewals and claims wait, other reapers skip them.
SELECT id FROM holdfast_workers WHERE expires_at <= clock() ORDER BY expires_at LIMIT :limit FOR UPDATE SKIP LOCKED;

-- name: lock_expired_worker
-- Uses the primary key; `+ 0` as in `renew`.
SELECT id FROM holdfast_workers WHERE id = :worker AND expires_at + 0 <= clock() FOR UPDATE SKIP LOCKED;

-- name: overdue
-- Uses holdfast_live_deadline. Skips jobs that another node handles.
SELECT {job} FROM holdfast_live WHERE deadline <= clock() AND status <> {RUNNING}
ORDER BY deadline LIMIT :limit FOR UPDATE SKIP LOCKED;

-- name: ahead
-- Uses holdfast_live_ready, twice, up to :max_count rows each. The ORDER BY makes the planner use the index whatever it
-- estimates; otherwise it might scan the table until it finds enough rows.
SELECT count(*), coalesce(sum(c.cost), 0) FROM (
  SELECT cost FROM (
    SELECT cost FROM holdfast_live
    WHERE status = {READY} AND queue = :queue AND tenant = :tenant AND priority > :priority
    ORDER BY queue, tenant, priority, seq LIMIT :max_count) AS a
  UNION ALL
  SELECT cost FROM (
    SELECT cost FROM holdfast_live
    WHERE status = {READY} AND queue = :queue AND tenant = :tenant AND priority = :priority AND seq < :seq
    ORDER BY queue, tenant, priority, seq LIMIT :max_count) AS b) AS c;

-- name: ready_tenants
-- Uses holdfast_live_ready as a skip scan over tenants.
WITH RECURSIVE tenants AS (
  (SELECT tenant FROM holdfast_live WHERE status = {READY} AND queue = :queue
    ORDER BY queue, tenant, priority, seq LIMIT 1)
  UNION ALL
  SELECT n.tenant FROM tenants c CROSS JOIN LATERAL (
    SELECT tenant FROM holdfast_live l
    WHERE l.status = {READY} AND l.queue = :queue AND l.tenant > c.tenant
    ORDER BY l.queue, l.tenant, l.priority, l.seq LIMIT 1) AS n)
SELECT tenant FROM tenants LIMIT :max_count;

-- name: prune_history
-- Deletes from the default partition only; the partitions of days are dropped.
DELETE FROM holdfast_history_default WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM holdfast_history_default WHERE finished_at < clock() - :keep LIMIT :limit FOR UPDATE SKIP LOCKED));

-- name: prune_dead
-- Uses holdfast_dead_finished.
DELETE FROM holdfast_dead WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM holdfast_dead WHERE finished_at < clock() - :keep LIMIT :limit FOR UPDATE SKIP LOCKED));

-- name: prune_keys
-- Uses holdfast_job_keys_expiry. An expired key is kept while its job is unfinished.
DELETE FROM holdfast_job_keys WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM holdfast_job_keys k WHERE expires_at <= clock()
    AND NOT EXISTS (SELECT 1 FROM holdfast_live l WHERE l.id = k.job_id)
  LIMIT :limit FOR UPDATE SKIP LOCKED));

-- name: notify
SELECT pg_notify('holdfast', :payload);
