-- name: steps
-- Uses the primary key.
SELECT name, state, result, fence, recorded_at FROM holdfast_steps WHERE job_id = :id;

-- name: step_page
-- Uses the primary key.
SELECT name, state, result, fence, recorded_at FROM holdfast_steps
WHERE job_id = :id AND name > :after ORDER BY name LIMIT :limit;

-- name: lock_held
-- Uses holdfast_live_id. Holds the lock until the end of the transaction, so that the job cannot be taken away.
SELECT id FROM holdfast_live FORCE INDEX (holdfast_live_id)
WHERE id = :id AND fence = :fence AND worker = :worker AND status = {RUNNING} FOR UPDATE;

-- name: record_step
-- Uses the primary key, for a job that lock_held locked. Keeps a finished step; `state` is assigned last, because the
-- other assignments depend on it.
INSERT INTO holdfast_steps (job_id, name, state, result, fence, recorded_at)
VALUES (:id, :key, :state, :result, :fence, clock())
ON DUPLICATE KEY UPDATE
  result = IF(state = {STEP_DONE}, result, :result), fence = IF(state = {STEP_DONE}, fence, :fence),
  recorded_at = IF(state = {STEP_DONE}, recorded_at, clock()), state = GREATEST(state, :state);

-- name: save_progress
-- Uses holdfast_live_id.
UPDATE holdfast_live FORCE INDEX (holdfast_live_id) SET progress = :progress
WHERE id = :id AND fence = :fence AND worker = :worker AND status = {RUNNING};

-- name: guard
-- Uses the primary key.
SELECT result FROM holdfast_steps WHERE job_id = :id AND name = :key AND state = {STEP_DONE};

-- name: prune_steps
-- Uses holdfast_steps_recorded. A job is kept for at least :keep after its last step.
DELETE FROM holdfast_steps WHERE recorded_at < clock() - :keep
  AND NOT EXISTS (SELECT 1 FROM holdfast_live l WHERE l.id = holdfast_steps.job_id)
  AND NOT EXISTS (SELECT 1 FROM holdfast_dead d WHERE d.id = holdfast_steps.job_id)
  AND NOT EXISTS (SELECT 1 FROM holdfast_history h WHERE h.id = holdfast_steps.job_id)
ORDER BY recorded_at LIMIT :limit;
