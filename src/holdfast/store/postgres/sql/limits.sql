-- name: lock_limits
-- Uses the primary key, once per name, in the given order, so that two transactions cannot deadlock. A plain join
-- might read all limits if the planner estimates that there are few.
SELECT x.* FROM unnest(:kinds::smallint[], :tenants::text[], :names::text[]) AS a(of_kind, of_tenant, of_name)
CROSS JOIN LATERAL (
  SELECT {limit} FROM holdfast_limits WHERE kind = of_kind AND tenant = of_tenant AND name = of_name FOR UPDATE) AS x;

-- name: lock_limits_as
-- As `lock_limits`, but locks the lease first, as a claim does: this blocks a reap but not a renewal. The clock is read
-- after the last lock: no row is returned before all locked rows are counted, and a wait for a lock must not refill a
-- token bucket.
WITH me AS MATERIALIZED (
  SELECT id FROM holdfast_workers WHERE id = :worker AND expires_at + 0 > clock() FOR KEY SHARE),
locked AS MATERIALIZED (
  SELECT x.* FROM me
  CROSS JOIN unnest(:kinds::smallint[], :tenants::text[], :names::text[]) AS a(of_kind, of_tenant, of_name)
  CROSS JOIN LATERAL (
    SELECT {limit} FROM holdfast_limits
    WHERE kind = of_kind AND tenant = of_tenant AND name = of_name FOR UPDATE) AS x)
SELECT clock(), l.* FROM me CROSS JOIN (SELECT count(*) AS rows FROM locked) AS c LEFT JOIN locked l ON c.rows > 0;

-- name: begin_keys
INSERT INTO holdfast_limits (kind, tenant, name)
SELECT {LIMIT_KEY}, tenant, name FROM unnest(:tenants::text[], :names::text[]) AS a(tenant, name) ORDER BY tenant, name
ON CONFLICT (kind, tenant, name) DO NOTHING;

-- name: uncounted_queue
-- Uses holdfast_live_held; reads all running jobs.
SELECT count(*) FROM holdfast_live WHERE status = {RUNNING} AND queue = :name AND slots & {QUEUE_SLOT} = 0;

-- name: uncounted_tenant
-- Uses holdfast_live_held; reads all running jobs.
SELECT count(*) FROM holdfast_live WHERE status = {RUNNING} AND tenant = :name AND slots & {TENANT_SLOT} = 0;

-- name: grant_slots
-- Uses holdfast_live_key_slots and holdfast_live_queued, once per key. Skips rows that other transactions change. The
-- candidates are an array, so that the planner cannot run their query twice and grant too many slots.
WITH a AS MATERIALIZED (
  SELECT k.tenant, k.name, least(k.slots - (
    SELECT count(*) FROM holdfast_live l
    WHERE l.concurrency_key IS NOT NULL AND l.status < {SUCCEEDED}
      AND l.tenant = k.tenant AND l.concurrency_key = k.name), k.tokens) AS room
  FROM unnest(:tenants::text[], :names::text[], :slots::bigint[], :tokens::bigint[]) AS k(tenant, name, slots, tokens))
UPDATE holdfast_live SET status = {READY}
WHERE ctid = ANY (ARRAY(
  SELECT x.ctid FROM a, LATERAL (
    SELECT l.ctid FROM holdfast_live l WHERE l.status = {AWAITING_KEY} AND l.tenant = a.tenant
      AND l.concurrency_key = a.name
      AND NOT (l.queue = ANY (:queues::text[]) AND l.type = ANY (:types::text[]))
    ORDER BY l.priority DESC, l.seq LIMIT greatest(a.room, 0) FOR UPDATE SKIP LOCKED) AS x))
RETURNING queue, tenant, priority, seq, concurrency_key;

-- name: yield_slot
-- Uses the primary key. Only if the job is still ready.
UPDATE holdfast_live SET status = {AWAITING_KEY}, seq = nextval('holdfast_seq')
WHERE id = :id AND status = {READY} AND seq = :seq;

-- name: waiting_keys
-- Uses holdfast_live_queued as a skip scan over keys.
WITH RECURSIVE k AS (
  (SELECT tenant, concurrency_key FROM holdfast_live
   WHERE status = {AWAITING_KEY} AND (tenant, concurrency_key) > (:tenant, :name)
     ORDER BY tenant, concurrency_key LIMIT 1)
  UNION ALL
  SELECT n.tenant, n.concurrency_key FROM k CROSS JOIN LATERAL (
    SELECT tenant, concurrency_key FROM holdfast_live l
    WHERE l.status = {AWAITING_KEY} AND (l.tenant, l.concurrency_key) > (k.tenant, k.concurrency_key)
    ORDER BY l.tenant, l.concurrency_key LIMIT 1) AS n)
SELECT tenant, concurrency_key FROM k LIMIT :limit;

-- name: prune_limits
-- Uses the primary key. Deletes rows that limit nothing and count nothing.
DELETE FROM holdfast_limits WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM holdfast_limits n WHERE max_running IS NULL AND rate IS NULL AND used = 0
    AND (kind < {LIMIT_KEY}
         OR NOT EXISTS (SELECT 1 FROM holdfast_live l WHERE l.concurrency_key IS NOT NULL AND l.status < {SUCCEEDED}
                          AND l.tenant = n.tenant AND l.concurrency_key = n.name)
         AND NOT EXISTS (SELECT 1 FROM holdfast_live l WHERE l.status = {AWAITING_KEY} AND l.tenant = n.tenant
                           AND l.concurrency_key = n.name))
  LIMIT :limit FOR UPDATE SKIP LOCKED));
