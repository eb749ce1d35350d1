-- What changed, a small row for each transaction, written with the change: what streams and statistics are made of. A row
-- lists up to 20 changes one by one and counts them beyond that. Numbers are drawn before the commit, so that a lower one
-- can appear after a higher one, and one that was rolled back never appears.
CREATE TABLE IF NOT EXISTS holdfast_feed (
  seq BIGINT NOT NULL AUTO_INCREMENT,
  at BIGINT NOT NULL,
  body LONGBLOB NOT NULL,
  PRIMARY KEY (seq)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Which rows were folded into roll-ups: all up to `seq` but those in `holes` (JSON), which had not appeared by then. Rows
-- up to `pruned` may be gone. Minutes before `hours` were added to their
-- hours. One row, made when it is first wanted.
CREATE TABLE IF NOT EXISTS holdfast_folded (
  one TINYINT NOT NULL,
  seq BIGINT NOT NULL,
  holes LONGBLOB NOT NULL,
  pruned BIGINT NOT NULL,
  hours BIGINT NOT NULL,
  PRIMARY KEY (one)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- What happened in each minute (span 60), hour (3600) and day (86400), by tenant, queue and type; tenant '' is all of them.
-- Histograms are JSON: how many spans fell into which bucket; a bucket begins at 1.2 to its number, in microseconds.
CREATE TABLE IF NOT EXISTS holdfast_rollup (
  span INT NOT NULL,
  tenant VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  at BIGINT NOT NULL,
  queue VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  type VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  submitted BIGINT NOT NULL,
  started BIGINT NOT NULL,
  succeeded BIGINT NOT NULL,
  failed BIGINT NOT NULL,
  dead BIGINT NOT NULL,
  cancelled BIGINT NOT NULL,
  wait BLOB NOT NULL,
  run BLOB NOT NULL,
  PRIMARY KEY (span, tenant, at, queue, type),
  KEY holdfast_rollup_at (span, at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
