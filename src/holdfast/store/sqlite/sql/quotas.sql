-- Quota usage of tenants. Submissions hold the write lock.

-- name: lock_usage
-- Uses the primary key. An UPDATE without effect, which acquires the write lock.
UPDATE holdfast_quota_usage SET state = state WHERE tenant = :tenant RETURNING tenant, state;

-- name: tenant_backlog
-- Uses holdfast_live_ready as a skip scan over queues, holdfast_live_held, and holdfast_live_parked_in. Counts up to
-- :max_count in each of them.
WITH RECURSIVE q (queue) AS (
  SELECT (SELECT queue FROM holdfast_live INDEXED BY holdfast_live_ready WHERE status = {READY} ORDER BY queue LIMIT 1)
  UNION ALL
  SELECT (SELECT l.queue FROM holdfast_live l INDEXED BY holdfast_live_ready
          WHERE l.status = {READY} AND l.queue > q.queue ORDER BY l.queue LIMIT 1)
  FROM q WHERE q.queue IS NOT NULL)
SELECT (SELECT count(*) FROM (
          SELECT 1 FROM q CROSS JOIN holdfast_live l INDEXED BY holdfast_live_ready
          ON l.status = {READY} AND l.queue = q.queue AND l.tenant = :tenant LIMIT :max_count))
     + (SELECT count(*) FROM (
          SELECT 1 FROM holdfast_live INDEXED BY holdfast_live_held
          WHERE status = {RUNNING} AND tenant = :tenant LIMIT :max_count))
     + (SELECT count(*) FROM (
          SELECT 1 FROM holdfast_live INDEXED BY holdfast_live_parked_in
          WHERE status >= {SCHEDULED} AND tenant = :tenant LIMIT :max_count));

-- name: queue_backlog
-- Uses holdfast_live_ready, holdfast_live_held, and holdfast_live_parked_in. Counts up to :max_count in each of them.
SELECT (SELECT count(*) FROM (
          SELECT 1 FROM holdfast_live INDEXED BY holdfast_live_ready
          WHERE status = {READY} AND queue = :queue AND tenant = :tenant LIMIT :max_count))
     + (SELECT count(*) FROM (
          SELECT 1 FROM holdfast_live INDEXED BY holdfast_live_held
          WHERE status = {RUNNING} AND tenant = :tenant AND queue = :queue LIMIT :max_count))
     + (SELECT count(*) FROM (
          SELECT 1 FROM holdfast_live INDEXED BY holdfast_live_parked_in
          WHERE status >= {SCHEDULED} AND tenant = :tenant AND queue = :queue LIMIT :max_count));
