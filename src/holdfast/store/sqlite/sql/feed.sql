-- Rows of the feed, in the transaction of what they tell of.

-- name: tell
INSERT INTO holdfast_feed (at, body) VALUES (clock(), :body);

-- name: feed_at
-- Rides the primary key.
SELECT seq, at, body FROM holdfast_feed WHERE seq IN (SELECT value FROM json_each(:numbers)) ORDER BY seq;
