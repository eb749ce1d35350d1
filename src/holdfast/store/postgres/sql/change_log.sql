-- Writes to the change log, in the statement of the change. Names contain neither quotes nor backslashes.

-- columns: changed_json
-- JSON of the rows in `changed`: listed one by one, or counted if there are many.
CASE WHEN (SELECT count(*) FROM changed) <= 20
THEN (SELECT '{"c":[' || string_agg(concat('["', id, '","', tenant, '","', queue, '","', type, '",', status, ',',
                                           attempts, ',', fence, ']'), ',') || ']}' FROM changed)
ELSE (SELECT '{"g":[' || string_agg(concat('["', tenant, '","', queue, '","', type, '",', status, ',', jobs, ']'),
                                    ',') || ']}'
      FROM (SELECT tenant, queue, type, status, count(*) AS jobs FROM changed
            GROUP BY tenant, queue, type, status) AS g)
END

-- columns: append_change
-- Appends the prepared entry if all rows were `applied`. If some were not, it appends nothing, and the caller appends
-- the correct entry. With :strict, where that would be another transaction, it fails instead (NULL in a NOT NULL
-- column), and the caller repeats both in one transaction.
INSERT INTO holdfast_change_log (at, body)
SELECT clock(), CASE WHEN count(*) = :expected::bigint THEN :body::text END FROM applied
HAVING count(*) > 0 AND (:strict::boolean OR count(*) = :expected)

-- name: append_change
INSERT INTO holdfast_change_log (at, body) VALUES (clock(), :body);

-- name: changes_at
-- Uses the primary key.
SELECT seq, at, body FROM holdfast_change_log WHERE seq = ANY (:numbers::bigint[]) ORDER BY seq;

-- name: begin_rollup_cursor
INSERT INTO holdfast_rollup_position (one, seq, gaps, pruned, hours) VALUES (1, 0, '[]', 0, 0)
  ON CONFLICT (one) DO NOTHING;

-- name: save_rollup_cursor
UPDATE holdfast_rollup_position SET seq = :seq, gaps = convert_from(:gaps, 'UTF8'), pruned = :pruned,
  hours = :hours, lost = :lost
WHERE one = 1;

-- name: save_rollups
INSERT INTO holdfast_rollup (span, {stats})
SELECT :span, * FROM unnest(:tenants::text[], string_to_array(:ats, ',')::bigint[], :queues::text[], :types::text[],
  string_to_array(:submitted, ',')::bigint[], string_to_array(:started, ',')::bigint[],
  string_to_array(:succeeded, ',')::bigint[], string_to_array(:failed, ',')::bigint[],
  string_to_array(:dead, ',')::bigint[], string_to_array(:cancelled, ',')::bigint[],
  :waits::text[], :runs::text[], string_to_array(:costs, ',')::bigint[], string_to_array(:waited, ',')::bigint[],
  string_to_array(:reaped, ',')::bigint[])
ON CONFLICT (span, tenant, at, queue, type) DO UPDATE
SET submitted = excluded.submitted, started = excluded.started, succeeded = excluded.succeeded,
    failed = excluded.failed, dead = excluded.dead, cancelled = excluded.cancelled, wait = excluded.wait,
    run = excluded.run, cost = excluded.cost, waited = excluded.waited, reaped = excluded.reaped;

-- name: prune_rollups
-- Uses holdfast_rollup_at.
DELETE FROM holdfast_rollup WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM holdfast_rollup WHERE span = :span AND at < :before LIMIT :limit FOR UPDATE SKIP LOCKED));
