-- Whoever looks for jobs that wait rides this; jobs that are ready at once never enter it.
CREATE INDEX holdfast_live_parked ON holdfast_live (status, tenant, id) WHERE status >= 5;

-- Dead letters with the same error.
CREATE INDEX holdfast_dead_alike ON holdfast_dead (tenant, fingerprint, id);
