// Generated from the OpenAPI description by tools/client_types.py. Do not edit.

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

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

/** Receipts of a batch, in the order of its jobs. */
export interface BatchOut {
  items: ReceiptOut[];
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

/** The process of the attempt died. */
export interface CrashedIn {
  outcome: "crashed";
  how: string;
  id: string;
  /** Fencing token: increases at each claim, and only its holder knows the newest. */
  fence: number;
  logs?: LogsIn | null;
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

/** Error of one item of a batch. */
export interface Fault {
  index: number;
  code: string;
  detail: string;
  pointer?: string;
  job_id?: string;
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

/** Error of one outcome of a settlement; the worker still holds its job, so it can report another outcome. */
export interface OutcomeFault {
  index: number;
  code: string;
  detail: string;
  pointer: string;
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

/** Wait before the next attempt: exponential, or a list of delays whose last entry repeats. */
export interface RetryShape {
  /** Seconds, or a text such as '250ms', '30s', '5m', '1h30m' or '7d'. */
  base?: number | string;
  /** Seconds, or a text such as '250ms', '30s', '5m', '1h30m' or '7d'. */
  cap?: number | string;
  jitter?: number;
  delays?: (number | string)[];
}

/** Outcomes of attempts. */
export interface SettleRequest {
  /** Id of a worker; never reused. */
  worker: string;
  outcomes: (SucceededIn | FailedIn | TimedOutIn | CrashedIn | SnoozedIn | ReleasedIn | UnavailableIn | CancelledIn)[];
}

/** Jobs whose outcomes were applied; the worker had lost those that are neither settled nor refused. */
export interface SettledOut {
  settled: string[];
  refused: OutcomeFault[];
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
