-- name: lock_breaker
-- Uses the primary key. The write lock is asked for by saying so.
UPDATE holdfast_breakers SET state = state WHERE tenant = :tenant AND destination = :destination RETURNING {breaker};
