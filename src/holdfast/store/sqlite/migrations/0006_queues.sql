-- What is set for queues; others are open. `paused` is 0 or 1, and over at `until` if that is set.
CREATE TABLE holdfast_queues (
  name TEXT PRIMARY KEY,
  paused INTEGER NOT NULL,
  reason TEXT NOT NULL,
  until INTEGER,
  changed_at INTEGER NOT NULL,
  changed_by TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- When a worker was last heard of.
ALTER TABLE holdfast_workers ADD COLUMN renewed_at INTEGER NOT NULL DEFAULT 0;
