-- name: lock_breaker
-- Uses the primary key. An UPDATE without effect, which acquires the write lock.
UPDATE holdfast_breakers SET state = state WHERE tenant = :tenant AND destination = :destination RETURNING {breaker};
