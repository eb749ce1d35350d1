-- What is known of tenants that have limits: what they spent of their rate, and how many unfinished jobs they may have at
-- the most. One row for each, locked while jobs are submitted for it; its size hardly changes, so it is updated in place.
CREATE TABLE holdfast_ledgers (
  tenant text COLLATE "C" PRIMARY KEY,
  state bytea NOT NULL
) WITH (fillfactor = 50);

-- Which tenants those are.
CREATE INDEX holdfast_tenants_limited ON holdfast_tenants (name)
WHERE rate IS NOT NULL OR backlog IS NOT NULL OR queue_backlog IS NOT NULL;

-- Whoever counts a tenant's jobs rides this; jobs that are ready at once never enter it. The status is asked for as an int
-- here and there alone: so no statement that is to ride another index takes this one, and none of these takes another.
CREATE INDEX holdfast_live_parked_in ON holdfast_live (tenant, queue) WHERE status::int > 4;
