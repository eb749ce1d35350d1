package holdfast

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"holdfast/wire"
)

// Codes of problems that need their own handling. The API reference lists all codes.
const (
	CodeLeaseLost   = "lease_lost"   // the worker is dead to the service and must register again
	CodeJobNotHeld  = "job_not_held" // the worker no longer holds this one job
	CodeRateLimited = "rate_limited"
	CodeNotFound    = "not_found"
)

// Error is a problem that the service reported, as in RFC 9457.
type Error struct {
	Status  int
	Code    string // stable name of the problem, such as "not_found"
	Detail  string
	Pointer string        // invalid field, as a JSON pointer into the request
	JobID   string        // conflicting job
	Faults  []wire.Fault  // invalid items of a batch
	After   time.Duration // time that the service asks clients to wait before they retry
}

// Error returns the text of the problem and its code.
func (e *Error) Error() string {
	return fmt.Sprintf("holdfast: %s (%s, status %d)", e.Detail, e.Code, e.Status)
}

// ConnectionError says that a request got no response.
type ConnectionError struct {
	Sent bool // the request may have taken effect
	Err  error
}

// Error returns what happened.
func (e *ConnectionError) Error() string {
	if e.Sent {
		return fmt.Sprintf("holdfast: the service did not respond, and the request may have taken effect: %v", e.Err)
	}
	return fmt.Sprintf("holdfast: the service cannot be reached: %v", e.Err)
}

// Unwrap returns the error of the connection.
func (e *ConnectionError) Unwrap() error { return e.Err }

// CodeOf returns the code of the problem that err wraps, or "" if it wraps none.
func CodeOf(err error) string {
	if problem := (*Error)(nil); errors.As(err, &problem) {
		return problem.Code
	}
	return ""
}

// isUnavailable reports whether a later try of the same request may succeed.
func isUnavailable(err error) bool {
	if connection := (*ConnectionError)(nil); errors.As(err, &connection) {
		return true
	}
	problem := (*Error)(nil)
	return errors.As(err, &problem) && (problem.Status >= 500 || problem.Status == http.StatusTooManyRequests)
}

// mayHaveHappened reports whether the request of a failed try may have taken effect.
func mayHaveHappened(err error) bool {
	if connection := (*ConnectionError)(nil); errors.As(err, &connection) {
		return connection.Sent
	}
	problem := (*Error)(nil)
	return errors.As(err, &problem) && problem.Status >= 500 && problem.Status != http.StatusServiceUnavailable
}

func retryAfter(err error) time.Duration {
	if problem := (*Error)(nil); errors.As(err, &problem) {
		return problem.After
	}
	return 0
}

func isDialError(err error) bool {
	operation := (*net.OpError)(nil)
	return errors.As(err, &operation) && operation.Op == "dial"
}

// Errors that a handler gets when it must stop: context.Cause of its context returns one of them, and so do steps.
var (
	ErrJobNotHeld = errors.New("holdfast: the job was cancelled or belongs to another worker")
	ErrLeaseLost  = errors.New("holdfast: the worker lost its lease")
	ErrTimedOut   = errors.New("holdfast: the attempt exceeded its timeout")
	ErrDraining   = errors.New("holdfast: the worker is shutting down")
)

// ErrStepOutcomeUnknown says that an earlier attempt started a [StepOnce] and recorded no result. The step is not
// repeated. A handler that returns this error makes the job dead; a handler that can find out whether the step took
// effect may continue instead.
var ErrStepOutcomeUnknown = errors.New("holdfast: an earlier attempt started the step, which may have taken effect")

type snoozeError struct{ delay time.Duration }

func (e *snoozeError) Error() string { return fmt.Sprintf("holdfast: run again in %v", e.delay) }

// Snooze returns an error with which a handler asks to run again later. It uses no attempt.
func Snooze(delay time.Duration) error { return &snoozeError{delay} }

type cancelError struct{ reason string }

func (e *cancelError) Error() string { return "holdfast: cancelled by its handler: " + e.reason }

// Cancel returns an error with which a handler cancels its own job.
func Cancel(reason string) error { return &cancelError{reason} }

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// Permanent wraps an error that a retry cannot fix: the job is dead at once.
func Permanent(err error) error { return &permanentError{err} }

type retryError struct {
	err   error
	delay time.Duration
}

func (e *retryError) Error() string { return e.err.Error() }
func (e *retryError) Unwrap() error { return e.err }

// RetryIn wraps an error after which the next attempt starts after this delay, instead of the job's usual backoff.
func RetryIn(delay time.Duration, err error) error { return &retryError{err, delay} }

// JobError says that a job did not succeed.
type JobError struct {
	ID      string
	Status  string // "dead" or "cancelled"
	Kind    string
	Message string
}

// Error returns how the job ended.
func (e *JobError) Error() string {
	return fmt.Sprintf("holdfast: job %s is %s: %s: %s", e.ID, e.Status, e.Kind, e.Message)
}
