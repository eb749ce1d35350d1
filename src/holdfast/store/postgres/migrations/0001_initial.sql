-- Schema of holdfast on PostgreSQL.
--
-- Times are microseconds since 1970 UTC by the clock of this server. `status` holds the code of a job's status; the
-- view holdfast_jobs shows statuses and times in readable form. A name in braces stands for a stored code: see
-- store/codes.py.

-- Order of arrival: a job gets a new number whenever it becomes ready.
CREATE SEQUENCE holdfast_seq;

-- Unfinished jobs. The table stays small, however long the history is. `progress` is JSON, such as {"fraction": 0.9,
-- "note": "written"}. `slots` says which limits count a running job: bit 1 its queue's, bit 2 its tenant's.
CREATE TABLE holdfast_live (
  id uuid PRIMARY KEY,
  seq bigint NOT NULL DEFAULT nextval('holdfast_seq'),
  created_at bigint NOT NULL,
  scheduled_at bigint,
  started_at bigint,
  worker bigint,
  timeout bigint,
  deadline bigint,
  fence integer NOT NULL DEFAULT 0,
  cost integer NOT NULL DEFAULT 1,
  status smallint NOT NULL,
  priority smallint NOT NULL DEFAULT 0,
  attempts smallint NOT NULL DEFAULT 0,
  max_attempts smallint NOT NULL,
  releases smallint NOT NULL DEFAULT 0,
  generation smallint NOT NULL DEFAULT 0,
  tenant text COLLATE "C" NOT NULL,
  queue text COLLATE "C" NOT NULL,
  type text COLLATE "C" NOT NULL,
  concurrency_key text COLLATE "C",
  idempotency_key text COLLATE "C",
  payload bytea NOT NULL,
  retry bytea,
  tags bytea,
  attempt_log bytea,
  progress bytea,
  slots smallint NOT NULL DEFAULT 0
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000,
        autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.5);

-- Claims use this index: equality on the lane, then order of arrival.
CREATE INDEX holdfast_live_ready ON holdfast_live (queue, tenant, priority, seq) WHERE status = {READY};
CREATE INDEX holdfast_live_due ON holdfast_live (scheduled_at) WHERE status IN ({SCHEDULED}, {RETRYING});
-- For the reaper and recovery.
CREATE INDEX holdfast_live_held ON holdfast_live (worker) WHERE status = {RUNNING};

-- Statuses from SCHEDULED on are those of jobs that wait. The first index serves searches, the second counts a tenant's
-- jobs; jobs that are ready when submitted enter neither. Only statements that should use these indexes write
-- `status::int`: otherwise the planner might choose them for other statements while the table is empty.
CREATE INDEX holdfast_live_parked ON holdfast_live (status, tenant, id) WHERE status::int >= {SCHEDULED};
CREATE INDEX holdfast_live_parked_in ON holdfast_live (tenant, queue) WHERE status::int > {CANCELLED};

-- Jobs that wait for their concurrency key (claims skip them), in the order in which they get it; and jobs that hold a
-- slot of their key: statuses before SUCCEEDED are ready and running. Jobs without a key enter neither index.
CREATE INDEX holdfast_live_queued ON holdfast_live (tenant, concurrency_key, priority DESC, seq)
WHERE status = {AWAITING_KEY};
CREATE INDEX holdfast_live_key_slots ON holdfast_live (tenant, concurrency_key)
WHERE concurrency_key IS NOT NULL AND status < {SUCCEEDED};

-- Jobs that may miss their deadline; jobs without one never enter it.
CREATE INDEX holdfast_live_deadline ON holdfast_live (deadline) WHERE deadline IS NOT NULL AND status <> {RUNNING};

-- Jobs that succeeded or were cancelled, partitioned by the day they finished: retention drops whole partitions.
CREATE TABLE holdfast_history (
  id uuid NOT NULL,
  seq bigint NOT NULL,
  created_at bigint NOT NULL,
  scheduled_at bigint,
  started_at bigint,
  finished_at bigint NOT NULL,
  worker bigint,
  timeout bigint,
  deadline bigint,
  fence integer NOT NULL,
  cost integer NOT NULL,
  status smallint NOT NULL,
  priority smallint NOT NULL,
  attempts smallint NOT NULL,
  max_attempts smallint NOT NULL,
  releases smallint NOT NULL,
  generation smallint NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  queue text COLLATE "C" NOT NULL,
  type text COLLATE "C" NOT NULL,
  concurrency_key text COLLATE "C",
  idempotency_key text COLLATE "C",
  payload bytea NOT NULL,
  retry bytea,
  tags bytea,
  attempt_log bytea,
  result bytea,
  reason text,
  fingerprint text COLLATE "C",
  progress bytea
) PARTITION BY RANGE (finished_at);
CREATE INDEX holdfast_history_id ON holdfast_history (id);
CREATE INDEX holdfast_history_tenant ON holdfast_history (tenant, id);
-- Takes rows of days that have no partition, so that settling a job never fails because a partition is missing.
CREATE TABLE holdfast_history_default PARTITION OF holdfast_history DEFAULT;

-- Dead letters: kept longer than history, so that operators can inspect and replay them.
CREATE TABLE holdfast_dead (LIKE holdfast_history INCLUDING DEFAULTS, PRIMARY KEY (id));
CREATE INDEX holdfast_dead_tenant ON holdfast_dead (tenant, id);
CREATE INDEX holdfast_dead_finished ON holdfast_dead (finished_at);
-- Groups dead letters with the same error.
CREATE INDEX holdfast_dead_fingerprint ON holdfast_dead (tenant, fingerprint, id);

-- Idempotency keys (kind 0) and unique keys (kind 1), each with the job that it belongs to.
CREATE TABLE holdfast_job_keys (
  tenant text COLLATE "C" NOT NULL,
  kind smallint NOT NULL,
  key text COLLATE "C" NOT NULL,
  job_id uuid NOT NULL,
  fingerprint bytea NOT NULL,
  expires_at bigint NOT NULL,
  PRIMARY KEY (tenant, kind, key)
);
CREATE INDEX holdfast_job_keys_expiry ON holdfast_job_keys (expires_at);

-- Records of attempts: results of steps, and guards that commit with a handler's transaction. `state` is 0 started,
-- 1 done; `fence` is that of the attempt that wrote the record. Records are deleted after their job.
CREATE TABLE holdfast_steps (
  job_id uuid NOT NULL,
  key text COLLATE "C" NOT NULL,
  state smallint NOT NULL,
  result bytea,
  fence integer NOT NULL,
  recorded_at bigint NOT NULL,
  PRIMARY KEY (job_id, key)
);
CREATE INDEX holdfast_steps_recorded ON holdfast_steps (recorded_at);

-- Running incarnations of workers. A worker's lease is the lease of all jobs that it holds. `types` is a JSON list of
-- the job types that it handles, NULL for all; `node` groups the processes of one node; `drain_at` is when it was told
-- to drain; `lease` is the lease's length in microseconds: a lease that ends later than that from now was granted
-- before the clock was set back, and is shortened. `unresponsive_since` is set while the process does not respond;
-- `blocked_by` is then the job type whose handler blocks its event loop, NULL if the process gives no sign of life.
CREATE TABLE holdfast_workers (
  id bigint PRIMARY KEY,
  name text NOT NULL,
  host text NOT NULL,
  pid integer NOT NULL,
  version text NOT NULL,
  queues text NOT NULL,
  slots integer NOT NULL,
  tenant text,
  started_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  lease bigint NOT NULL,
  renewed_at bigint NOT NULL DEFAULT 0,
  types text,
  node text NOT NULL DEFAULT '',
  memory bigint,
  drain_at bigint,
  unresponsive_since bigint,
  blocked_by text
);
CREATE INDEX holdfast_workers_expiry ON holdfast_workers (expires_at);

-- Workers that left or lost their lease within the last day: when a worker for a job type was last seen.
CREATE TABLE holdfast_departed_workers (
  id bigint PRIMARY KEY,
  name text NOT NULL,
  host text NOT NULL,
  queues text NOT NULL,
  types text,
  tenant text,
  seen_at bigint NOT NULL
);
CREATE INDEX holdfast_departed_workers_seen ON holdfast_departed_workers (seen_at);

-- Descriptions of job types as reported by workers; `tenant` is '' for workers that serve all tenants.
CREATE TABLE holdfast_types (
  tenant text COLLATE "C" NOT NULL,
  type text COLLATE "C" NOT NULL,
  digest text NOT NULL,
  about text NOT NULL,
  seen_at bigint NOT NULL,
  PRIMARY KEY (tenant, type)
);

-- Quotas and weights of tenants. NULL is the default of the installation; a tenant without a row has all defaults.
-- `rate` is cost per `rate_window` microseconds; the backlogs are numbers of unfinished jobs.
CREATE TABLE holdfast_tenants (
  name text COLLATE "C" PRIMARY KEY,
  weight integer,
  rate bigint,
  rate_window bigint,
  backlog bigint,
  queue_backlog bigint,
  created_at bigint NOT NULL
);
-- Tenants with quotas.
CREATE INDEX holdfast_tenants_limited ON holdfast_tenants (name)
WHERE rate IS NOT NULL OR backlog IS NOT NULL OR queue_backlog IS NOT NULL;

-- Quota usage of tenants with quotas: the cost spent in the window and an upper bound of the backlog. Submissions
-- lock the tenant's row. Its size hardly changes, so that it is updated in place.
CREATE TABLE holdfast_quota_usage (
  tenant text COLLATE "C" PRIMARY KEY,
  state bytea NOT NULL
) WITH (fillfactor = 50);

-- API keys. `digest` is the SHA-256 of the secret, which is not stored; `scopes` are separated by spaces. Revoked
-- keys stay, so that an audit can name them.
CREATE TABLE holdfast_api_keys (
  id text COLLATE "C" PRIMARY KEY,
  tenant text COLLATE "C" NOT NULL,
  name text NOT NULL,
  digest bytea NOT NULL,
  scopes text NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint,
  revoked_at bigint,
  last_used_at bigint
);

-- Settings of queues; a queue without a row is not paused. `paused` is 0 or 1; a pause ends at `until` if that is set.
CREATE TABLE holdfast_queues (
  name text COLLATE "C" PRIMARY KEY,
  paused smallint NOT NULL,
  reason text NOT NULL,
  until bigint,
  changed_at bigint NOT NULL,
  changed_by text NOT NULL
);

-- Pauses of job types (kind 0) and tenants (kind 1), until `until` if that is set.
CREATE TABLE holdfast_pauses (
  kind smallint NOT NULL,
  name text COLLATE "C" NOT NULL,
  reason text NOT NULL,
  until bigint,
  changed_at bigint NOT NULL,
  changed_by text NOT NULL,
  PRIMARY KEY (kind, name)
);

-- Concurrency and rate limits of queues (kind 0), tenants (kind 1) and concurrency keys (kind 2; only these have a
-- `tenant`, the others ''). NULL is unlimited, or the default for a key. `used` counts the running jobs of kinds 0
-- and 1; the jobs of a key are counted when needed. `unsettled` is 1 while jobs may run that started before all nodes
-- knew the limit and so are missing from `used`. The token bucket gets `rate` tokens per `per` microseconds, up to
-- `burst`; `tokens` is in millionths.
CREATE TABLE holdfast_limits (
  kind smallint NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  max_running bigint,
  rate bigint,
  per bigint,
  burst bigint,
  used bigint NOT NULL DEFAULT 0,
  unsettled smallint NOT NULL DEFAULT 0,
  tokens bigint NOT NULL DEFAULT 0,
  refilled_at bigint NOT NULL DEFAULT 0,
  changed_at bigint NOT NULL DEFAULT 0,
  changed_by text NOT NULL DEFAULT '',
  PRIMARY KEY (kind, tenant, name)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Version of the dispatch settings: every change of a pause, limit or weight increments it, so that a node with cached
-- settings needs to read only this row.
CREATE TABLE holdfast_dispatch_version (one smallint PRIMARY KEY CHECK (one = 1), version bigint NOT NULL);
INSERT INTO holdfast_dispatch_version (one, version) VALUES (1, 0);

-- Change log: one small row per transaction that changes jobs, written by that transaction; the source of event
-- streams and rollups. A row lists up to 20 changes and counts more. Numbers are assigned before the commit, so that
-- a lower one can appear after a higher one, and the number of a transaction that rolled back never appears.
CREATE TABLE holdfast_change_log (
  seq bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  at bigint NOT NULL,
  body text COLLATE "C" NOT NULL
) WITH (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
        autovacuum_vacuum_insert_threshold = -1);
ALTER TABLE holdfast_change_log ALTER COLUMN body SET STORAGE EXTERNAL;

-- Rollup cursor, one row, created on first use. Rows of the change log up to `seq` are rolled up, except the gaps in
-- `gaps` (JSON), which had not appeared yet. Rows up to `pruned` may be deleted. Minutes before `hours` are added to
-- their hours. `lost` counts all workers that ever lost their lease.
CREATE TABLE holdfast_rollup_position (
  one smallint PRIMARY KEY CHECK (one = 1),
  seq bigint NOT NULL,
  gaps text NOT NULL,
  pruned bigint NOT NULL,
  hours bigint NOT NULL,
  lost bigint NOT NULL DEFAULT 0
);

-- Stats per minute (span 60), hour (3600) and day (86400) by tenant, queue and type; tenant '' is all tenants
-- together. `wait` and `run` are histograms as JSON: the number of durations per bucket, where bucket n begins at
-- 1.2^n microseconds. `cost` is the cost of the attempts that ended, `waited` the longest wait among them, `reaped`
-- the jobs whose lease expired.
CREATE TABLE holdfast_rollup (
  span integer NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  at bigint NOT NULL,
  queue text COLLATE "C" NOT NULL,
  type text COLLATE "C" NOT NULL,
  submitted bigint NOT NULL,
  started bigint NOT NULL,
  succeeded bigint NOT NULL,
  failed bigint NOT NULL,
  dead bigint NOT NULL,
  cancelled bigint NOT NULL,
  wait text NOT NULL,
  run text NOT NULL,
  cost bigint NOT NULL DEFAULT 0,
  waited bigint NOT NULL DEFAULT 0,
  reaped bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (span, tenant, at, queue, type)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);
CREATE INDEX holdfast_rollup_at ON holdfast_rollup (span, at);

-- Circuit breakers of destinations that failed recently. `state` is 0 closed, 1 open, 2 half-open.
CREATE TABLE holdfast_breakers (
  tenant text COLLATE "C" NOT NULL,
  destination text COLLATE "C" NOT NULL,
  state smallint NOT NULL,
  failures integer NOT NULL,
  openings integer NOT NULL,
  until bigint,
  error text NOT NULL,
  changed_at bigint NOT NULL,
  PRIMARY KEY (tenant, destination)
);

-- Webhook signing keys, in plain text because signing needs them.
CREATE TABLE holdfast_webhook_secrets (
  tenant text COLLATE "C" PRIMARY KEY,
  secret bytea NOT NULL,
  previous bytea,
  previous_until bigint,
  created_at bigint NOT NULL
);

-- Times of the last table maintenance, so that one of many nodes does it.
CREATE TABLE holdfast_maintenance (name text PRIMARY KEY, done_at bigint NOT NULL);

-- All jobs in readable form, for people with a SQL console.
CREATE VIEW holdfast_jobs AS
SELECT id, tenant, queue, type,
  (ARRAY['ready', 'running', 'succeeded', 'dead', 'cancelled', 'scheduled', 'retrying', 'blocked', 'ready'])[status + 1]
    AS status,
  priority, attempts, max_attempts, to_timestamp(created_at / 1e6) AS created_at,
  to_timestamp(scheduled_at / 1e6) AS scheduled_at, to_timestamp(started_at / 1e6) AS started_at,
  to_timestamp(finished_at / 1e6) AS finished_at, worker, convert_from(payload, 'UTF8') AS payload,
  convert_from(result, 'UTF8') AS result, convert_from(attempt_log, 'UTF8') AS attempt_log, reason
FROM (
  SELECT id, tenant, queue, type, status, priority, attempts, max_attempts, created_at, scheduled_at, started_at,
         NULL::bigint AS finished_at, worker, payload, NULL::bytea AS result, attempt_log, NULL::text AS reason
  FROM holdfast_live
  UNION ALL
  SELECT id, tenant, queue, type, status, priority, attempts, max_attempts, created_at, scheduled_at, started_at,
         finished_at, worker, payload, result, attempt_log, reason FROM holdfast_dead
  UNION ALL
  SELECT id, tenant, queue, type, status, priority, attempts, max_attempts, created_at, scheduled_at, started_at,
         finished_at, worker, payload, result, attempt_log, reason FROM holdfast_history
) AS j;

-- Comments for people with a SQL console. docs/guide/tables.md repeats them.
COMMENT ON TABLE holdfast_live IS
  'Unfinished jobs: ready, running, scheduled, retrying, or waiting for their concurrency key';
COMMENT ON TABLE holdfast_history IS 'Jobs that succeeded or were cancelled, deleted after their retention';
COMMENT ON TABLE holdfast_history_default IS 'History of days that have no partition of their own';
COMMENT ON TABLE holdfast_dead IS 'Dead letters, kept longer than the history, to be inspected and replayed';
COMMENT ON TABLE holdfast_job_keys IS 'Idempotency keys (kind 0) and unique keys (kind 1), each with its job';
COMMENT ON TABLE holdfast_steps IS 'Recorded results of steps and transactions, deleted after their job';
COMMENT ON TABLE holdfast_workers IS 'Running worker processes and their leases. A lease covers all jobs of its worker';
COMMENT ON TABLE holdfast_departed_workers IS 'Workers that left or lost their lease within the last day';
COMMENT ON TABLE holdfast_types IS 'Job types and their schemas, as workers reported them';
COMMENT ON TABLE holdfast_tenants IS 'Weights and quotas of tenants. A tenant without a row has the defaults';
COMMENT ON TABLE holdfast_quota_usage IS 'Use of quotas, one row per tenant with quotas';
COMMENT ON TABLE holdfast_api_keys IS 'API keys. Only a hash of the secret is stored, and revoked keys stay';
COMMENT ON TABLE holdfast_queues IS 'Pauses of queues. A queue without a row is not paused';
COMMENT ON TABLE holdfast_pauses IS 'Pauses of job types (kind 0) and tenants (kind 1)';
COMMENT ON TABLE holdfast_limits IS
  'Concurrency and rate limits of queues (kind 0), tenants (kind 1) and concurrency keys (kind 2)';
COMMENT ON TABLE holdfast_dispatch_version IS 'Version of pauses, limits and weights, by which nodes notice a change';
COMMENT ON TABLE holdfast_change_log IS
  'One row per transaction that changed jobs, the source of event streams and statistics';
COMMENT ON TABLE holdfast_rollup_position IS 'How far the change log has been added to the statistics';
COMMENT ON TABLE holdfast_rollup IS 'Statistics per minute (span 60), hour (3600) and day (86400)';
COMMENT ON TABLE holdfast_breakers IS
  'Circuit breakers of webhook destinations. State 0 is closed, 1 open, 2 half-open';
COMMENT ON TABLE holdfast_webhook_secrets IS 'Signing keys of webhooks, in plain text because signing needs them';
COMMENT ON TABLE holdfast_maintenance IS 'When table maintenance last ran, so that one of many nodes does it';
COMMENT ON VIEW holdfast_jobs IS 'All jobs in readable form';
