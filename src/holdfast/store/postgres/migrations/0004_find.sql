-- Whoever looks for jobs that wait rides this; jobs that are ready at once never enter it.
-- The status is asked for as an int by whoever is to ride this: on an empty table it could stand in for others otherwise.
CREATE INDEX holdfast_live_parked ON holdfast_live (status, tenant, id) WHERE status::int >= 5;

-- Dead letters with the same error.
CREATE INDEX holdfast_dead_alike ON holdfast_dead (tenant, fingerprint, id);
