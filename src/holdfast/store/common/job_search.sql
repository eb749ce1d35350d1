-- Job search: statements that all dialects share.

-- name: lease_until
-- Uses the primary key.
SELECT expires_at FROM holdfast_workers WHERE id = :worker;

-- name: dead_group_size
-- Uses holdfast_dead_fingerprint; counts up to :max_count.
SELECT count(*) FROM (
  SELECT 1 FROM holdfast_dead WHERE tenant = :tenant AND fingerprint = :fingerprint LIMIT :max_count) AS g;
