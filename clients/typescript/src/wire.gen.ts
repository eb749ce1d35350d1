// Generated from the OpenAPI description by tools/client_types.py. Do not edit.

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

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

/** Receipts of a batch, in the order of its jobs. */
export interface BatchOut {
  /** Items of this page. */
  items: ReceiptOut[];
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
