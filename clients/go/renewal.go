package holdfast

import (
	"context"
	"time"

	"holdfast/wire"
)

func (s *session) requestRenewal() {
	select {
	case s.renewNow <- struct{}{}:
	default:
	}
}

// renewLoop renews the lease every third of it, and sooner after a failed try.
func (s *session) renewLoop(ctx context.Context) {
	pause, next := backoff{}, s.options.Lease/3
	for {
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-s.renewNow:
			timer.Stop()
		case <-timer.C:
		}
		if err := s.renew(ctx); err == nil {
			pause.reset()
			next = s.options.Lease / 3
		} else if !isUnavailable(err) && ctx.Err() == nil {
			s.options.Logger.Error("the service refused to renew the lease", "worker", s.id, "error", err)
			next = s.options.Lease / 3
		} else {
			next = min(pause.delay(err), max(s.options.Lease/3, retryAfter(err)))
		}
	}
}

// renew renews the lease once and stops the jobs that the worker has lost.
func (s *session) renew(ctx context.Context) error {
	sent := time.Now()
	named := map[string]*attempt{}
	s.mu.Lock()
	body := wire.RenewRequest{
		Worker: s.id, Lease: ptr(s.options.Lease.Seconds()), Draining: &s.draining, Held: []wire.HeldShape{},
	}
	left := time.Until(s.validUntil)
	for id, a := range s.held {
		named[id] = a
		body.Held = append(body.Held, wire.HeldShape{ID: id, Fence: a.job.Fence})
	}
	body.Draining = ptr(s.draining)
	s.mu.Unlock()
	timed, cancel := context.WithTimeout(ctx, min(left, max(s.options.Lease/3, time.Second)))
	defer cancel()
	found := wire.LostOut{}
	if err := s.call(timed, "/v1/leases/renew", body, &found, 0); err != nil {
		return err
	}
	s.mu.Lock()
	if until := sent.Add(s.localLease()); until.After(s.validUntil) {
		s.validUntil = until
	}
	s.mu.Unlock()
	for _, id := range found.Lost {
		if a := named[id]; a != nil {
			s.dropJob(a)
		}
	}
	if found.Draining {
		s.requestDrain()
	}
	return nil
}

// expireLoop ends the session by the local clock, whether or not the service responds.
func (s *session) expireLoop(ctx context.Context) {
	for {
		s.mu.Lock()
		left := time.Until(s.validUntil)
		s.mu.Unlock()
		if left <= 0 {
			s.options.Logger.Error("no renewal succeeded in time: all jobs are stopped", "worker", s.id)
			s.lose(ErrLeaseLost)
			return
		}
		if !sleep(ctx, left) {
			return
		}
	}
}
