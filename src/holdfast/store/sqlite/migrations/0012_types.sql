-- How much memory a worker has, since when it is to end, and which processes are one node's.
ALTER TABLE holdfast_workers ADD COLUMN node TEXT NOT NULL DEFAULT '';
ALTER TABLE holdfast_workers ADD COLUMN memory INTEGER;
ALTER TABLE holdfast_workers ADD COLUMN drain_at INTEGER;

-- What workers tell of the types that they handle; `tenant` is '' for workers that serve everybody.
CREATE TABLE holdfast_types (
  tenant TEXT NOT NULL,
  type TEXT NOT NULL,
  digest TEXT NOT NULL,
  about TEXT NOT NULL,
  seen_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, type)
) STRICT, WITHOUT ROWID;
