-- What is known of tenants that have limits, locked by whoever submits for one.

-- name: begin_usage
-- IGNORE hides no other error here: every value fits its column.
INSERT IGNORE INTO holdfast_ledgers (tenant, state) VALUES (:tenant, :state);

-- name: lock_usage
-- Uses the primary key.
SELECT tenant, state FROM holdfast_ledgers WHERE tenant = :tenant FOR UPDATE;

-- name: tenant_backlog
-- Uses the primary key from queue to queue, and in each to the tenant's; one statement, so that a job that moves is
-- counted once. Counts no further than :most.
SELECT COUNT(*) FROM (
  SELECT 1 FROM (
    SELECT parked, queue FROM holdfast_live FORCE INDEX FOR GROUP BY (PRIMARY) GROUP BY parked, queue) AS q
  STRAIGHT_JOIN holdfast_live l FORCE INDEX (PRIMARY)
  ON l.parked = q.parked AND l.queue = q.queue AND l.tenant = :tenant
  LIMIT :most) AS b;

-- name: queue_backlog
-- Uses the primary key. Counts no further than :most.
SELECT COUNT(*) FROM (
  SELECT 1 FROM holdfast_live FORCE INDEX (PRIMARY)
  WHERE parked IN ({NOT_PARKED}, {PARKED_UNTIL_DUE}, {PARKED_FOR_KEY}) AND queue = :queue AND tenant = :tenant LIMIT :most) AS b;
