-- Housekeeping rides this to jobs that have missed their deadline; those without one never enter it.
CREATE INDEX holdfast_live_deadline ON holdfast_live (deadline) WHERE deadline IS NOT NULL AND status <> 1;

-- What attempts that ended in it cost together, and how long the one had waited in line that waited longest.
ALTER TABLE holdfast_rollup ADD COLUMN cost bigint NOT NULL DEFAULT 0, ADD COLUMN waited bigint NOT NULL DEFAULT 0;

-- Which types of jobs a worker has handlers for, as JSON; NULL: any.
ALTER TABLE holdfast_workers ADD COLUMN types text;

-- Workers that left or were lost, for a day: when somebody was last there for a type of jobs.
CREATE TABLE holdfast_departed (
  id bigint PRIMARY KEY,
  name text NOT NULL,
  host text NOT NULL,
  queues text NOT NULL,
  types text,
  tenant text,
  seen_at bigint NOT NULL
);
CREATE INDEX holdfast_departed_seen ON holdfast_departed (seen_at);
