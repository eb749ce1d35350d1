// Generated from the OpenAPI description by tools/dashboard_types.py. Do not edit: run ./dev dashboard --types.
/* eslint-disable */

/** Any JSON value. Integers beyond `Number.MAX_SAFE_INTEGER` are bigints. */
export type Json = null | boolean | number | bigint | string | Json[] | { [key: string]: Json };

/** What a worker says of itself when it registers, for the register of workers. */
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

/** The process answers. */
export interface Alive {
  status: string;
}

/** An attempt that did not succeed, or that logged something. */
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

/** The answers to a batch, in its order. */
export interface BatchOut {
  items: ReceiptOut[];
}

/** A destination of webhooks that gave trouble lately. All others are closed. */
export interface BreakerOut {
  tenant: string;
  destination: string;
  state: "closed" | "half_open" | "open";
  failures: number;
  until: string | null;
  error: string;
  changed_at: string;
}

/** A page of breakers, by tenant and destination. */
export interface BreakerPage {
  items: BreakerOut[];
  next_cursor: string | null;
}

/** Which jobs to cancel, and why. */
export interface BulkCancel {
  filter?: FilterShape;
  all?: boolean;
  dry_run?: boolean;
  cursor?: string | null;
  reason?: string;
}

/** What became of an action on many jobs. */
export interface BulkOut {
  matched: number;
  changed: number;
  dry_run: boolean;
  next_cursor: string | null;
}

/** All jobs that match, in several requests if they are many: repeat with `next_cursor` as `cursor`. */
export interface BulkRequest {
  filter?: FilterShape;
  all?: boolean;
  dry_run?: boolean;
  cursor?: string | null;
}

/** Why, for whoever looks at the job later. */
export interface CancelRequest {
  reason?: string;
}

/** Its handler decided that it is pointless. */
export interface CancelledIn {
  outcome: "cancelled";
  reason?: string;
  id: string;
  /** Rises at each claim; only its holder knows the newest. */
  fence: number;
  logs?: LogsIn | null;
}

/** What to change; what is left out stays as it is. */
export interface ChangeQueue {
  paused?: boolean;
  reason?: string;
  until?: string | null;
  max_running?: number | null;
  rate?: RateShape | null;
}

/** How many jobs of the demo were removed. */
export interface Cleared {
  jobs: number;
}

/** The process that ran it ended. */
export interface CrashedIn {
  outcome: "crashed";
  how: string;
  id: string;
  /** Rises at each claim; only its holder knows the newest. */
  fence: number;
  logs?: LogsIn | null;
}

/** Which dead letters; what is left out matches all. */
export interface DeadFilter {
  type?: string | null;
  queue?: string | null;
  tag?: string | null;
  tenant?: string | null;
  created_after?: string | null;
  created_before?: string | null;
  error?: string | null;
}

/** A page of dead letters, newest first, or of groups of them if these were asked for. */
export interface DeadPage {
  items?: JobOut[];
  groups?: GroupOut[];
  next_cursor: string | null;
}

/** What came of a delivery. */
export interface DeliveryDone {
  /** A worker's id, never used again once it is gone. */
  worker: string;
  id: string;
  /** Rises at each claim; only its holder knows the newest. */
  fence: number;
  destination: string;
  probe?: boolean;
  error?: string | null;
}

/** Whether a delivery may go out. */
export interface DeliveryOut {
  wait: number | null;
  probe: boolean;
  signature: string;
}

/** A delivery that a worker is about to make for a job it holds. */
export interface DeliveryRequest {
  /** A worker's id, never used again once it is gone. */
  worker: string;
  id: string;
  /** Rises at each claim; only its holder knows the newest. */
  fence: number;
  destination: string;
  /** Seconds, or a text such as '250ms', '30s', '5m', '1h30m' or '7d'. */
  probe_for: number | string;
  at: number;
  body?: string;
}

/** Strike a worker that holds nothing. */
export interface DepartRequest {
  /** A worker's id, never used again once it is gone. */
  worker: string;
}

/** Whether the worker is struck; it is not while it holds jobs. */
export interface DepartedOut {
  departed: boolean;
}

/** The workers that end: the one that was named first, then the other processes of its node. */
export interface DrainOut {
  items: WorkerOut[];
}

/** What an attempt failed with. */
export interface ErrorIn {
  kind: string;
  message?: string;
  traceback?: string;
}

/** What an attempt failed with. */
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

/** It was not; tried again by its rule, or after `retry_in`, or never if it is not `retryable`. */
export interface FailedIn {
  outcome: "failed";
  error: ErrorIn;
  retryable?: boolean;
  retry_in?: number | string | null;
  id: string;
  /** Rises at each claim; only its holder knows the newest. */
  fence: number;
  logs?: LogsIn | null;
}

/** Who received what in a window, those first that are furthest below what they were entitled to. */
export interface FairnessOut {
  since: string;
  until: string;
  step: number;
  served: number;
  jain: number | null;
  tenants: number;
  items: TenantShareOut[];
}

/** What is wrong with one item of a batch. */
export interface Fault {
  index: number;
  code: string;
  detail: string;
  pointer?: string;
  job_id?: string;
}

/** Which jobs; what is left out matches all. */
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

/** A job that a worker holds. */
export interface HeldOut {
  id: string;
  fence: number;
  queue: string;
  type: string;
}

/** What a worker holds, by the database's account. */
export interface HeldPage {
  jobs: HeldOut[];
}

/** What a worker holds. */
export interface HeldRequest {
  /** A worker's id, never used again once it is gone. */
  worker: string;
  limit?: number;
}

/** A job as its holder names it. */
export interface HeldShape {
  id: string;
  /** Rises at each claim; only its holder knows the newest. */
  fence: number;
}

/** A job and all that is known of it. */
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

/** A page of jobs, newest first. It may hold fewer than asked for, even none: go on while there is a next_cursor. */
export interface JobPage {
  items: JobOut[];
  next_cursor: string | null;
}

/** A key that was made: the only time that its token is shown. */
export interface KeyMade {
  id: string;
  tenant: string;
  name: string;
  scopes: ("admin" | "cancel" | "read" | "submit" | "worker")[];
  created_at: string;
  expires_at: string | null;
  revoked_at: string | null;
  last_used_at: string | null;
  token: string;
}

/** A key, without its secret. */
export interface KeyOut {
  id: string;
  tenant: string;
  name: string;
  scopes: ("admin" | "cancel" | "read" | "submit" | "worker")[];
  created_at: string;
  expires_at: string | null;
  revoked_at: string | null;
  last_used_at: string | null;
}

/** A page of keys, newest first. */
export interface KeyPage {
  items: KeyOut[];
  next_cursor: string | null;
}

/** The worker, and the jobs it holds from now on. */
export interface LeaseOut {
  worker: string;
  jobs: LeasedJob[];
  draining: boolean;
}

/** Claim jobs. Without `worker`, or with `register`, a worker is registered first, and answered at once. */
export interface LeaseRequest {
  worker?: string | null;
  register?: About | null;
  lease?: number | string | null;
  queues?: string[];
  types?: string[] | null;
  limit?: number;
  wait?: number;
}

/** A job for the worker that claimed it. */
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

/** The limits that somebody set. */
export interface LimitList {
  items: LimitOut[];
  next_cursor: null;
}

/** A limit and how it stands. */
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

/** Where a job comes from. */
export interface LineageOut {
  generation: number;
  parent_id: string | null;
  schedule: string | null;
  workflow_id: string | null;
}

/** What a handler wrote into the log of its job. */
export interface LogLineOut {
  at: string;
  level: string;
  message: string;
}

/** The newest lines that an attempt logged, oldest first. */
export interface LogsIn {
  lines: LogLineOut[];
  dropped?: number;
}

/** The newest lines that an attempt logged, oldest first. */
export interface LogsOut {
  lines: LogLineOut[];
  dropped: number;
}

/** The jobs that are the worker's no more: stop them, nothing they do counts. */
export interface LostOut {
  lost: string[];
  draining: boolean;
}

/** Hear which jobs were taken away, without prolonging anything. */
export interface LostRequest {
  /** A worker's id, never used again once it is gone. */
  worker: string;
  held: HeldShape[];
}

/** Who a caller is, and what they may do here. */
export interface Me {
  name: string;
  tenant: string;
  scopes: ("admin" | "cancel" | "read" | "submit" | "worker")[];
  until: string | null;
  version: string;
  demo: boolean;
}

/** The same for one queue or one type. */
export interface NamedCounts {
  name: string;
  statuses: StatusCounts;
}

/** A key to make. */
export interface NewKeyRequest {
  scopes: ("admin" | "cancel" | "read" | "submit" | "worker")[];
  name: string;
  /** 1 to 128 letters, digits or _ . : / @ + -, beginning with a letter, a digit or _. */
  tenant?: string;
  expires_at?: string | null;
  expires_in?: number | string | null;
}

/** A tenant to enter. What is left out or null is the installation's default. */
export interface NewTenant {
  /** 1 to 128 letters, digits or _ . : / @ + -, beginning with a letter, a digit or _. */
  name: string;
  weight?: number | null;
  rate?: number | null;
  rate_window?: number | string | null;
  backlog?: number | null;
  queue_backlog?: number | null;
}

/** All that rests besides queues. */
export interface PauseList {
  items: PauseOut[];
  next_cursor: null;
}

/** What rests besides queues. */
export interface PauseOut {
  kind: "tenant" | "type";
  name: string;
  reason: string;
  until: string | null;
  since: string;
  by: string;
}

/** Seconds, off by a tenth at the most; null where nothing ended. */
export interface Percentiles {
  p50: number | null;
  p90: number | null;
  p95: number | null;
  p99: number | null;
}

/** What happened in one step of a window, that begins at `at`, and how long it took. */
export interface Point {
  at: string;
  totals: Totals;
  wait: Percentiles;
  run: Percentiles;
}

/** Why a request was not done, and what to do about it. */
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

/** How far a job is. */
export interface ProgressRequest {
  /** A worker's id, never used again once it is gone. */
  worker: string;
  id: string;
  /** Rises at each claim; only its holder knows the newest. */
  fence: number;
  fraction: number;
  note?: string;
}

/** All queues in which the caller sees something. */
export interface QueueList {
  as_of: string;
  items: QueueOut[];
  next_cursor: null;
}

/** A queue, as far as the caller sees: the numbers are of their own jobs, the administrator's of all. */
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

/** A rate of starts. */
export interface RateOut {
  limit: number;
  per: number;
  burst: number;
}

/** So many starts in each span of time. */
export interface RateShape {
  limit: number;
  /** Seconds, or a text such as '250ms', '30s', '5m', '1h30m' or '7d'. */
  per?: number | string;
  burst?: number;
}

/** How many each second. */
export interface Rates {
  submitted: number;
  started: number;
  finished: number;
  failed: number;
}

/** Whether requests can be served now. */
export interface Ready {
  ready: boolean;
  database: boolean;
  schema: boolean;
}

/** Reason with a stable `code`, a human-readable `detail` and structured facts. */
export interface Reason {
  code: "deadline_passed" | "finished" | "held_back" | "in_line" | "limit_full" | "no_worker" | "not_due" | "parents_missing" | "queue_paused" | "rate_spent" | "runnable" | "running" | "tenant_paused" | "type_paused";
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

/** The answer to one job of a batch: it is durable. */
export interface ReceiptOut {
  id: string;
  created_at: string;
  replayed: boolean;
}

/** It is handed back before it ended; no attempt is spent. */
export interface ReleasedIn {
  outcome: "released";
  id: string;
  /** Rises at each claim; only its holder knows the newest. */
  fence: number;
  logs?: LogsIn | null;
}

/** Prolong a lease, and hear which jobs were taken away. */
export interface RenewRequest {
  /** A worker's id, never used again once it is gone. */
  worker: string;
  /** Seconds, or a text such as '30s': how long the worker may be silent. */
  lease?: number | string;
  memory?: number | null;
  draining?: boolean;
  held?: HeldShape[];
}

/** Dead letters to run again: by their ids, or all that match. */
export interface ReplayRequest {
  ids?: string[] | null;
  filter?: DeadFilter | null;
  all?: boolean;
  dry_run?: boolean;
  cursor?: string | null;
}

/** How long to wait before the next attempt: exponential, or an explicit list whose last entry repeats. */
export interface RetryShape {
  /** Seconds, or a text such as '250ms', '30s', '5m', '1h30m' or '7d'. */
  base?: number | string;
  /** Seconds, or a text such as '250ms', '30s', '5m', '1h30m' or '7d'. */
  cap?: number | string;
  jitter?: number;
  delays?: (number | string)[];
}

/** What the demo submitted. */
export interface Seeded {
  jobs: number;
  tenants: string[];
}

/** A window step by step, without gaps. */
export interface Series {
  since: string;
  until: string;
  step: number;
  points: Point[];
}

/** A limit: of a queue, of a tenant, or, with both `tenant` and `concurrency_key`, of a key. What is left out or null is not limited; of a key, one job runs at a time then. */
export interface SetLimit {
  queue?: string | null;
  tenant?: string | null;
  concurrency_key?: string | null;
  max_running?: number | null;
  rate?: RateShape | null;
}

/** A type or a tenant, of which nothing is to be claimed; what runs goes on. */
export interface SetPause {
  type?: string | null;
  tenant?: string | null;
  reason?: string;
  until?: string | null;
}

/** What came of attempts. */
export interface SettleRequest {
  /** A worker's id, never used again once it is gone. */
  worker: string;
  outcomes: (SucceededIn | FailedIn | TimedOutIn | CrashedIn | SnoozedIn | ReleasedIn | CancelledIn)[];
}

/** The jobs whose outcome took effect. The others were taken away before. */
export interface SettledOut {
  settled: string[];
}

/** A ticket, as `holdfast up` prints it in its link. */
export interface SignIn {
  ticket: string;
}

/** It wants to be run again later; no attempt is spent. */
export interface SnoozedIn {
  outcome: "snoozed";
  /** Seconds, or a text such as '250ms', '30s', '5m', '1h30m' or '7d'. */
  delay: number | string;
  held?: boolean;
  id: string;
  /** Rises at each claim; only its holder knows the newest. */
  fence: number;
  logs?: LogsIn | null;
}

/** How many jobs there are. With many hundred thousand unfinished ones, some seconds old: see `as_of`. */
export interface Stats {
  as_of: string;
  statuses: StatusCounts;
  queues: NamedCounts[];
  types: NamedCounts[];
}

/** Status of a job. API, SDK and dashboard use the same words. */
export interface Status {
}

/** How many jobs stand in which state. Those that ended well or were cancelled: in the last 24 hours. */
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

/** What earlier attempts recorded, oldest first. */
export interface StepList {
  steps: StepRecord[];
}

/** What a step of the job left. */
export interface StepOut {
  key: string;
  state: "done" | "started";
  recorded_at: string;
  result: Json;
  transaction: boolean;
}

/** What a step of an earlier attempt left. */
export interface StepRecord {
  key: string;
  state: "done" | "started";
  result: Json;
  transaction: boolean;
}

/** A step of a job that is done, or about to be done at most once. */
export interface StepRequest {
  /** A worker's id, never used again once it is gone. */
  worker: string;
  id: string;
  /** Rises at each claim; only its holder knows the newest. */
  fence: number;
  key: string;
  state?: "done" | "started";
  result?: Json;
}

/** Jobs to submit together: all, or none. */
export interface SubmitBatch {
  jobs: SubmitBatchJob[];
}

/** A job of a batch; it carries its idempotency key itself. */
export interface SubmitBatchJob {
  /** 1 to 128 letters, digits or _ . : / @ + -, beginning with a letter, a digit or _. */
  type: string;
  payload?: Json;
  /** 1 to 128 letters, digits or _ . : / @ + -, beginning with a letter, a digit or _. */
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

/** A job to submit. */
export interface SubmitJob {
  /** 1 to 128 letters, digits or _ . : / @ + -, beginning with a letter, a digit or _. */
  type: string;
  payload?: Json;
  /** 1 to 128 letters, digits or _ . : / @ + -, beginning with a letter, a digit or _. */
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

/** It was done; up to 256 KiB of result are kept. */
export interface SucceededIn {
  outcome: "succeeded";
  result?: Json;
  id: string;
  /** Rises at each claim; only its holder knows the newest. */
  fence: number;
  logs?: LogsIn | null;
}

/** What happened in a window, and how long it took. */
export interface Summary {
  since: string;
  until: string;
  totals: Totals;
  rates: Rates;
  wait: Percentiles;
  run: Percentiles;
  failure_ratio: number | null;
}

/** What to change. Null goes back to the installation's default. These bound what is submitted and waits; what runs is bounded by `PUT /v1/limits`, with its `tenant`. */
export interface TenantChange {
  weight?: number | null;
  rate?: number | null;
  rate_window?: number | string | null;
  backlog?: number | null;
  queue_backlog?: number | null;
}

/** A tenant. Null is the installation's default. */
export interface TenantOut {
  name: string;
  weight: number | null;
  rate: number | null;
  rate_window: number | null;
  backlog: number | null;
  queue_backlog: number | null;
  created_at: string;
}

/** A page of tenants, by name. */
export interface TenantPage {
  items: TenantOut[];
  next_cursor: string | null;
}

/** What one tenant received of all that was served, against what it was entitled to. */
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

/** It took longer than it may. */
export interface TimedOutIn {
  outcome: "timed_out";
  /** Seconds, or a text such as '250ms', '30s', '5m', '1h30m' or '7d'. */
  after: number | string;
  id: string;
  /** Rises at each claim; only its holder knows the newest. */
  fence: number;
  logs?: LogsIn | null;
}

/** A token that was made. It ends with the key it was made with, at the latest when it expires. */
export interface TokenOut {
  token: string;
  token_type: "Bearer";
  tenant: string;
  scopes: ("admin" | "cancel" | "read" | "submit" | "worker")[];
  expires_at: string;
}

/** A token to make: with the scopes of the key, or fewer; for 15 minutes, or at most an hour. */
export interface TokenRequest {
  scopes?: ("admin" | "cancel" | "read" | "submit" | "worker")[] | null;
  /** Seconds, or a text such as '250ms', '30s', '5m', '1h30m' or '7d'. */
  expires_in?: number | string;
}

/** What happened. */
export interface Totals {
  submitted: number;
  started: number;
  succeeded: number;
  failed: number;
  dead: number;
  cancelled: number;
}

/** The figures of one type of jobs. */
export interface TypeFigures {
  type: string;
  totals: Totals;
  rates: Rates;
  wait: Percentiles;
  run: Percentiles;
  failure_ratio: number | null;
}

/** What a worker tells of a type of jobs that it handles. */
export interface TypeIn {
  /** 1 to 128 letters, digits or _ . : / @ + -, beginning with a letter, a digit or _. */
  type: string;
  schema?: { [key: string]: Json } | null;
  queue?: string | null;
  max_attempts?: number | null;
  timeout?: number | string | null;
  priority?: number | null;
  cost?: number | null;
}

/** All types of which something happened in a window, the busiest first. */
export interface TypeList {
  since: string;
  until: string;
  items: TypeFigures[];
}

/** A type of jobs, as whoever handles it tells. What is null was not told. */
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

/** Types of jobs, by name. What a tenant's own workers tell of one stands in for what those of everybody tell. */
export interface TypePage {
  items: TypeOut[];
  next_cursor: string | null;
}

/** One such job at a time: the same as far as `by` tells. */
export interface UniqueShape {
  by?: string[];
  /** Seconds, or a text such as '250ms', '30s', '5m', '1h30m' or '7d'. */
  within?: number | string;
  on_conflict?: "reject" | "replace" | "return";
}

/** A secret that was made: the only time that it is shown. */
export interface WebhookSecretMade {
  tenant: string;
  created_at: string;
  previous_until: string | null;
  secret: string;
}

/** What is known of a tenant's secret for webhooks; not the secret. */
export interface WebhookSecretOut {
  tenant: string;
  created_at: string;
  previous_until: string | null;
}

/** All workers that are registered, oldest first. */
export interface WorkerList {
  items: WorkerOut[];
  next_cursor: null;
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
  actions: "drain"[];
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
  list_jobs: { path: "/v1/jobs"; method: "GET"; query: { type?: string; queue?: string; tag?: string; tenant?: string; created_after?: string; created_before?: string; error?: string; status?: "blocked" | "cancelled" | "dead" | "ready" | "retrying" | "running" | "scheduled" | "succeeded"; cursor?: string; limit?: number }; body: never; response: JobPage };
  submit_job: { path: "/v1/jobs"; method: "POST"; query: Record<string, never>; body: SubmitJob; response: JobOut };
  submit_batch: { path: "/v1/jobs/batch"; method: "POST"; query: Record<string, never>; body: SubmitBatch; response: BatchOut };
  cancel_jobs: { path: "/v1/jobs/cancel"; method: "POST"; query: Record<string, never>; body: BulkCancel; response: BulkOut };
  retry_jobs: { path: "/v1/jobs/retry"; method: "POST"; query: Record<string, never>; body: BulkRequest; response: BulkOut };
  delete_job: { path: "/v1/jobs/{id}"; method: "DELETE"; query: Record<string, never>; body: never; response: null };
  get_job: { path: "/v1/jobs/{id}"; method: "GET"; query: Record<string, never>; body: never; response: JobDetail };
  cancel_job: { path: "/v1/jobs/{id}/cancel"; method: "POST"; query: Record<string, never>; body: CancelRequest; response: JobDetail };
  explain_job: { path: "/v1/jobs/{id}/explain"; method: "GET"; query: Record<string, never>; body: never; response: Explanation };
  retry_job: { path: "/v1/jobs/{id}/retry"; method: "POST"; query: Record<string, never>; body: never; response: JobDetail };
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
  recorded_steps: { path: "/v1/leases/steps"; method: "GET"; query: { worker?: string; id?: string; fence?: number }; body: never; response: StepList };
  record_step: { path: "/v1/leases/steps"; method: "POST"; query: Record<string, never>; body: StepRequest; response: null };
  list_limits: { path: "/v1/limits"; method: "GET"; query: { kind?: "key" | "queue" | "tenant"; tenant?: string }; body: never; response: LimitList };
  set_limit: { path: "/v1/limits"; method: "PUT"; query: Record<string, never>; body: SetLimit; response: LimitOut };
  me: { path: "/v1/me"; method: "GET"; query: Record<string, never>; body: never; response: Me };
  end_pause: { path: "/v1/pauses"; method: "DELETE"; query: { type?: string; tenant?: string }; body: never; response: PauseOut | null };
  list_pauses: { path: "/v1/pauses"; method: "GET"; query: Record<string, never>; body: never; response: PauseList };
  set_pause: { path: "/v1/pauses"; method: "PUT"; query: Record<string, never>; body: SetPause; response: PauseOut };
  list_queues: { path: "/v1/queues"; method: "GET"; query: { tenant?: string }; body: never; response: QueueList };
  change_queue: { path: "/v1/queues/{name}"; method: "PATCH"; query: Record<string, never>; body: ChangeQueue; response: QueueOut };
  sign_in: { path: "/v1/sign-in"; method: "POST"; query: Record<string, never>; body: SignIn; response: KeyMade };
  stats: { path: "/v1/stats"; method: "GET"; query: { tenant?: string }; body: never; response: Stats };
  list_tenants: { path: "/v1/tenants"; method: "GET"; query: { cursor?: string; limit?: number }; body: never; response: TenantPage };
  create_tenant: { path: "/v1/tenants"; method: "POST"; query: Record<string, never>; body: NewTenant; response: TenantOut };
  change_tenant: { path: "/v1/tenants/{name}"; method: "PATCH"; query: Record<string, never>; body: TenantChange; response: TenantOut };
  drop_webhook_secret: { path: "/v1/tenants/{name}/webhook-secret"; method: "DELETE"; query: Record<string, never>; body: never; response: null };
  show_webhook_secret: { path: "/v1/tenants/{name}/webhook-secret"; method: "GET"; query: Record<string, never>; body: never; response: WebhookSecretOut };
  rotate_webhook_secret: { path: "/v1/tenants/{name}/webhook-secret"; method: "POST"; query: { overlap?: number | string }; body: never; response: WebhookSecretMade };
  create_token: { path: "/v1/tokens"; method: "POST"; query: Record<string, never>; body: TokenRequest; response: TokenOut };
  list_types: { path: "/v1/types"; method: "GET"; query: { tenant?: string; cursor?: string; limit?: number }; body: never; response: TypePage };
  list_workers: { path: "/v1/workers"; method: "GET"; query: Record<string, never>; body: never; response: WorkerList };
  drain_worker: { path: "/v1/workers/{id}/drain"; method: "POST"; query: Record<string, never>; body: never; response: DrainOut };
}
