-- What attempts recorded: results of steps, and guards that commit with the writes of a handler's transaction.
-- State: 0 started, 1 done. The fence is of the attempt that recorded it. They go when their job is gone.
CREATE TABLE holdfast_steps (
  job_id BLOB NOT NULL,
  key TEXT NOT NULL,
  state INTEGER NOT NULL,
  result BLOB,
  fence INTEGER NOT NULL,
  recorded_at INTEGER NOT NULL,
  PRIMARY KEY (job_id, key)
) STRICT;
CREATE INDEX holdfast_steps_recorded ON holdfast_steps (recorded_at);

-- How far a job is, as JSON: {"fraction": 0.9, "note": "written"}.
ALTER TABLE holdfast_live ADD COLUMN progress BLOB;
ALTER TABLE holdfast_history ADD COLUMN progress BLOB;
ALTER TABLE holdfast_dead ADD COLUMN progress BLOB;
