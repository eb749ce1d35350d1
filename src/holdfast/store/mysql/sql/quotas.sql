-- Quota usage of tenants, locked by submissions for them.

-- name: begin_usage
-- IGNORE hides no other error here: every value fits its column.
INSERT IGNORE INTO holdfast_quota_usage (tenant, state) VALUES (:tenant, :state);

-- name: lock_usage
-- Uses the primary key.
SELECT tenant, state FROM holdfast_quota_usage WHERE tenant = :tenant FOR UPDATE;

-- name: tenant_backlog
-- Uses the primary key as a skip scan over queues, then for the tenant in each. One statement, so that a job that
-- changes queues or states is counted once. Counts up to :max_count.
SELECT COUNT(*) FROM (
  SELECT 1 FROM (
    SELECT parked, queue FROM holdfast_live FORCE INDEX FOR GROUP BY (PRIMARY) GROUP BY parked, queue) AS q
  STRAIGHT_JOIN holdfast_live l FORCE INDEX (PRIMARY)
  ON l.parked = q.parked AND l.queue = q.queue AND l.tenant = :tenant
  LIMIT :max_count) AS b;

-- name: queue_backlog
-- Uses the primary key. Counts up to :max_count.
SELECT COUNT(*) FROM (
  SELECT 1 FROM holdfast_live FORCE INDEX (PRIMARY)
  WHERE parked IN ({NOT_PARKED}, {PARKED_UNTIL_DUE}, {PARKED_FOR_KEY}) AND queue = :queue AND tenant = :tenant
  LIMIT :max_count) AS b;
