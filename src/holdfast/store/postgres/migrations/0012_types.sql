-- How much memory a worker has, since when it is to end, and which processes are one node's.
ALTER TABLE holdfast_workers ADD COLUMN node text NOT NULL DEFAULT '';
ALTER TABLE holdfast_workers ADD COLUMN memory bigint;
ALTER TABLE holdfast_workers ADD COLUMN drain_at bigint;

-- What workers tell of the types that they handle; `tenant` is '' for workers that serve everybody.
CREATE TABLE holdfast_types (
  tenant text COLLATE "C" NOT NULL,
  type text COLLATE "C" NOT NULL,
  digest text NOT NULL,
  about text NOT NULL,
  seen_at bigint NOT NULL,
  PRIMARY KEY (tenant, type)
);
