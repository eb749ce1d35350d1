-- name: breakers
-- Uses the primary key.
SELECT {breaker} FROM holdfast_breakers
WHERE (:tenant::text IS NULL OR tenant = :tenant)
  AND (tenant > :after_tenant OR (tenant = :after_tenant AND destination > :after))
ORDER BY tenant, destination LIMIT :limit;
