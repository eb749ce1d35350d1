package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"holdfast/wire"
)

const (
	defaultLease     = 15 * time.Second
	defaultDrainTime = 30 * time.Second
	defaultSlots     = 10
	gatherTime       = 20 * time.Millisecond
	stopGrace        = 5 * time.Second // time that a handler has to return after its context is cancelled
)

// WorkerOptions has the settings of a worker. Zero values stand for the defaults.
type WorkerOptions struct {
	Queues       []string      // queues to claim from; by default "default"
	Slots        int           // jobs to run at once; by default 10
	Lease        time.Duration // time without a renewal after which the jobs go to other workers; by default 15 s
	DrainTimeout time.Duration // time that running jobs have when the worker stops; by default 30 s
	Name         string        // name in the list of workers; by default the host name
	Version      string        // version of your program, for the list of workers
	Logger       *slog.Logger  // by default slog.Default()
}

// Worker claims jobs, calls their handlers and reports the outcomes.
type Worker struct {
	client   *Client
	options  WorkerOptions
	handlers map[string]handler
	slots    chan struct{}
}

// handler decodes the payload, calls the function and encodes its result.
type handler func(ctx context.Context, a *attempt) (json.RawMessage, error)

// NewWorker returns a worker. Register handlers with [Handle], then call [Worker.Run].
func NewWorker(client *Client, options WorkerOptions) *Worker {
	if len(options.Queues) == 0 {
		options.Queues = []string{"default"}
	}
	if options.Slots <= 0 {
		options.Slots = defaultSlots
	}
	if options.Lease <= 0 {
		options.Lease = defaultLease
	}
	if options.DrainTimeout <= 0 {
		options.DrainTimeout = defaultDrainTime
	}
	if options.Name == "" {
		options.Name, _ = os.Hostname()
	}
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	slots := make(chan struct{}, options.Slots)
	for range options.Slots {
		slots <- struct{}{}
	}
	return &Worker{client, options, map[string]handler{}, slots}
}

// Handle registers the handler of a job type. The payload is decoded into P; a payload that does not fit makes the job
// dead. R is stored as the result; a result above 256 KiB is cut.
//
// The context of the handler is cancelled when the job is cancelled, times out, or is taken away, and when the worker
// has to stop. [context.Cause] returns the reason. Handle panics if the type already has a handler.
func Handle[P, R any](w *Worker, jobType string, function func(ctx context.Context, job *Job[P]) (R, error)) {
	if _, exists := w.handlers[jobType]; exists {
		panic(fmt.Sprintf("holdfast: the job type %q already has a handler", jobType))
	}
	w.handlers[jobType] = func(ctx context.Context, a *attempt) (json.RawMessage, error) {
		job := newJob[P](a)
		if err := json.Unmarshal(a.job.Payload, &job.Payload); err != nil {
			return nil, Permanent(&payloadError{err})
		}
		result, err := function(context.WithValue(ctx, attemptKey{}, a), job)
		if err != nil {
			return nil, err
		}
		encoded, err := json.Marshal(result)
		if err != nil {
			return nil, Permanent(&resultError{err})
		}
		return encoded, nil
	}
}

type payloadError struct{ err error }

func (e *payloadError) Error() string {
	return "the payload does not fit the handler: " + e.err.Error()
}
func (e *payloadError) Unwrap() error { return e.err }

type resultError struct{ err error }

func (e *resultError) Error() string { return "JSON cannot represent the result: " + e.err.Error() }
func (e *resultError) Unwrap() error { return e.err }

// Run works until ctx is cancelled or an administrator drains the worker, and then drains: it claims nothing more, lets
// running jobs finish within the drain timeout, and releases the others, which uses no attempt. It returns nil after a
// drain, and an error if the service refuses the worker, for example because its key was revoked.
//
// While the service is unavailable, Run keeps trying. After a lost lease it stops all jobs and registers again.
func (w *Worker) Run(ctx context.Context) error {
	if len(w.handlers) == 0 {
		return errors.New("holdfast: the worker has no handlers: register one with Handle before Run")
	}
	for {
		s, err := w.register(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.run(ctx); !errors.Is(err, ErrLeaseLost) {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		w.options.Logger.Warn("the lease was lost: all jobs were stopped, the worker registers again", "worker", s.id)
	}
}

// register gets a new worker id, and retries while the service is unavailable.
func (w *Worker) register(ctx context.Context) (*session, error) {
	host, _ := os.Hostname()
	body := wire.LeaseRequest{
		Register: &wire.About{
			Name: &w.options.Name, Host: &host, PID: ptr(os.Getpid()), Version: &w.options.Version, Slots: &w.options.Slots,
		},
		Lease: ptr(w.options.Lease.Seconds()), Queues: w.options.Queues, Types: w.types(), Limit: ptr(0),
	}
	for pause := (backoff{}); ; {
		sent, found := time.Now(), wire.LeaseOut{}
		err := w.client.send(ctx, request{method: "POST", path: "/v1/leases", body: body}, &found, 0)
		if err == nil {
			w.options.Logger.Info("the worker is registered", "worker", found.Worker, "queues", w.options.Queues)
			return newSession(w, found.Worker, sent), nil
		}
		if !isUnavailable(err) {
			return nil, err
		}
		w.options.Logger.Warn("the worker cannot register yet", "error", err)
		if !sleep(ctx, pause.delay(err)) {
			return nil, err
		}
	}
}

func (w *Worker) types() []string { return slices.Sorted(maps.Keys(w.handlers)) }

// takeSlots waits for free slots and takes them; it returns 0 if ctx ended first. Short jobs end one by one, so a claim
// waits a moment for a quarter of the slots, instead of asking for a single job each time.
func (w *Worker) takeSlots(ctx context.Context) int {
	select {
	case <-ctx.Done():
		return 0
	case <-w.slots:
	}
	gather := time.NewTimer(gatherTime)
	defer gather.Stop()
	for taken := 1; taken < maxClaim; taken++ {
		if taken >= w.options.Slots/4 {
			select {
			case <-w.slots:
				continue
			default:
				return taken
			}
		}
		select {
		case <-w.slots:
		case <-gather.C:
			return taken
		}
	}
	return maxClaim
}

func (w *Worker) returnSlots(count int) {
	for range count {
		w.slots <- struct{}{}
	}
}
