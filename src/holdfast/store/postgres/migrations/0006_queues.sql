-- What is set for queues; others are open. `paused` is 0 or 1, and over at `until` if that is set.
CREATE TABLE holdfast_queues (
  name text COLLATE "C" PRIMARY KEY,
  paused smallint NOT NULL,
  reason text NOT NULL,
  until bigint,
  changed_at bigint NOT NULL,
  changed_by text NOT NULL
);

-- When a worker was last heard of.
ALTER TABLE holdfast_workers ADD COLUMN renewed_at bigint NOT NULL DEFAULT 0;
