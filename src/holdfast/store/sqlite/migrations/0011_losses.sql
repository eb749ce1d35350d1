-- Of how many jobs the lease was lost, and (in the one row of what was folded) of how many workers, ever.
ALTER TABLE holdfast_rollup ADD COLUMN reaped INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_folded ADD COLUMN lost INTEGER NOT NULL DEFAULT 0;
