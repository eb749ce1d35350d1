// Generated from the OpenAPI description by tools/dashboard_types.py. Do not edit: run ./dev dashboard --types.
/* eslint-disable */

/** Any JSON value. Integers beyond `Number.MAX_SAFE_INTEGER` are bigints. */
export type Json = null | boolean | number | bigint | string | Json[] | { [key: string]: Json };

/** Description of a worker, given when it registers. */
export interface About {
  name?: string;
  host?: string;
  pid?: number;
  version?: string;
  queues?: string;
  slots?: number;
  types?: string[] | null;
  described?: TypeIn[];
  node?: string;
}

/** Liveness of the process. */
export interface Alive {
  status: string;
}

/** Attempt that did not succeed, or that logged something. */
export interface AttemptOut {
  attempt: number;
  generation: number;
  worker: string;
  started_at: string;
  ended_at: string;
  outcome: string;
  error: ErrorOut | null;
  logs: LogsOut | null;
}

/** Page of the attempts of a job that did not succeed or logged something, newest first. */
export interface AttemptPage {
  items: AttemptOut[];
  next_cursor: string | null;
}

/** Receipts of a batch, in the order of its jobs. */
export interface BatchOut {
  items: ReceiptOut[];
}

/** Circuit breaker of a webhook destination that failed recently; all others are closed. */
export interface BreakerOut {
  tenant: string;
  destination: string;
  state: "closed" | "half_open" | "open";
  failures: number;
  until: string | null;
  error: string;
  changed_at: string;
}

/** Page of circuit breakers, by tenant and destination. */
export interface BreakerPage {
  items: BreakerOut[];
  next_cursor: string | null;
}

/** Cancellation of all matching jobs. */
export interface BulkCancel {
  filter?: FilterShape;
  all?: boolean;
  dry_run?: boolean;
  cursor?: string | null;
  reason?: string;
}

/** Result of an action on many jobs. */
export interface BulkOut {
  matched: number;
  changed: number;
  dry_run: boolean;
  next_cursor: string | null;
}

/** Action on all matching jobs; repeat it with `next_cursor` as `cursor` until that is null. */
export interface BulkRequest {
  filter?: FilterShape;
  all?: boolean;
  dry_run?: boolean;
  cursor?: string | null;
}

/** Reason for a cancellation, kept with the job. */
export interface CancelRequest {
  reason?: string;
}

/** The handler cancelled the job. */
export interface CancelledIn {
  outcome: "cancelled";
  reason?: string;
  id: string;
  /** Fencing token: increases at each claim, and only its holder knows the newest. */
  fence: number;
  logs?: LogsIn | null;
}

/** Change of a queue; omitted fields stay unchanged. */
export interface ChangeQueue {
  paused?: boolean;
  reason?: string;
  until?: string | null;
  max_running?: number | null;
  rate?: RateShape | null;
}

/** Number of demo jobs that were deleted. */
export interface Cleared {
  jobs: number;
}

/** The process of the attempt died. */
export interface CrashedIn {
  outcome: "crashed";
  how: string;
  id: string;
  /** Fencing token: increases at each claim, and only its holder knows the newest. */
  fence: number;
  logs?: LogsIn | null;
}

/** Filter for dead letters; omitted fields match everything. */
export interface DeadFilter {
  type?: string | null;
  queue?: string | null;
  tag?: string | null;
  tenant?: string | null;
  created_after?: string | null;
  created_before?: string | null;
  error?: string | null;
}

/** Page of dead letters, newest first, or of groups if `group` was requested. */
export interface DeadPage {
  items?: JobOut[];
  groups?: GroupOut[];
  next_cursor: string | null;
}

/** Outcome of a delivery. */
export interface DeliveryDone {
  /** Id of a worker; never reused. */
  worker: string;
  id: string;
  /** Fencing token: increases at each claim, and only its holder knows the newest. */
  fence: number;
  destination: string;
  probe?: boolean;
  error?: string | null;
}

/** Permission for a delivery. */
export interface DeliveryOut {
  wait: number | null;
  probe: boolean;
  signature: string;
}

/** Delivery that a worker is about to make for a job it holds. */
export interface DeliveryRequest {
  /** Id of a worker; never reused. */
  worker: string;
  id: string;
  /** Fencing token: increases at each claim, and only its holder knows the newest. */
  fence: number;
  destination: string;
  /** Seconds, or a text such as '250ms', '30s', '5m', '1h30m' or '7d'. */
  probe_for: number | string;
  at: number;
  body?: string;
}

/** Removal of a worker that holds no jobs. */
export interface DepartRequest {
  /** Id of a worker; never reused. */
  worker: string;
}

/** Result of a removal; a worker that holds jobs is not removed. */
export interface DepartedOut {
  departed: boolean;
}

/** Draining workers: the requested one first, then the other processes of its node. */
export interface DrainOut {
  items: WorkerOut[];
}

/** Error of a failed attempt. */
export interface ErrorIn {
  kind: string;
  message?: string;
  traceback?: string;
}

/** Error of a failed attempt. */
export interface ErrorOut {
  kind: string;
  message: string;
  fingerprint: string;
  traceback?: string;
}

/** Estimated start and its basis; `at` is None if it cannot be estimated. */
export interface Estimate {
  at: string | null;
  basis: string;
}

/** Explanation of why a job is (not) running, as of one instant. */
export interface Explanation {
  id: string;
  status: Status;
  as_of: string;
  runnable: boolean;
  reasons: Reason[];
  estimate: Estimate;
}

/** The attempt failed; retried by its rule or after `retry_in`, unless not `retryable`. */
export interface FailedIn {
  outcome: "failed";
  error: ErrorIn;
  retryable?: boolean;
  retry_in?: number | string | null;
  id: string;
  /** Fencing token: increases at each claim, and only its holder knows the newest. */
  fence: number;
  logs?: LogsIn | null;
}

/** Service received per tenant in a window, most underserved first. */
export interface FairnessOut {
  since: string;
  until: string;
  step: number;
  served: number;
  jain: number | null;
  tenants: number;
  items: TenantShareOut[];
}

/** Error of one item of a batch. */
export interface Fault {
  index: number;
  code: string;
  detail: string;
  pointer?: string;
  job_id?: string;
}

/** Filter for jobs; omitted fields match everything. */
export interface FilterShape {
  type?: string | null;
  queue?: string | null;
  tag?: string | null;
  tenant?: string | null;
  created_after?: string | null;
  created_before?: string | null;
  error?: string | null;
  status?: "blocked" | "cancelled" | "dead" | "ready" | "retrying" | "running" | "scheduled" | "succeeded" | null;
}

/** Dead letters of one tenant with the same error. */
export interface GroupOut {
  tenant: string;
  fingerprint: string;
  count: number;
  more: boolean;
  first_at: string;
  last_at: string;
  error: ErrorOut | null;
  newest: JobOut;
}

/** Job that a worker holds. */
export interface HeldOut {
  id: string;
  fence: number;
  queue: string;
  type: string;
}

/** Jobs that a worker holds, according to the database. */
export interface HeldPage {
  jobs: HeldOut[];
}

/** Query for the jobs that a worker holds. */
export interface HeldRequest {
  /** Id of a worker; never reused. */
  worker: string;
  limit?: number;
}

/** Held job, identified by its id and fence. */
export interface HeldShape {
  id: string;
  /** Fencing token: increases at each claim, and only its holder knows the newest. */
  fence: number;
}

/** A job with its attempts, steps and lineage. */
export interface JobDetail {
  id: string;
  tenant: string;
  queue: string;
  type: string;
  payload: Json;
  status: "blocked" | "cancelled" | "dead" | "ready" | "retrying" | "running" | "scheduled" | "succeeded";
  priority: number;
  attempts: number;
  max_attempts: number;
  scheduled_at: string | null;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
  updated_at: string;
  result: Json;
  error: ErrorOut | null;
  reason: string | null;
  progress: Json;
  tags: string[];
  cost: number;
  timeout: number | null;
  deadline: string | null;
  concurrency_key: string | null;
  idempotency_key: string | null;
  generation: number;
  worker: string | null;
  lease_until: string | null;
  workflow_id: string | null;
  actions: ("cancel" | "delete" | "retry")[];
  attempt_log: AttemptOut[];
  steps: StepOut[];
  lineage: LineageOut;
  truncated: TruncatedOut[];
}

/** A job. */
export interface JobOut {
  id: string;
  tenant: string;
  queue: string;
  type: string;
  payload: Json;
  status: "blocked" | "cancelled" | "dead" | "ready" | "retrying" | "running" | "scheduled" | "succeeded";
  priority: number;
  attempts: number;
  max_attempts: number;
  scheduled_at: string | null;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
  updated_at: string;
  result: Json;
  error: ErrorOut | null;
  reason: string | null;
  progress: Json;
  tags: string[];
  cost: number;
  timeout: number | null;
  deadline: string | null;
  concurrency_key: string | null;
  idempotency_key: string | null;
  generation: number;
  worker: string | null;
  lease_until: string | null;
  workflow_id: string | null;
  actions: ("cancel" | "delete" | "retry")[];
}

/** Page of jobs, newest first. A page may contain fewer items than `limit`, even none; follow `next_cursor` until it is null. */
export interface JobPage {
  items: JobOut[];
  next_cursor: string | null;
}

/** A new API key. Only this response contains its token. */
export interface KeyMade {
  id: string;
  tenant: string;
  name: string;
  scopes: ("admin" | "cancel" | "metrics" | "read" | "submit" | "worker")[];
  created_at: string;
  expires_at: string | null;
  revoked_at: string | null;
  last_used_at: string | null;
  token: string;
}

/** An API key, without its secret. */
export interface KeyOut {
  id: string;
  tenant: string;
  name: string;
  scopes: ("admin" | "cancel" | "metrics" | "read" | "submit" | "worker")[];
  created_at: string;
  expires_at: string | null;
  revoked_at: string | null;
  last_used_at: string | null;
}

/** Page of API keys, newest first. */
export interface KeyPage {
  items: KeyOut[];
  next_cursor: string | null;
}

/** Worker and the jobs that it has claimed. */
export interface LeaseOut {
  worker: string;
  jobs: LeasedJob[];
  draining: boolean;
}

/** Claim of jobs. Without `worker`, or with `register`, the worker is registered first and gets its response at once. */
export interface LeaseRequest {
  worker?: string | null;
  register?: About | null;
  lease?: number | string | null;
  queues?: string[];
  types?: string[] | null;
  limit?: number;
  wait?: number;
}

/** Claimed job. */
export interface LeasedJob {
  id: string;
  fence: number;
  tenant: string;
  queue: string;
  type: string;
  payload: Json;
  priority: number;
  attempts: number;
  max_attempts: number;
  releases: number;
  generation: number;
  cost: number;
  created_at: string;
  scheduled_at: string | null;
  started_at: string | null;
  timeout: number | null;
  deadline: string | null;
  tags: string[];
  concurrency_key: string | null;
  idempotency_key: string | null;
  progress: Json;
  attempt_log: AttemptOut[];
}

/** Limits that were set explicitly. */
export interface LimitList {
  items: LimitOut[];
  next_cursor: null;
}

/** Limit and its current use. */
export interface LimitOut {
  kind: "key" | "queue" | "tenant";
  queue: string | null;
  tenant: string | null;
  concurrency_key: string | null;
  max_running: number | null;
  rate: RateOut | null;
  used: number;
  room: number | null;
  changed_at: string;
  changed_by: string;
}

/** Origin of a job. */
export interface LineageOut {
  generation: number;
  parent_id: string | null;
  schedule: string | null;
  workflow_id: string | null;
}

/** Line that a handler wrote to the log of its job. */
export interface LogLineOut {
  at: string;
  level: string;
  message: string;
}

/** Newest log lines of an attempt, oldest first. */
export interface LogsIn {
  lines: LogLineOut[];
  dropped?: number;
}

/** Newest log lines of an attempt, oldest first. */
export interface LogsOut {
  lines: LogLineOut[];
  dropped: number;
}

/** Jobs that the worker no longer holds; it should stop them. */
export interface LostOut {
  lost: string[];
  paused: string[];
  draining: boolean;
}

/** Query for lost jobs that does not renew the lease. */
export interface LostRequest {
  /** Id of a worker; never reused. */
  worker: string;
  held: HeldShape[];
}

/** Caller and its scopes. */
export interface Me {
  name: string;
  tenant: string;
  scopes: ("admin" | "cancel" | "metrics" | "read" | "submit" | "worker")[];
  until: string | null;
  version: string;
  demo: boolean;
}

/** Numbers of jobs of one queue or type. */
export interface NamedCounts {
  name: string;
  statuses: StatusCounts;
}

/** API key to create. */
export interface NewKeyRequest {
  scopes: ("admin" | "cancel" | "metrics" | "read" | "submit" | "worker")[];
  name: string;
  /** 1 to 128 letters, digits or _ . : / @ + -, starting with a letter, a digit or _. */
  tenant?: string;
  expires_at?: string | null;
  expires_in?: number | string | null;
}

/** Tenant to create; omitted or null fields use the installation's defaults. */
export interface NewTenant {
  /** 1 to 128 letters, digits or _ . : / @ + -, starting with a letter, a digit or _. */
  name: string;
  weight?: number | null;
  rate?: number | null;
  rate_window?: number | string | null;
  backlog?: number | null;
  queue_backlog?: number | null;
}

/** Paused types and tenants; queues list their own pauses. */
export interface PauseList {
  items: PauseOut[];
  next_cursor: null;
}

/** Paused type or tenant. */
export interface PauseOut {
  kind: "tenant" | "type";
  name: string;
  reason: string;
  until: string | null;
  since: string;
  by: string;
}

/** Percentiles in seconds, accurate to 10 %; null if nothing ended. */
export interface Percentiles {
  p50: number | null;
  p90: number | null;
  p95: number | null;
  p99: number | null;
}

/** Totals and durations of one step of a window. */
export interface Point {
  at: string;
  totals: Totals;
  wait: Percentiles;
  run: Percentiles;
}

/** Error of a request: what happened and what to do. */
export interface Problem {
  title: string;
  status: number;
  code: string;
  detail: string;
  type?: string;
  pointer?: string;
  errors?: Fault[];
  job_id?: string;
}

/** Progress of a held job. */
export interface ProgressRequest {
  /** Id of a worker; never reused. */
  worker: string;
  id: string;
  /** Fencing token: increases at each claim, and only its holder knows the newest. */
  fence: number;
  fraction: number;
  note?: string;
}

/** Page of the queues that the caller may see, by name. */
export interface QueueList {
  as_of: string;
  items: QueueOut[];
  next_cursor: string | null;
}

/** A queue. Numbers cover the caller's own jobs; for administrators, all jobs. */
export interface QueueOut {
  name: string;
  paused: boolean;
  reason: string;
  until: string | null;
  max_running: number | null;
  running: number | null;
  rate: RateOut | null;
  statuses: StatusCounts;
  oldest_wait: number | null;
  rates: Rates;
}

/** Rate limit of starts. */
export interface RateOut {
  limit: number;
  per: number;
  burst: number;
}

/** Rate limit: at most `limit` starts per `per` seconds. */
export interface RateShape {
  limit: number;
  /** Seconds, or a text such as '250ms', '30s', '5m', '1h30m' or '7d'. */
  per?: number | string;
  burst?: number;
}

/** Rates per second. */
export interface Rates {
  submitted: number;
  started: number;
  finished: number;
  failed: number;
}

/** Readiness to serve requests. */
export interface Ready {
  ready: boolean;
  database: boolean;
  schema: boolean;
}

/** Reason with a stable `code`, a human-readable `detail` and structured facts. */
export interface Reason {
  code: "deadline_passed" | "finished" | "held_back" | "in_line" | "limit_full" | "no_worker" | "not_due" | "parents_missing" | "queue_paused" | "rate_spent" | "runnable" | "running" | "tenant_paused" | "type_paused" | "worker_unresponsive";
  detail: string;
  blocks: boolean;
  name: string | null;
  since: string | null;
  until: string | null;
  by: string | null;
  why: string | null;
  used: number | null;
  most: number | null;
  holders: string[];
  worker: string | null;
  jobs: number | null;
  cost: number | null;
  at_least: boolean;
  share: number | null;
  workers: number | null;
  last_seen: string | null;
}

/** Receipt for one job of a batch; the job is durable. */
export interface ReceiptOut {
  id: string;
  created_at: string;
  replayed: boolean;
}

/** The worker released the job unfinished; uses no attempt. */
export interface ReleasedIn {
  outcome: "released";
  started?: boolean;
  id: string;
  /** Fencing token: increases at each claim, and only its holder knows the newest. */
  fence: number;
  logs?: LogsIn | null;
}

/** Renewal of a lease; the response lists lost jobs. */
export interface RenewRequest {
  /** Id of a worker; never reused. */
  worker: string;
  /** Seconds, or a text such as '30s': maximum time between two renewals. */
  lease?: number | string;
  memory?: number | null;
  draining?: boolean;
  unresponsive?: number | null;
  blocked_by?: string | null;
  held?: HeldShape[] | null;
}

/** Dead letters to replay, by their ids or all that match. */
export interface ReplayRequest {
  ids?: string[] | null;
  filter?: DeadFilter | null;
  all?: boolean;
  dry_run?: boolean;
  cursor?: string | null;
}

/** Wait before the next attempt: exponential, or a list of delays whose last entry repeats. */
export interface RetryShape {
  /** Seconds, or a text such as '250ms', '30s', '5m', '1h30m' or '7d'. */
  base?: number | string;
  /** Seconds, or a text such as '250ms', '30s', '5m', '1h30m' or '7d'. */
  cap?: number | string;
  jitter?: number;
  delays?: (number | string)[];
}

/** Result of seeding the demo. */
export interface Seeded {
  jobs: number;
  tenants: string[];
}

/** Time series of a window, without gaps. */
export interface Series {
  since: string;
  until: string;
  step: number;
  points: Point[];
}

/** Limit of a queue, a tenant, or (with `tenant` and `concurrency_key`) a concurrency key. Omitted or null fields are unlimited, except that a concurrency key then runs one job at a time. */
export interface SetLimit {
  queue?: string | null;
  tenant?: string | null;
  concurrency_key?: string | null;
  max_running?: number | null;
  rate?: RateShape | null;
}

/** Pause of a type or a tenant: no more of its jobs are claimed; running ones continue. */
export interface SetPause {
  type?: string | null;
  tenant?: string | null;
  reason?: string;
  until?: string | null;
}

/** Outcomes of attempts. */
export interface SettleRequest {
  /** Id of a worker; never reused. */
  worker: string;
  outcomes: (SucceededIn | FailedIn | TimedOutIn | CrashedIn | SnoozedIn | ReleasedIn | UnavailableIn | CancelledIn)[];
}

/** Jobs whose outcomes were applied; the worker had lost the others. */
export interface SettledOut {
  settled: string[];
}

/** Ticket from the link that `holdfast up` prints. */
export interface SignIn {
  ticket: string;
}

/** The handler asked to run again later; uses no attempt. */
export interface SnoozedIn {
  outcome: "snoozed";
  /** Seconds, or a text such as '250ms', '30s', '5m', '1h30m' or '7d'. */
  delay: number | string;
  held?: boolean;
  id: string;
  /** Fencing token: increases at each claim, and only its holder knows the newest. */
  fence: number;
  logs?: LogsIn | null;
}

/** Numbers of jobs as of `as_of`, which may be some seconds ago in large installations. */
export interface Stats {
  as_of: string;
  statuses: StatusCounts;
  queues: NamedCounts[];
  types: NamedCounts[];
  next_cursor: string | null;
}

/** Status of a job. API, SDK and dashboard use the same words. */
export interface Status {
}

/** Numbers of jobs by status; succeeded and cancelled ones of the last 24 hours only. */
export interface StatusCounts {
  blocked: number;
  scheduled: number;
  ready: number;
  running: number;
  retrying: number;
  succeeded: number;
  dead: number;
  cancelled: number;
}

/** Page of the steps that earlier attempts recorded, by key; follow `next_cursor`. */
export interface StepList {
  steps: StepRecord[];
  next_cursor: string | null;
}

/** Recorded step of a job. */
export interface StepOut {
  key: string;
  state: "done" | "started";
  recorded_at: string;
  result: Json;
  transaction: boolean;
}

/** Page of the recorded steps of a job, by key. */
export interface StepPage {
  items: StepOut[];
  next_cursor: string | null;
}

/** Step that an earlier attempt recorded. */
export interface StepRecord {
  key: string;
  state: "done" | "started";
  result: Json;
  transaction: boolean;
}

/** Step of a job: done, or started if it must run at most once. */
export interface StepRequest {
  /** Id of a worker; never reused. */
  worker: string;
  id: string;
  /** Fencing token: increases at each claim, and only its holder knows the newest. */
  fence: number;
  key: string;
  state?: "done" | "started";
  result?: Json;
}

/** Jobs to submit together, all or none. */
export interface SubmitBatch {
  jobs: SubmitBatchJob[];
}

/** Job of a batch, with its own idempotency key. */
export interface SubmitBatchJob {
  /** 1 to 128 letters, digits or _ . : / @ + -, starting with a letter, a digit or _. */
  type: string;
  payload?: Json;
  /** 1 to 128 letters, digits or _ . : / @ + -, starting with a letter, a digit or _. */
  queue?: string;
  priority?: number;
  scheduled_at?: string | null;
  delay?: number | string | null;
  max_attempts?: number | null;
  timeout?: number | string | null;
  retry?: RetryShape | null;
  cost?: number;
  tags?: string[];
  unique?: UniqueShape | null;
  deadline?: string | null;
  concurrency_key?: string | null;
  idempotency_key?: string | null;
}

/** Job to submit. */
export interface SubmitJob {
  /** 1 to 128 letters, digits or _ . : / @ + -, starting with a letter, a digit or _. */
  type: string;
  payload?: Json;
  /** 1 to 128 letters, digits or _ . : / @ + -, starting with a letter, a digit or _. */
  queue?: string;
  priority?: number;
  scheduled_at?: string | null;
  delay?: number | string | null;
  max_attempts?: number | null;
  timeout?: number | string | null;
  retry?: RetryShape | null;
  cost?: number;
  tags?: string[];
  unique?: UniqueShape | null;
  deadline?: string | null;
  concurrency_key?: string | null;
}

/** The attempt succeeded, with a result of up to 256 KiB. */
export interface SucceededIn {
  outcome: "succeeded";
  result?: Json;
  id: string;
  /** Fencing token: increases at each claim, and only its holder knows the newest. */
  fence: number;
  logs?: LogsIn | null;
}

/** Totals, rates and durations of a window. */
export interface Summary {
  since: string;
  until: string;
  totals: Totals;
  rates: Rates;
  wait: Percentiles;
  run: Percentiles;
  failure_ratio: number | null;
}

/** Change of a tenant; null restores the installation's default. These quotas limit what is submitted and waits. To limit what runs, use `PUT /v1/limits` with `tenant`. */
export interface TenantChange {
  weight?: number | null;
  rate?: number | null;
  rate_window?: number | string | null;
  backlog?: number | null;
  queue_backlog?: number | null;
}

/** A tenant. Null means the installation's default. */
export interface TenantOut {
  name: string;
  weight: number | null;
  rate: number | null;
  rate_window: number | null;
  backlog: number | null;
  queue_backlog: number | null;
  created_at: string;
}

/** Page of tenants, by name. */
export interface TenantPage {
  items: TenantOut[];
  next_cursor: string | null;
}

/** Service that one tenant received, compared with its entitlement. */
export interface TenantShareOut {
  tenant: string;
  weight: number;
  received: number;
  entitled: number;
  received_share: number;
  entitled_share: number;
  ratio: number | null;
  backlogged: number;
}

/** The attempt exceeded its timeout. */
export interface TimedOutIn {
  outcome: "timed_out";
  /** Seconds, or a text such as '250ms', '30s', '5m', '1h30m' or '7d'. */
  after: number | string;
  id: string;
  /** Fencing token: increases at each claim, and only its holder knows the newest. */
  fence: number;
  logs?: LogsIn | null;
}

/** New token; it is valid until it expires or its API key is revoked. */
export interface TokenOut {
  token: string;
  token_type: "Bearer";
  tenant: string;
  scopes: ("admin" | "cancel" | "metrics" | "read" | "submit" | "worker")[];
  expires_at: string;
}

/** Token to create: the scopes of the API key or fewer, for 15 minutes or up to an hour. */
export interface TokenRequest {
  scopes?: ("admin" | "cancel" | "metrics" | "read" | "submit" | "worker")[] | null;
  /** Seconds, or a text such as '250ms', '30s', '5m', '1h30m' or '7d'. */
  expires_in?: number | string;
}

/** Numbers of events in a window. */
export interface Totals {
  submitted: number;
  started: number;
  succeeded: number;
  failed: number;
  dead: number;
  cancelled: number;
}

/** List of which a job shows only a part, because the response would be too large. */
export interface TruncatedOut {
  field: "attempt_log" | "steps";
  path: string;
  next_cursor: string;
}

/** Description of a job type that the worker handles. */
export interface TypeIn {
  /** 1 to 128 letters, digits or _ . : / @ + -, starting with a letter, a digit or _. */
  type: string;
  schema?: { [key: string]: Json } | null;
  queue?: string | null;
  max_attempts?: number | null;
  timeout?: number | string | null;
  priority?: number | null;
  cost?: number | null;
}

/** Job types that were active in a window, busiest first. */
export interface TypeList {
  since: string;
  until: string;
  items: TypeStats[];
}

/** Job type as its workers describe it. Fields that they left out are null. */
export interface TypeOut {
  type: string;
  tenant: string | null;
  schema: { [key: string]: Json } | null;
  queue: string | null;
  queues: string[];
  workers: number;
  last_seen: string;
  max_attempts: number | null;
  timeout: number | null;
  priority: number | null;
  cost: number | null;
}

/** Page of job types, by name; a tenant's own description replaces the shared one. It may be short, so follow `next_cursor`. */
export interface TypePage {
  items: TypeOut[];
  next_cursor: string | null;
}

/** Statistics of one job type. */
export interface TypeStats {
  type: string;
  totals: Totals;
  rates: Rates;
  wait: Percentiles;
  run: Percentiles;
  failure_ratio: number | null;
}

/** A call to this service failed inside the handler; uses no attempt for ten minutes. */
export interface UnavailableIn {
  outcome: "unavailable";
  error: ErrorIn;
  id: string;
  /** Fencing token: increases at each claim, and only its holder knows the newest. */
  fence: number;
  logs?: LogsIn | null;
}

/** Uniqueness of a job: one job at a time with equal values of the fields in `by`. */
export interface UniqueShape {
  by?: string[];
  /** Seconds, or a text such as '250ms', '30s', '5m', '1h30m' or '7d'. */
  within?: number | string;
  on_conflict?: "reject" | "replace" | "return";
}

/** New webhook secret. Only this response contains it. */
export interface WebhookSecretMade {
  tenant: string;
  created_at: string;
  previous_until: string | null;
  secret: string;
}

/** Metadata of a tenant's webhook secret. */
export interface WebhookSecretOut {
  tenant: string;
  created_at: string;
  previous_until: string | null;
}

/** A worker: one incarnation of a process that runs jobs. */
export interface WorkerOut {
  id: string;
  name: string;
  host: string | null;
  pid: number | null;
  node: string | null;
  version: string;
  queues: string[];
  slots: number;
  running: number;
  memory: number | null;
  started_at: string;
  heartbeat_age: number;
  lease_until: string;
  alive: boolean;
  draining: boolean;
  unresponsive_since: string | null;
  blocked_by: string | null;
  actions: "drain"[];
}

/** Page of registered workers, oldest first; it may be short, so follow `next_cursor`. */
export interface WorkerPage {
  items: WorkerOut[];
  next_cursor: string | null;
}

/** Query, body and response of each operation. */
export interface Operations {
  dashboard: { path: "/"; method: "GET"; query: Record<string, never>; body: never; response: null };
  dashboard_file: { path: "/assets/{name}"; method: "GET"; query: Record<string, never>; body: never; response: null };
  docs: { path: "/docs"; method: "GET"; query: Record<string, never>; body: never; response: null };
  docs_style: { path: "/docs.css"; method: "GET"; query: Record<string, never>; body: never; response: null };
  healthz: { path: "/healthz"; method: "GET"; query: Record<string, never>; body: never; response: Alive };
  metrics: { path: "/metrics"; method: "GET"; query: Record<string, never>; body: never; response: null };
  openapi: { path: "/openapi.json"; method: "GET"; query: Record<string, never>; body: never; response: { [key: string]: Json } };
  readyz: { path: "/readyz"; method: "GET"; query: Record<string, never>; body: never; response: Ready };
  summary: { path: "/v1/analytics"; method: "GET"; query: { window?: number | string; queue?: string; type?: string; tenant?: string }; body: never; response: Summary };
  fairness: { path: "/v1/analytics/fairness"; method: "GET"; query: { window?: number | string }; body: never; response: FairnessOut };
  throughput: { path: "/v1/analytics/throughput"; method: "GET"; query: { window?: number | string; queue?: string; type?: string; tenant?: string }; body: never; response: Series };
  types: { path: "/v1/analytics/types"; method: "GET"; query: { window?: number | string; queue?: string; type?: string; tenant?: string }; body: never; response: TypeList };
  list_breakers: { path: "/v1/breakers"; method: "GET"; query: { tenant?: string; cursor?: string; limit?: number }; body: never; response: BreakerPage };
  purge_dead: { path: "/v1/dead"; method: "DELETE"; query: { type?: string; queue?: string; tag?: string; tenant?: string; created_after?: string; created_before?: string; error?: string; ids?: string; all?: boolean; dry_run?: boolean; cursor?: string }; body: never; response: BulkOut };
  list_dead: { path: "/v1/dead"; method: "GET"; query: { type?: string; queue?: string; tag?: string; tenant?: string; created_after?: string; created_before?: string; error?: string; group?: "fingerprint"; cursor?: string; limit?: number }; body: never; response: DeadPage };
  replay_dead: { path: "/v1/dead/replay"; method: "POST"; query: Record<string, never>; body: ReplayRequest; response: BulkOut };
  clear_demo: { path: "/v1/demo/clear"; method: "POST"; query: Record<string, never>; body: never; response: Cleared };
  seed_demo: { path: "/v1/demo/seed"; method: "POST"; query: { jobs?: number }; body: never; response: Seeded };
  events: { path: "/v1/events"; method: "GET"; query: { queue?: string; type?: string; job?: string; tenant?: string }; body: never; response: null };
  list_jobs: { path: "/v1/jobs"; method: "GET"; query: { type?: string; queue?: string; tag?: string; tenant?: string; created_after?: string; created_before?: string; error?: string; status?: "blocked" | "cancelled" | "dead" | "ready" | "retrying" | "running" | "scheduled" | "succeeded"; id_prefix?: string; cursor?: string; limit?: number }; body: never; response: JobPage };
  submit_job: { path: "/v1/jobs"; method: "POST"; query: Record<string, never>; body: SubmitJob; response: JobOut };
  submit_batch: { path: "/v1/jobs/batch"; method: "POST"; query: Record<string, never>; body: SubmitBatch; response: BatchOut };
  cancel_jobs: { path: "/v1/jobs/cancel"; method: "POST"; query: Record<string, never>; body: BulkCancel; response: BulkOut };
  retry_jobs: { path: "/v1/jobs/retry"; method: "POST"; query: Record<string, never>; body: BulkRequest; response: BulkOut };
  delete_job: { path: "/v1/jobs/{id}"; method: "DELETE"; query: Record<string, never>; body: never; response: null };
  get_job: { path: "/v1/jobs/{id}"; method: "GET"; query: Record<string, never>; body: never; response: JobDetail };
  list_attempts: { path: "/v1/jobs/{id}/attempts"; method: "GET"; query: { cursor?: string }; body: never; response: AttemptPage };
  cancel_job: { path: "/v1/jobs/{id}/cancel"; method: "POST"; query: Record<string, never>; body: CancelRequest; response: JobDetail };
  explain_job: { path: "/v1/jobs/{id}/explain"; method: "GET"; query: Record<string, never>; body: never; response: Explanation };
  retry_job: { path: "/v1/jobs/{id}/retry"; method: "POST"; query: Record<string, never>; body: never; response: JobDetail };
  list_steps: { path: "/v1/jobs/{id}/steps"; method: "GET"; query: { cursor?: string }; body: never; response: StepPage };
  list_keys: { path: "/v1/keys"; method: "GET"; query: { tenant?: string; cursor?: string; limit?: number }; body: never; response: KeyPage };
  create_key: { path: "/v1/keys"; method: "POST"; query: Record<string, never>; body: NewKeyRequest; response: KeyMade };
  revoke_key: { path: "/v1/keys/{id}"; method: "DELETE"; query: Record<string, never>; body: never; response: KeyOut };
  lease_jobs: { path: "/v1/leases"; method: "POST"; query: Record<string, never>; body: LeaseRequest; response: LeaseOut };
  begin_delivery: { path: "/v1/leases/deliveries"; method: "POST"; query: Record<string, never>; body: DeliveryRequest; response: DeliveryOut };
  end_delivery: { path: "/v1/leases/deliveries/done"; method: "POST"; query: Record<string, never>; body: DeliveryDone; response: null };
  depart_worker: { path: "/v1/leases/depart"; method: "POST"; query: Record<string, never>; body: DepartRequest; response: DepartedOut };
  held_jobs: { path: "/v1/leases/held"; method: "POST"; query: Record<string, never>; body: HeldRequest; response: HeldPage };
  lost_jobs: { path: "/v1/leases/lost"; method: "POST"; query: Record<string, never>; body: LostRequest; response: LostOut };
  save_progress: { path: "/v1/leases/progress"; method: "POST"; query: Record<string, never>; body: ProgressRequest; response: null };
  renew_lease: { path: "/v1/leases/renew"; method: "POST"; query: Record<string, never>; body: RenewRequest; response: LostOut };
  settle_jobs: { path: "/v1/leases/settle"; method: "POST"; query: Record<string, never>; body: SettleRequest; response: SettledOut };
  recorded_steps: { path: "/v1/leases/steps"; method: "GET"; query: { worker?: string; id?: string; fence?: number; cursor?: string }; body: never; response: StepList };
  record_step: { path: "/v1/leases/steps"; method: "POST"; query: Record<string, never>; body: StepRequest; response: null };
  list_limits: { path: "/v1/limits"; method: "GET"; query: { kind?: "key" | "queue" | "tenant"; tenant?: string }; body: never; response: LimitList };
  set_limit: { path: "/v1/limits"; method: "PUT"; query: Record<string, never>; body: SetLimit; response: LimitOut };
  me: { path: "/v1/me"; method: "GET"; query: Record<string, never>; body: never; response: Me };
  end_pause: { path: "/v1/pauses"; method: "DELETE"; query: { type?: string; tenant?: string }; body: never; response: PauseOut | null };
  list_pauses: { path: "/v1/pauses"; method: "GET"; query: Record<string, never>; body: never; response: PauseList };
  set_pause: { path: "/v1/pauses"; method: "PUT"; query: Record<string, never>; body: SetPause; response: PauseOut };
  list_queues: { path: "/v1/queues"; method: "GET"; query: { tenant?: string; cursor?: string; limit?: number }; body: never; response: QueueList };
  change_queue: { path: "/v1/queues/{name}"; method: "PATCH"; query: Record<string, never>; body: ChangeQueue; response: QueueOut };
  sign_in: { path: "/v1/sign-in"; method: "POST"; query: Record<string, never>; body: SignIn; response: KeyMade };
  stats: { path: "/v1/stats"; method: "GET"; query: { tenant?: string; cursor?: string; limit?: number }; body: never; response: Stats };
  list_tenants: { path: "/v1/tenants"; method: "GET"; query: { cursor?: string; limit?: number }; body: never; response: TenantPage };
  create_tenant: { path: "/v1/tenants"; method: "POST"; query: Record<string, never>; body: NewTenant; response: TenantOut };
  change_tenant: { path: "/v1/tenants/{name}"; method: "PATCH"; query: Record<string, never>; body: TenantChange; response: TenantOut };
  drop_webhook_secret: { path: "/v1/tenants/{name}/webhook-secret"; method: "DELETE"; query: Record<string, never>; body: never; response: null };
  show_webhook_secret: { path: "/v1/tenants/{name}/webhook-secret"; method: "GET"; query: Record<string, never>; body: never; response: WebhookSecretOut };
  rotate_webhook_secret: { path: "/v1/tenants/{name}/webhook-secret"; method: "POST"; query: { overlap?: number | string }; body: never; response: WebhookSecretMade };
  create_token: { path: "/v1/tokens"; method: "POST"; query: Record<string, never>; body: TokenRequest; response: TokenOut };
  list_types: { path: "/v1/types"; method: "GET"; query: { tenant?: string; cursor?: string; limit?: number }; body: never; response: TypePage };
  list_workers: { path: "/v1/workers"; method: "GET"; query: { cursor?: string; limit?: number }; body: never; response: WorkerPage };
  drain_worker: { path: "/v1/workers/{id}/drain"; method: "POST"; query: Record<string, never>; body: never; response: DrainOut };
}
