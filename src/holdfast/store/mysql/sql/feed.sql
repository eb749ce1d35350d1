-- Rows of the feed, in the transaction of what they tell of.

-- name: tell
INSERT INTO holdfast_feed (at, body) VALUES (clock(), :body);

-- name: tell_claim
-- If lock_lease found one: else nothing was claimed.
INSERT INTO holdfast_feed (at, body) SELECT clock(), :body FROM (SELECT 1) AS one WHERE @holdfast_lease IS NOT NULL;

-- name: feed_at
-- Rides the primary key.
SELECT seq, at, body FROM holdfast_feed WHERE seq IN :numbers ORDER BY seq;
