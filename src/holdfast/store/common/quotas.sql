-- Quota usage of tenants, locked by submissions for them.

-- name: limited_tenants
-- Reads all tenants, or the partial index of those with quotas; each node runs this about once a second.
SELECT name FROM holdfast_tenants WHERE rate IS NOT NULL OR backlog IS NOT NULL OR queue_backlog IS NOT NULL
LIMIT :limit;

-- name: save_usage
-- Uses the primary key.
UPDATE holdfast_quota_usage SET state = :state WHERE tenant = :tenant;

-- name: begin_usage
INSERT INTO holdfast_quota_usage (tenant, state) VALUES (:tenant, :state) ON CONFLICT (tenant) DO NOTHING;
