-- Sets travel as arrays: the text of a statement never varies with the number of rows.
--
-- A join on a key is written `= ANY (ARRAY[…])`: the planner can use the index with it, but cannot merge by it. With a plain
-- `=` it reads the whole index instead, whenever its statistics were taken while the table was empty. For the same reason
-- a running job that is named by its id is asked for `status::int = 1`, and its holder by `IS NOT DISTINCT FROM`: else all
-- that are held are read.
--
-- Whatever changes a job's state writes a row of the feed in the same statement: see feed.sql.

-- name: insert
WITH fresh AS (
  INSERT INTO holdfast_live (id, tenant, queue, type, payload, priority, max_attempts, cost, created_at, scheduled_at,
                             timeout, deadline, retry, tags, concurrency_key, idempotency_key, status)
  SELECT id, tenant, queue, type, payload, priority, max_attempts, cost, at,
         coalesce(scheduled_at, at + delay), timeout, deadline, retry, tags, concurrency_key, idempotency_key,
         CASE WHEN coalesce(scheduled_at, at + delay) > at THEN {SCHEDULED} WHEN concurrency_key IS NULL THEN {READY} ELSE {AWAITING_KEY} END
  FROM unnest(:ids::uuid[], :tenants::text[], :queues::text[], :types::text[], :payloads::bytea[], :priorities::smallint[],
              :max_attempts::smallint[], :costs::int[], :scheduled::bigint[], :delays::bigint[], :timeouts::bigint[],
              :deadlines::bigint[], :retries::bytea[], :tags::bytea[], :concurrency_keys::text[], :idempotency_keys::text[])
       AS j(id, tenant, queue, type, payload, priority, max_attempts, cost, scheduled_at, delay, timeout,
            deadline, retry, tags, concurrency_key, idempotency_key),
       (SELECT clock() AS at) AS c
  RETURNING queue, tenant, priority, status, seq, created_at),
logged AS (
  INSERT INTO holdfast_feed (at, body)
  SELECT max(created_at), CASE WHEN count(*) FILTER (WHERE status = {SCHEDULED}) = :later::bigint THEN :body::text END
  FROM fresh
  HAVING :strict::boolean OR count(*) FILTER (WHERE status = {SCHEDULED}) = :later)
SELECT queue, tenant, priority, status, min(seq), max(created_at) FROM fresh GROUP BY queue, tenant, priority, status;

-- name: insert_plain
-- As `insert`, for jobs that ask for nothing special: half as many columns to carry. All but the payloads come as texts that
-- are taken apart here, for the driver takes longer to make an array of values than to send it: no name has a character 31 in
-- it, and if one had, the columns would not be of the same length and nothing would be inserted.
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
  INSERT INTO holdfast_feed (at, body) SELECT max(created_at), :body::text FROM fresh)
SELECT queue, tenant, priority, status, min(seq), max(created_at) FROM fresh GROUP BY queue, tenant, priority, status;

-- name: take_keys
-- Waits for whoever is inserting the same key; in the order of the keys, so that two batches cannot lock each other out.
INSERT INTO holdfast_keys (tenant, kind, key, job_id, fingerprint, expires_at)
SELECT tenant, kind, key, job_id, fingerprint, clock() + span
FROM unnest(:tenants::text[], :kinds::smallint[], :keys::text[], :ids::uuid[], :fingerprints::bytea[], :spans::bigint[])
     AS k(tenant, kind, key, job_id, fingerprint, span)
ORDER BY tenant, kind, key
ON CONFLICT (tenant, kind, key) DO NOTHING;

-- name: lock_keys
-- Uses the primary key, once per asked key.
SELECT k.tenant, k.kind, k.key, k.job_id, k.fingerprint,
       k.expires_at > clock() OR EXISTS (SELECT 1 FROM holdfast_live l WHERE l.id = k.job_id) AS valid
FROM unnest(:tenants::text[], :kinds::smallint[], :keys::text[]) WITH ORDINALITY AS a(tenant, kind, key, n)
JOIN holdfast_keys k ON k.tenant = ANY (ARRAY[a.tenant]) AND k.kind = ANY (ARRAY[a.kind]) AND k.key = ANY (ARRAY[a.key])
ORDER BY a.n FOR UPDATE OF k;

-- name: retake_keys
UPDATE holdfast_keys k SET job_id = a.job_id, fingerprint = a.fingerprint, expires_at = clock() + a.span
FROM unnest(:tenants::text[], :kinds::smallint[], :keys::text[], :ids::uuid[], :fingerprints::bytea[], :spans::bigint[])
     AS a(tenant, kind, key, job_id, fingerprint, span)
WHERE k.tenant = ANY (ARRAY[a.tenant]) AND k.kind = ANY (ARRAY[a.kind]) AND k.key = ANY (ARRAY[a.key]);

-- name: lanes
-- Uses holdfast_live_ready from the first job of one lane to that of the next, skipping the jobs in between.
WITH RECURSIVE lane AS (
  (SELECT tenant, priority, seq FROM holdfast_live
   WHERE status = {READY} AND queue = :queue ORDER BY queue, tenant, priority, seq LIMIT 1)
  UNION ALL
  SELECT n.tenant, n.priority, n.seq FROM lane CROSS JOIN LATERAL (
    SELECT tenant, priority, seq FROM holdfast_live l
    WHERE l.status = {READY} AND l.queue = :queue AND (l.tenant, l.priority) > (lane.tenant, lane.priority)
    ORDER BY l.queue, l.tenant, l.priority, l.seq LIMIT 1) AS n)
SELECT tenant, priority, seq FROM lane LIMIT :cap;

-- name: claim
-- Uses holdfast_live_ready, once per lane. The worker's row is locked first: a renewal is not held up by that, a reap
-- is. The candidates are an array, so that the planner cannot run their query twice and take more than was asked.
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
                  string_to_array(:quotas, ',')::int[], string_to_array(:floors, ',')::bigint[])
            AS a(queue, tenant, priority, quota, floor),
       LATERAL (SELECT l.ctid FROM holdfast_live l
                WHERE l.status = {READY} AND l.queue = a.queue AND l.tenant = a.tenant AND l.priority = a.priority
                  AND l.seq > a.floor AND (:types::text[] IS NULL OR l.type = ANY (:types::text[]))
                  AND (:without::text[] IS NULL OR l.type <> ALL (:without::text[]))
                  AND (l.deadline IS NULL OR l.deadline > me.at)
                ORDER BY l.seq LIMIT a.quota FOR UPDATE SKIP LOCKED) AS x
  LIMIT :limit))
RETURNING {job}),
logged AS (INSERT INTO holdfast_feed (at, body) SELECT (SELECT at FROM me), {changed_json} WHERE EXISTS (SELECT FROM changed))
SELECT {job} FROM changed;

-- name: finish
-- Uses the primary key. Out of live and into history or the dead letters, in one statement. If all were moved, what limits
-- counted of them is given back with it, last and in the order of the names: a limit is locked no longer than it must be.
-- That is no join either, so that it uses the primary key of the limits however many the planner takes them for.
-- Columns of numbers come as texts, as those of `insert_plain` do; a column without values may come without rows.
WITH moved AS (
  DELETE FROM holdfast_live l
  USING unnest(string_to_array(:ids, ',')::uuid[], string_to_array(:fences, ',')::int[],
               string_to_array(:was, ',')::smallint[], string_to_array(:workers, ',', '')::bigint[],
               string_to_array(:becomes, ',')::smallint[], :results::bytea[], :logs::bytea[], :reasons::text[],
               :fingerprints::text[])
        AS m(id, fence, was, worker, becomes, result, log, reason, fingerprint)
  WHERE l.id = ANY (ARRAY[m.id]) AND l.fence = m.fence AND (l.status = m.was OR l.status = {AWAITING_KEY} AND m.was = {READY})
    AND l.worker IS NOT DISTINCT FROM m.worker
  RETURNING l.*, m.becomes, m.result, m.log, m.reason, m.fingerprint),
dead AS (
  INSERT INTO holdfast_dead ({finished})
  SELECT {finishing}
  FROM moved WHERE becomes = {DEAD}),
done AS (
  INSERT INTO holdfast_history ({finished})
  SELECT {finishing}
  FROM moved WHERE becomes <> {DEAD}),
freed AS (
  UPDATE holdfast_limits n
  SET used = n.used - (:freed::bigint[])[array_position(:limits::text[], concat(n.kind, n.name))]
  WHERE n.kind = ANY (:kinds::smallint[]) AND n.tenant = '' AND n.name = ANY (:names::text[])
    AND concat(n.kind, n.name) = ANY (:limits) AND (SELECT count(*) FROM moved) = :expected::bigint),
logged AS (
  {append_change})
SELECT id FROM moved;

-- name: requeue
-- Uses the primary key. Changed in place: a job that waits again never leaves the table.
WITH moved AS (
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
SELECT * FROM moved;

-- name: revive_dead
-- Uses the primary key of the dead letters. A new generation of the same job; its fence goes on rising.
WITH back AS (
  DELETE FROM holdfast_dead d
  USING unnest(:ids::uuid[], :fences::int[], :was::smallint[], :generations::smallint[]) AS m(id, fence, was, generation)
  WHERE d.id = ANY (ARRAY[m.id]) AND d.fence = m.fence AND d.status = m.was
  RETURNING d.*, m.generation AS next_generation),
moved AS (
  INSERT INTO holdfast_live ({revived})
  SELECT {reviving} FROM back
  RETURNING id, status, queue, tenant, priority, seq),
logged AS (
  {append_change})
SELECT * FROM moved;

-- name: revive_history
-- Uses holdfast_history_id, in each day.
WITH back AS (
  DELETE FROM holdfast_history d
  USING unnest(:ids::uuid[], :fences::int[], :was::smallint[], :generations::smallint[]) AS m(id, fence, was, generation)
  WHERE d.id = ANY (ARRAY[m.id]) AND d.fence = m.fence AND d.status = m.was
  RETURNING d.*, m.generation AS next_generation),
moved AS (
  INSERT INTO holdfast_live ({revived})
  SELECT {reviving} FROM back
  RETURNING id, status, queue, tenant, priority, seq),
logged AS (
  {append_change})
SELECT * FROM moved;

-- name: promote
-- Uses holdfast_live_due. One update in place: a job is never in two states, never in none.
WITH changed AS (
  UPDATE holdfast_live SET status = CASE WHEN concurrency_key IS NULL THEN {READY} ELSE {AWAITING_KEY} END, seq = nextval('holdfast_seq')
  WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM holdfast_live WHERE status IN ({SCHEDULED}, {RETRYING}) AND scheduled_at <= clock()
    ORDER BY scheduled_at LIMIT :limit FOR UPDATE SKIP LOCKED))
  RETURNING queue, tenant, priority, seq, concurrency_key, id, type, {READY} AS status, attempts, fence),
logged AS (INSERT INTO holdfast_feed (at, body) SELECT clock(), {changed_json} WHERE EXISTS (SELECT FROM changed))
SELECT queue, tenant, priority, min(seq), count(*), concurrency_key FROM changed
GROUP BY queue, tenant, priority, concurrency_key;

-- name: get
-- Uses the primary keys and holdfast_history_id. One statement, one snapshot: a job that moves meanwhile is seen once.
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
-- Uses holdfast_live_held. Locked, so that what is decided on these rows is decided once.
SELECT {job}
FROM holdfast_live WHERE worker = :worker AND status = {RUNNING} LIMIT :limit FOR UPDATE;

-- name: still_held
-- Uses the primary key.
SELECT l.id FROM unnest(:ids::uuid[], :fences::int[], :workers::bigint[]) AS h(id, fence, worker)
JOIN holdfast_live l ON l.id = ANY (ARRAY[h.id]) AND l.fence = h.fence AND l.worker IS NOT DISTINCT FROM h.worker
                    AND l.status::int = {RUNNING};

-- name: orphans
-- Uses holdfast_live_held; looks only at running jobs.
SELECT {job}
FROM holdfast_live l
WHERE status = {RUNNING} AND NOT EXISTS (SELECT 1 FROM holdfast_workers w WHERE w.id = l.worker)
LIMIT :limit FOR UPDATE OF l SKIP LOCKED;

-- name: expired
-- Uses holdfast_workers_expiry. Locked: a renewal or a claim waits for the verdict, another reaper passes by.
SELECT id FROM holdfast_workers WHERE expires_at <= clock() ORDER BY expires_at LIMIT :limit FOR UPDATE SKIP LOCKED;

-- name: overdue
-- Uses holdfast_live_deadline. What another node is at, it does.
SELECT {job} FROM holdfast_live WHERE deadline <= clock() AND status <> {RUNNING}
ORDER BY deadline LIMIT :limit FOR UPDATE SKIP LOCKED;

-- name: ahead
-- Uses holdfast_live_ready, twice and no further than asked. In its order, so that no estimate has the table read until
-- there are enough, which may be at its end.
SELECT count(*), coalesce(sum(c.cost), 0) FROM (
  SELECT cost FROM (
    SELECT cost FROM holdfast_live
    WHERE status = {READY} AND queue = :queue AND tenant = :tenant AND priority > :priority
    ORDER BY queue, tenant, priority, seq LIMIT :most) AS a
  UNION ALL
  SELECT cost FROM (
    SELECT cost FROM holdfast_live
    WHERE status = {READY} AND queue = :queue AND tenant = :tenant AND priority = :priority AND seq < :seq
    ORDER BY queue, tenant, priority, seq LIMIT :most) AS b) AS c;

-- name: contenders
-- Uses holdfast_live_ready from the first job of one tenant to that of the next, skipping the jobs in between.
WITH RECURSIVE contender AS (
  (SELECT tenant FROM holdfast_live WHERE status = {READY} AND queue = :queue ORDER BY queue, tenant, priority, seq LIMIT 1)
  UNION ALL
  SELECT n.tenant FROM contender c CROSS JOIN LATERAL (
    SELECT tenant FROM holdfast_live l
    WHERE l.status = {READY} AND l.queue = :queue AND l.tenant > c.tenant
    ORDER BY l.queue, l.tenant, l.priority, l.seq LIMIT 1) AS n)
SELECT tenant FROM contender LIMIT :most;

-- name: prune_history
-- Only what lies in the default partition; days are dropped whole.
DELETE FROM holdfast_history_default WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM holdfast_history_default WHERE finished_at < clock() - :keep LIMIT :limit FOR UPDATE SKIP LOCKED));

-- name: prune_dead
-- Uses holdfast_dead_finished.
DELETE FROM holdfast_dead WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM holdfast_dead WHERE finished_at < clock() - :keep LIMIT :limit FOR UPDATE SKIP LOCKED));

-- name: prune_keys
-- Uses holdfast_keys_expiry. A key outlives its term while its job is unfinished.
DELETE FROM holdfast_keys WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM holdfast_keys k WHERE expires_at <= clock()
    AND NOT EXISTS (SELECT 1 FROM holdfast_live l WHERE l.id = k.job_id)
  LIMIT :limit FOR UPDATE SKIP LOCKED));

-- name: notify
SELECT pg_notify('holdfast', :payload);
