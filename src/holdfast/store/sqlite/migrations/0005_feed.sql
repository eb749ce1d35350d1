-- What changed, a small row for each transaction, written with the change: what streams and statistics are made of. A row
-- lists up to 20 changes one by one and counts them beyond that. Numbers are drawn before the commit, so that a lower one
-- can appear after a higher one, and one that was rolled back never appears.
CREATE TABLE holdfast_feed (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  body BLOB NOT NULL
) STRICT;

-- Which rows were folded into roll-ups: all up to `seq` but those in `holes` (JSON), which had not appeared by then. Rows
-- up to `pruned` may be gone. Minutes before `hours` were added to their
-- hours. One row, made when it is first wanted.
CREATE TABLE holdfast_folded (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  seq INTEGER NOT NULL,
  holes BLOB NOT NULL,
  pruned INTEGER NOT NULL,
  hours INTEGER NOT NULL
) STRICT;

-- What happened in each minute (span 60), hour (3600) and day (86400), by tenant, queue and type; tenant '' is all of them.
-- Histograms are JSON: how many spans fell into which bucket; a bucket begins at 1.2 to its number, in microseconds.
CREATE TABLE holdfast_rollup (
  span INTEGER NOT NULL,
  tenant TEXT NOT NULL,
  at INTEGER NOT NULL,
  queue TEXT NOT NULL,
  type TEXT NOT NULL,
  submitted INTEGER NOT NULL,
  started INTEGER NOT NULL,
  succeeded INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  dead INTEGER NOT NULL,
  cancelled INTEGER NOT NULL,
  wait BLOB NOT NULL,
  run BLOB NOT NULL,
  PRIMARY KEY (span, tenant, at, queue, type)
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_rollup_at ON holdfast_rollup (span, at);
