-- Concurrency and rate limits, and pauses.

-- columns: limit
kind, tenant, name, max_running, rate, per, burst, used, unsettled, tokens, refilled_at, changed_at, changed_by

-- name: dispatch_settings_version
SELECT version, clock() FROM holdfast_dispatch_version WHERE one = 1;

-- name: bump_settings_version
UPDATE holdfast_dispatch_version SET version = version + 1 WHERE one = 1;

-- name: limited
-- Uses the primary key.
SELECT kind, tenant, name FROM holdfast_limits
WHERE kind IN ({LIMIT_QUEUE}, {LIMIT_TENANT}) AND (max_running IS NOT NULL OR rate IS NOT NULL);

-- name: weights
-- Reads all tenants; runs after a change of the dispatch settings.
SELECT name, weight FROM holdfast_tenants WHERE weight <> 1;

-- name: limits
-- Uses the primary key.
SELECT {limit} FROM holdfast_limits
WHERE kind BETWEEN :first AND :last AND (:all_tenants = 1 OR tenant = :tenant)
  AND (max_running IS NOT NULL OR rate IS NOT NULL)
ORDER BY kind, tenant, name LIMIT :limit;

-- name: limit_named
-- Uses the primary key.
SELECT {limit} FROM holdfast_limits WHERE kind = :kind AND tenant = :tenant AND name = :name;

-- name: set_limit
-- A limit that counted no jobs so far misses those that run: it is unsettled. A changed token bucket starts full.
INSERT INTO holdfast_limits (kind, tenant, name, max_running, rate, per, burst, unsettled, tokens, refilled_at,
                             changed_at, changed_by)
VALUES (:kind, :tenant, :name, :max_running, :rate, :per, :burst, 1, :tokens, clock(), clock(), :changed_by)
ON CONFLICT (kind, tenant, name) DO UPDATE SET
  unsettled = CASE WHEN holdfast_limits.max_running IS NULL THEN 1 ELSE holdfast_limits.unsettled END,
  tokens = CASE WHEN holdfast_limits.rate = excluded.rate AND holdfast_limits.per = excluded.per
                 AND holdfast_limits.burst = excluded.burst THEN holdfast_limits.tokens ELSE excluded.tokens END,
  refilled_at = CASE WHEN holdfast_limits.rate = excluded.rate AND holdfast_limits.per = excluded.per
                      AND holdfast_limits.burst = excluded.burst
                THEN holdfast_limits.refilled_at ELSE excluded.refilled_at END,
  max_running = excluded.max_running, rate = excluded.rate, per = excluded.per, burst = excluded.burst,
  changed_at = excluded.changed_at, changed_by = excluded.changed_by;

-- name: save_limit
-- Uses the primary key.
UPDATE holdfast_limits SET used = :used, unsettled = :unsettled, tokens = :tokens, refilled_at = :refilled_at
WHERE kind = :kind AND tenant = :tenant AND name = :name;

-- name: release_slots
-- Uses the primary key. Runs in the order of names, so that two transactions cannot deadlock.
UPDATE holdfast_limits SET used = used - :jobs WHERE kind = :kind AND tenant = :tenant AND name = :name;

-- name: pauses
SELECT kind, name, reason, until, changed_at, changed_by FROM holdfast_pauses ORDER BY kind, name;

-- name: save_pause
INSERT INTO holdfast_pauses (kind, name, reason, until, changed_at, changed_by)
VALUES (:kind, :name, :reason, :until, clock(), :changed_by)
ON CONFLICT (kind, name) DO UPDATE SET reason = excluded.reason, until = excluded.until,
  changed_at = excluded.changed_at, changed_by = excluded.changed_by;

-- name: end_pause
DELETE FROM holdfast_pauses WHERE kind = :kind AND name = :name;

-- name: count_key_holders
-- Uses holdfast_live_key_slots.
SELECT count(*) FROM holdfast_live
WHERE concurrency_key IS NOT NULL AND status < {SUCCEEDED} AND tenant = :tenant AND concurrency_key = :name;

-- name: key_holder_ids
-- Uses holdfast_live_key_slots, up to :max_count rows.
SELECT id FROM holdfast_live
WHERE concurrency_key IS NOT NULL AND status < {SUCCEEDED} AND tenant = :tenant AND concurrency_key = :name LIMIT :max_count;

-- name: stored_status
-- Uses the primary key.
SELECT status FROM holdfast_live WHERE id = :id;

-- name: key_holders
-- Uses holdfast_live_key_slots.
SELECT id, seq, tenant, concurrency_key, queue, type FROM holdfast_live
WHERE concurrency_key IS NOT NULL AND status < {SUCCEEDED} AND status = {READY}
  AND tenant = :tenant AND concurrency_key = :name;
