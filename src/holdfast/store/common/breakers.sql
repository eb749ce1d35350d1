-- Circuit breakers of destinations that failed recently, and webhook signing keys. A successful delivery to a
-- destination without recent failures does not access these tables.

-- columns: breaker
tenant, destination, state, failures, openings, until, error, changed_at

-- name: breakers
-- Uses the primary key.
SELECT {breaker} FROM holdfast_breakers
WHERE (:tenant IS NULL OR tenant = :tenant)
  AND (tenant > :after_tenant OR (tenant = :after_tenant AND destination > :after))
ORDER BY tenant, destination LIMIT :limit;

-- name: failing_breakers
-- Reads the table, which has the destinations that failed within a day; each delivering worker runs this once a second.
SELECT {breaker} FROM holdfast_breakers WHERE state > {BREAKER_CLOSED} OR failures > 0 LIMIT :limit;

-- name: breaker
-- Uses the primary key.
SELECT {breaker} FROM holdfast_breakers WHERE tenant = :tenant AND destination = :destination;

-- name: lock_breaker
-- Uses the primary key.
SELECT {breaker} FROM holdfast_breakers WHERE tenant = :tenant AND destination = :destination FOR UPDATE;

-- name: begin_breaker
INSERT INTO holdfast_breakers (tenant, destination, state, failures, openings, error, changed_at)
VALUES (:tenant, :destination, {BREAKER_CLOSED}, 0, 0, '', clock()) ON CONFLICT (tenant, destination) DO NOTHING;

-- name: save_breaker
-- Uses the primary key.
UPDATE holdfast_breakers SET state = :state, failures = :failures, openings = :openings, until = :until, error = :error,
  changed_at = clock()
WHERE tenant = :tenant AND destination = :destination;

-- name: prune_breakers
DELETE FROM holdfast_breakers WHERE (tenant, destination) IN (
  SELECT tenant, destination FROM holdfast_breakers
  WHERE state = {BREAKER_CLOSED} AND changed_at <= clock() - :keep LIMIT :limit);

-- name: signing_keys
-- Uses the primary key.
SELECT tenant, secret, CASE WHEN previous_until > clock() THEN previous END, created_at,
       CASE WHEN previous_until > clock() THEN previous_until END
FROM holdfast_webhook_secrets WHERE tenant = :tenant;

-- name: rotate_signing_key
INSERT INTO holdfast_webhook_secrets (tenant, secret, created_at) VALUES (:tenant, :secret, clock())
ON CONFLICT (tenant) DO UPDATE SET previous = holdfast_webhook_secrets.secret, previous_until = clock() + :overlap,
  secret = excluded.secret, created_at = excluded.created_at;

-- name: drop_signing_keys
-- Uses the primary key.
DELETE FROM holdfast_webhook_secrets WHERE tenant = :tenant;
