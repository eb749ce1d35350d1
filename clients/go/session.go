package holdfast

import (
	"context"
	"errors"
	"sync"
	"time"

	"holdfast/wire"
)

const (
	maxClaim       = 500
	pollTime       = 20 * time.Second
	minPollTime    = 500 * time.Millisecond // a service that shuts down responds at once
	departTries    = 3
	cleanupTimeout = 5 * time.Second
)

// session is the life of one worker id: from its registration until it departs or loses its lease.
type session struct {
	*Worker
	id       string
	ctx      context.Context // ends when the lease is lost
	lose     context.CancelCauseFunc
	renewNow chan struct{}
	stopped  chan struct{} // closed when claiming must end because the service asked for a drain
	askDrain sync.Once
	outcomes chan outcome
	running  sync.WaitGroup // attempts without an outcome

	mu         sync.Mutex
	held       map[string]*attempt // by job id: attempts that run or are not settled yet
	validUntil time.Time           // the handlers stop then unless a renewal succeeds
	draining   bool
	unsure     bool // the response to a claim was lost, so the worker may hold jobs that it does not know
}

func newSession(w *Worker, id string, sent time.Time) *session {
	ctx, lose := context.WithCancelCause(context.Background())
	return &session{
		Worker: w, id: id, ctx: ctx, lose: lose,
		renewNow: make(chan struct{}, 1), stopped: make(chan struct{}), outcomes: make(chan outcome, maxClaim),
		held: map[string]*attempt{}, validUntil: sent.Add(w.localLease()),
	}
}

// localLease returns how long handlers may run after a renewal was sent: shorter than the lease, so that they have
// stopped when other workers get the jobs.
func (w *Worker) localLease() time.Duration { return w.options.Lease * 5 / 6 }

// run works until stop ends, the service asks for a drain, or the lease is lost, which it returns as ErrLeaseLost.
func (s *session) run(stop context.Context) error {
	defer s.lose(nil)
	var background sync.WaitGroup
	renewing, endRenewals := context.WithCancel(s.ctx)
	defer endRenewals()
	for _, loop := range []func(context.Context){s.renewLoop, s.expireLoop} {
		background.Add(1)
		go func() { defer background.Done(); loop(renewing) }()
	}
	settled := make(chan struct{})
	go func() { defer close(settled); s.settleLoop() }()

	err := s.claimLoop(stop)
	if s.ctx.Err() == nil {
		s.drain()
	} else {
		s.stopAll(context.Cause(s.ctx))
	}
	s.running.Wait()
	close(s.outcomes)
	<-settled
	// No renewal may follow the departure: the service would answer that it does not know the worker.
	endRenewals()
	background.Wait()
	if errors.Is(context.Cause(s.ctx), ErrLeaseLost) {
		return ErrLeaseLost
	}
	s.depart()
	return err
}

// claimLoop claims jobs for free slots and starts them.
func (s *session) claimLoop(stop context.Context) error {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	defer context.AfterFunc(stop, cancel)()
	go func() {
		select {
		case <-s.stopped:
			cancel()
		case <-ctx.Done():
		}
	}()
	for pause := (backoff{}); ctx.Err() == nil; {
		s.releaseUnknown(ctx)
		slots := s.takeSlots(ctx)
		if slots == 0 {
			return nil
		}
		began := time.Now()
		jobs, err := s.claim(ctx, slots)
		for _, job := range jobs {
			s.start(job)
		}
		s.returnSlots(slots - len(jobs))
		switch {
		case err == nil:
			pause.reset()
			if len(jobs) == 0 {
				sleep(ctx, minPollTime-time.Since(began))
			}
		case ctx.Err() != nil:
			return nil
		case isUnavailable(err):
			s.options.Logger.Warn("the service is unavailable; running jobs go on", "error", err)
			sleep(ctx, pause.delay(err))
		default:
			return err
		}
	}
	return nil
}

func (s *session) claim(ctx context.Context, limit int) ([]wire.LeasedJob, error) {
	body := wire.LeaseRequest{
		Worker: &s.id, Queues: s.options.Queues, Types: s.types(), Limit: &limit, Wait: ptr(pollTime.Seconds()),
	}
	found := wire.LeaseOut{}
	err := s.call(ctx, "/v1/leases", body, &found, pollTime)
	if err != nil {
		s.mu.Lock()
		s.unsure = s.unsure || mayHaveHappened(err) || ctx.Err() != nil
		s.mu.Unlock()
		return nil, err
	}
	if found.Draining {
		s.requestDrain()
	}
	return found.Jobs, nil
}

// call sends a request of this worker once. A lost lease ends the session.
func (s *session) call(ctx context.Context, path string, body, out any, wait time.Duration) error {
	err := s.client.send(ctx, request{method: "POST", path: path, body: body, wait: wait}, out, 0)
	if CodeOf(err) == CodeLeaseLost {
		s.lose(ErrLeaseLost)
	}
	return err
}

// start runs a claimed job in its slot. An older attempt of the same job that still runs here is stopped.
func (s *session) start(job wire.LeasedJob) {
	a := newAttempt(s, job)
	s.mu.Lock()
	older := s.held[job.ID]
	s.held[job.ID] = a
	s.mu.Unlock()
	if older != nil {
		older.cancel(ErrJobNotHeld)
	}
	s.running.Add(1)
	go func() {
		defer s.returnSlots(1)
		a.run(s.handlers[job.Type])
	}()
}

// forget removes an attempt that is settled or lost.
func (s *session) forget(a *attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[a.job.ID] == a {
		delete(s.held, a.job.ID)
	}
}

// dropJob stops one attempt that the worker no longer holds; nothing of it is reported.
func (s *session) dropJob(a *attempt) {
	a.cancel(ErrJobNotHeld)
	s.forget(a)
}

func (s *session) heldAttempts() []*attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := make([]*attempt, 0, len(s.held))
	for _, a := range s.held {
		found = append(found, a)
	}
	return found
}

func (s *session) requestDrain() { s.askDrain.Do(func() { close(s.stopped) }) }

func (s *session) stopAll(cause error) {
	for _, a := range s.heldAttempts() {
		a.cancel(cause)
	}
}

// drain lets running jobs finish until the timeout, then stops them. Stopped jobs are released.
func (s *session) drain() {
	s.options.Logger.Info("the worker drains", "worker", s.id, "timeout", s.options.DrainTimeout)
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	s.requestRenewal()
	s.releaseUnknown(s.ctx)
	done := make(chan struct{})
	go func() { defer close(done); s.running.Wait() }()
	timer := time.NewTimer(s.options.DrainTimeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		s.stopAll(ErrDraining)
	case <-s.ctx.Done():
		s.stopAll(context.Cause(s.ctx))
	}
}

// depart removes the worker, after it has released jobs that it did not know.
func (s *session) depart() {
	for range departTries {
		ctx, cancel := context.WithTimeout(s.ctx, cleanupTimeout)
		found := wire.DepartedOut{}
		err := s.call(ctx, "/v1/leases/depart", wire.DepartRequest{Worker: s.id}, &found, 0)
		cancel()
		if err != nil || found.Departed {
			return // without a response, the worker's row expires with its lease
		}
		s.mu.Lock()
		s.unsure = true
		s.mu.Unlock()
		s.releaseUnknown(s.ctx)
	}
}

// releaseUnknown releases jobs that the service gave to this worker in a response that was lost.
func (s *session) releaseUnknown(ctx context.Context) {
	s.mu.Lock()
	unsure := s.unsure
	s.mu.Unlock()
	if !unsure {
		return
	}
	timed, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	found := wire.HeldPage{}
	if err := s.call(timed, "/v1/leases/held", wire.HeldRequest{Worker: s.id}, &found, 0); err != nil {
		return
	}
	var unknown []any
	s.mu.Lock()
	for _, job := range found.Jobs {
		if s.held[job.ID] == nil {
			unknown = append(unknown, wire.ReleasedIn{Outcome: "released", ID: job.ID, Fence: job.Fence, Started: ptr(false)})
		}
	}
	s.mu.Unlock()
	if len(unknown) > 0 {
		body := wire.SettleRequest{Worker: s.id, Outcomes: unknown}
		if s.call(timed, "/v1/leases/settle", body, nil, 0) != nil {
			return
		}
	}
	s.mu.Lock()
	s.unsure = false
	s.mu.Unlock()
}
