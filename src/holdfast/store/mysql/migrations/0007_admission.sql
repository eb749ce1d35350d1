-- What is known of tenants that have limits: what they spent of their rate, and how many unfinished jobs they may have at
-- the most. One row for each, locked while jobs are submitted for it.
CREATE TABLE IF NOT EXISTS holdfast_ledgers (
  tenant VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  state BLOB NOT NULL,
  PRIMARY KEY (tenant)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
