-- Tenants and API keys. Nodes cache these rows for a few seconds, so that jobs do not read them.

-- columns: tenant
name, weight, rate, rate_window, backlog, queue_backlog, created_at

-- columns: api_key
id, tenant, name, digest, scopes, created_at, expires_at, revoked_at, last_used_at

-- name: tenant
-- Uses the primary key.
SELECT {tenant} FROM holdfast_tenants WHERE name = :name;

-- name: tenants
-- Uses the primary key.
SELECT {tenant} FROM holdfast_tenants WHERE name > :after ORDER BY name LIMIT :limit;

-- name: add_tenant
INSERT INTO holdfast_tenants (name, weight, rate, rate_window, backlog, queue_backlog, created_at)
VALUES (:name, :weight, :rate, :rate_window, :backlog, :queue_backlog, clock())
ON CONFLICT (name) DO NOTHING;

-- name: change_tenant
-- Uses the primary key. Writes only the given fields, so that concurrent changes of different fields both succeed.
UPDATE holdfast_tenants SET
  weight = CASE WHEN :set_weight = 1 THEN :weight ELSE weight END,
  rate = CASE WHEN :set_rate = 1 THEN :rate ELSE rate END,
  rate_window = CASE WHEN :set_rate_window = 1 THEN :rate_window ELSE rate_window END,
  backlog = CASE WHEN :set_backlog = 1 THEN :backlog ELSE backlog END,
  queue_backlog = CASE WHEN :set_queue_backlog = 1 THEN :queue_backlog ELSE queue_backlog END
WHERE name = :name;

-- name: api_key
-- Uses the primary key. Returns the time too, so that the caller can check the expiry.
SELECT {api_key}, clock() FROM holdfast_api_keys WHERE id = :id;

-- name: api_keys
SELECT {api_key} FROM holdfast_api_keys
WHERE (:tenant IS NULL OR tenant = :tenant) AND (created_at < :at OR (created_at = :at AND id < :id))
ORDER BY created_at DESC, id DESC LIMIT :limit;

-- name: add_api_key
INSERT INTO holdfast_api_keys (id, tenant, name, digest, scopes, created_at, expires_at)
VALUES (:id, :tenant, :name, :digest, :scopes, clock(), coalesce(:expires_at, clock() + :lifetime));

-- name: revoke_api_key
-- Uses the primary key. Keeps the time of the first revocation.
UPDATE holdfast_api_keys SET revoked_at = coalesce(revoked_at, clock()) WHERE id = :id;

-- name: record_api_key_use
-- Uses the primary key.
UPDATE holdfast_api_keys SET last_used_at = clock()
WHERE id = :id AND (last_used_at IS NULL OR last_used_at <= clock() - :precision);

-- name: valid_api_key
SELECT 1 FROM holdfast_api_keys
WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock()) LIMIT 1;
