package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"holdfast/wire"
)

type attemptKey struct{}

// attempt is one run of a job under one fence.
type attempt struct {
	session  *session
	job      wire.LeasedJob
	ctx      context.Context
	cancel   context.CancelCauseFunc
	log      *slog.Logger
	lines    logLines
	progress progress
	refused  bool // the service refused the first outcome

	mu      sync.Mutex
	steps   map[string]wire.StepRecord // recorded by earlier attempts; nil until the first step
	claimed map[string]bool            // keys used in this attempt
}

func newAttempt(s *session, job wire.LeasedJob) *attempt {
	a := &attempt{session: s, job: job, claimed: map[string]bool{}}
	a.ctx, a.cancel = context.WithCancelCause(s.ctx)
	a.log = s.options.Logger.With("job_id", job.ID, "job_type", job.Type, "attempt", job.Attempts)
	return a
}

type returned struct {
	result json.RawMessage
	err    error
}

// run calls the handler and reports its outcome. It returns when the handler has returned, which frees the slot.
func (a *attempt) run(call handler) {
	if a.job.Timeout != nil {
		timer := time.AfterFunc(time.Duration(*a.job.Timeout*float64(time.Second)), func() { a.cancel(ErrTimedOut) })
		defer timer.Stop()
	}
	done := make(chan returned, 1)
	go func() { done <- a.call(call) }()
	var found *returned
	select {
	case each := <-done:
		found = &each
	case <-a.ctx.Done():
		timer := time.NewTimer(stopGrace)
		select {
		case each := <-done:
			found = &each
		case <-timer.C:
			a.log.Error("the handler ignores its context and keeps its slot until it returns", "cause", context.Cause(a.ctx))
		}
		timer.Stop()
	}
	a.finish(found)
	a.session.running.Done()
	if found == nil {
		<-done
	}
	a.cancel(nil)
}

// call calls the handler and converts a panic to an error.
func (a *attempt) call(call handler) (found returned) {
	defer func() {
		if value := recover(); value != nil {
			found = returned{err: &panicError{value, string(debug.Stack())}}
		}
	}()
	if call == nil {
		return returned{err: fmt.Errorf("this worker has no handler for the type %q", a.job.Type)}
	}
	result, err := call(a.ctx, a)
	return returned{result, err}
}

type panicError struct {
	value any
	stack string
}

func (e *panicError) Error() string { return fmt.Sprint(e.value) }

// finish reports the outcome, unless the worker no longer holds the job.
func (a *attempt) finish(found *returned) {
	cause := context.Cause(a.ctx)
	switch {
	case errors.Is(cause, ErrJobNotHeld), errors.Is(cause, ErrLeaseLost):
		a.session.forget(a)
		return
	case errors.Is(cause, ErrTimedOut):
		a.progress.flush(a)
		a.session.report(a, a.failure(ErrTimedOut))
	case found == nil || (errors.Is(cause, ErrDraining) && found.err != nil):
		a.session.report(a, wire.ReleasedIn{Outcome: "released", ID: a.job.ID, Fence: a.job.Fence})
	case found.err != nil:
		a.progress.flush(a)
		a.session.report(a, a.failure(found.err))
	default:
		a.progress.flush(a)
		result := encodeResult(found.result)
		value := wire.SucceededIn{Outcome: "succeeded", ID: a.job.ID, Fence: a.job.Fence, Result: result, Logs: a.lines.all()}
		a.session.report(a, value)
	}
}

// failure converts an error of a handler to an outcome.
func (a *attempt) failure(err error) any {
	id, fence, logs := a.job.ID, a.job.Fence, a.lines.all()
	snooze, cancel, retry, permanent := (*snoozeError)(nil), (*cancelError)(nil), (*retryError)(nil), (*permanentError)(nil)
	switch {
	case errors.Is(err, ErrTimedOut):
		after := 0.0
		if a.job.Timeout != nil {
			after = *a.job.Timeout
		}
		a.log.Warn("the attempt timed out", "after", after)
		return wire.TimedOutIn{Outcome: "timed_out", ID: id, Fence: fence, After: after, Logs: logs}
	case errors.As(err, &snooze):
		return wire.SnoozedIn{Outcome: "snoozed", ID: id, Fence: fence, Delay: snooze.delay.Seconds()}
	case errors.As(err, &cancel):
		return wire.CancelledIn{Outcome: "cancelled", ID: id, Fence: fence, Reason: &cancel.reason, Logs: logs}
	}
	a.log.Warn("the attempt failed", "error", err)
	if isUnavailable(err) {
		return wire.UnavailableIn{Outcome: "unavailable", ID: id, Fence: fence, Error: errorOf(err), Logs: logs}
	}
	failed := wire.FailedIn{Outcome: "failed", ID: id, Fence: fence, Error: errorOf(err), Logs: logs}
	if errors.As(err, &retry) {
		failed.RetryIn = ptr(retry.delay.Seconds())
	}
	if errors.As(err, &permanent) || errors.Is(err, ErrStepOutcomeUnknown) {
		failed.Retryable = ptr(false)
	}
	return failed
}

// errorOf describes an error: its type as the kind, and the stack of a panic.
func errorOf(err error) wire.ErrorIn {
	if panicked := (*panicError)(nil); errors.As(err, &panicked) {
		return wire.ErrorIn{Kind: "panic", Message: ptr(err.Error()), Traceback: &panicked.stack}
	}
	return wire.ErrorIn{Kind: kindOf(err), Message: ptr(err.Error())}
}

// kindOf returns the type of the first error in the chain that is not just a text or a wrapper.
func kindOf(err error) string {
	for each := err; each != nil; each = errors.Unwrap(each) {
		switch name := strings.TrimPrefix(reflect.TypeOf(each).String(), "*"); name {
		case "errors.errorString", "fmt.wrapError", "fmt.wrapErrors", "holdfast.permanentError", "holdfast.retryError":
		case "holdfast.payloadError":
			return "InvalidPayload"
		case "holdfast.resultError":
			return "ResultNotJson"
		default:
			return name
		}
	}
	return "error"
}

func (a *attempt) encode(value any) json.RawMessage {
	body, err := json.Marshal(value)
	if err != nil { // only a result with invalid JSON can cause this, and results are encoded by json.Marshal
		body, _ = json.Marshal(a.failure(Permanent(&resultError{err})))
	}
	return body
}

// Job is a running job, with its payload decoded.
type Job[P any] struct {
	ID          string
	Type        string
	Queue       string
	Tenant      string
	Attempt     int // starts at 1
	MaxAttempts int
	Releases    int // number of releases and snoozes
	Fence       int // rises with every claim, so that other systems can refuse an old attempt
	Tags        []string
	Payload     P
	Log         *slog.Logger // writes to the worker's log, and stores the newest lines with the attempt

	attempt *attempt
}

func newJob[P any](a *attempt) *Job[P] {
	log := slog.New(&logHandler{inner: a.log.Handler(), lines: &a.lines})
	return &Job[P]{
		ID: a.job.ID, Type: a.job.Type, Queue: a.job.Queue, Tenant: a.job.Tenant, Attempt: a.job.Attempts,
		MaxAttempts: a.job.MaxAttempts, Releases: a.job.Releases, Fence: a.job.Fence, Tags: a.job.Tags, Log: log, attempt: a,
	}
}

// IdempotencyKey returns a key for another service that is the same in every attempt of the job.
func (j *Job[P]) IdempotencyKey(name string) string { return j.ID + ":" + name }

// Progress shows how far the job is: a fraction from 0 to 1 and a short note. It does not wait for the service, which
// gets at most one value a second and always the last one. The error says why the handler must stop, or nil.
func (j *Job[P]) Progress(fraction float64, note string) error {
	if !(fraction >= 0 && fraction <= 1) {
		return Permanent(fmt.Errorf("holdfast: the progress is %v: give a fraction from 0 to 1", fraction))
	}
	j.attempt.progress.report(j.attempt, fraction, note)
	return context.Cause(j.attempt.ctx)
}
