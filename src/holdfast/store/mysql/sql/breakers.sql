-- name: begin_breaker
-- IGNORE hides no other error here: every value fits its column.
INSERT IGNORE INTO holdfast_breakers (tenant, destination, state, failures, openings, error, changed_at)
VALUES (:tenant, :destination, {BREAKER_CLOSED}, 0, 0, '', clock());

-- name: prune_breakers
DELETE FROM holdfast_breakers WHERE state = {BREAKER_CLOSED} AND changed_at <= clock() - :keep LIMIT :limit;

-- name: rotate_signing_key
-- Assignments run from left to right: `previous` gets the old key before it is replaced.
INSERT INTO holdfast_webhook_secrets (tenant, secret, created_at) VALUES (:tenant, :secret, clock())
ON DUPLICATE KEY UPDATE previous = secret, previous_until = clock() + :overlap, secret = VALUES(secret),
  created_at = VALUES(created_at);
