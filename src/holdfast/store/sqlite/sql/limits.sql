-- A writing transaction holds the only write lock, so that keys need a row only if a limit is set for them.

-- name: uncounted_queue
-- Uses holdfast_live_held; reads all running jobs.
SELECT count(*) FROM holdfast_live INDEXED BY holdfast_live_held
WHERE status = {RUNNING} AND queue = :name AND slots & {QUEUE_SLOT} = 0;

-- name: uncounted_tenant
-- Uses holdfast_live_held; reads all running jobs.
SELECT count(*) FROM holdfast_live INDEXED BY holdfast_live_held
WHERE status = {RUNNING} AND tenant = :name AND slots & {TENANT_SLOT} = 0;

-- name: grant_slots
-- Uses holdfast_live_queued.
UPDATE holdfast_live SET status = {READY} WHERE seq IN (
  SELECT seq FROM holdfast_live INDEXED BY holdfast_live_queued
  WHERE status = {AWAITING_KEY} AND tenant = :tenant AND concurrency_key = :name
    AND NOT (queue IN (SELECT value FROM json_each(:queues)) AND type IN (SELECT value FROM json_each(:types)))
  ORDER BY priority DESC, seq LIMIT :room)
RETURNING queue, tenant, priority, seq, concurrency_key;

-- name: yield_slot
-- Uses the unique id. Only if the job is still ready.
UPDATE holdfast_live SET status = {AWAITING_KEY}, seq = :next WHERE id = :id AND status = {READY} AND seq = :seq;

-- name: waiting_keys
-- Uses holdfast_live_queued as a skip scan over keys. The last step finds none.
WITH RECURSIVE k (first) AS (
  SELECT coalesce(
    (SELECT seq FROM holdfast_live INDEXED BY holdfast_live_queued
     WHERE status = {AWAITING_KEY} AND tenant = :tenant AND concurrency_key > :name ORDER BY concurrency_key LIMIT 1),
    (SELECT seq FROM holdfast_live INDEXED BY holdfast_live_queued
     WHERE status = {AWAITING_KEY} AND tenant > :tenant ORDER BY tenant, concurrency_key LIMIT 1))
  UNION ALL
  SELECT coalesce(
    (SELECT n.seq FROM holdfast_live n INDEXED BY holdfast_live_queued
     WHERE n.status = {AWAITING_KEY} AND n.tenant = l.tenant AND n.concurrency_key > l.concurrency_key
     ORDER BY n.concurrency_key LIMIT 1),
    (SELECT n.seq FROM holdfast_live n INDEXED BY holdfast_live_queued
     WHERE n.status = {AWAITING_KEY} AND n.tenant > l.tenant ORDER BY n.tenant, n.concurrency_key LIMIT 1))
  FROM k CROSS JOIN holdfast_live l ON l.seq = k.first
  LIMIT :limit)
SELECT l.tenant, l.concurrency_key FROM k CROSS JOIN holdfast_live l ON l.seq = k.first;

-- name: prune_limits
-- Uses the primary key. Deletes rows that limit nothing and count nothing.
DELETE FROM holdfast_limits WHERE (kind, tenant, name) IN (
  SELECT kind, tenant, name FROM holdfast_limits
  WHERE max_running IS NULL AND rate IS NULL AND used = 0 LIMIT :limit);
