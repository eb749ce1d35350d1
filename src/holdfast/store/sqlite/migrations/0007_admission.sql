-- What is known of tenants that have limits: what they spent of their rate, and how many unfinished jobs they may have at
-- the most. One row for each.
CREATE TABLE holdfast_ledgers (tenant TEXT PRIMARY KEY NOT NULL, state BLOB NOT NULL) STRICT, WITHOUT ROWID;

-- Which tenants those are.
CREATE INDEX holdfast_tenants_limited ON holdfast_tenants (name)
WHERE rate IS NOT NULL OR backlog IS NOT NULL OR queue_backlog IS NOT NULL;

-- Whoever counts a tenant's jobs rides this; jobs that are ready at once never enter it.
CREATE INDEX holdfast_live_parked_in ON holdfast_live (tenant, queue) WHERE status >= 5;
