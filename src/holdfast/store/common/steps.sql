-- Steps and progress of jobs. Writes are fenced: only the current holder writes.

-- name: steps
-- Uses the primary key.
SELECT key, state, result, fence, recorded_at FROM holdfast_steps WHERE job_id = :id;

-- name: step_page
-- Uses the primary key.
SELECT key, state, result, fence, recorded_at FROM holdfast_steps
WHERE job_id = :id AND key > :after ORDER BY key LIMIT :limit;

-- name: save_progress
-- Uses the primary key or unique id.
UPDATE holdfast_live SET progress = :progress WHERE id = :id AND fence = :fence AND worker = :worker
  AND status = {RUNNING};
