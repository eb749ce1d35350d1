package holdfast

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"holdfast/wire"
)

const (
	maxSettleBytes = 1 << 20
	maxResultBytes = 256 << 10
	resultHead     = 1000
)

// outcome is the encoded outcome of an attempt.
type outcome struct {
	attempt *attempt
	body    json.RawMessage
}

// settleLoop reports outcomes. Those that arrive during a report are sent together with the next.
func (s *session) settleLoop() {
	var waiting *outcome
	for {
		batch, size := []outcome{}, 0
		if waiting == nil {
			first, open := <-s.outcomes
			if !open {
				return
			}
			waiting = &first
		}
		batch, size, waiting = append(batch, *waiting), len(waiting.body), nil
	collect:
		for len(batch) < maxClaim {
			select {
			case next, open := <-s.outcomes:
				if !open {
					break collect
				}
				if size += len(next.body); size > maxSettleBytes {
					waiting = &next
					break collect
				}
				batch = append(batch, next)
			default:
				break collect
			}
		}
		s.settle(batch)
	}
}

// settle reports outcomes until the service has answered or the lease is lost. Reports are idempotent.
func (s *session) settle(batch []outcome) {
	body := wire.SettleRequest{Worker: s.id}
	for _, each := range batch {
		body.Outcomes = append(body.Outcomes, each.body)
	}
	for pause := (backoff{}); s.ctx.Err() == nil; {
		found := wire.SettledOut{}
		err := s.call(s.ctx, "/v1/leases/settle", body, &found, 0)
		switch {
		case err == nil:
			s.finish(batch, found)
			return
		case isUnavailable(err):
			sleep(s.ctx, pause.delay(err))
		case s.ctx.Err() != nil:
			return
		case len(batch) > 1 && isRefused(err):
			for _, each := range batch {
				s.settle([]outcome{each})
			}
			return
		default:
			for _, each := range batch {
				s.refuse(each, err)
			}
			return
		}
	}
}

func isRefused(err error) bool {
	problem := (*Error)(nil)
	return errors.As(err, &problem) &&
		(problem.Status == http.StatusUnprocessableEntity || problem.Status == http.StatusRequestEntityTooLarge)
}

// finish forgets the settled attempts. Jobs that are neither settled nor refused had been taken away before.
func (s *session) finish(batch []outcome, answer wire.SettledOut) {
	refused := make(map[int]error, len(answer.Refused))
	for _, fault := range answer.Refused {
		refused[fault.Index] = &Error{
			Status: http.StatusUnprocessableEntity, Code: fault.Code, Detail: fault.Detail, Pointer: fault.Pointer,
		}
	}
	for index, each := range batch {
		if err := refused[index]; err != nil {
			s.refuse(each, err)
			continue
		}
		s.forget(each.attempt)
		if !slices.Contains(answer.Settled, each.attempt.job.ID) {
			each.attempt.log.Warn("the outcome was not applied: the worker no longer held the job")
		}
	}
}

// refuse replaces an outcome that the service does not accept by a failure, so that the job does not wait for the lease.
func (s *session) refuse(refused outcome, err error) {
	refused.attempt.log.Error("the service refused the outcome", "error", err)
	if refused.attempt.refused || !isRefused(err) {
		s.forget(refused.attempt)
		return
	}
	refused.attempt.refused = true
	failed := Permanent(&resultError{err})
	s.settle([]outcome{{refused.attempt, refused.attempt.encode(refused.attempt.failure(failed))}})
}

// encodeResult returns the result to store: the value, or its beginning if it is too large.
func encodeResult(result json.RawMessage) json.RawMessage {
	if len(result) <= maxResultBytes {
		return result
	}
	head := strings.ToValidUTF8(string(result[:resultHead]), "\uFFFD")
	cut, _ := json.Marshal(map[string]any{"truncated": true, "bytes": len(result), "head": head})
	return cut
}

// report queues the outcome of an attempt; a full queue makes handlers keep their slots.
func (s *session) report(a *attempt, value any) {
	select {
	case s.outcomes <- outcome{a, a.encode(value)}:
	case <-s.ctx.Done():
	}
}
