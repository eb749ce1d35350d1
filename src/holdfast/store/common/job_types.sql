-- Job types as reported by workers.

-- name: type_marks
-- Uses the primary key. Omits the descriptions, which may be long.
SELECT type, digest, seen_at FROM holdfast_types WHERE tenant = :tenant ORDER BY type LIMIT :limit;

-- name: save_type
INSERT INTO holdfast_types (tenant, type, digest, about, seen_at) VALUES (:tenant, :type, :digest, :about, clock())
ON CONFLICT (tenant, type) DO UPDATE SET digest = excluded.digest, about = excluded.about, seen_at = excluded.seen_at;

-- name: mark_type_seen
-- Uses the primary key.
UPDATE holdfast_types SET seen_at = clock() WHERE tenant = :tenant AND type = :type;

-- name: delete_type
-- Uses the primary key.
DELETE FROM holdfast_types WHERE tenant = :tenant AND type = :type;

-- name: types
-- All tenants: reads the table, which is small.
SELECT tenant, about, seen_at FROM holdfast_types
WHERE type > :after OR (type = :after AND tenant > :after_tenant) ORDER BY type, tenant LIMIT :limit;

-- name: types_seen_by
-- Uses the primary key, twice. The description of a tenant's own workers replaces that of shared workers.
SELECT t.tenant, t.about, t.seen_at FROM holdfast_types t
WHERE (t.tenant = :tenant OR (t.tenant = '' AND NOT EXISTS (
    SELECT 1 FROM holdfast_types own WHERE own.tenant = :tenant AND own.type = t.type)))
  AND t.type > :after
ORDER BY t.type LIMIT :limit;

-- name: prune_types
-- Reads the table, which is small.
DELETE FROM holdfast_types WHERE seen_at < clock() - :keep;
