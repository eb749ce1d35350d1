-- The feed, as tails and roll-ups read it.

-- name: feed_after
-- Rides the primary key.
SELECT seq, at, body FROM holdfast_feed WHERE seq > :seq ORDER BY seq LIMIT :limit;

-- name: feed_kept
-- Rides the primary keys: a look at the last row.
SELECT pruned, (SELECT max(seq) FROM holdfast_feed) FROM holdfast_folded;
