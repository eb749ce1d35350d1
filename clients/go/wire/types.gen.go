// Code generated from the OpenAPI description by tools/client_types.py. DO NOT EDIT.

// Package wire has the requests and responses of the HTTP API.
package wire

import (
	"encoding/json"
	"time"
)

// About: description of a worker, given when it registers.
type About struct {
	Name      *string  `json:"name,omitzero"`
	Host      *string  `json:"host,omitzero"`
	PID       *int     `json:"pid,omitzero"`
	Version   *string  `json:"version,omitzero"`
	Queues    *string  `json:"queues,omitzero"`
	Slots     *int     `json:"slots,omitzero"`
	Types     []string `json:"types,omitzero"`
	Described []TypeIn `json:"described,omitzero"`
	Node      *string  `json:"node,omitzero"`
}

// AttemptOut: attempt that did not succeed, or that logged something.
type AttemptOut struct {
	Attempt    int       `json:"attempt"`
	Generation int       `json:"generation"`
	Worker     string    `json:"worker"`
	StartedAt  time.Time `json:"started_at"`
	EndedAt    time.Time `json:"ended_at"`
	Outcome    string    `json:"outcome"`
	Error      *ErrorOut `json:"error"`
	Logs       *LogsOut  `json:"logs"`
}

// BatchOut: receipts of a batch, in the order of its jobs.
type BatchOut struct {
	Items []ReceiptOut `json:"items"`
}

// CancelRequest: reason for a cancellation, kept with the job.
type CancelRequest struct {
	Reason *string `json:"reason,omitzero"`
}

// CancelledIn: the handler cancelled the job.
type CancelledIn struct {
	Outcome string  `json:"outcome"`
	Reason  *string `json:"reason,omitzero"`
	ID      string  `json:"id"`
	// Fencing token: increases at each claim, and only its holder knows the newest.
	Fence int     `json:"fence"`
	Logs  *LogsIn `json:"logs,omitzero"`
}

// CrashedIn: the process of the attempt died.
type CrashedIn struct {
	Outcome string `json:"outcome"`
	How     string `json:"how"`
	ID      string `json:"id"`
	// Fencing token: increases at each claim, and only its holder knows the newest.
	Fence int     `json:"fence"`
	Logs  *LogsIn `json:"logs,omitzero"`
}

// DepartRequest: removal of a worker that holds no jobs.
type DepartRequest struct {
	// Id of a worker; never reused.
	Worker string `json:"worker"`
}

// DepartedOut: result of a removal; a worker that holds jobs is not removed.
type DepartedOut struct {
	Departed bool `json:"departed"`
}

// ErrorIn: error of a failed attempt.
type ErrorIn struct {
	Kind      string  `json:"kind"`
	Message   *string `json:"message,omitzero"`
	Traceback *string `json:"traceback,omitzero"`
}

// ErrorOut: error of a failed attempt.
type ErrorOut struct {
	Kind        string `json:"kind"`
	Message     string `json:"message"`
	Fingerprint string `json:"fingerprint"`
	Traceback   string `json:"traceback"`
}

// FailedIn: the attempt failed; retried by its rule or after `retry_in`, unless not `retryable`.
type FailedIn struct {
	Outcome   string   `json:"outcome"`
	Error     ErrorIn  `json:"error"`
	Retryable *bool    `json:"retryable,omitzero"`
	RetryIn   *float64 `json:"retry_in,omitzero"`
	ID        string   `json:"id"`
	// Fencing token: increases at each claim, and only its holder knows the newest.
	Fence int     `json:"fence"`
	Logs  *LogsIn `json:"logs,omitzero"`
}

// Fault: error of one item of a batch.
type Fault struct {
	Index   int     `json:"index"`
	Code    string  `json:"code"`
	Detail  string  `json:"detail"`
	Pointer *string `json:"pointer,omitzero"`
	JobID   *string `json:"job_id,omitzero"`
}

// HeldOut: job that a worker holds.
type HeldOut struct {
	ID    string `json:"id"`
	Fence int    `json:"fence"`
	Queue string `json:"queue"`
	Type  string `json:"type"`
}

// HeldPage: jobs that a worker holds, according to the database.
type HeldPage struct {
	Jobs []HeldOut `json:"jobs"`
}

// HeldRequest: query for the jobs that a worker holds.
type HeldRequest struct {
	// Id of a worker; never reused.
	Worker string `json:"worker"`
	Limit  *int   `json:"limit,omitzero"`
}

// HeldShape: held job, identified by its id and fence.
type HeldShape struct {
	ID string `json:"id"`
	// Fencing token: increases at each claim, and only its holder knows the newest.
	Fence int `json:"fence"`
}

// JobDetail: a job with its attempts, steps and lineage.
type JobDetail struct {
	ID             string          `json:"id"`
	Tenant         string          `json:"tenant"`
	Queue          string          `json:"queue"`
	Type           string          `json:"type"`
	Payload        json.RawMessage `json:"payload"`
	Status         string          `json:"status"`
	Priority       int             `json:"priority"`
	Attempts       int             `json:"attempts"`
	MaxAttempts    int             `json:"max_attempts"`
	ScheduledAt    *time.Time      `json:"scheduled_at"`
	CreatedAt      time.Time       `json:"created_at"`
	StartedAt      *time.Time      `json:"started_at"`
	FinishedAt     *time.Time      `json:"finished_at"`
	UpdatedAt      time.Time       `json:"updated_at"`
	Result         json.RawMessage `json:"result"`
	Error          *ErrorOut       `json:"error"`
	Reason         *string         `json:"reason"`
	Progress       json.RawMessage `json:"progress"`
	Tags           []string        `json:"tags"`
	Cost           int             `json:"cost"`
	Timeout        *float64        `json:"timeout"`
	Deadline       *time.Time      `json:"deadline"`
	ConcurrencyKey *string         `json:"concurrency_key"`
	IdempotencyKey *string         `json:"idempotency_key"`
	Generation     int             `json:"generation"`
	Worker         *string         `json:"worker"`
	LeaseUntil     *time.Time      `json:"lease_until"`
	WorkflowID     *string         `json:"workflow_id"`
	Actions        []string        `json:"actions"`
	AttemptLog     []AttemptOut    `json:"attempt_log"`
	Steps          []StepOut       `json:"steps"`
	Lineage        LineageOut      `json:"lineage"`
	Truncated      []TruncatedOut  `json:"truncated"`
}

// JobOut: a job.
type JobOut struct {
	ID             string          `json:"id"`
	Tenant         string          `json:"tenant"`
	Queue          string          `json:"queue"`
	Type           string          `json:"type"`
	Payload        json.RawMessage `json:"payload"`
	Status         string          `json:"status"`
	Priority       int             `json:"priority"`
	Attempts       int             `json:"attempts"`
	MaxAttempts    int             `json:"max_attempts"`
	ScheduledAt    *time.Time      `json:"scheduled_at"`
	CreatedAt      time.Time       `json:"created_at"`
	StartedAt      *time.Time      `json:"started_at"`
	FinishedAt     *time.Time      `json:"finished_at"`
	UpdatedAt      time.Time       `json:"updated_at"`
	Result         json.RawMessage `json:"result"`
	Error          *ErrorOut       `json:"error"`
	Reason         *string         `json:"reason"`
	Progress       json.RawMessage `json:"progress"`
	Tags           []string        `json:"tags"`
	Cost           int             `json:"cost"`
	Timeout        *float64        `json:"timeout"`
	Deadline       *time.Time      `json:"deadline"`
	ConcurrencyKey *string         `json:"concurrency_key"`
	IdempotencyKey *string         `json:"idempotency_key"`
	Generation     int             `json:"generation"`
	Worker         *string         `json:"worker"`
	LeaseUntil     *time.Time      `json:"lease_until"`
	WorkflowID     *string         `json:"workflow_id"`
	Actions        []string        `json:"actions"`
}

// JobPage: page of jobs, newest first. A page may contain fewer items than `limit`, even none; follow `next_cursor` until it is null.
type JobPage struct {
	Items      []JobOut `json:"items"`
	NextCursor *string  `json:"next_cursor"`
}

// LeaseOut: worker and the jobs that it has claimed.
type LeaseOut struct {
	Worker   string      `json:"worker"`
	Jobs     []LeasedJob `json:"jobs"`
	Draining bool        `json:"draining"`
}

// LeaseRequest: claim of jobs. Without `worker`, or with `register`, the worker is registered first and gets its response at once.
type LeaseRequest struct {
	Worker   *string  `json:"worker,omitzero"`
	Register *About   `json:"register,omitzero"`
	Lease    *float64 `json:"lease,omitzero"`
	Queues   []string `json:"queues,omitzero"`
	Types    []string `json:"types,omitzero"`
	Limit    *int     `json:"limit,omitzero"`
	Wait     *float64 `json:"wait,omitzero"`
}

// LeasedJob: claimed job.
type LeasedJob struct {
	ID             string          `json:"id"`
	Fence          int             `json:"fence"`
	Tenant         string          `json:"tenant"`
	Queue          string          `json:"queue"`
	Type           string          `json:"type"`
	Payload        json.RawMessage `json:"payload"`
	Priority       int             `json:"priority"`
	Attempts       int             `json:"attempts"`
	MaxAttempts    int             `json:"max_attempts"`
	Releases       int             `json:"releases"`
	Generation     int             `json:"generation"`
	Cost           int             `json:"cost"`
	CreatedAt      time.Time       `json:"created_at"`
	ScheduledAt    *time.Time      `json:"scheduled_at"`
	StartedAt      *time.Time      `json:"started_at"`
	Timeout        *float64        `json:"timeout"`
	Deadline       *time.Time      `json:"deadline"`
	Tags           []string        `json:"tags"`
	ConcurrencyKey *string         `json:"concurrency_key"`
	IdempotencyKey *string         `json:"idempotency_key"`
	Progress       json.RawMessage `json:"progress"`
	AttemptLog     []AttemptOut    `json:"attempt_log"`
}

// LineageOut: origin of a job.
type LineageOut struct {
	Generation int     `json:"generation"`
	ParentID   *string `json:"parent_id"`
	Schedule   *string `json:"schedule"`
	WorkflowID *string `json:"workflow_id"`
}

// LogLineOut: line that a handler wrote to the log of its job.
type LogLineOut struct {
	At      string `json:"at"`
	Level   string `json:"level"`
	Message string `json:"message"`
}

// LogsIn: newest log lines of an attempt, oldest first.
type LogsIn struct {
	Lines   []LogLineOut `json:"lines"`
	Dropped *int         `json:"dropped,omitzero"`
}

// LogsOut: newest log lines of an attempt, oldest first.
type LogsOut struct {
	Lines   []LogLineOut `json:"lines"`
	Dropped int          `json:"dropped"`
}

// LostOut: jobs that the worker no longer holds; it should stop them.
type LostOut struct {
	Lost     []string `json:"lost"`
	Paused   []string `json:"paused"`
	Draining bool     `json:"draining"`
}

// LostRequest: query for lost jobs that does not renew the lease.
type LostRequest struct {
	// Id of a worker; never reused.
	Worker string      `json:"worker"`
	Held   []HeldShape `json:"held"`
}

// OutcomeFault: error of one outcome of a settlement; the worker still holds its job, so it can report another outcome.
type OutcomeFault struct {
	Index   int    `json:"index"`
	Code    string `json:"code"`
	Detail  string `json:"detail"`
	Pointer string `json:"pointer"`
}

// Problem: error of a request: what happened and what to do.
type Problem struct {
	Title   string  `json:"title"`
	Status  int     `json:"status"`
	Code    string  `json:"code"`
	Detail  string  `json:"detail"`
	Type    *string `json:"type,omitzero"`
	Pointer *string `json:"pointer,omitzero"`
	Errors  []Fault `json:"errors,omitzero"`
	JobID   *string `json:"job_id,omitzero"`
}

// ProgressRequest: progress of a held job.
type ProgressRequest struct {
	// Id of a worker; never reused.
	Worker string `json:"worker"`
	ID     string `json:"id"`
	// Fencing token: increases at each claim, and only its holder knows the newest.
	Fence    int     `json:"fence"`
	Fraction float64 `json:"fraction"`
	Note     *string `json:"note,omitzero"`
}

// ReceiptOut: receipt for one job of a batch; the job is durable.
type ReceiptOut struct {
	ID        string    `json:"id"`
	CreatedAt time.Time `json:"created_at"`
	Replayed  bool      `json:"replayed"`
}

// ReleasedIn: the worker released the job unfinished; uses no attempt.
type ReleasedIn struct {
	Outcome string `json:"outcome"`
	Started *bool  `json:"started,omitzero"`
	ID      string `json:"id"`
	// Fencing token: increases at each claim, and only its holder knows the newest.
	Fence int     `json:"fence"`
	Logs  *LogsIn `json:"logs,omitzero"`
}

// RenewRequest: renewal of a lease; the response lists lost jobs.
type RenewRequest struct {
	// Id of a worker; never reused.
	Worker string `json:"worker"`
	// Seconds, or a text such as '30s': maximum time between two renewals.
	Lease        *float64    `json:"lease,omitzero"`
	Memory       *int        `json:"memory,omitzero"`
	Draining     *bool       `json:"draining,omitzero"`
	Unresponsive *float64    `json:"unresponsive,omitzero"`
	BlockedBy    *string     `json:"blocked_by,omitzero"`
	Held         []HeldShape `json:"held,omitzero"`
}

// RetryShape: wait before the next attempt: exponential, or a list of delays whose last entry repeats.
type RetryShape struct {
	// Seconds, or a text such as '250ms', '30s', '5m', '1h30m' or '7d'.
	Base *float64 `json:"base,omitzero"`
	// Seconds, or a text such as '250ms', '30s', '5m', '1h30m' or '7d'.
	Cap    *float64  `json:"cap,omitzero"`
	Jitter *float64  `json:"jitter,omitzero"`
	Delays []float64 `json:"delays,omitzero"`
}

// SettleRequest: outcomes of attempts.
type SettleRequest struct {
	// Id of a worker; never reused.
	Worker   string `json:"worker"`
	Outcomes []any  `json:"outcomes"`
}

// SettledOut: jobs whose outcomes were applied; the worker had lost those that are neither settled nor refused.
type SettledOut struct {
	Settled []string       `json:"settled"`
	Refused []OutcomeFault `json:"refused"`
}

// SnoozedIn: the handler asked to run again later; uses no attempt.
type SnoozedIn struct {
	Outcome string `json:"outcome"`
	// Seconds, or a text such as '250ms', '30s', '5m', '1h30m' or '7d'.
	Delay float64 `json:"delay"`
	Held  *bool   `json:"held,omitzero"`
	ID    string  `json:"id"`
	// Fencing token: increases at each claim, and only its holder knows the newest.
	Fence int     `json:"fence"`
	Logs  *LogsIn `json:"logs,omitzero"`
}

// StepList: page of the steps that earlier attempts recorded, by key; follow `next_cursor`.
type StepList struct {
	Steps      []StepRecord `json:"steps"`
	NextCursor *string      `json:"next_cursor"`
}

// StepOut: recorded step of a job.
type StepOut struct {
	Key         string          `json:"key"`
	State       string          `json:"state"`
	RecordedAt  time.Time       `json:"recorded_at"`
	Result      json.RawMessage `json:"result"`
	Transaction bool            `json:"transaction"`
}

// StepRecord: step that an earlier attempt recorded.
type StepRecord struct {
	Key         string          `json:"key"`
	State       string          `json:"state"`
	Result      json.RawMessage `json:"result"`
	Transaction bool            `json:"transaction"`
}

// StepRequest: step of a job: done, or started if it must run at most once.
type StepRequest struct {
	// Id of a worker; never reused.
	Worker string `json:"worker"`
	ID     string `json:"id"`
	// Fencing token: increases at each claim, and only its holder knows the newest.
	Fence  int             `json:"fence"`
	Key    string          `json:"key"`
	State  *string         `json:"state,omitzero"`
	Result json.RawMessage `json:"result,omitzero"`
}

// SubmitBatch: jobs to submit together, all or none.
type SubmitBatch struct {
	Jobs []SubmitBatchJob `json:"jobs"`
}

// SubmitBatchJob: job of a batch, with its own idempotency key.
type SubmitBatchJob struct {
	// 1 to 128 letters, digits or _ . : / @ + -, starting with a letter, a digit or _.
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload,omitzero"`
	// 1 to 128 letters, digits or _ . : / @ + -, starting with a letter, a digit or _.
	Queue          *string      `json:"queue,omitzero"`
	Priority       *int         `json:"priority,omitzero"`
	ScheduledAt    *time.Time   `json:"scheduled_at,omitzero"`
	Delay          *float64     `json:"delay,omitzero"`
	MaxAttempts    *int         `json:"max_attempts,omitzero"`
	Timeout        *float64     `json:"timeout,omitzero"`
	Retry          *RetryShape  `json:"retry,omitzero"`
	Cost           *int         `json:"cost,omitzero"`
	Tags           []string     `json:"tags,omitzero"`
	Unique         *UniqueShape `json:"unique,omitzero"`
	Deadline       *time.Time   `json:"deadline,omitzero"`
	ConcurrencyKey *string      `json:"concurrency_key,omitzero"`
	IdempotencyKey *string      `json:"idempotency_key,omitzero"`
}

// SubmitJob: job to submit.
type SubmitJob struct {
	// 1 to 128 letters, digits or _ . : / @ + -, starting with a letter, a digit or _.
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload,omitzero"`
	// 1 to 128 letters, digits or _ . : / @ + -, starting with a letter, a digit or _.
	Queue          *string      `json:"queue,omitzero"`
	Priority       *int         `json:"priority,omitzero"`
	ScheduledAt    *time.Time   `json:"scheduled_at,omitzero"`
	Delay          *float64     `json:"delay,omitzero"`
	MaxAttempts    *int         `json:"max_attempts,omitzero"`
	Timeout        *float64     `json:"timeout,omitzero"`
	Retry          *RetryShape  `json:"retry,omitzero"`
	Cost           *int         `json:"cost,omitzero"`
	Tags           []string     `json:"tags,omitzero"`
	Unique         *UniqueShape `json:"unique,omitzero"`
	Deadline       *time.Time   `json:"deadline,omitzero"`
	ConcurrencyKey *string      `json:"concurrency_key,omitzero"`
}

// SucceededIn: the attempt succeeded, with a result of up to 256 KiB.
type SucceededIn struct {
	Outcome string          `json:"outcome"`
	Result  json.RawMessage `json:"result,omitzero"`
	ID      string          `json:"id"`
	// Fencing token: increases at each claim, and only its holder knows the newest.
	Fence int     `json:"fence"`
	Logs  *LogsIn `json:"logs,omitzero"`
}

// TimedOutIn: the attempt exceeded its timeout.
type TimedOutIn struct {
	Outcome string `json:"outcome"`
	// Seconds, or a text such as '250ms', '30s', '5m', '1h30m' or '7d'.
	After float64 `json:"after"`
	ID    string  `json:"id"`
	// Fencing token: increases at each claim, and only its holder knows the newest.
	Fence int     `json:"fence"`
	Logs  *LogsIn `json:"logs,omitzero"`
}

// TruncatedOut: list of which a job shows only a part, because the response would be too large.
type TruncatedOut struct {
	Field      string `json:"field"`
	Path       string `json:"path"`
	NextCursor string `json:"next_cursor"`
}

// TypeIn: description of a job type that the worker handles.
type TypeIn struct {
	// 1 to 128 letters, digits or _ . : / @ + -, starting with a letter, a digit or _.
	Type        string         `json:"type"`
	Schema      map[string]any `json:"schema,omitzero"`
	Queue       *string        `json:"queue,omitzero"`
	MaxAttempts *int           `json:"max_attempts,omitzero"`
	Timeout     *float64       `json:"timeout,omitzero"`
	Priority    *int           `json:"priority,omitzero"`
	Cost        *int           `json:"cost,omitzero"`
}

// UnavailableIn: a call to this service failed inside the handler; uses no attempt for ten minutes.
type UnavailableIn struct {
	Outcome string  `json:"outcome"`
	Error   ErrorIn `json:"error"`
	ID      string  `json:"id"`
	// Fencing token: increases at each claim, and only its holder knows the newest.
	Fence int     `json:"fence"`
	Logs  *LogsIn `json:"logs,omitzero"`
}

// UniqueShape: uniqueness of a job: one job at a time with equal values of the fields in `by`.
type UniqueShape struct {
	By []string `json:"by,omitzero"`
	// Seconds, or a text such as '250ms', '30s', '5m', '1h30m' or '7d'.
	Within     *float64 `json:"within,omitzero"`
	OnConflict *string  `json:"on_conflict,omitzero"`
}
