// Generated from the OpenAPI description by tools/dashboard_types.py. Do not edit: run ./dev dashboard --types.
/* eslint-disable */

/** Any JSON value. Integers beyond `Number.MAX_SAFE_INTEGER` are bigints. */
export type Json = null | boolean | number | bigint | string | Json[] | { [key: string]: Json };

/** Description of a worker, given when it registers. */
export interface About {
  /** Name of the worker for people; by default its id. */
  name?: string;
  /** Name of the machine. */
  host?: string;
  /** Id of the process on its machine. */
  pid?: number;
  /** Version of the worker's software. */
  version?: string;
  /** Queues that it serves, separated by commas; by default those of its first claim. */
  queues?: string;
  /** Number of jobs that the worker can run at once. */
  slots?: number;
  /** Types that it has handlers for; by default, the types of its first claim. */
  types?: string[] | null;
  /** Descriptions of these types, for clients that submit such jobs. */
  described?: TypeIn[];
  /** Id shared by processes that drain together; empty for a single process. */
  node?: string;
}

/** Liveness of the process. */
export interface Alive {
  /** Always `ok`. */
  status: string;
}

/** Window of statistics: '1m' to '90d', as seconds or as a text. */
export type AnalyticsWindow = number | string;

/** Attempt that did not succeed, or that logged something. */
export interface AttemptOut {
  /** Number of the attempt, from 1. */
  attempt: number;
  /** How often the job was replayed after it had finished. */
  generation: number;
  /** Id of the worker that ran it. */
  worker: string;
  /** Start of the attempt. */
  started_at: string;
  /** End of the attempt. */
  ended_at: string;
  /** End of the attempt, such as `failed` or `timed_out`. */
  outcome: string;
  /** Error of the attempt; null if it has none. */
  error: ErrorOut | null;
  /** Log lines of the attempt; null if there are none. */
  logs: LogsOut | null;
}

/** Page of the attempts of a job that did not succeed or logged something, newest first. */
export interface AttemptPage {
  /** Items of this page. */
  items: AttemptOut[];
  /** Cursor of the next page; null on the last page. */
  next_cursor: string | null;
}

/** Receipts of a batch, in the order of its jobs. */
export interface BatchOut {
  /** Items of this page. */
  items: ReceiptOut[];
}

/** Circuit breaker of a webhook destination that failed recently; all others are closed. */
export interface BreakerOut {
  /** Tenant that the object belongs to. */
  tenant: string;
  /** Scheme, host and port. */
  destination: string;
  /** Current state. */
  state: BreakerState;
  /** Consecutive failures. */
  failures: number;
  /** If open, time of the next probe; if half-open, time at which the current probe expires. */
  until: string | null;
  /** Last error. */
  error: string;
  /** Time of the last change. */
  changed_at: string;
}

/** Page of circuit breakers, by tenant and destination. */
export interface BreakerPage {
  /** Items of this page. */
  items: BreakerOut[];
  /** Cursor of the next page; null on the last page. */
  next_cursor: string | null;
}

/** State of a circuit breaker. */
export type BreakerState = "closed" | "half_open" | "open";

/** Cancellation of all matching jobs. */
export interface BulkCancel {
  /** Filter of the jobs; omitted fields match everything. */
  filter?: FilterShape;
  /** Required if the filter is empty. */
  all?: boolean;
  /** Only count the matching jobs. */
  dry_run?: boolean;
  /** `next_cursor` of the previous page. */
  cursor?: string | null;
  /** Reason, for people. */
  reason?: string;
}

/** Result of an action on many jobs. */
export interface BulkOut {
  /** Number of jobs in a state that allows the action. */
  matched: number;
  /** Number of jobs that this request changed; the rest changed concurrently. */
  changed: number;
  /** True if nothing was changed, because the request asked only to count. */
  dry_run: boolean;
  /** Not null if there are more jobs: repeat the request with this value as `cursor`. */
  next_cursor: string | null;
}

/** Action on all matching jobs; repeat it with `next_cursor` as `cursor` until that is null. */
export interface BulkRequest {
  /** Filter of the jobs; omitted fields match everything. */
  filter?: FilterShape;
  /** Required if the filter is empty. */
  all?: boolean;
  /** Only count the matching jobs. */
  dry_run?: boolean;
  /** `next_cursor` of the previous page. */
  cursor?: string | null;
}

/** Reason for a cancellation, kept with the job. */
export interface CancelRequest {
  /** Reason, for people. */
  reason?: string;
}

/** The handler cancelled the job. */
export interface CancelledIn {
  /** Outcome of the attempt. */
  outcome: "cancelled";
  /** Reason, for people. */
  reason?: string;
  /** Id of the job. */
  id: string;
  /** Fencing token: increases at each claim, and only its holder knows the newest. */
  fence: number;
  /** Log of the attempt; null if it has none. */
  logs?: LogsIn | null;
}

/** Change of a queue; omitted fields stay unchanged. */
export interface ChangeQueue {
  /** True to pause the queue, false to resume it. */
  paused?: boolean;
  /** Reason of the pause. */
  reason?: string;
  /** End of the pause; null for no end. */
  until?: string | null;
  /** Maximum number of running jobs; 0 lets none start. */
  max_running?: number | null;
  /** Maximum rate; null without a limit. */
  rate?: RateShape | null;
}

/** Number of demo jobs that were deleted. */
export interface Cleared {
  /** Number of deleted jobs. */
  jobs: number;
}

/** The process of the attempt died. */
export interface CrashedIn {
  /** Outcome of the attempt. */
  outcome: "crashed";
  /** Cause of the death, such as a signal. */
  how: string;
  /** Id of the job. */
  id: string;
  /** Fencing token: increases at each claim, and only its holder knows the newest. */
  fence: number;
  /** Log of the attempt; null if it has none. */
  logs?: LogsIn | null;
}

/** Filter for dead letters; omitted fields match everything. */
export interface DeadFilter {
  /** 1 to 128 letters, digits or _ . : / @ + -, starting with a letter, a digit or _. */
  type?: string | null;
  /** 1 to 128 letters, digits or _ . : / @ + -, starting with a letter, a digit or _. */
  queue?: string | null;
  /** Only jobs with this tag. */
  tag?: string | null;
  /** 1 to 128 letters, digits or _ . : / @ + -, starting with a letter, a digit or _. */
  tenant?: string | null;
  /** RFC 3339, with offset. */
  created_after?: string | null;
  /** RFC 3339, with offset. */
  created_before?: string | null;
  /** Fingerprint of an error: `error.fingerprint` of a job. */
  error?: string | null;
}

/** Page of dead letters, newest first, or of groups if `group` was requested. */
export interface DeadPage {
  /** Dead letters of this page; absent if groups were requested. */
  items?: JobOut[];
  /** Groups; pages are ordered by tenant and error, groups within a page by their latest death. */
  groups?: GroupOut[];
  /** Cursor of the next page; null on the last page. */
  next_cursor: string | null;
}

/** Outcome of a delivery. */
export interface DeliveryDone {
  /** Id of the worker that holds the job. */
  worker: string;
  /** Id of the job. */
  id: string;
  /** Fencing token: increases at each claim, and only its holder knows the newest. */
  fence: number;
  /** Scheme, host and port of the receiver. */
  destination: string;
  /** `probe` of the permission. */
  probe?: boolean;
  /** Error of the destination; null if it responded. */
  error?: string | null;
}

/** Permission for a delivery. */
export interface DeliveryOut {
  /** Seconds to hold the job while the breaker is open; null if it may be sent. */
  wait: number | null;
  /** True if this delivery probes a destination whose breaker is open. */
  probe: boolean;
  /** Value of the header `webhook-signature`; empty if the tenant has no secret. */
  signature: string;
}

/** Delivery that a worker is about to make for a job it holds. */
export interface DeliveryRequest {
  /** Id of the worker that holds the job. */
  worker: string;
  /** Id of the job. */
  id: string;
  /** Fencing token: increases at each claim, and only its holder knows the newest. */
  fence: number;
  /** Scheme, host and port of the receiver. */
  destination: string;
  /** Maximum duration of the delivery. */
  probe_for: Duration;
  /** Timestamp to sign, in seconds since 1970. */
  at: number;
  /** Body to sign, in base64. */
  body?: string;
}

/** Removal of a worker that holds no jobs. */
export interface DepartRequest {
  /** Id of a worker; never reused. */
  worker: string;
}

/** Result of a removal; a worker that holds jobs is not removed. */
export interface DepartedOut {
  /** True if the worker was removed. */
  departed: boolean;
}

/** Draining workers: the requested one first, then the other processes of its node. */
export interface DrainOut {
  /** Items of this page. */
  items: WorkerOut[];
}

/** Seconds, or a text such as '250ms', '30s', '5m', '1h30m' or '7d'. */
export type Duration = number | string;

/** Error of a failed attempt. */
export interface ErrorIn {
  /** Type of the error, such as the name of an exception. */
  kind: string;
  /** Text of the error. */
  message?: string;
  /** Stack of the error, for people. */
  traceback?: string;
}

/** Error of a failed attempt. */
export interface ErrorOut {
  /** Type of the error, such as the name of an exception. */
  kind: string;
  /** Text of the error. */
  message: string;
  /** Fingerprint of the error; errors with the same cause have the same one. */
  fingerprint: string;
  /** Stack of the error, for people. */
  traceback?: string;
}

/** Estimated start and its basis; `at` is None if it cannot be estimated. */
export interface Estimate {
  /** Estimated start; null if it cannot be estimated. */
  at: string | null;
  /** Basis of the estimate, for people. */
  basis: string;
}

/** Data of a server-sent event; its line `event` says which kind it is. */
export type Event = JobEvent | JobsEvent | WorkerEvent | ResetEvent;

/** New status of a job; `deleted` if the job was deleted. */
export type EventStatus = "blocked" | "cancelled" | "dead" | "ready" | "retrying" | "running" | "scheduled" | "succeeded" | "deleted";

/** Explanation of why a job is (not) running, as of one instant. */
export interface Explanation {
  /** Id of the job. */
  id: string;
  /** Current status. */
  status: JobStatus;
  /** Time of the explanation. */
  as_of: string;
  /** True if nothing blocks the job: the next worker with a free slot claims it in order. */
  runnable: boolean;
  /** Most important reason first; never empty. */
  reasons: Reason[];
  /** Estimated start. */
  estimate: Estimate;
}

/** The attempt failed; retried by its rule or after `retry_in`, unless not `retryable`. */
export interface FailedIn {
  /** Outcome of the attempt. */
  outcome: "failed";
  /** Error of the attempt. */
  error: ErrorIn;
  /** False if a further attempt cannot succeed; the job is then dead. Default: `true`. */
  retryable?: boolean;
  /** Time until the next attempt; null for the rule of the job. */
  retry_in?: Duration | null;
  /** Id of the job. */
  id: string;
  /** Fencing token: increases at each claim, and only its holder knows the newest. */
  fence: number;
  /** Log of the attempt; null if it has none. */
  logs?: LogsIn | null;
}

/** Service received per tenant in a window, most underserved first. */
export interface FairnessOut {
  /** Start of the period. */
  since: string;
  /** End of the period; null if it is open. */
  until: string;
  /** Length of a step in seconds; entitlement is computed per step. */
  step: number;
  /** Cost of all finished attempts. */
  served: number;
  /** Jain's index over the ratios of backlogged tenants; 1 is fair, null if there were none. */
  jain: number | null;
  /** Number of tenants; `items` has at most 500. */
  tenants: number;
  /** Items of this page. */
  items: TenantShareOut[];
}

/** Window of the fairness report: '1m' to '7d', as seconds or as a text. */
export type FairnessWindow = number | string;

/** Error of one item of a batch. */
export interface Fault {
  /** Position in the batch. */
  index: number;
  /** Stable code. */
  code: ProblemCode;
  /** Explanation for people: what happened, and what to do. */
  detail: string;
  /** Invalid field, as a JSON pointer into the body; empty for the whole request. */
  pointer?: string;
  /** Conflicting job. */
  job_id?: string;
}

/** Filter for jobs; omitted fields match everything. */
export interface FilterShape {
  /** 1 to 128 letters, digits or _ . : / @ + -, starting with a letter, a digit or _. */
  type?: string | null;
  /** 1 to 128 letters, digits or _ . : / @ + -, starting with a letter, a digit or _. */
  queue?: string | null;
  /** Only jobs with this tag. */
  tag?: string | null;
  /** 1 to 128 letters, digits or _ . : / @ + -, starting with a letter, a digit or _. */
  tenant?: string | null;
  /** RFC 3339, with offset. */
  created_after?: string | null;
  /** RFC 3339, with offset. */
  created_before?: string | null;
  /** Fingerprint of an error: `error.fingerprint` of a job. */
  error?: string | null;
  /** Current status. */
  status?: JobStatus | null;
}

/** Dead letters of one tenant with the same error. */
export interface GroupOut {
  /** Tenant that the object belongs to. */
  tenant: string;
  /** Fingerprint of the error; errors with the same cause have the same one. */
  fingerprint: string;
  /** Number of jobs in the group. */
  count: number;
  /** Counting stopped; there are more. */
  more: boolean;
  /** Time of death of the job submitted first. */
  first_at: string;
  /** Time of death of the job submitted last. */
  last_at: string;
  /** Error of that job. */
  error: ErrorOut | null;
  /** Job of the group that was submitted last. */
  newest: JobOut;
}

/** Job that a worker holds. */
export interface HeldOut {
  /** Id of the job. */
  id: string;
  /** Fencing token of the attempt, which increases at each claim. */
  fence: number;
  /** Queue in which the job waits. */
  queue: string;
  /** Type of the job, which names its handler. */
  type: string;
}

/** Jobs that a worker holds, according to the database. */
export interface HeldPage {
  /** Held jobs. */
  jobs: HeldOut[];
}

/** Query for the jobs that a worker holds. */
export interface HeldRequest {
  /** Id of a worker; never reused. */
  worker: string;
  /** Maximum number of jobs. Default: `500`. */
  limit?: number;
}

/** Held job, identified by its id and fence. */
export interface HeldShape {
  /** Id of the job. */
  id: string;
  /** Fencing token: increases at each claim, and only its holder knows the newest. */
  fence: number;
}

/** Action on a job. */
export type JobAction = "cancel" | "delete" | "retry";

/** A job with its attempts, steps and lineage. */
export interface JobDetail {
  /** Id of the job. */
  id: string;
  /** Tenant that the object belongs to. */
  tenant: string;
  /** Queue in which the job waits. */
  queue: string;
  /** Type of the job, which names its handler. */
  type: string;
  /** Arguments of the job, as any JSON. */
  payload: Json;
  /** Current status. */
  status: JobStatus;
  /** Jobs with a higher priority run first. */
  priority: number;
  /** Number of attempts so far, including a running one. */
  attempts: number;
  /** Number of attempts before the job is dead. */
  max_attempts: number;
  /** Time before which the job does not start, or start again; null if it may start at once. */
  scheduled_at: string | null;
  /** Time of the submission. */
  created_at: string;
  /** Start of the latest attempt; null before the first. */
  started_at: string | null;
  /** Time at which the job succeeded, died or was cancelled; null before that. */
  finished_at: string | null;
  /** The latest of the times of submission, start and end. */
  updated_at: string;
  /** Result as any JSON; null unless the job has succeeded. */
  result: Json;
  /** Error of the last attempt. */
  error: ErrorOut | null;
  /** Reason for the cancellation. */
  reason: string | null;
  /** Latest progress; null if the handler reported none. */
  progress: ProgressOut | null;
  /** Labels to filter by. */
  tags: string[];
  /** Weight of the job in quotas and fair scheduling. */
  cost: number;
  /** Seconds. */
  timeout: number | null;
  /** The job is cancelled if it has not started by then. */
  deadline: string | null;
  /** Jobs with the same key run one at a time, unless a limit allows more. */
  concurrency_key: string | null;
  /** Key of the submission; submissions with the same key create one job. */
  idempotency_key: string | null;
  /** Number of replays. */
  generation: number;
  /** Id of the worker; null if there is none. */
  worker: string | null;
  /** End of the lease of the worker that runs the job; null if it is not running. */
  lease_until: string | null;
  /** Reserved; null. */
  workflow_id: string | null;
  /** Actions that the current status allows. */
  actions: JobAction[];
  /** Attempts, oldest first; only the newest if `truncated` says so. */
  attempt_log: AttemptOut[];
  /** Recorded steps, oldest first; only some if `truncated` says so. */
  steps: StepOut[];
  /** Origin of the job. */
  lineage: LineageOut;
  /** Lists that are not complete, with the path of the rest; usually empty. */
  truncated: TruncatedOut[];
}

/** `event: job`: a job changed its status or was deleted. */
export interface JobEvent {
  /** Id of the job. */
  id: string;
  /** Tenant that the object belongs to. */
  tenant: string;
  /** Queue in which the job waits. */
  queue: string;
  /** Type of the job, which names its handler. */
  type: string;
  /** New status. */
  status: EventStatus;
  /** Number of attempts so far, including a running one. */
  attempts: number;
  /** Increases with every claim, so it orders events of a job with the same status. */
  fence: number;
  /** Time of the event. */
  at: string;
}

/** A job. */
export interface JobOut {
  /** Id of the job. */
  id: string;
  /** Tenant that the object belongs to. */
  tenant: string;
  /** Queue in which the job waits. */
  queue: string;
  /** Type of the job, which names its handler. */
  type: string;
  /** Arguments of the job, as any JSON. */
  payload: Json;
  /** Current status. */
  status: JobStatus;
  /** Jobs with a higher priority run first. */
  priority: number;
  /** Number of attempts so far, including a running one. */
  attempts: number;
  /** Number of attempts before the job is dead. */
  max_attempts: number;
  /** Time before which the job does not start, or start again; null if it may start at once. */
  scheduled_at: string | null;
  /** Time of the submission. */
  created_at: string;
  /** Start of the latest attempt; null before the first. */
  started_at: string | null;
  /** Time at which the job succeeded, died or was cancelled; null before that. */
  finished_at: string | null;
  /** The latest of the times of submission, start and end. */
  updated_at: string;
  /** Result as any JSON; null unless the job has succeeded. */
  result: Json;
  /** Error of the last attempt. */
  error: ErrorOut | null;
  /** Reason for the cancellation. */
  reason: string | null;
  /** Latest progress; null if the handler reported none. */
  progress: ProgressOut | null;
  /** Labels to filter by. */
  tags: string[];
  /** Weight of the job in quotas and fair scheduling. */
  cost: number;
  /** Seconds. */
  timeout: number | null;
  /** The job is cancelled if it has not started by then. */
  deadline: string | null;
  /** Jobs with the same key run one at a time, unless a limit allows more. */
  concurrency_key: string | null;
  /** Key of the submission; submissions with the same key create one job. */
  idempotency_key: string | null;
  /** Number of replays. */
  generation: number;
  /** Id of the worker; null if there is none. */
  worker: string | null;
  /** End of the lease of the worker that runs the job; null if it is not running. */
  lease_until: string | null;
  /** Reserved; null. */
  workflow_id: string | null;
  /** Actions that the current status allows. */
  actions: JobAction[];
}

/** Page of jobs, newest first. A page may contain fewer items than `limit`, even none; follow `next_cursor` until it is null. */
export interface JobPage {
  /** Items of this page. */
  items: JobOut[];
  /** Cursor of the next page; null on the last page. */
  next_cursor: string | null;
}

/** Status of a job. */
export type JobStatus = "blocked" | "cancelled" | "dead" | "ready" | "retrying" | "running" | "scheduled" | "succeeded";

/** Number of jobs of one kind that changed to a status or were deleted. */
export interface JobsCount {
  /** Tenant; null for several tenants. */
  tenant: string | null;
  /** Queue in which the job waits. */
  queue: string;
  /** Type of the job, which names its handler. */
  type: string;
  /** New status. */
  status: EventStatus;
  /** Number of jobs. */
  jobs: number;
}

/** `event: jobs`: counts instead of single events, because many jobs changed at once. */
export interface JobsEvent {
  /** Numbers of changed jobs by tenant, queue, type and status. */
  counts: JobsCount[];
}

/** Lifetime of an API key: 1 second to 3,650 days, such as '90d'. */
export type KeyLifetime = number | string;

/** A new API key. Only this response contains its token. */
export interface KeyMade {
  /** Id of the key, which is part of its token. */
  id: string;
  /** Tenant that the object belongs to. */
  tenant: string;
  /** Name that says who uses the key. */
  name: string;
  /** Permissions. */
  scopes: Scope[];
  /** Time of creation. */
  created_at: string;
  /** Time at which it expires; null if it does not. */
  expires_at: string | null;
  /** Time of the revocation; null if it is valid. */
  revoked_at: string | null;
  /** Accurate to a few minutes. */
  last_used_at: string | null;
  /** Send it as `Authorization: Bearer …`. Store it: it is not shown again. */
  token: string;
}

/** An API key, without its secret. */
export interface KeyOut {
  /** Id of the key, which is part of its token. */
  id: string;
  /** Tenant that the object belongs to. */
  tenant: string;
  /** Name that says who uses the key. */
  name: string;
  /** Permissions. */
  scopes: Scope[];
  /** Time of creation. */
  created_at: string;
  /** Time at which it expires; null if it does not. */
  expires_at: string | null;
  /** Time of the revocation; null if it is valid. */
  revoked_at: string | null;
  /** Accurate to a few minutes. */
  last_used_at: string | null;
}

/** Page of API keys, newest first. */
export interface KeyPage {
  /** Items of this page. */
  items: KeyOut[];
  /** Cursor of the next page; null on the last page. */
  next_cursor: string | null;
}

/** Length of a lease: 1 second to 1 day, as seconds or as a text such as '30s'. */
export type LeaseDuration = number | string;

/** Worker and the jobs that it has claimed. */
export interface LeaseOut {
  /** Id of the worker; send it with every further request. */
  worker: string;
  /** Claimed jobs, which the worker now holds. */
  jobs: LeasedJob[];
  /** True if the worker should drain: finish or release its jobs, then depart. */
  draining: boolean;
}

/** Claim of jobs. Without `worker`, or with `register`, the worker is registered first and gets its response at once. */
export interface LeaseRequest {
  /** Id of a registered worker; null to register a new one. */
  worker?: string | null;
  /** Description of a worker to register. */
  register?: About | null;
  /** Renews the lease for this long; for a new worker, the length of its lease (15 s). */
  lease?: LeaseDuration | null;
  /** Queues to claim from. */
  queues?: string[];
  /** Types of jobs to claim; null for all. */
  types?: string[] | null;
  /** Maximum number of jobs. Default: `1`. */
  limit?: number;
  /** Seconds to wait for the first job; at most half the lease, if that is given. */
  wait?: number;
}

/** Claimed job. */
export interface LeasedJob {
  /** Id of the job. */
  id: string;
  /** Fencing token that every report of this attempt must carry. */
  fence: number;
  /** Tenant that the object belongs to. */
  tenant: string;
  /** Queue in which the job waits. */
  queue: string;
  /** Type of the job, which names its handler. */
  type: string;
  /** Arguments of the job, as any JSON. */
  payload: Json;
  /** Jobs with a higher priority run first. */
  priority: number;
  /** Attempts so far, including this one. */
  attempts: number;
  /** Number of attempts before the job is dead. */
  max_attempts: number;
  /** Number of releases and snoozes. */
  releases: number;
  /** Number of replays. */
  generation: number;
  /** Weight of the job in quotas and fair scheduling. */
  cost: number;
  /** Time of creation. */
  created_at: string;
  /** Time before which the job does not start, or start again; null if it may start at once. */
  scheduled_at: string | null;
  /** Start of the latest attempt; null before the first. */
  started_at: string | null;
  /** Timeout of the attempt in seconds. */
  timeout: number | null;
  /** The job is cancelled if it has not started by then. */
  deadline: string | null;
  /** Labels to filter by. */
  tags: string[];
  /** Jobs with the same key run one at a time, unless a limit allows more. */
  concurrency_key: string | null;
  /** Key of the submission; submissions with the same key create one job. */
  idempotency_key: string | null;
  /** Latest progress; null if the handler reported none. */
  progress: ProgressOut | null;
  /** Earlier attempts, oldest first, without their logs. */
  attempt_log: AttemptOut[];
}

/** Object that a limit applies to. */
export type LimitKind = "key" | "queue" | "tenant";

/** Limits that were set explicitly. */
export interface LimitList {
  /** Items of this page. */
  items: LimitOut[];
  /** Always null: the list has one page. */
  next_cursor: string | null;
}

/** Limit and its current use. */
export interface LimitOut {
  /** Object that the limit applies to. */
  kind: LimitKind;
  /** Queue of the limit; null for other kinds. */
  queue: string | null;
  /** Tenant of the limit; null for a queue. */
  tenant: string | null;
  /** Concurrency key of the limit; null for other kinds. */
  concurrency_key: string | null;
  /** Maximum number of running jobs; null without a limit. */
  max_running: number | null;
  /** Maximum rate; null without a limit. */
  rate: RateOut | null;
  /** Running jobs that count against it; for a concurrency key, reserved ones too. */
  used: number;
  /** Number of jobs that may start now; null if unlimited. */
  room: number | null;
  /** Time of the last change. */
  changed_at: string;
  /** Caller who made the last change. */
  changed_by: string;
}

/** Origin of a job. */
export interface LineageOut {
  /** Number of replays. */
  generation: number;
  /** Reserved; null. */
  parent_id: string | null;
  /** Reserved; null. */
  schedule: string | null;
  /** Reserved; null. */
  workflow_id: string | null;
}

/** Line that a handler wrote to the log of its job. */
export interface LogLineOut {
  /** Time of the line. */
  at: string;
  /** Level of the line, such as `INFO`. */
  level: string;
  /** Text for people. */
  message: string;
}

/** Newest log lines of an attempt, oldest first. */
export interface LogsIn {
  /** Lines, oldest first. */
  lines: LogLineOut[];
  /** Number of older lines that were dropped. */
  dropped?: number;
}

/** Newest log lines of an attempt, oldest first. */
export interface LogsOut {
  /** Lines, oldest first. */
  lines: LogLineOut[];
  /** Number of older lines that were dropped. */
  dropped: number;
}

/** Jobs that the worker no longer holds; it should stop them. */
export interface LostOut {
  /** Ids of jobs to stop. */
  lost: string[];
  /** Jobs whose queue, type or tenant is paused: release those that have not started. */
  paused: string[];
  /** True if the worker should drain: finish or release its jobs, then depart. */
  draining: boolean;
}

/** Query for lost jobs that does not renew the lease. */
export interface LostRequest {
  /** Id of a worker; never reused. */
  worker: string;
  /** Jobs to check. */
  held: HeldShape[];
}

/** Caller and its scopes. */
export interface Me {
  /** Name of the API key or token. */
  name: string;
  /** Tenant of the caller. */
  tenant: string;
  /** Permissions. */
  scopes: Scope[];
  /** Expiry of the token; null for an API key. */
  until: string | null;
  /** Version of this node. */
  version: string;
  /** True in demo mode. */
  demo: boolean;
}

/** Numbers of jobs of one queue or type. */
export interface NamedCounts {
  /** Name of the queue or type. */
  name: string;
  /** Numbers of jobs by status. */
  statuses: StatusCounts;
}

/** API key to create. */
export interface NewKeyRequest {
  /** Permissions of the key. */
  scopes: Scope[];
  /** Name that says who uses the key. */
  name: string;
  /** Default: the tenant of the caller. */
  tenant?: string;
  /** Time at which the key expires; not together with `expires_in`. */
  expires_at?: string | null;
  /** Time until the key expires; not together with `expires_at`. By default it does not expire. */
  expires_in?: KeyLifetime | null;
}

/** Tenant to create; omitted or null fields use the installation's defaults. */
export interface NewTenant {
  /** Name of the tenant. */
  name: string;
  /** Share of service relative to the weights of other tenants. */
  weight?: number | null;
  /** Maximum cost submitted per `rate_window`. */
  rate?: number | null;
  /** Window of the rate quota. */
  rate_window?: RateWindow | null;
  /** Maximum number of unfinished jobs. */
  backlog?: number | null;
  /** Maximum number of unfinished jobs. */
  queue_backlog?: number | null;
}

/** Reaction to a job with the same unique key. */
export type OnConflict = "reject" | "replace" | "return";

/** Outcome of an attempt, by the field `outcome`. */
export type Outcome = SucceededIn | FailedIn | TimedOutIn | CrashedIn | SnoozedIn | ReleasedIn | UnavailableIn | CancelledIn;

/** Error of one outcome of a settlement; the worker still holds its job. */
export interface OutcomeFault {
  /** Position in `outcomes`. */
  index: number;
  /** Stable code. */
  code: ProblemCode;
  /** Explanation for people: the error, and what to do. */
  detail: string;
  /** Invalid field, as a JSON pointer into the body. */
  pointer: string;
}

/** Object that is paused. */
export type PauseKind = "tenant" | "type";

/** Paused types and tenants; queues list their own pauses. */
export interface PauseList {
  /** Items of this page. */
  items: PauseOut[];
  /** Always null: the list has one page. */
  next_cursor: string | null;
}

/** Paused type or tenant. */
export interface PauseOut {
  /** Kind of the paused object. */
  kind: PauseKind;
  /** Name of the type or tenant. */
  name: string;
  /** Reason, for people. */
  reason: string;
  /** End of the pause; null if it has none. */
  until: string | null;
  /** Start of the pause. */
  since: string;
  /** Caller who paused it. */
  by: string;
}

/** Percentiles in seconds, accurate to 10 %; null if nothing ended. */
export interface Percentiles {
  /** Median. */
  p50: number | null;
  /** 90th percentile. */
  p90: number | null;
  /** 95th percentile. */
  p95: number | null;
  /** 99th percentile. */
  p99: number | null;
}

/** Totals and durations of one step of a window. */
export interface Point {
  /** Start of the step. */
  at: string;
  /** Numbers of events in the window. */
  totals: Totals;
  /** Time from due to start, per job. */
  wait: Percentiles;
  /** Time from start to end, per attempt. */
  run: Percentiles;
}

/** Error of a request: what happened and what to do. */
export interface Problem {
  /** Short text that is the same for all problems with this status. */
  title: string;
  /** HTTP status. */
  status: number;
  /** Stable code. */
  code: ProblemCode;
  /** Explanation for people: what happened, and what to do. */
  detail: string;
  /** Kind of the problem as a URI; always `about:blank`. */
  type: string;
  /** Invalid field, as a JSON pointer into the body. */
  pointer?: string;
  /** Every invalid item of a batch. */
  errors?: Fault[];
  /** Conflicting job. */
  job_id?: string;
}

/** Stable code of an error. */
export type ProblemCode = "backlog_full" | "conflict" | "contention" | "crowded" | "duplicate_job" | "encoded_body" | "error" | "forbidden" | "framing_too_large" | "head_too_large" | "idempotency_mismatch" | "internal" | "invalid" | "invalid_batch" | "job_not_held" | "lease_lost" | "malformed" | "malformed_query" | "malformed_request" | "method_not_allowed" | "no_jwt_secret" | "no_such_route" | "not_found" | "not_json" | "outcome_unknown" | "over_limit" | "payload_too_large" | "query_too_long" | "rate_limited" | "rejected" | "stopping" | "too_large" | "too_slow" | "unauthorized" | "unavailable";

/** Progress of a job, as its handler reports it. */
export interface ProgressOut {
  /** Fraction of the work that is done, from 0 to 1; null if unknown. */
  fraction: number | null;
  /** Text for people; null if there is none. */
  note: string | null;
}

/** Progress of a held job. */
export interface ProgressRequest {
  /** Id of a worker; never reused. */
  worker: string;
  /** Id of the job. */
  id: string;
  /** Fencing token: increases at each claim, and only its holder knows the newest. */
  fence: number;
  /** Fraction of the work that is done, from 0 to 1. */
  fraction: number;
  /** Text for people. */
  note?: string;
}

/** Page of the queues that the caller may see, by name. */
export interface QueueList {
  /** Time of the numbers. */
  as_of: string;
  /** Items of this page. */
  items: QueueOut[];
  /** Cursor of the next page; null on the last page. */
  next_cursor: string | null;
}

/** A queue. Numbers cover the caller's own jobs; for administrators, all jobs. */
export interface QueueOut {
  /** Name of the queue. */
  name: string;
  /** True if no more of its jobs are claimed. */
  paused: boolean;
  /** Reason of the pause. */
  reason: string;
  /** End of the pause; null if it has none. */
  until: string | null;
  /** Maximum number of its jobs that run at the same time; null without a limit. */
  max_running: number | null;
  /** Running jobs that count against `max_running`. Null without a limit, and for callers who see one tenant only. */
  running: number | null;
  /** Maximum rate of starts. */
  rate: RateOut | null;
  /** Numbers of jobs by status. */
  statuses: StatusCounts;
  /** Seconds since the oldest ready job became due; null if no job is ready. */
  oldest_wait: number | null;
  /** Per second, over the last five minutes. */
  rates: Rates;
}

/** Rate limit of starts. */
export interface RateOut {
  /** Number of starts per period. */
  limit: number;
  /** Seconds. */
  per: number;
  /** Maximum number of starts at once after an idle period. */
  burst: number;
}

/** Period of a rate limit: 1 ms to 1 day, as seconds or as a text such as '1s'. */
export type RatePeriod = number | string;

/** Rate limit: at most `limit` starts per `per` seconds. */
export interface RateShape {
  /** Number of starts per period. */
  limit: number;
  /** Period of the limit. Default: `1`. */
  per?: RatePeriod;
  /** Maximum number of starts at once after an idle period; defaults to `limit`. */
  burst?: number;
}

/** Window of a quota: 1 second to 1 day, as seconds or as a text such as '1m'. */
export type RateWindow = number | string;

/** Rates per second. */
export interface Rates {
  /** Submitted jobs. */
  submitted: number;
  /** Started attempts. */
  started: number;
  /** Jobs that reached a final status. */
  finished: number;
  /** Failed attempts. */
  failed: number;
}

/** Readiness to serve requests. */
export interface Ready {
  /** True if the node can serve requests. */
  ready: boolean;
  /** True if the database responds. */
  database: boolean;
  /** True if this version works with the schema of the database. */
  schema: boolean;
}

/** Reason with a stable `code`, a human-readable `detail` and structured facts. */
export interface Reason {
  /** Stable code of the reason. */
  code: ReasonCode;
  /** Explanation for people: what happened, and what to do. */
  detail: string;
  /** True if this reason alone prevents the job from starting now. */
  blocks: boolean;
  /** Name of the paused or limited object, or job type whose handler blocks the worker. */
  name?: string | null;
  /** Start of the condition, if known. */
  since?: string | null;
  /** End of the condition, if known. */
  until?: string | null;
  /** Caller who caused it. */
  by?: string | null;
  /** Reason that this caller gave. */
  why?: string | null;
  /** Number of jobs that count against the limit. */
  used?: number | null;
  /** Maximum of the limit. */
  most?: number | null;
  /** Some jobs that hold the limit; those of other tenants are for administrators only. */
  holders?: string[];
  /** Worker that runs or blocks the job. */
  worker?: string | null;
  /** Number of jobs ahead in the lane. */
  jobs?: number | null;
  /** Total cost of the jobs ahead. */
  cost?: number | null;
  /** True if the count stopped at its maximum. */
  at_least?: boolean;
  /** Weighted share of the lane in its queue. */
  share?: number | null;
  /** Number of live workers that handle the job. */
  workers?: number | null;
  /** Last time such a worker was seen. */
  last_seen?: string | null;
}

/** Stable code of a reason why a job is or is not running. */
export type ReasonCode = "deadline_passed" | "finished" | "held_back" | "in_line" | "limit_full" | "no_worker" | "not_due" | "parents_missing" | "queue_paused" | "rate_spent" | "runnable" | "running" | "tenant_paused" | "type_paused" | "worker_unresponsive";

/** Receipt for one job of a batch; the job is durable. */
export interface ReceiptOut {
  /** Id, unique in the installation. */
  id: string;
  /** Time of the submission. */
  created_at: string;
  /** True if an earlier submission with the same idempotency key created this job. */
  replayed: boolean;
}

/** The worker released the job unfinished; uses no attempt. */
export interface ReleasedIn {
  /** Outcome of the attempt. */
  outcome: "released";
  /** False if the handler had not started; such releases are unlimited. Default: `true`. */
  started?: boolean;
  /** Id of the job. */
  id: string;
  /** Fencing token: increases at each claim, and only its holder knows the newest. */
  fence: number;
  /** Log of the attempt; null if it has none. */
  logs?: LogsIn | null;
}

/** Renewal of a lease; the response lists lost jobs. */
export interface RenewRequest {
  /** Id of a worker; never reused. */
  worker: string;
  /** Time until the lease expires, from now. Default: `15`. */
  lease?: LeaseDuration;
  /** Resident memory of the worker, in bytes. */
  memory?: number | null;
  /** True if the worker is draining and claims no more jobs. */
  draining?: boolean;
  /** Seconds for which its process has not responded; null if it responds. */
  unresponsive?: number | null;
  /** Job type whose handler blocks its event loop; null if the process gives no sign of life. */
  blocked_by?: string | null;
  /** All jobs that the worker runs or has not settled yet; null if it does not say. Jobs that it holds and leaves out for a whole lease are released, because their outcomes may have been lost. */
  held?: HeldShape[] | null;
}

/** Dead letters to replay, by their ids or all that match. */
export interface ReplayRequest {
  /** Ids of the dead letters, instead of a filter. */
  ids?: string[] | null;
  /** Filter of the jobs; omitted fields match everything. */
  filter?: DeadFilter | null;
  /** Required if there are no ids and the filter is empty. */
  all?: boolean;
  /** True to count the matching jobs without changing them. */
  dry_run?: boolean;
  /** `next_cursor` of the previous page. */
  cursor?: string | null;
}

/** `event: reset`: the stream ends or has a gap; fetch the current state again. */
export interface ResetEvent {
  /** Reason of the end or the gap. */
  reason: ResetReason;
}

/** Reason why a stream of events ends or has a gap. */
export type ResetReason = "behind" | "expired" | "old" | "revoked" | "slow" | "stopping";

/** Wait before the next attempt: exponential, or a list of delays whose last entry repeats. */
export interface RetryShape {
  /** Wait after the first failure; it doubles with each further one. */
  base?: Duration;
  /** Longest wait. */
  cap?: Duration;
  /** Random part of a wait, as a fraction from 0 to 1. */
  jitter?: number;
  /** Waits after the first, second, … failure; replaces `base` and `cap`. */
  delays?: Duration[];
}

/** Permission of an API key or token. */
export type Scope = "admin" | "cancel" | "metrics" | "read" | "submit" | "worker";

/** Overlap of two secrets: 0 to 30 days, as seconds or as a text such as '24h'. */
export type SecretOverlap = number | string;

/** Result of seeding the demo. */
export interface Seeded {
  /** Number of jobs that were submitted. */
  jobs: number;
  /** Tenants of these jobs. */
  tenants: string[];
}

/** Time series of a window, without gaps. */
export interface Series {
  /** Start of the period. */
  since: string;
  /** End of the period; null if it is open. */
  until: string;
  /** Length of a step in seconds. */
  step: number;
  /** Steps of the window, oldest first. */
  points: Point[];
}

/** Limit of a queue, a tenant, or (with `tenant` and `concurrency_key`) a concurrency key. Omitted or null fields are unlimited, except that a concurrency key then runs one job at a time. */
export interface SetLimit {
  /** Queue to limit. */
  queue?: string | null;
  /** Tenant to limit, or tenant of the concurrency key. */
  tenant?: string | null;
  /** Concurrency key to limit. */
  concurrency_key?: string | null;
  /** Maximum number of running jobs; 0 lets none start. */
  max_running?: number | null;
  /** Maximum rate; null without a limit. */
  rate?: RateShape | null;
}

/** Pause of a type or a tenant: no more of its jobs are claimed; running ones continue. */
export interface SetPause {
  /** Type to pause; not together with `tenant`. */
  type?: string | null;
  /** Tenant to pause; not together with `type`. */
  tenant?: string | null;
  /** Reason, for people. */
  reason?: string;
  /** End of the pause; null for no end. */
  until?: string | null;
}

/** Outcomes of attempts. */
export interface SettleRequest {
  /** Id of a worker; never reused. */
  worker: string;
  /** Outcomes, at most one of each job. */
  outcomes: Outcome[];
}

/** Jobs whose outcomes were applied; the worker had lost those that are in neither list. */
export interface SettledOut {
  /** Ids of settled jobs, now or by an earlier request with the same outcome. */
  settled: string[];
  /** Invalid outcomes, which changed nothing; if all are invalid, the response is 422. */
  refused: OutcomeFault[];
}

/** Ticket from the link that `holdfast up` prints. */
export interface SignIn {
  /** Ticket of the link, valid once. */
  ticket: string;
}

/** The handler asked to run again later; uses no attempt. */
export interface SnoozedIn {
  /** Outcome of the attempt. */
  outcome: "snoozed";
  /** Time until the job is due again. */
  delay: Duration;
  /** True for a hold, which has no limit on how often; false for a snooze. */
  held?: boolean;
  /** Id of the job. */
  id: string;
  /** Fencing token: increases at each claim, and only its holder knows the newest. */
  fence: number;
  /** Log of the attempt; null if it has none. */
  logs?: LogsIn | null;
}

/** Numbers of jobs as of `as_of`, which may be some seconds ago in large installations. */
export interface Stats {
  /** Time of the numbers. */
  as_of: string;
  /** Numbers of jobs by status. */
  statuses: StatusCounts;
  /** Numbers of jobs of each queue on this page. */
  queues: NamedCounts[];
  /** Numbers of jobs of each type on this page. */
  types: NamedCounts[];
  /** Cursor of the next names; null if there are none. `statuses` has all jobs on every page. */
  next_cursor: string | null;
}

/** Numbers of jobs by status; succeeded and cancelled ones of the last 24 hours only. */
export interface StatusCounts {
  /** Jobs that wait for other jobs. */
  blocked: number;
  /** Jobs that are due later. */
  scheduled: number;
  /** Jobs that a worker can claim. */
  ready: number;
  /** Jobs that a worker holds. */
  running: number;
  /** Jobs that failed and are due again later. */
  retrying: number;
  /** Jobs that succeeded in the last 24 hours. */
  succeeded: number;
  /** Jobs that failed permanently. */
  dead: number;
  /** Jobs that were cancelled in the last 24 hours. */
  cancelled: number;
}

/** Page of the steps that earlier attempts recorded, by key; follow `next_cursor`. */
export interface StepList {
  /** Recorded steps, oldest first. */
  steps: StepRecord[];
  /** Cursor of the next page; null on the last page. */
  next_cursor: string | null;
}

/** Recorded step of a job. */
export interface StepOut {
  /** Key of the step, unique in its job. */
  key: string;
  /** `done`, or `started` for a step that must run at most once. */
  state: StepState;
  /** Time at which it was recorded. */
  recorded_at: string;
  /** Result of the step as any JSON; null if it has none. */
  result: Json;
  /** True for a committed transaction; the results of its statements are not shown. */
  transaction: boolean;
}

/** Page of the recorded steps of a job, by key. */
export interface StepPage {
  /** Items of this page. */
  items: StepOut[];
  /** Cursor of the next page; null on the last page. */
  next_cursor: string | null;
}

/** Step that an earlier attempt recorded. */
export interface StepRecord {
  /** Key of the step. */
  key: string;
  /** `done`, or `started` if it is unknown whether the step took effect. */
  state: StepState;
  /** Result of the step as any JSON. */
  result: Json;
  /** True for a committed transaction in the engine's database; its result is not sent. */
  transaction: boolean;
}

/** Step of a job: done, or started if it must run at most once. */
export interface StepRequest {
  /** Id of a worker; never reused. */
  worker: string;
  /** Id of the job. */
  id: string;
  /** Fencing token: increases at each claim, and only its holder knows the newest. */
  fence: number;
  /** Key of the step, unique in its job. */
  key: string;
  /** `done`, or `started` before a step that must run at most once. Default: `"done"`. */
  state?: StepState;
  /** Result of the step as any JSON. */
  result?: Json;
}

/** Progress of a step. */
export type StepState = "done" | "started";

/** Jobs to submit together, all or none. */
export interface SubmitBatch {
  /** Jobs of the batch, at most 10,000. */
  jobs: SubmitBatchJob[];
}

/** Job of a batch, with its own idempotency key. */
export interface SubmitBatchJob {
  /** Type of the job, which names its handler. */
  type: string;
  /** Arguments of the job, as any JSON. */
  payload?: Json;
  /** Queue in which the job waits. Default: `"default"`. */
  queue?: string;
  /** Jobs with a higher priority run first. */
  priority?: number;
  /** Time before which the job does not start; not together with `delay`. */
  scheduled_at?: string | null;
  /** Time to wait before the job may start; not together with `scheduled_at`. */
  delay?: Duration | null;
  /** Number of attempts before the job is dead. */
  max_attempts?: number | null;
  /** Maximum duration of one attempt; null for the default. */
  timeout?: Duration | null;
  /** Waits between attempts; null for the default rule. */
  retry?: RetryShape | null;
  /** Weight of the job in quotas and fair scheduling. Default: `1`. */
  cost?: number;
  /** Labels to filter by. */
  tags?: string[];
  /** Uniqueness among jobs; null if any number of equal jobs may exist. */
  unique?: UniqueShape | null;
  /** RFC 3339, with offset. */
  deadline?: string | null;
  /** Jobs with the same key run one at a time, unless a limit allows more. */
  concurrency_key?: string | null;
  /** Key of the submission; submissions with the same key create one job. */
  idempotency_key?: string | null;
}

/** Job to submit. */
export interface SubmitJob {
  /** Type of the job, which names its handler. */
  type: string;
  /** Arguments of the job, as any JSON. */
  payload?: Json;
  /** Queue in which the job waits. Default: `"default"`. */
  queue?: string;
  /** Jobs with a higher priority run first. */
  priority?: number;
  /** Time before which the job does not start; not together with `delay`. */
  scheduled_at?: string | null;
  /** Time to wait before the job may start; not together with `scheduled_at`. */
  delay?: Duration | null;
  /** Number of attempts before the job is dead. */
  max_attempts?: number | null;
  /** Maximum duration of one attempt; null for the default. */
  timeout?: Duration | null;
  /** Waits between attempts; null for the default rule. */
  retry?: RetryShape | null;
  /** Weight of the job in quotas and fair scheduling. Default: `1`. */
  cost?: number;
  /** Labels to filter by. */
  tags?: string[];
  /** Uniqueness among jobs; null if any number of equal jobs may exist. */
  unique?: UniqueShape | null;
  /** RFC 3339, with offset. */
  deadline?: string | null;
  /** Jobs with the same key run one at a time, unless a limit allows more. */
  concurrency_key?: string | null;
}

/** The attempt succeeded, with a result of up to 256 KiB. */
export interface SucceededIn {
  /** Outcome of the attempt. */
  outcome: "succeeded";
  /** Result of the job, as any JSON. */
  result?: Json;
  /** Id of the job. */
  id: string;
  /** Fencing token: increases at each claim, and only its holder knows the newest. */
  fence: number;
  /** Log of the attempt; null if it has none. */
  logs?: LogsIn | null;
}

/** Totals, rates and durations of a window. */
export interface Summary {
  /** Start of the period. */
  since: string;
  /** End of the period; null if it is open. */
  until: string;
  /** Numbers of events in the window. */
  totals: Totals;
  /** Rates per second. */
  rates: Rates;
  /** Time from due to start, per job. */
  wait: Percentiles;
  /** Time from start to end, per attempt. */
  run: Percentiles;
  /** Fraction of attempts that failed; null if there were none. */
  failure_ratio: number | null;
}

/** Change of a tenant; null restores the installation's default. These quotas limit what is submitted and waits. To limit what runs, use `PUT /v1/limits` with `tenant`. */
export interface TenantChange {
  /** Share of service relative to the weights of other tenants. */
  weight?: number | null;
  /** Maximum cost submitted per `rate_window`. */
  rate?: number | null;
  /** Window of the rate quota; null for the installation's default. */
  rate_window?: RateWindow | null;
  /** Maximum number of unfinished jobs. */
  backlog?: number | null;
  /** Maximum number of unfinished jobs. */
  queue_backlog?: number | null;
}

/** A tenant. Null means the installation's default. */
export interface TenantOut {
  /** Name of the tenant. */
  name: string;
  /** Share of service relative to the weights of other tenants. */
  weight: number | null;
  /** Maximum cost submitted per `rate_window`; null for the default. */
  rate: number | null;
  /** Seconds. */
  rate_window: number | null;
  /** Maximum number of unfinished jobs; null for the installation's default. */
  backlog: number | null;
  /** Maximum number of unfinished jobs of one queue; null for the installation's default. */
  queue_backlog: number | null;
  /** Time of creation. */
  created_at: string;
}

/** Page of tenants, by name. */
export interface TenantPage {
  /** Items of this page. */
  items: TenantOut[];
  /** Cursor of the next page; null on the last page. */
  next_cursor: string | null;
}

/** Service that one tenant received, compared with its entitlement. */
export interface TenantShareOut {
  /** Name of the tenant. */
  tenant: string;
  /** Share of service relative to the weights of other tenants. */
  weight: number;
  /** Cost of its finished attempts. */
  received: number;
  /** Cost by its weight among backlogged tenants; if it was not backlogged, what it received. */
  entitled: number;
  /** Fraction of all service, from 0 to 1. */
  received_share: number;
  /** Fraction of all service to which it was entitled. */
  entitled_share: number;
  /** Received divided by entitled; null if it was entitled to nothing. */
  ratio: number | null;
  /** Fraction of the steps in which it had jobs waiting. */
  backlogged: number;
}

/** The attempt exceeded its timeout. */
export interface TimedOutIn {
  /** Outcome of the attempt. */
  outcome: "timed_out";
  /** Time for which the attempt ran. */
  after: Duration;
  /** Id of the job. */
  id: string;
  /** Fencing token: increases at each claim, and only its holder knows the newest. */
  fence: number;
  /** Log of the attempt; null if it has none. */
  logs?: LogsIn | null;
}

/** Lifetime of a token: 1 second to 1 hour, such as '15m'. */
export type TokenLifetime = number | string;

/** New token; it is valid until it expires or its API key is revoked. */
export interface TokenOut {
  /** Send it as `Authorization: Bearer …`. */
  token: string;
  /** How to send the token. */
  token_type: "Bearer";
  /** Tenant that the token acts for. */
  tenant: string;
  /** Permissions. */
  scopes: Scope[];
  /** Time at which it expires; null if it does not. */
  expires_at: string;
}

/** Token to create: the scopes of the API key or fewer, for 15 minutes or up to an hour. */
export interface TokenRequest {
  /** Permissions of the token; null for those of the caller. */
  scopes?: Scope[] | null;
  /** Time until the token expires. Default: `900`. */
  expires_in?: TokenLifetime;
}

/** Numbers of events in a window. */
export interface Totals {
  /** Number of submitted jobs. */
  submitted: number;
  /** Number of attempts that started. */
  started: number;
  /** Number of jobs that succeeded. */
  succeeded: number;
  /** Failed attempts. */
  failed: number;
  /** Number of dead jobs. */
  dead: number;
  /** Number of cancelled jobs. */
  cancelled: number;
}

/** List of a job that may be incomplete. */
export type TruncatedField = "attempt_log" | "steps";

/** List of which a job shows only a part, because the response would be too large. */
export interface TruncatedOut {
  /** Field of the job that has the list. */
  field: TruncatedField;
  /** Path of the whole list, which is paged. */
  path: string;
  /** Cursor of the first page that the job does not show. */
  next_cursor: string;
}

/** Description of a job type that the worker handles. */
export interface TypeIn {
  /** Name of the type. */
  type: string;
  /** JSON Schema of the payload, up to 16 KiB. */
  schema?: { [key: string]: Json } | null;
  /** Default queue of its jobs. */
  queue?: string | null;
  /** Default number of attempts. */
  max_attempts?: number | null;
  /** Default timeout of an attempt. */
  timeout?: Duration | null;
  /** Default priority. */
  priority?: number | null;
  /** Default cost. */
  cost?: number | null;
}

/** Job types that were active in a window, busiest first. */
export interface TypeList {
  /** Start of the period. */
  since: string;
  /** End of the period; null if it is open. */
  until: string;
  /** Items of this page. */
  items: TypeStats[];
}

/** Job type as its workers describe it. Fields that they left out are null. */
export interface TypeOut {
  /** Name of the type. */
  type: string;
  /** Tenant whose workers described it; null for workers that serve every tenant. */
  tenant: string | null;
  /** JSON Schema of the payload. */
  schema: { [key: string]: Json } | null;
  /** Default queue of jobs that Python code enqueues. */
  queue: string | null;
  /** Queues that its workers serve, or served last. */
  queues: string[];
  /** Number of live workers that handle it. */
  workers: number;
  /** Last time that a worker handled this type, accurate to a few minutes. */
  last_seen: string;
  /** Default number of attempts; null if unknown. */
  max_attempts: number | null;
  /** Seconds. */
  timeout: number | null;
  /** Default priority; null if unknown. */
  priority: number | null;
  /** Default cost; null if unknown. */
  cost: number | null;
}

/** Page of job types, by name; a tenant's own description replaces the shared one. It may be short, so follow `next_cursor`. */
export interface TypePage {
  /** Items of this page. */
  items: TypeOut[];
  /** Cursor of the next page; null on the last page. */
  next_cursor: string | null;
}

/** Statistics of one job type. */
export interface TypeStats {
  /** Type of the job, which names its handler. */
  type: string;
  /** Numbers of events in the window. */
  totals: Totals;
  /** Rates per second. */
  rates: Rates;
  /** Time from due to start, per job. */
  wait: Percentiles;
  /** Time from start to end, per attempt. */
  run: Percentiles;
  /** Fraction of attempts that failed; null if there were none. */
  failure_ratio: number | null;
}

/** A call to this service failed inside the handler; uses no attempt for ten minutes. */
export interface UnavailableIn {
  /** Outcome of the attempt. */
  outcome: "unavailable";
  /** Error of the call. */
  error: ErrorIn;
  /** Id of the job. */
  id: string;
  /** Fencing token: increases at each claim, and only its holder knows the newest. */
  fence: number;
  /** Log of the attempt; null if it has none. */
  logs?: LogsIn | null;
}

/** Uniqueness of a job: one job at a time with equal values of the fields in `by`. */
export interface UniqueShape {
  /** Fields that make two jobs equal: `type`, `queue`, `payload`, or a field of the payload. */
  by?: string[];
  /** Time for which the key stays in use after the submission. */
  within?: Duration;
  /** Reaction to such a job: return it, replace it or reject the submission. */
  on_conflict?: OnConflict;
}

/** New webhook secret. Only this response contains it. */
export interface WebhookSecretMade {
  /** Tenant that the object belongs to. */
  tenant: string;
  /** Time of creation. */
  created_at: string;
  /** End of the validity of the previous secret. */
  previous_until: string | null;
  /** Secret for the receivers of webhooks. Store it: it is not shown again. */
  secret: string;
}

/** Metadata of a tenant's webhook secret. */
export interface WebhookSecretOut {
  /** Tenant that the object belongs to. */
  tenant: string;
  /** Time of creation. */
  created_at: string;
  /** End of the validity of the previous secret. */
  previous_until: string | null;
}

/** Action on a worker. */
export type WorkerAction = "drain";

/** `event: worker`: a worker registered, drained or left; for administrators. */
export interface WorkerEvent {
  /** Id of the worker. */
  worker: string;
  /** Event of the worker, such as `registered` or `drained`. */
  event: string;
  /** Name of the worker. */
  name: string;
  /** Time of the event. */
  at: string;
}

/** A worker: one incarnation of a process that runs jobs. */
export interface WorkerOut {
  /** Id of the worker. */
  id: string;
  /** Name that the worker gave when it registered. */
  name: string;
  /** Null unless the caller is an administrator, like `pid`, `node` and `memory`. */
  host: string | null;
  /** Id of its process. */
  pid: number | null;
  /** Id shared by the processes of one supervisor, which drain together; null without one. */
  node: string | null;
  /** Version of holdfast. */
  version: string;
  /** Queues that it serves. */
  queues: string[];
  /** Number of jobs that the worker can run at once. */
  slots: number;
  /** Jobs that it holds: the caller's own, or all for administrators. */
  running: number;
  /** Resident memory of its process in bytes at the last heartbeat; null if unknown. */
  memory: number | null;
  /** Time of its registration. */
  started_at: string;
  /** Seconds since the last heartbeat. */
  heartbeat_age: number;
  /** End of its lease. */
  lease_until: string;
  /** Its lease has not expired. */
  alive: boolean;
  /** True if it claims no more jobs, finishes running ones, and releases the rest. */
  draining: boolean;
  /** Time since when its process does not respond, by its last heartbeat; null if it responds. */
  unresponsive_since: string | null;
  /** Job type whose handler blocks its event loop; null if none does. It is `unknown` if other code does. With `unresponsive_since`, null means that the process gives no sign of life. */
  blocked_by: string | null;
  /** Actions that the caller may request now. */
  actions: WorkerAction[];
}

/** Page of registered workers, oldest first; it may be short, so follow `next_cursor`. */
export interface WorkerPage {
  /** Items of this page. */
  items: WorkerOut[];
  /** Cursor of the next page; null on the last page. */
  next_cursor: string | null;
}

/** Query, body and response of each operation. */
export interface Operations {
  check_health: { path: "/healthz"; method: "GET"; query: Record<string, never>; body: never; response: Alive };
  get_metrics: { path: "/metrics"; method: "GET"; query: Record<string, never>; body: never; response: null };
  get_openapi: { path: "/openapi.json"; method: "GET"; query: Record<string, never>; body: never; response: { [key: string]: Json } };
  check_readiness: { path: "/readyz"; method: "GET"; query: Record<string, never>; body: never; response: Ready };
  get_analytics: { path: "/v1/analytics"; method: "GET"; query: { window?: AnalyticsWindow; queue?: string; type?: string; tenant?: string }; body: never; response: Summary };
  get_fairness: { path: "/v1/analytics/fairness"; method: "GET"; query: { window?: FairnessWindow }; body: never; response: FairnessOut };
  get_throughput: { path: "/v1/analytics/throughput"; method: "GET"; query: { window?: AnalyticsWindow; queue?: string; type?: string; tenant?: string }; body: never; response: Series };
  get_type_analytics: { path: "/v1/analytics/types"; method: "GET"; query: { window?: AnalyticsWindow; queue?: string; type?: string; tenant?: string }; body: never; response: TypeList };
  list_breakers: { path: "/v1/breakers"; method: "GET"; query: { tenant?: string; cursor?: string; limit?: number }; body: never; response: BreakerPage };
  purge_dead: { path: "/v1/dead"; method: "DELETE"; query: { type?: string; queue?: string; tag?: string; tenant?: string; created_after?: string; created_before?: string; error?: string; ids?: string; all?: boolean; dry_run?: boolean; cursor?: string }; body: never; response: BulkOut };
  list_dead: { path: "/v1/dead"; method: "GET"; query: { type?: string; queue?: string; tag?: string; tenant?: string; created_after?: string; created_before?: string; error?: string; group?: "fingerprint"; cursor?: string; limit?: number }; body: never; response: DeadPage };
  replay_dead: { path: "/v1/dead/replay"; method: "POST"; query: Record<string, never>; body: ReplayRequest; response: BulkOut };
  clear_demo: { path: "/v1/demo/clear"; method: "POST"; query: Record<string, never>; body: never; response: Cleared };
  seed_demo: { path: "/v1/demo/seed"; method: "POST"; query: { jobs?: number }; body: never; response: Seeded };
  stream_events: { path: "/v1/events"; method: "GET"; query: { queue?: string; type?: string; job?: string; tenant?: string }; body: never; response: null };
  list_jobs: { path: "/v1/jobs"; method: "GET"; query: { type?: string; queue?: string; tag?: string; tenant?: string; created_after?: string; created_before?: string; error?: string; status?: JobStatus; id_prefix?: string; cursor?: string; limit?: number }; body: never; response: JobPage };
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
  list_held_jobs: { path: "/v1/leases/held"; method: "POST"; query: Record<string, never>; body: HeldRequest; response: HeldPage };
  check_lost_jobs: { path: "/v1/leases/lost"; method: "POST"; query: Record<string, never>; body: LostRequest; response: LostOut };
  save_progress: { path: "/v1/leases/progress"; method: "POST"; query: Record<string, never>; body: ProgressRequest; response: null };
  renew_lease: { path: "/v1/leases/renew"; method: "POST"; query: Record<string, never>; body: RenewRequest; response: LostOut };
  settle_jobs: { path: "/v1/leases/settle"; method: "POST"; query: Record<string, never>; body: SettleRequest; response: SettledOut };
  list_recorded_steps: { path: "/v1/leases/steps"; method: "GET"; query: { worker?: string; id?: string; fence?: number; cursor?: string }; body: never; response: StepList };
  record_step: { path: "/v1/leases/steps"; method: "POST"; query: Record<string, never>; body: StepRequest; response: null };
  list_limits: { path: "/v1/limits"; method: "GET"; query: { kind?: LimitKind; tenant?: string }; body: never; response: LimitList };
  set_limit: { path: "/v1/limits"; method: "PUT"; query: Record<string, never>; body: SetLimit; response: LimitOut };
  get_me: { path: "/v1/me"; method: "GET"; query: Record<string, never>; body: never; response: Me };
  end_pause: { path: "/v1/pauses"; method: "DELETE"; query: { type?: string; tenant?: string }; body: never; response: PauseOut | null };
  list_pauses: { path: "/v1/pauses"; method: "GET"; query: Record<string, never>; body: never; response: PauseList };
  set_pause: { path: "/v1/pauses"; method: "PUT"; query: Record<string, never>; body: SetPause; response: PauseOut };
  list_queues: { path: "/v1/queues"; method: "GET"; query: { tenant?: string; cursor?: string; limit?: number }; body: never; response: QueueList };
  change_queue: { path: "/v1/queues/{name}"; method: "PATCH"; query: Record<string, never>; body: ChangeQueue; response: QueueOut };
  sign_in: { path: "/v1/sign-in"; method: "POST"; query: Record<string, never>; body: SignIn; response: KeyMade };
  get_stats: { path: "/v1/stats"; method: "GET"; query: { tenant?: string; cursor?: string; limit?: number }; body: never; response: Stats };
  list_tenants: { path: "/v1/tenants"; method: "GET"; query: { cursor?: string; limit?: number }; body: never; response: TenantPage };
  create_tenant: { path: "/v1/tenants"; method: "POST"; query: Record<string, never>; body: NewTenant; response: TenantOut };
  change_tenant: { path: "/v1/tenants/{name}"; method: "PATCH"; query: Record<string, never>; body: TenantChange; response: TenantOut };
  drop_webhook_secret: { path: "/v1/tenants/{name}/webhook-secret"; method: "DELETE"; query: Record<string, never>; body: never; response: null };
  show_webhook_secret: { path: "/v1/tenants/{name}/webhook-secret"; method: "GET"; query: Record<string, never>; body: never; response: WebhookSecretOut };
  rotate_webhook_secret: { path: "/v1/tenants/{name}/webhook-secret"; method: "POST"; query: { overlap?: SecretOverlap }; body: never; response: WebhookSecretMade };
  create_token: { path: "/v1/tokens"; method: "POST"; query: Record<string, never>; body: TokenRequest; response: TokenOut };
  list_types: { path: "/v1/types"; method: "GET"; query: { tenant?: string; cursor?: string; limit?: number }; body: never; response: TypePage };
  list_workers: { path: "/v1/workers"; method: "GET"; query: { cursor?: string; limit?: number }; body: never; response: WorkerPage };
  drain_worker: { path: "/v1/workers/{id}/drain"; method: "POST"; query: Record<string, never>; body: never; response: DrainOut };
}
