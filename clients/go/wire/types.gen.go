// Code generated from the OpenAPI description by tools/client_types.py. DO NOT EDIT.

// Package wire has the requests and responses of the HTTP API.
package wire

import (
	"encoding/json"
	"time"
)

// About: description of a worker, given when it registers.
type About struct {
	// Name of the worker for people; by default its id.
	Name *string `json:"name,omitzero"`
	// Name of the machine.
	Host *string `json:"host,omitzero"`
	// Id of the process on its machine.
	PID *int `json:"pid,omitzero"`
	// Version of the worker's software.
	Version *string `json:"version,omitzero"`
	// Queues that it serves, separated by commas; by default those of its first claim.
	Queues *string `json:"queues,omitzero"`
	// Number of jobs that the worker can run at once.
	Slots *int `json:"slots,omitzero"`
	// Types that it has handlers for; by default, the types of its first claim.
	Types []string `json:"types,omitzero"`
	// Descriptions of these types, for clients that submit such jobs.
	Described []TypeIn `json:"described,omitzero"`
	// Id shared by processes that drain together; empty for a single process.
	Node *string `json:"node,omitzero"`
}

// AttemptOut: attempt that did not succeed, or that logged something.
type AttemptOut struct {
	// Number of the attempt, from 1.
	Attempt int `json:"attempt"`
	// How often the job was replayed after it had finished.
	Generation int `json:"generation"`
	// Id of the worker that ran it.
	Worker string `json:"worker"`
	// Start of the attempt.
	StartedAt time.Time `json:"started_at"`
	// End of the attempt.
	EndedAt time.Time `json:"ended_at"`
	// End of the attempt, such as `failed` or `timed_out`.
	Outcome string `json:"outcome"`
	// Error of the attempt; null if it has none.
	Error *ErrorOut `json:"error"`
	// Log lines of the attempt; null if there are none.
	Logs *LogsOut `json:"logs"`
}

// BatchOut: receipts of a batch, in the order of its jobs.
type BatchOut struct {
	// Items of this page.
	Items []ReceiptOut `json:"items"`
}

// CancelRequest: reason for a cancellation, kept with the job.
type CancelRequest struct {
	// Reason, for people.
	Reason *string `json:"reason,omitzero"`
}

// CancelledIn: the handler cancelled the job.
type CancelledIn struct {
	// Outcome of the attempt.
	Outcome string `json:"outcome"`
	// Reason, for people.
	Reason *string `json:"reason,omitzero"`
	// Id of the job.
	ID string `json:"id"`
	// Fencing token: increases at each claim, and only its holder knows the newest.
	Fence int `json:"fence"`
	// Log of the attempt; null if it has none.
	Logs *LogsIn `json:"logs,omitzero"`
}

// CrashedIn: the process of the attempt died.
type CrashedIn struct {
	// Outcome of the attempt.
	Outcome string `json:"outcome"`
	// Cause of the death, such as a signal.
	How string `json:"how"`
	// Id of the job.
	ID string `json:"id"`
	// Fencing token: increases at each claim, and only its holder knows the newest.
	Fence int `json:"fence"`
	// Log of the attempt; null if it has none.
	Logs *LogsIn `json:"logs,omitzero"`
}

// DepartRequest: removal of a worker that holds no jobs.
type DepartRequest struct {
	// Id of a worker; never reused.
	Worker string `json:"worker"`
}

// DepartedOut: result of a removal; a worker that holds jobs is not removed.
type DepartedOut struct {
	// True if the worker was removed.
	Departed bool `json:"departed"`
}

// Duration: seconds, or a text such as '250ms', '30s', '5m', '1h30m' or '7d'.
type Duration = float64

// ErrorIn: error of a failed attempt.
type ErrorIn struct {
	// Type of the error, such as the name of an exception.
	Kind string `json:"kind"`
	// Text of the error.
	Message *string `json:"message,omitzero"`
	// Stack of the error, for people.
	Traceback *string `json:"traceback,omitzero"`
}

// ErrorOut: error of a failed attempt.
type ErrorOut struct {
	// Type of the error, such as the name of an exception.
	Kind string `json:"kind"`
	// Text of the error.
	Message string `json:"message"`
	// Fingerprint of the error; errors with the same cause have the same one.
	Fingerprint string `json:"fingerprint"`
	// Stack of the error, for people.
	Traceback string `json:"traceback"`
}

// FailedIn: the attempt failed; retried by its rule or after `retry_in`, unless not `retryable`.
type FailedIn struct {
	// Outcome of the attempt.
	Outcome string `json:"outcome"`
	// Error of the attempt.
	Error ErrorIn `json:"error"`
	// False if a further attempt cannot succeed; the job is then dead. Default: `true`.
	Retryable *bool `json:"retryable,omitzero"`
	// Time until the next attempt; null for the rule of the job.
	RetryIn *float64 `json:"retry_in,omitzero"`
	// Id of the job.
	ID string `json:"id"`
	// Fencing token: increases at each claim, and only its holder knows the newest.
	Fence int `json:"fence"`
	// Log of the attempt; null if it has none.
	Logs *LogsIn `json:"logs,omitzero"`
}

// Fault: error of one item of a batch.
type Fault struct {
	// Position in the batch.
	Index int `json:"index"`
	// Stable code.
	Code string `json:"code"`
	// Explanation for people: what happened, and what to do.
	Detail string `json:"detail"`
	// Invalid field, as a JSON pointer into the body; empty for the whole request.
	Pointer *string `json:"pointer,omitzero"`
	// Conflicting job.
	JobID *string `json:"job_id,omitzero"`
}

// HeldOut: job that a worker holds.
type HeldOut struct {
	// Id of the job.
	ID string `json:"id"`
	// Fencing token of the attempt, which increases at each claim.
	Fence int `json:"fence"`
	// Queue in which the job waits.
	Queue string `json:"queue"`
	// Type of the job, which names its handler.
	Type string `json:"type"`
}

// HeldPage: jobs that a worker holds, according to the database.
type HeldPage struct {
	// Held jobs.
	Jobs []HeldOut `json:"jobs"`
}

// HeldRequest: query for the jobs that a worker holds.
type HeldRequest struct {
	// Id of a worker; never reused.
	Worker string `json:"worker"`
	// Maximum number of jobs. Default: `500`.
	Limit *int `json:"limit,omitzero"`
}

// HeldShape: held job, identified by its id and fence.
type HeldShape struct {
	// Id of the job.
	ID string `json:"id"`
	// Fencing token: increases at each claim, and only its holder knows the newest.
	Fence int `json:"fence"`
}

// JobAction: action on a job.
type JobAction = string

// JobDetail: a job with its attempts, steps and lineage.
type JobDetail struct {
	// Id of the job.
	ID string `json:"id"`
	// Tenant that the object belongs to.
	Tenant string `json:"tenant"`
	// Queue in which the job waits.
	Queue string `json:"queue"`
	// Type of the job, which names its handler.
	Type string `json:"type"`
	// Arguments of the job, as any JSON.
	Payload json.RawMessage `json:"payload"`
	// Current status.
	Status string `json:"status"`
	// Jobs with a higher priority run first.
	Priority int `json:"priority"`
	// Number of attempts so far, including a running one.
	Attempts int `json:"attempts"`
	// Number of attempts before the job is dead.
	MaxAttempts int `json:"max_attempts"`
	// Time before which the job does not start, or start again; null if it may start at once.
	ScheduledAt *time.Time `json:"scheduled_at"`
	// Time of the submission.
	CreatedAt time.Time `json:"created_at"`
	// Start of the latest attempt; null before the first.
	StartedAt *time.Time `json:"started_at"`
	// Time at which the job succeeded, died or was cancelled; null before that.
	FinishedAt *time.Time `json:"finished_at"`
	// The latest of the times of submission, start and end.
	UpdatedAt time.Time `json:"updated_at"`
	// Result as any JSON; null unless the job has succeeded.
	Result json.RawMessage `json:"result"`
	// Error of the last attempt.
	Error *ErrorOut `json:"error"`
	// Reason for the cancellation.
	Reason *string `json:"reason"`
	// Latest progress; null if the handler reported none.
	Progress *ProgressOut `json:"progress"`
	// Labels to filter by.
	Tags []string `json:"tags"`
	// Weight of the job in quotas and fair scheduling.
	Cost int `json:"cost"`
	// Seconds.
	Timeout *float64 `json:"timeout"`
	// The job is cancelled if it has not started by then.
	Deadline *time.Time `json:"deadline"`
	// Jobs with the same key run one at a time, unless a limit allows more.
	ConcurrencyKey *string `json:"concurrency_key"`
	// Key of the submission; submissions with the same key create one job.
	IdempotencyKey *string `json:"idempotency_key"`
	// Number of replays.
	Generation int `json:"generation"`
	// Id of the worker; null if there is none.
	Worker *string `json:"worker"`
	// End of the lease of the worker that runs the job; null if it is not running.
	LeaseUntil *time.Time `json:"lease_until"`
	// Reserved; null.
	WorkflowID *string `json:"workflow_id"`
	// Actions that the current status allows.
	Actions []string `json:"actions"`
	// Attempts, oldest first; only the newest if `truncated` says so.
	AttemptLog []AttemptOut `json:"attempt_log"`
	// Recorded steps, oldest first; only some if `truncated` says so.
	Steps []StepOut `json:"steps"`
	// Origin of the job.
	Lineage LineageOut `json:"lineage"`
	// Lists that are not complete, with the path of the rest; usually empty.
	Truncated []TruncatedOut `json:"truncated"`
}

// JobOut: a job.
type JobOut struct {
	// Id of the job.
	ID string `json:"id"`
	// Tenant that the object belongs to.
	Tenant string `json:"tenant"`
	// Queue in which the job waits.
	Queue string `json:"queue"`
	// Type of the job, which names its handler.
	Type string `json:"type"`
	// Arguments of the job, as any JSON.
	Payload json.RawMessage `json:"payload"`
	// Current status.
	Status string `json:"status"`
	// Jobs with a higher priority run first.
	Priority int `json:"priority"`
	// Number of attempts so far, including a running one.
	Attempts int `json:"attempts"`
	// Number of attempts before the job is dead.
	MaxAttempts int `json:"max_attempts"`
	// Time before which the job does not start, or start again; null if it may start at once.
	ScheduledAt *time.Time `json:"scheduled_at"`
	// Time of the submission.
	CreatedAt time.Time `json:"created_at"`
	// Start of the latest attempt; null before the first.
	StartedAt *time.Time `json:"started_at"`
	// Time at which the job succeeded, died or was cancelled; null before that.
	FinishedAt *time.Time `json:"finished_at"`
	// The latest of the times of submission, start and end.
	UpdatedAt time.Time `json:"updated_at"`
	// Result as any JSON; null unless the job has succeeded.
	Result json.RawMessage `json:"result"`
	// Error of the last attempt.
	Error *ErrorOut `json:"error"`
	// Reason for the cancellation.
	Reason *string `json:"reason"`
	// Latest progress; null if the handler reported none.
	Progress *ProgressOut `json:"progress"`
	// Labels to filter by.
	Tags []string `json:"tags"`
	// Weight of the job in quotas and fair scheduling.
	Cost int `json:"cost"`
	// Seconds.
	Timeout *float64 `json:"timeout"`
	// The job is cancelled if it has not started by then.
	Deadline *time.Time `json:"deadline"`
	// Jobs with the same key run one at a time, unless a limit allows more.
	ConcurrencyKey *string `json:"concurrency_key"`
	// Key of the submission; submissions with the same key create one job.
	IdempotencyKey *string `json:"idempotency_key"`
	// Number of replays.
	Generation int `json:"generation"`
	// Id of the worker; null if there is none.
	Worker *string `json:"worker"`
	// End of the lease of the worker that runs the job; null if it is not running.
	LeaseUntil *time.Time `json:"lease_until"`
	// Reserved; null.
	WorkflowID *string `json:"workflow_id"`
	// Actions that the current status allows.
	Actions []string `json:"actions"`
}

// JobPage: page of jobs, newest first. A page may contain fewer items than `limit`, even none; follow `next_cursor` until it is null.
type JobPage struct {
	// Items of this page.
	Items []JobOut `json:"items"`
	// Cursor of the next page; null on the last page.
	NextCursor *string `json:"next_cursor"`
}

// JobStatus: status of a job.
type JobStatus = string

// LeaseDuration: length of a lease: 1 second to 1 day, as seconds or as a text such as '30s'.
type LeaseDuration = float64

// LeaseOut: worker and the jobs that it has claimed.
type LeaseOut struct {
	// Id of the worker; send it with every further request.
	Worker string `json:"worker"`
	// Claimed jobs, which the worker now holds.
	Jobs []LeasedJob `json:"jobs"`
	// True if the worker should drain: finish or release its jobs, then depart.
	Draining bool `json:"draining"`
}

// LeaseRequest: claim of jobs. Without `worker`, or with `register`, the worker is registered first and gets its response at once.
type LeaseRequest struct {
	// Id of a registered worker; null to register a new one.
	Worker *string `json:"worker,omitzero"`
	// Description of a worker to register.
	Register *About `json:"register,omitzero"`
	// Renews the lease for this long; for a new worker, the length of its lease (15 s).
	Lease *float64 `json:"lease,omitzero"`
	// Queues to claim from.
	Queues []string `json:"queues,omitzero"`
	// Types of jobs to claim; null for all.
	Types []string `json:"types,omitzero"`
	// Maximum number of jobs. Default: `1`.
	Limit *int `json:"limit,omitzero"`
	// Seconds to wait for the first job; at most half the lease, if that is given.
	Wait *float64 `json:"wait,omitzero"`
}

// LeasedJob: claimed job.
type LeasedJob struct {
	// Id of the job.
	ID string `json:"id"`
	// Fencing token that every report of this attempt must carry.
	Fence int `json:"fence"`
	// Tenant that the object belongs to.
	Tenant string `json:"tenant"`
	// Queue in which the job waits.
	Queue string `json:"queue"`
	// Type of the job, which names its handler.
	Type string `json:"type"`
	// Arguments of the job, as any JSON.
	Payload json.RawMessage `json:"payload"`
	// Jobs with a higher priority run first.
	Priority int `json:"priority"`
	// Attempts so far, including this one.
	Attempts int `json:"attempts"`
	// Number of attempts before the job is dead.
	MaxAttempts int `json:"max_attempts"`
	// Number of releases and snoozes.
	Releases int `json:"releases"`
	// Number of replays.
	Generation int `json:"generation"`
	// Weight of the job in quotas and fair scheduling.
	Cost int `json:"cost"`
	// Time of creation.
	CreatedAt time.Time `json:"created_at"`
	// Time before which the job does not start, or start again; null if it may start at once.
	ScheduledAt *time.Time `json:"scheduled_at"`
	// Start of the latest attempt; null before the first.
	StartedAt *time.Time `json:"started_at"`
	// Timeout of the attempt in seconds.
	Timeout *float64 `json:"timeout"`
	// The job is cancelled if it has not started by then.
	Deadline *time.Time `json:"deadline"`
	// Labels to filter by.
	Tags []string `json:"tags"`
	// Jobs with the same key run one at a time, unless a limit allows more.
	ConcurrencyKey *string `json:"concurrency_key"`
	// Key of the submission; submissions with the same key create one job.
	IdempotencyKey *string `json:"idempotency_key"`
	// Latest progress; null if the handler reported none.
	Progress *ProgressOut `json:"progress"`
	// Earlier attempts, oldest first, without their logs.
	AttemptLog []AttemptOut `json:"attempt_log"`
}

// LineageOut: origin of a job.
type LineageOut struct {
	// Number of replays.
	Generation int `json:"generation"`
	// Reserved; null.
	ParentID *string `json:"parent_id"`
	// Reserved; null.
	Schedule *string `json:"schedule"`
	// Reserved; null.
	WorkflowID *string `json:"workflow_id"`
}

// LogLineOut: line that a handler wrote to the log of its job.
type LogLineOut struct {
	// Time of the line.
	At time.Time `json:"at"`
	// Level of the line, such as `INFO`.
	Level string `json:"level"`
	// Text for people.
	Message string `json:"message"`
}

// LogsIn: newest log lines of an attempt, oldest first.
type LogsIn struct {
	// Lines, oldest first.
	Lines []LogLineOut `json:"lines"`
	// Number of older lines that were dropped.
	Dropped *int `json:"dropped,omitzero"`
}

// LogsOut: newest log lines of an attempt, oldest first.
type LogsOut struct {
	// Lines, oldest first.
	Lines []LogLineOut `json:"lines"`
	// Number of older lines that were dropped.
	Dropped int `json:"dropped"`
}

// LostOut: jobs that the worker no longer holds; it should stop them.
type LostOut struct {
	// Ids of jobs to stop.
	Lost []string `json:"lost"`
	// Jobs whose queue, type or tenant is paused: release those that have not started.
	Paused []string `json:"paused"`
	// True if the worker should drain: finish or release its jobs, then depart.
	Draining bool `json:"draining"`
}

// LostRequest: query for lost jobs that does not renew the lease.
type LostRequest struct {
	// Id of a worker; never reused.
	Worker string `json:"worker"`
	// Jobs to check.
	Held []HeldShape `json:"held"`
}

// OnConflict: reaction to a job with the same unique key.
type OnConflict = string

// Outcome: outcome of an attempt, by the field `outcome`.
type Outcome = any

// OutcomeFault: error of one outcome of a settlement; the worker still holds its job.
type OutcomeFault struct {
	// Position in `outcomes`.
	Index int `json:"index"`
	// Stable code.
	Code string `json:"code"`
	// Explanation for people: the error, and what to do.
	Detail string `json:"detail"`
	// Invalid field, as a JSON pointer into the body.
	Pointer string `json:"pointer"`
}

// Problem: error of a request: what happened and what to do.
type Problem struct {
	// Short text that is the same for all problems with this status.
	Title string `json:"title"`
	// HTTP status.
	Status int `json:"status"`
	// Stable code.
	Code string `json:"code"`
	// Explanation for people: what happened, and what to do.
	Detail string `json:"detail"`
	// Kind of the problem as a URI; always `about:blank`.
	Type string `json:"type"`
	// Invalid field, as a JSON pointer into the body.
	Pointer *string `json:"pointer,omitzero"`
	// Every invalid item of a batch.
	Errors []Fault `json:"errors,omitzero"`
	// Conflicting job.
	JobID *string `json:"job_id,omitzero"`
}

// ProblemCode: stable code of an error.
type ProblemCode = string

// ProgressOut: progress of a job, as its handler reports it.
type ProgressOut struct {
	// Fraction of the work that is done, from 0 to 1; null if unknown.
	Fraction *float64 `json:"fraction"`
	// Text for people; null if there is none.
	Note *string `json:"note"`
}

// ProgressRequest: progress of a held job.
type ProgressRequest struct {
	// Id of a worker; never reused.
	Worker string `json:"worker"`
	// Id of the job.
	ID string `json:"id"`
	// Fencing token: increases at each claim, and only its holder knows the newest.
	Fence int `json:"fence"`
	// Fraction of the work that is done, from 0 to 1.
	Fraction float64 `json:"fraction"`
	// Text for people.
	Note *string `json:"note,omitzero"`
}

// ReceiptOut: receipt for one job of a batch; the job is durable.
type ReceiptOut struct {
	// Id, unique in the installation.
	ID string `json:"id"`
	// Time of the submission.
	CreatedAt time.Time `json:"created_at"`
	// True if an earlier submission with the same idempotency key created this job.
	Replayed bool `json:"replayed"`
}

// ReleasedIn: the worker released the job unfinished; uses no attempt.
type ReleasedIn struct {
	// Outcome of the attempt.
	Outcome string `json:"outcome"`
	// False if the handler had not started; such releases are unlimited. Default: `true`.
	Started *bool `json:"started,omitzero"`
	// Id of the job.
	ID string `json:"id"`
	// Fencing token: increases at each claim, and only its holder knows the newest.
	Fence int `json:"fence"`
	// Log of the attempt; null if it has none.
	Logs *LogsIn `json:"logs,omitzero"`
}

// RenewRequest: renewal of a lease; the response lists lost jobs.
type RenewRequest struct {
	// Id of a worker; never reused.
	Worker string `json:"worker"`
	// Time until the lease expires, from now. Default: `15`.
	Lease *float64 `json:"lease,omitzero"`
	// Resident memory of the worker, in bytes.
	Memory *int `json:"memory,omitzero"`
	// True if the worker is draining and claims no more jobs.
	Draining *bool `json:"draining,omitzero"`
	// Seconds for which its process has not responded; null if it responds.
	Unresponsive *float64 `json:"unresponsive,omitzero"`
	// Job type whose handler blocks its event loop; null if the process gives no sign of life.
	BlockedBy *string `json:"blocked_by,omitzero"`
	// All jobs that the worker runs or has not settled yet; null if it does not say. Jobs that it holds and leaves out for a whole lease are released, because their outcomes may have been lost.
	Held []HeldShape `json:"held,omitzero"`
}

// RetryShape: wait before the next attempt: exponential, or a list of delays whose last entry repeats.
type RetryShape struct {
	// Wait after the first failure; it doubles with each further one.
	Base *float64 `json:"base,omitzero"`
	// Longest wait.
	Cap *float64 `json:"cap,omitzero"`
	// Random part of a wait, as a fraction from 0 to 1.
	Jitter *float64 `json:"jitter,omitzero"`
	// Waits after the first, second, … failure; replaces `base` and `cap`.
	Delays []float64 `json:"delays,omitzero"`
}

// SettleRequest: outcomes of attempts.
type SettleRequest struct {
	// Id of a worker; never reused.
	Worker string `json:"worker"`
	// Outcomes, at most one of each job.
	Outcomes []any `json:"outcomes"`
}

// SettledOut: jobs whose outcomes were applied; the worker had lost those that are in neither list.
type SettledOut struct {
	// Ids of settled jobs, now or by an earlier request with the same outcome.
	Settled []string `json:"settled"`
	// Invalid outcomes, which changed nothing; if all are invalid, the response is 422.
	Refused []OutcomeFault `json:"refused"`
}

// SnoozedIn: the handler asked to run again later; uses no attempt.
type SnoozedIn struct {
	// Outcome of the attempt.
	Outcome string `json:"outcome"`
	// Time until the job is due again.
	Delay float64 `json:"delay"`
	// True for a hold, which has no limit on how often; false for a snooze.
	Held *bool `json:"held,omitzero"`
	// Id of the job.
	ID string `json:"id"`
	// Fencing token: increases at each claim, and only its holder knows the newest.
	Fence int `json:"fence"`
	// Log of the attempt; null if it has none.
	Logs *LogsIn `json:"logs,omitzero"`
}

// StepList: page of the steps that earlier attempts recorded, by key; follow `next_cursor`.
type StepList struct {
	// Recorded steps, oldest first.
	Steps []StepRecord `json:"steps"`
	// Cursor of the next page; null on the last page.
	NextCursor *string `json:"next_cursor"`
}

// StepOut: recorded step of a job.
type StepOut struct {
	// Key of the step, unique in its job.
	Key string `json:"key"`
	// `done`, or `started` for a step that must run at most once.
	State string `json:"state"`
	// Time at which it was recorded.
	RecordedAt time.Time `json:"recorded_at"`
	// Result of the step as any JSON; null if it has none.
	Result json.RawMessage `json:"result"`
	// True for a committed transaction; the results of its statements are not shown.
	Transaction bool `json:"transaction"`
}

// StepRecord: step that an earlier attempt recorded.
type StepRecord struct {
	// Key of the step.
	Key string `json:"key"`
	// `done`, or `started` if it is unknown whether the step took effect.
	State string `json:"state"`
	// Result of the step as any JSON.
	Result json.RawMessage `json:"result"`
	// True for a committed transaction in the engine's database; its result is not sent.
	Transaction bool `json:"transaction"`
}

// StepRequest: step of a job: done, or started if it must run at most once.
type StepRequest struct {
	// Id of a worker; never reused.
	Worker string `json:"worker"`
	// Id of the job.
	ID string `json:"id"`
	// Fencing token: increases at each claim, and only its holder knows the newest.
	Fence int `json:"fence"`
	// Key of the step, unique in its job.
	Key string `json:"key"`
	// `done`, or `started` before a step that must run at most once. Default: `"done"`.
	State *string `json:"state,omitzero"`
	// Result of the step as any JSON.
	Result json.RawMessage `json:"result,omitzero"`
}

// StepState: progress of a step.
type StepState = string

// SubmitBatch: jobs to submit together, all or none.
type SubmitBatch struct {
	// Jobs of the batch, at most 10,000.
	Jobs []SubmitBatchJob `json:"jobs"`
}

// SubmitBatchJob: job of a batch, with its own idempotency key.
type SubmitBatchJob struct {
	// Type of the job, which names its handler.
	Type string `json:"type"`
	// Arguments of the job, as any JSON.
	Payload json.RawMessage `json:"payload,omitzero"`
	// Queue in which the job waits. Default: `"default"`.
	Queue *string `json:"queue,omitzero"`
	// Jobs with a higher priority run first.
	Priority *int `json:"priority,omitzero"`
	// Time before which the job does not start; not together with `delay`.
	ScheduledAt *time.Time `json:"scheduled_at,omitzero"`
	// Time to wait before the job may start; not together with `scheduled_at`.
	Delay *float64 `json:"delay,omitzero"`
	// Number of attempts before the job is dead.
	MaxAttempts *int `json:"max_attempts,omitzero"`
	// Maximum duration of one attempt; null for the default.
	Timeout *float64 `json:"timeout,omitzero"`
	// Waits between attempts; null for the default rule.
	Retry *RetryShape `json:"retry,omitzero"`
	// Weight of the job in quotas and fair scheduling. Default: `1`.
	Cost *int `json:"cost,omitzero"`
	// Labels to filter by.
	Tags []string `json:"tags,omitzero"`
	// Uniqueness among jobs; null if any number of equal jobs may exist.
	Unique *UniqueShape `json:"unique,omitzero"`
	// RFC 3339, with offset.
	Deadline *time.Time `json:"deadline,omitzero"`
	// Jobs with the same key run one at a time, unless a limit allows more.
	ConcurrencyKey *string `json:"concurrency_key,omitzero"`
	// Key of the submission; submissions with the same key create one job.
	IdempotencyKey *string `json:"idempotency_key,omitzero"`
}

// SubmitJob: job to submit.
type SubmitJob struct {
	// Type of the job, which names its handler.
	Type string `json:"type"`
	// Arguments of the job, as any JSON.
	Payload json.RawMessage `json:"payload,omitzero"`
	// Queue in which the job waits. Default: `"default"`.
	Queue *string `json:"queue,omitzero"`
	// Jobs with a higher priority run first.
	Priority *int `json:"priority,omitzero"`
	// Time before which the job does not start; not together with `delay`.
	ScheduledAt *time.Time `json:"scheduled_at,omitzero"`
	// Time to wait before the job may start; not together with `scheduled_at`.
	Delay *float64 `json:"delay,omitzero"`
	// Number of attempts before the job is dead.
	MaxAttempts *int `json:"max_attempts,omitzero"`
	// Maximum duration of one attempt; null for the default.
	Timeout *float64 `json:"timeout,omitzero"`
	// Waits between attempts; null for the default rule.
	Retry *RetryShape `json:"retry,omitzero"`
	// Weight of the job in quotas and fair scheduling. Default: `1`.
	Cost *int `json:"cost,omitzero"`
	// Labels to filter by.
	Tags []string `json:"tags,omitzero"`
	// Uniqueness among jobs; null if any number of equal jobs may exist.
	Unique *UniqueShape `json:"unique,omitzero"`
	// RFC 3339, with offset.
	Deadline *time.Time `json:"deadline,omitzero"`
	// Jobs with the same key run one at a time, unless a limit allows more.
	ConcurrencyKey *string `json:"concurrency_key,omitzero"`
}

// SucceededIn: the attempt succeeded, with a result of up to 256 KiB.
type SucceededIn struct {
	// Outcome of the attempt.
	Outcome string `json:"outcome"`
	// Result of the job, as any JSON.
	Result json.RawMessage `json:"result,omitzero"`
	// Id of the job.
	ID string `json:"id"`
	// Fencing token: increases at each claim, and only its holder knows the newest.
	Fence int `json:"fence"`
	// Log of the attempt; null if it has none.
	Logs *LogsIn `json:"logs,omitzero"`
}

// TimedOutIn: the attempt exceeded its timeout.
type TimedOutIn struct {
	// Outcome of the attempt.
	Outcome string `json:"outcome"`
	// Time for which the attempt ran.
	After float64 `json:"after"`
	// Id of the job.
	ID string `json:"id"`
	// Fencing token: increases at each claim, and only its holder knows the newest.
	Fence int `json:"fence"`
	// Log of the attempt; null if it has none.
	Logs *LogsIn `json:"logs,omitzero"`
}

// TruncatedField: list of a job that may be incomplete.
type TruncatedField = string

// TruncatedOut: list of which a job shows only a part, because the response would be too large.
type TruncatedOut struct {
	// Field of the job that has the list.
	Field string `json:"field"`
	// Path of the whole list, which is paged.
	Path string `json:"path"`
	// Cursor of the first page that the job does not show.
	NextCursor string `json:"next_cursor"`
}

// TypeIn: description of a job type that the worker handles.
type TypeIn struct {
	// Name of the type.
	Type string `json:"type"`
	// JSON Schema of the payload, up to 16 KiB.
	Schema map[string]any `json:"schema,omitzero"`
	// Default queue of its jobs.
	Queue *string `json:"queue,omitzero"`
	// Default number of attempts.
	MaxAttempts *int `json:"max_attempts,omitzero"`
	// Default timeout of an attempt.
	Timeout *float64 `json:"timeout,omitzero"`
	// Default priority.
	Priority *int `json:"priority,omitzero"`
	// Default cost.
	Cost *int `json:"cost,omitzero"`
}

// UnavailableIn: a call to this service failed inside the handler; uses no attempt for ten minutes.
type UnavailableIn struct {
	// Outcome of the attempt.
	Outcome string `json:"outcome"`
	// Error of the call.
	Error ErrorIn `json:"error"`
	// Id of the job.
	ID string `json:"id"`
	// Fencing token: increases at each claim, and only its holder knows the newest.
	Fence int `json:"fence"`
	// Log of the attempt; null if it has none.
	Logs *LogsIn `json:"logs,omitzero"`
}

// UniqueShape: uniqueness of a job: one job at a time with equal values of the fields in `by`.
type UniqueShape struct {
	// Fields that make two jobs equal: `type`, `queue`, `payload`, or a field of the payload.
	By []string `json:"by,omitzero"`
	// Time for which the key stays in use after the submission.
	Within *float64 `json:"within,omitzero"`
	// Reaction to such a job: return it, replace it or reject the submission.
	OnConflict *string `json:"on_conflict,omitzero"`
}
