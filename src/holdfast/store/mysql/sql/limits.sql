-- name: set_limit
-- Assignments run from left to right, so that a column is compared before it is changed.
INSERT INTO holdfast_limits (kind, tenant, name, max_running, rate, per, burst, unsettled, tokens, refilled_at,
                             changed_at, changed_by)
VALUES (:kind, :tenant, :name, :max_running, :rate, :per, :burst, 1, :tokens, clock(), clock(), :changed_by)
ON DUPLICATE KEY UPDATE
  unsettled = CASE WHEN max_running IS NULL THEN 1 ELSE unsettled END,
  tokens = CASE WHEN rate = VALUES(rate) AND per = VALUES(per) AND burst = VALUES(burst)
           THEN tokens ELSE VALUES(tokens) END,
  refilled_at = CASE WHEN rate = VALUES(rate) AND per = VALUES(per) AND burst = VALUES(burst)
                THEN refilled_at ELSE VALUES(refilled_at) END,
  max_running = VALUES(max_running), rate = VALUES(rate), per = VALUES(per), burst = VALUES(burst),
  changed_at = VALUES(changed_at), changed_by = VALUES(changed_by);

-- name: save_pause
INSERT INTO holdfast_pauses (kind, name, reason, until, changed_at, changed_by)
VALUES (:kind, :name, :reason, :until, clock(), :changed_by)
ON DUPLICATE KEY UPDATE reason = VALUES(reason), until = VALUES(until), changed_at = VALUES(changed_at),
  changed_by = VALUES(changed_by);

-- name: lock_limits
-- Uses the primary key, once per name, in the given order.
SELECT {limit} FROM :rows AS m STRAIGHT_JOIN holdfast_limits FORCE INDEX (PRIMARY)
  ON kind = of_kind AND tenant = of_tenant AND name = of_name
FOR UPDATE;

-- name: begin_keys
-- Creates missing rows and locks them all, in the order of names.
INSERT INTO holdfast_limits (kind, tenant, name) VALUES :rows ON DUPLICATE KEY UPDATE used = used;

-- name: uncounted_queue
-- Uses holdfast_live_id, for claimed jobs.
SELECT COUNT(*) FROM holdfast_live FORCE INDEX (holdfast_live_id)
WHERE id IN :ids AND status = {RUNNING} AND queue = :name AND slots & {QUEUE_SLOT} = 0;

-- name: uncounted_tenant
-- Uses holdfast_live_id, for claimed jobs.
SELECT COUNT(*) FROM holdfast_live FORCE INDEX (holdfast_live_id)
WHERE id IN :ids AND status = {RUNNING} AND tenant = :name AND slots & {TENANT_SLOT} = 0;

-- name: count_key_holders
-- Uses holdfast_live_key.
SELECT COUNT(*) FROM holdfast_live FORCE INDEX (holdfast_live_key)
WHERE concurrency_key = :name AND tenant = :tenant AND parked = {NOT_PARKED};

-- name: next_priority
-- Uses holdfast_live_key; reads one entry.
SELECT MAX(priority) FROM holdfast_live FORCE INDEX (holdfast_live_key)
WHERE concurrency_key = :name AND tenant = :tenant AND parked = {PARKED_FOR_KEY} AND priority < :below;

-- name: lock_waiting
-- Uses holdfast_live_key, in its order: rows are locked one by one up to :room. Skips rows that other transactions
-- change.
SELECT id, queue, tenant, priority, seq, concurrency_key FROM holdfast_live FORCE INDEX (holdfast_live_key)
WHERE concurrency_key = :name AND tenant = :tenant AND parked = {PARKED_FOR_KEY} AND priority = :priority
  AND NOT (queue IN :queues AND type IN :types)
ORDER BY seq LIMIT :room FOR UPDATE SKIP LOCKED;

-- name: grant_slots
-- For rows that lock_waiting locked.
UPDATE holdfast_live FORCE INDEX (holdfast_live_id) SET status = {READY}, parked = {NOT_PARKED} WHERE id IN :ids;

-- name: yield_slot
-- Uses holdfast_live_id. Only if the job is still ready.
UPDATE holdfast_live FORCE INDEX (holdfast_live_id) SET status = {AWAITING_KEY}, parked = {PARKED_FOR_KEY},
  seq = {position}
WHERE id = :id AND status = {READY} AND seq = :seq;

-- name: key_holder_ids
-- Uses holdfast_live_key, up to :max_count rows.
SELECT id FROM holdfast_live FORCE INDEX (holdfast_live_key)
WHERE concurrency_key = :name AND tenant = :tenant AND parked = {NOT_PARKED} LIMIT :max_count;

-- name: stored_status
-- Uses holdfast_live_id.
SELECT status FROM holdfast_live FORCE INDEX (holdfast_live_id) WHERE id = :id;

-- name: key_holders
-- Uses holdfast_live_key.
SELECT id, seq, tenant, concurrency_key, queue, type FROM holdfast_live FORCE INDEX (holdfast_live_key)
WHERE concurrency_key = :name AND tenant = :tenant AND parked = {NOT_PARKED} AND status = {READY};

-- name: waiting_keys
-- Uses holdfast_live_key as a skip scan over keys.
SELECT d.tenant, d.concurrency_key FROM (
  SELECT concurrency_key, tenant, parked FROM holdfast_live FORCE INDEX FOR GROUP BY (holdfast_live_key)
  WHERE concurrency_key > '' GROUP BY concurrency_key, tenant, parked) AS d
WHERE d.parked = {PARKED_FOR_KEY} AND (d.tenant > :tenant OR d.tenant = :tenant AND d.concurrency_key > :name)
ORDER BY d.tenant, d.concurrency_key LIMIT :limit;

-- name: prune_limits
-- Reads the table, which is small apart from the rows that it deletes.
DELETE FROM holdfast_limits WHERE max_running IS NULL AND rate IS NULL AND used = 0
  AND (kind < {LIMIT_KEY} OR NOT EXISTS (SELECT 1 FROM holdfast_live l FORCE INDEX (holdfast_live_key)
                               WHERE l.concurrency_key = holdfast_limits.name AND l.tenant = holdfast_limits.tenant))
LIMIT :limit;
