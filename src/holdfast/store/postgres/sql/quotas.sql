-- Quota usage of tenants, locked by submissions for them.

-- name: lock_usage
-- Uses the primary keys. Reads the clock after the lock is held, because a sub-select in the select list runs once
-- its row exists.
WITH l AS (SELECT state FROM holdfast_quota_usage WHERE tenant = :tenant FOR UPDATE)
SELECT l.state, t.name, t.weight, t.rate, t.rate_window, t.backlog, t.queue_backlog, clock()
FROM (SELECT 1) AS one LEFT JOIN l ON true LEFT JOIN holdfast_tenants t ON t.name = :tenant;

-- name: tenant_backlog
-- Uses holdfast_live_ready as a skip scan over queues, holdfast_live_held, and holdfast_live_parked_in. One
-- statement, so that a job that changes its state is counted once. Counts up to :max_count in each of them.
WITH RECURSIVE q AS (
  (SELECT queue FROM holdfast_live WHERE status = {READY} ORDER BY queue, tenant, priority, seq LIMIT 1)
  UNION ALL
  SELECT n.queue FROM q CROSS JOIN LATERAL (
    SELECT queue FROM holdfast_live l WHERE l.status = {READY} AND l.queue > q.queue
    ORDER BY l.queue, l.tenant, l.priority, l.seq LIMIT 1) AS n)
SELECT (SELECT count(*) FROM (
          SELECT 1 FROM q CROSS JOIN LATERAL (
            SELECT l.seq FROM holdfast_live l WHERE l.status = {READY} AND l.queue = q.queue AND l.tenant = :tenant
            ORDER BY l.queue, l.tenant, l.priority, l.seq LIMIT :max_count) AS m
          LIMIT :max_count) AS ready)
     + (SELECT count(*) FROM (
          SELECT 1 FROM holdfast_live WHERE status = {RUNNING} AND tenant = :tenant
            ORDER BY worker LIMIT :max_count) AS running)
     + (SELECT count(*) FROM (
          SELECT 1 FROM holdfast_live WHERE status::int > {CANCELLED} AND tenant = :tenant
          ORDER BY tenant, queue LIMIT :max_count) AS parked);

-- name: queue_backlogs
-- Uses holdfast_live_ready, holdfast_live_held (once for all queues), and holdfast_live_parked_in.
WITH r AS MATERIALIZED (
  SELECT queue, count(*) AS jobs FROM holdfast_live WHERE status = {RUNNING} AND tenant = :tenant GROUP BY queue)
SELECT q.queue,
       (SELECT count(*) FROM (
          SELECT 1 FROM holdfast_live l WHERE l.status = {READY} AND l.queue = q.queue AND l.tenant = :tenant
          ORDER BY l.queue, l.tenant, l.priority, l.seq LIMIT :max_count) AS ready)
     + coalesce((SELECT r.jobs FROM r WHERE r.queue = q.queue), 0)
     + (SELECT count(*) FROM (
          SELECT 1 FROM holdfast_live l WHERE l.status::int > {CANCELLED} AND l.tenant = :tenant AND l.queue = q.queue
          ORDER BY l.tenant, l.queue LIMIT :max_count) AS parked)
FROM unnest(:queues::text[]) AS q(queue);
