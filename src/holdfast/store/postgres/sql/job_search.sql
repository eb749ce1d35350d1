-- Job search in bounded steps: `window_…` finds the id after :skip rows, `find_…` reads down to that id.
--
-- A tenant's rows are selected by pairs (tenant, id). Only the index of these pairs returns them in order, so that
-- the planner considers no other index, whatever the statistics say. Ids are collected in the order of their index,
-- so that the scan stops at the limit.

-- columns: filter
(:queue::text IS NULL OR queue = :queue) AND (:type::text IS NULL OR type = :type)
  AND (:status::smallint IS NULL OR status = :status OR status = {AWAITING_KEY} AND :status = {READY})
  AND (:tag::bytea IS NULL OR position(:tag::bytea in tags) > 0)
  AND (:after::bigint IS NULL OR created_at > :after) AND (:until::bigint IS NULL OR created_at < :until)

-- name: window_live
-- Uses the primary key.
SELECT id FROM holdfast_live WHERE id < :before AND id >= :floor ORDER BY id DESC LIMIT 1 OFFSET :skip;

-- name: find_live
-- Uses the primary key.
SELECT {job} FROM holdfast_live
WHERE id < :before AND id >= :floor AND (:tenant::text IS NULL OR tenant = :tenant) AND {filter}
ORDER BY id DESC LIMIT :limit;

-- name: window_dead
-- Uses the primary key.
SELECT id FROM holdfast_dead WHERE id < :before AND id >= :floor ORDER BY id DESC LIMIT 1 OFFSET :skip;

-- name: find_dead
-- Uses the primary key.
SELECT {past}, {ended} FROM holdfast_dead
WHERE id < :before AND id >= :floor AND {filter} AND (:fingerprint::text IS NULL OR fingerprint = :fingerprint)
ORDER BY id DESC LIMIT :limit;

-- name: window_dead_of
-- Uses holdfast_dead_tenant.
SELECT id FROM holdfast_dead
WHERE (tenant, id) < (:tenant, :before::uuid) AND (tenant, id) >= (:tenant, :floor::uuid)
ORDER BY tenant DESC, id DESC LIMIT 1 OFFSET :skip;

-- name: find_dead_of
-- Uses holdfast_dead_tenant.
SELECT {past}, {ended} FROM holdfast_dead
WHERE (tenant, id) < (:tenant, :before::uuid) AND (tenant, id) >= (:tenant, :floor::uuid) AND {filter}
ORDER BY tenant DESC, id DESC LIMIT :limit;

-- name: window_dead_alike
-- Uses holdfast_dead_fingerprint.
SELECT id FROM holdfast_dead
WHERE tenant = :tenant AND fingerprint = :fingerprint AND id < :before AND id >= :floor
ORDER BY id DESC LIMIT 1 OFFSET :skip;

-- name: find_dead_alike
-- Uses holdfast_dead_fingerprint.
SELECT {past}, {ended} FROM holdfast_dead
WHERE tenant = :tenant AND fingerprint = :fingerprint AND id < :before AND id >= :floor AND {filter}
ORDER BY id DESC LIMIT :limit;

-- name: window_history
-- Uses holdfast_history_id, in each partition.
SELECT id FROM holdfast_history WHERE id < :before AND id >= :floor ORDER BY id DESC LIMIT 1 OFFSET :skip;

-- name: find_history
-- Uses holdfast_history_id, in each partition.
SELECT {past}, {ended} FROM holdfast_history
WHERE id < :before AND id >= :floor AND {filter}
ORDER BY id DESC LIMIT :limit;

-- name: window_history_of
-- Uses holdfast_history_tenant, in each partition.
SELECT id FROM holdfast_history
WHERE (tenant, id) < (:tenant, :before::uuid) AND (tenant, id) >= (:tenant, :floor::uuid)
ORDER BY tenant DESC, id DESC LIMIT 1 OFFSET :skip;

-- name: find_history_of
-- Uses holdfast_history_tenant, in each partition.
SELECT {past}, {ended} FROM holdfast_history
WHERE (tenant, id) < (:tenant, :before::uuid) AND (tenant, id) >= (:tenant, :floor::uuid) AND {filter}
ORDER BY tenant DESC, id DESC LIMIT :limit;

-- name: ready_ids
-- Uses holdfast_live_ready.
SELECT id FROM holdfast_live WHERE status = {READY} ORDER BY queue, tenant, priority, seq LIMIT :limit;

-- name: ready_ids_of
-- Uses holdfast_live_ready as a skip scan over queues, then for the tenant in each.
WITH RECURSIVE q AS (
  (SELECT queue FROM holdfast_live WHERE status = {READY} ORDER BY queue, tenant, priority, seq LIMIT 1)
  UNION ALL
  SELECT n.queue FROM q CROSS JOIN LATERAL (
    SELECT queue FROM holdfast_live l WHERE l.status = {READY} AND l.queue > q.queue
    ORDER BY l.queue, l.tenant, l.priority, l.seq LIMIT 1) AS n)
SELECT m.id FROM q CROSS JOIN LATERAL (
  SELECT l.id FROM holdfast_live l WHERE l.status = {READY} AND l.queue = q.queue AND l.tenant = :tenant
  ORDER BY l.queue, l.tenant, l.priority, l.seq LIMIT :limit) AS m
LIMIT :limit;

-- name: disable_seqscan
-- For the rest of the transaction, so that a wrong estimate of running or waiting jobs does not lead to a full scan.
SELECT set_config('enable_seqscan', 'off', true);

-- name: running_ids
-- Uses holdfast_live_held.
SELECT id, tenant FROM holdfast_live WHERE status = {RUNNING} ORDER BY worker LIMIT :limit;

-- name: waiting_ids
-- Uses holdfast_live_parked.
SELECT id FROM holdfast_live WHERE status::int >= {SCHEDULED} AND status = :status
  ORDER BY status, tenant, id LIMIT :limit;

-- name: waiting_ids_of
-- Uses holdfast_live_parked.
SELECT id FROM holdfast_live WHERE status::int >= {SCHEDULED} AND status = :status AND tenant = :tenant
ORDER BY status, tenant, id LIMIT :limit;

-- name: dead_groups
-- Uses holdfast_dead_fingerprint as a skip scan over groups.
WITH RECURSIVE g AS (
  (SELECT tenant, fingerprint, id FROM holdfast_dead
   WHERE (tenant, fingerprint) > (:tenant_after, :fingerprint_after) AND tenant <= :tenant_last
   ORDER BY tenant, fingerprint, id LIMIT 1)
  UNION ALL
  SELECT n.tenant, n.fingerprint, n.id FROM g CROSS JOIN LATERAL (
    SELECT tenant, fingerprint, id FROM holdfast_dead d
    WHERE (d.tenant, d.fingerprint) > (g.tenant, g.fingerprint) AND d.tenant <= :tenant_last
    ORDER BY d.tenant, d.fingerprint, d.id LIMIT 1) AS n)
SELECT g.id, (SELECT d.id FROM holdfast_dead d WHERE d.tenant = g.tenant AND d.fingerprint = g.fingerprint
              ORDER BY d.tenant DESC, d.fingerprint DESC, d.id DESC LIMIT 1) AS newest, g.tenant, g.fingerprint
FROM g LIMIT :limit;

-- name: remove_live
-- Uses the primary key.
DELETE FROM holdfast_live l USING unnest(:ids::uuid[], :fences::int[], :was::smallint[]) AS m(id, fence, was)
WHERE l.id = ANY (ARRAY[m.id]) AND l.fence = m.fence AND (l.status = m.was OR l.status = {AWAITING_KEY}
  AND m.was = {READY})
RETURNING l.id;

-- name: remove_dead
-- Uses the primary key.
DELETE FROM holdfast_dead d USING unnest(:ids::uuid[], :fences::int[], :was::smallint[]) AS m(id, fence, was)
WHERE d.id = ANY (ARRAY[m.id]) AND d.fence = m.fence AND d.status = m.was
RETURNING d.id;

-- name: remove_history
-- Uses holdfast_history_id, in each partition.
DELETE FROM holdfast_history h USING unnest(:ids::uuid[], :fences::int[], :was::smallint[]) AS m(id, fence, was)
WHERE h.id = ANY (ARRAY[m.id]) AND h.fence = m.fence AND h.status = m.was
RETURNING h.id;

-- name: remove_steps
-- Uses the primary key.
DELETE FROM holdfast_steps WHERE job_id = ANY (:ids::uuid[]);
