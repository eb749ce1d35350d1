-- name: record_step
-- Uses the unique id and the primary key. Changes one row exactly if the fence of the holder is current; keeps a
-- finished step.
INSERT INTO holdfast_steps (job_id, key, state, result, fence, recorded_at)
SELECT id, :key, :state, :result, :fence, clock()
FROM holdfast_live WHERE id = :id AND fence = :fence AND worker = :worker AND status = {RUNNING}
ON CONFLICT (job_id, key) DO UPDATE
SET result = iif(state = {STEP_DONE}, result, excluded.result), fence = iif(state = {STEP_DONE}, fence, excluded.fence),
    recorded_at = iif(state = {STEP_DONE}, recorded_at, excluded.recorded_at), state = max(state, excluded.state);

-- name: guard
-- Uses the primary key.
SELECT result FROM holdfast_steps WHERE job_id = :id AND key = :key AND state = {STEP_DONE};

-- name: prune_steps
-- Uses holdfast_steps_recorded. A job is kept for at least :keep after its last step.
DELETE FROM holdfast_steps WHERE rowid IN (
  SELECT rowid FROM holdfast_steps s INDEXED BY holdfast_steps_recorded WHERE recorded_at < clock() - :keep
    AND NOT EXISTS (SELECT 1 FROM holdfast_live l WHERE l.id = s.job_id)
    AND NOT EXISTS (SELECT 1 FROM holdfast_dead d WHERE d.id = s.job_id)
    AND NOT EXISTS (SELECT 1 FROM holdfast_history h WHERE h.id = s.job_id)
  LIMIT :limit);
