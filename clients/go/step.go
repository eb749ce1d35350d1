package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"holdfast/wire"
)

const (
	stepRetryTimeout = time.Minute // a step has taken effect, so its record is worth many tries
	maxStepBytes     = 1 << 20
)

// Step calls function and records its result. A later attempt returns the record and does not call function. If the
// attempt ends between the call and its record, the next attempt calls function again: pass [Job.IdempotencyKey] to
// services that recognise a repeated call. Use the context of the handler; a key may be used once in an attempt.
func Step[T any](ctx context.Context, key string, function func(ctx context.Context) (T, error)) (T, error) {
	return step(ctx, key, false, function)
}

// StepOnce is a [Step] that is called at most once, even if the worker dies during the call. If an earlier attempt
// started it and recorded no result, StepOnce returns [ErrStepOutcomeUnknown].
func StepOnce[T any](ctx context.Context, key string, function func(ctx context.Context) (T, error)) (T, error) {
	return step(ctx, key, true, function)
}

func step[T any](ctx context.Context, key string, once bool, function func(ctx context.Context) (T, error)) (T, error) {
	var result T
	a, ok := ctx.Value(attemptKey{}).(*attempt)
	if !ok {
		return result, errors.New("holdfast: a step needs the context of a handler")
	}
	record, err := a.beginStep(ctx, key, once)
	if err != nil {
		return result, err
	}
	if record == nil {
		value, err := function(ctx)
		if err != nil {
			return value, err
		}
		if record, err = a.endStep(ctx, key, value); err != nil {
			return result, err
		}
	}
	// The first attempt decodes its own record too, so that all attempts get the same value.
	if err := json.Unmarshal(record, &result); err != nil {
		return result, Permanent(fmt.Errorf("holdfast: the record of step %q does not fit: %w", key, err))
	}
	return result, nil
}

// beginStep returns the record of a finished step, or nil if the caller must call its function.
func (a *attempt) beginStep(ctx context.Context, key string, once bool) (json.RawMessage, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	record, recorded, err := a.claimStep(ctx, key)
	switch {
	case err != nil:
		return nil, err
	case recorded && record.Transaction:
		return nil, Permanent(fmt.Errorf("holdfast: an earlier attempt used %q for a transaction: use another key", key))
	case recorded && record.State == "done":
		return record.Result, nil
	case recorded && once:
		return nil, fmt.Errorf("step %q: %w", key, ErrStepOutcomeUnknown)
	case once:
		return nil, a.recordStep(ctx, wire.StepRequest{Key: key, State: ptr("started")})
	}
	return nil, nil
}

// claimStep marks the key as used and returns its record; the first step reads all records.
func (a *attempt) claimStep(ctx context.Context, key string) (wire.StepRecord, bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if key == "" || len(key) > 255 {
		return wire.StepRecord{}, false, Permanent(fmt.Errorf("holdfast: %q is not a step key: use 1 to 255 characters", key))
	}
	if a.claimed[key] {
		return wire.StepRecord{}, false, Permanent(fmt.Errorf("holdfast: step %q was already used: give each step its own key", key))
	}
	if a.steps == nil {
		found := wire.StepList{}
		query := url.Values{"worker": {a.session.id}, "id": {a.job.ID}, "fence": {strconv.Itoa(a.job.Fence)}}
		r := request{method: "GET", path: "/v1/leases/steps", query: query, repeat: true}
		if err := a.checkHeld(a.session.client.send(ctx, r, &found, stepRetryTimeout)); err != nil {
			return wire.StepRecord{}, false, err
		}
		a.steps = map[string]wire.StepRecord{}
		for _, record := range found.Steps {
			a.steps[record.Key] = record
		}
	}
	a.claimed[key] = true
	record, recorded := a.steps[key]
	return record, recorded, nil
}

func (a *attempt) endStep(ctx context.Context, key string, value any) (json.RawMessage, error) {
	record, err := json.Marshal(value)
	if err != nil {
		return nil, Permanent(fmt.Errorf("holdfast: step %q ran, but JSON cannot represent its result: %w", key, err))
	}
	if len(record) > maxStepBytes {
		return nil, Permanent(fmt.Errorf("holdfast: step %q ran, but its result has %d bytes, more than %d: store it elsewhere", key, len(record), maxStepBytes))
	}
	return record, a.recordStep(ctx, wire.StepRequest{Key: key, State: ptr("done"), Result: record})
}

func (a *attempt) recordStep(ctx context.Context, body wire.StepRequest) error {
	body.Worker, body.ID, body.Fence = a.session.id, a.job.ID, a.job.Fence
	r := request{method: "POST", path: "/v1/leases/steps", body: body, repeat: true}
	return a.checkHeld(a.session.client.send(ctx, r, nil, stepRetryTimeout))
}

// checkHeld stops the attempt if the service says that the worker does not hold the job. A dead worker is noticed by
// the renewal that follows, so that an answer about one job never stops the others.
func (a *attempt) checkHeld(err error) error {
	switch CodeOf(err) {
	case CodeLeaseLost:
		a.session.requestRenewal()
		fallthrough
	case CodeJobNotHeld:
		a.session.dropJob(a)
		return ErrJobNotHeld
	}
	if err != nil && a.ctx.Err() != nil {
		return context.Cause(a.ctx)
	}
	return err
}
