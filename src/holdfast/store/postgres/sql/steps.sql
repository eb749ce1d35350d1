-- Jobs are selected by id alone: see jobs.sql.

-- name: record_step
-- Uses the primary keys. Locks the job's row before it writes, so that a transaction that takes the job away either
-- comes first, or waits. Keeps a finished step.
WITH mine AS MATERIALIZED (
  SELECT id FROM holdfast_live
  WHERE id = :id AND fence = :fence AND worker IS NOT DISTINCT FROM :worker AND status::int = {RUNNING} FOR UPDATE),
put AS (
  INSERT INTO holdfast_steps (job_id, key, state, result, fence, recorded_at)
  SELECT id, :key, :state, :result, :fence, clock() FROM mine
  ON CONFLICT (job_id, key) DO UPDATE
  SET state = excluded.state, result = excluded.result, fence = excluded.fence, recorded_at = excluded.recorded_at
  WHERE holdfast_steps.state = {STEP_STARTED})
SELECT id FROM mine;

-- name: lock_held
-- Uses the primary key. Holds the lock until the end of the transaction, so that the job cannot be taken away.
SELECT id FROM holdfast_live
WHERE id = :id AND fence = :fence AND worker IS NOT DISTINCT FROM :worker AND status::int = {RUNNING} FOR UPDATE;

-- name: save_progress
-- Uses the primary key.
UPDATE holdfast_live SET progress = :progress
WHERE id = :id AND fence = :fence AND worker IS NOT DISTINCT FROM :worker AND status::int = {RUNNING};

-- name: guard
-- Uses the primary key. Resets the planner settings for the caller's statements, which follow.
SELECT (SELECT result FROM holdfast_steps WHERE job_id = :id AND key = :key AND state = {STEP_DONE}),
       set_config('plan_cache_mode', 'auto', true), set_config('enable_seqscan', 'on', true),
       set_config('enable_hashjoin', 'on', true), set_config('enable_mergejoin', 'on', true),
       set_config('idle_in_transaction_session_timeout', :idle, true);

-- name: prune_steps
-- Uses holdfast_steps_recorded. A job is kept for at least :keep after its last step.
DELETE FROM holdfast_steps WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM holdfast_steps s WHERE recorded_at < clock() - :keep
    AND NOT EXISTS (SELECT 1 FROM holdfast_live l WHERE l.id = s.job_id)
    AND NOT EXISTS (SELECT 1 FROM holdfast_dead d WHERE d.id = s.job_id)
    AND NOT EXISTS (SELECT 1 FROM holdfast_history h WHERE h.id = s.job_id)
  LIMIT :limit FOR UPDATE SKIP LOCKED));
