package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/wire"
)

// start runs the worker until the test ends, and fails the test if the worker returns an error.
func start(t *testing.T, w *Worker) context.CancelFunc {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := wait(t, done); err != nil {
			t.Error(err)
		}
	})
	return cancel
}

func TestHandlersDecideTheOutcome(t *testing.T) {
	node := newNode(t)
	worker := node.worker(WorkerOptions{Slots: 1})
	Handle(worker, "act", func(_ context.Context, job *Job[map[string]string]) (any, error) {
		switch job.Payload["do"] {
		case "fail":
			return nil, fmt.Errorf("wrapped: %w", &http.MaxBytesError{})
		case "never":
			return nil, Permanent(errors.New("never"))
		case "later":
			return nil, RetryIn(90*time.Second, errors.New("later"))
		case "snooze":
			return nil, Snooze(time.Minute)
		case "cancel":
			return nil, Cancel("pointless")
		case "panic":
			panic("broken")
		case "away":
			return nil, &ConnectionError{Err: errors.New("refused")}
		case "large":
			return strings.Repeat("x", 300<<10), nil
		case "func":
			return func() {}, nil
		}
		job.Log.Warn("seen", "attempt", job.Attempt)
		return map[string]any{"key": job.IdempotencyKey("a"), "attempt": job.Attempt}, nil
	})
	start(t, worker)
	for do, expected := range map[string]string{
		"":       `"outcome":"succeeded","result":{"attempt":2,"key":"j:a"}`,
		"fail":   `"error":{"kind":"http.MaxBytesError","message":"wrapped: http: request body too large"},"fence":7`,
		"never":  `"outcome":"failed","retryable":false`,
		"later":  `"outcome":"failed","retry_in":90`,
		"snooze": `{"delay":60,"fence":7,"id":"j","outcome":"snoozed"}`,
		"cancel": `"outcome":"cancelled","reason":"pointless"`,
		"panic":  `"error":{"kind":"panic","message":"broken","traceback":`,
		"away":   `"outcome":"unavailable"`,
		"large":  `"result":{"bytes":307202,"head":"\"xxx`,
		"func":   `"error":{"kind":"ResultNotJson"`,
	} {
		payload, _ := json.Marshal(map[string]string{"do": do})
		node.jobs <- job("j", "act", string(payload))
		found, _ := json.Marshal(node.outcome())
		if !strings.Contains(string(found), expected) {
			t.Errorf("%q: %s", do, found)
		}
		if do == "" && !strings.Contains(string(found), `"level":"warning","message":"seen attempt=2"`) {
			t.Errorf("the log lines of the handler are missing: %s", found)
		}
	}
	node.jobs <- job("j", "act", `{"do": 3}`)
	if found := node.outcome(); found["retryable"] != false || found["error"].(map[string]any)["kind"] != "InvalidPayload" {
		t.Errorf("a payload that does not fit makes the job dead: %v", found)
	}
}

// blocking registers a handler that reports its start and its end, with the cause.
func blocking(worker *Worker) (started chan string, ended chan error) {
	started, ended = make(chan string, 10), make(chan error, 10)
	Handle(worker, "block", func(ctx context.Context, job *Job[any]) (any, error) {
		started <- job.ID
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, context.Cause(ctx)
	})
	return started, ended
}

func TestLostJobIsStoppedAloneAndNotReported(t *testing.T) {
	node := newNode(t)
	worker := node.worker(WorkerOptions{Lease: 600 * time.Millisecond})
	started, ended := blocking(worker)
	Handle(worker, "quick", func(context.Context, *Job[any]) (any, error) { return nil, nil })
	start(t, worker)
	node.jobs <- job("lost", "block", "null")
	node.jobs <- job("kept", "block", "null")
	wait(t, started)
	wait(t, started)
	node.mu.Lock()
	node.lost = []string{"lost"}
	node.mu.Unlock()
	if cause := wait(t, ended); !errors.Is(cause, ErrJobNotHeld) {
		t.Fatal(cause)
	}
	node.jobs <- job("next", "quick", "null")
	if found := node.outcome(); found["id"] != "next" {
		t.Fatal("the lost job was reported:", found)
	}
	if len(ended) != 0 || node.registrations() != 1 {
		t.Fatal("the other job and the worker go on")
	}
	renewal := wait(t, node.renews)
	if renewal.body["held"] == nil {
		t.Fatal("a renewal names the held jobs, even if there are none")
	}
}

func (n *fakeNode) registrations() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.workers
}

func TestJobNotHeldFromAStepStopsOnlyThisJob(t *testing.T) {
	node := newNode(t)
	worker := node.worker(WorkerOptions{})
	started, ended := blocking(worker)
	stepped := make(chan error, 1)
	Handle(worker, "step", func(ctx context.Context, _ *Job[any]) (int, error) {
		value, err := Step(ctx, "a", func(context.Context) (int, error) { return 1, nil })
		stepped <- err
		return value, err
	})
	start(t, worker)
	node.jobs <- job("kept", "block", "null")
	wait(t, started)
	node.next("/v1/leases/steps", problem(409, CodeJobNotHeld))
	node.jobs <- job("cancelled", "step", "null")
	if err := wait(t, stepped); !errors.Is(err, ErrJobNotHeld) {
		t.Fatal(err)
	}
	if len(ended) != 0 || node.registrations() != 1 {
		t.Fatal("the other job and the worker go on")
	}
}

func TestLostLeaseStopsAllJobsAndRegistersAgain(t *testing.T) {
	node := newNode(t)
	worker := node.worker(WorkerOptions{Lease: 600 * time.Millisecond})
	started, ended := blocking(worker)
	start(t, worker)
	node.jobs <- job("a", "block", "null")
	wait(t, started)
	node.mu.Lock()
	node.gone = true
	node.mu.Unlock()
	if cause := wait(t, ended); !errors.Is(cause, ErrLeaseLost) {
		t.Fatal(cause)
	}
	node.await("/v1/leases")
	node.await("/v1/leases") // the second registration
	for len(node.calls) > 0 {
		if found := <-node.calls; found.path == "/v1/leases/settle" {
			t.Fatal("an outcome was reported after the lease was lost")
		}
	}
}

func TestHandlersStopByTheLocalClockIfTheServiceDoesNotRespond(t *testing.T) {
	node := newNode(t)
	silent := make(chan struct{})
	defer close(silent)
	for range 100 {
		node.next("/v1/leases/renew", func(http.ResponseWriter, *http.Request) { <-silent })
	}
	worker := node.worker(WorkerOptions{Lease: 600 * time.Millisecond})
	started, ended := blocking(worker)
	start(t, worker)
	node.jobs <- job("a", "block", "null")
	wait(t, started)
	if cause := wait(t, ended); !errors.Is(cause, ErrLeaseLost) {
		t.Fatal(cause)
	}
}

func TestTimeoutIsEnforcedByTheWorker(t *testing.T) {
	node := newNode(t)
	worker := node.worker(WorkerOptions{})
	_, ended := blocking(worker)
	start(t, worker)
	limited := job("a", "block", "null")
	limited.Timeout = ptr(0.05)
	node.jobs <- limited
	if cause := wait(t, ended); !errors.Is(cause, ErrTimedOut) {
		t.Fatal(cause)
	}
	if found := node.outcome(); found["outcome"] != "timed_out" || found["after"] != 0.05 {
		t.Fatal(found)
	}
}

func TestDrainLetsJobsFinishAndReleasesTheOthers(t *testing.T) {
	node := newNode(t)
	worker := node.worker(WorkerOptions{DrainTimeout: 100 * time.Millisecond})
	started, ended := blocking(worker)
	finish := make(chan struct{})
	Handle(worker, "finish", func(context.Context, *Job[any]) (any, error) {
		started <- "finish"
		<-finish
		return nil, nil
	})
	stop := start(t, worker)
	node.jobs <- job("long", "block", "null")
	node.jobs <- job("short", "finish", "null")
	wait(t, started)
	wait(t, started)
	stop()
	close(finish)
	if found := node.outcome(); found["id"] != "short" || found["outcome"] != "succeeded" {
		t.Fatal(found)
	}
	if cause := wait(t, ended); !errors.Is(cause, ErrDraining) {
		t.Fatal(cause)
	}
	if found := node.outcome(); found["id"] != "long" || found["outcome"] != "released" {
		t.Fatal(found)
	}
	node.await("/v1/leases/depart")
}

func TestOutcomesAreSentAgainUntilTheServiceAnswers(t *testing.T) {
	node := newNode(t)
	worker := node.worker(WorkerOptions{})
	Handle(worker, "quick", func(context.Context, *Job[any]) (string, error) { return "done", nil })
	start(t, worker)
	node.next("/v1/leases/settle", problem(503, "unavailable"), hangUp)
	node.jobs <- job("a", "quick", "null")
	for range 3 {
		if found := node.outcome(); found["id"] != "a" || found["result"] != "done" {
			t.Fatal(found)
		}
	}
}

func TestRefusedOutcomeIsReportedAsAFailure(t *testing.T) {
	node := newNode(t)
	worker := node.worker(WorkerOptions{})
	Handle(worker, "quick", func(context.Context, *Job[any]) (string, error) { return "done", nil })
	start(t, worker)
	node.next("/v1/leases/settle", func(w http.ResponseWriter, _ *http.Request) {
		fault := wire.OutcomeFault{Code: "invalid", Detail: "too deep", Pointer: "/outcomes/0/result"}
		reply(w, 200, wire.SettledOut{Settled: []string{}, Refused: []wire.OutcomeFault{fault}})
	}, problem(422, "invalid"))
	node.jobs <- job("a", "quick", "null")
	if found := node.outcome(); found["outcome"] != "succeeded" {
		t.Fatal(found)
	}
	if found := node.outcome(); found["outcome"] != "failed" || found["retryable"] != false {
		t.Fatal(found)
	}
}

func TestRecordedStepsAreReused(t *testing.T) {
	node := newNode(t)
	node.steps = []wire.StepRecord{
		{Key: "a", State: "done", Result: json.RawMessage("41")},
		{Key: "b", State: "started", Result: json.RawMessage("null")},
	}
	worker := node.worker(WorkerOptions{})
	once := make(chan error, 1)
	Handle(worker, "steps", func(ctx context.Context, _ *Job[any]) (int, error) {
		value, err := Step(ctx, "a", func(context.Context) (int, error) { return 0, errors.New("it must not run again") })
		if err != nil {
			return 0, err
		}
		more, err := Step(ctx, "c", func(context.Context) (int, error) { return 1, nil })
		if err != nil {
			return 0, err
		}
		_, err = StepOnce(ctx, "b", func(context.Context) (int, error) { return 0, errors.New("it must not run again") })
		once <- err
		return value + more, nil
	})
	start(t, worker)
	node.jobs <- job("a", "steps", "null")
	if err := wait(t, once); !errors.Is(err, ErrStepOutcomeUnknown) {
		t.Fatal(err)
	}
	if read, recorded := node.await("/v1/leases/steps"), node.await("/v1/leases/steps"); read.body != nil ||
		recorded.body["key"] != "c" || recorded.body["state"] != "done" || recorded.body["fence"] != 7.0 {
		t.Fatal(read, recorded)
	}
	if found := node.outcome(); found["result"] != 42.0 {
		t.Fatal(found)
	}
}

func TestLastProgressIsSentBeforeTheOutcome(t *testing.T) {
	node := newNode(t)
	worker := node.worker(WorkerOptions{})
	Handle(worker, "steps", func(_ context.Context, job *Job[any]) (any, error) {
		for _, fraction := range []float64{0.1, 0.2, 0.9} {
			if err := job.Progress(fraction, "note"); err != nil {
				return nil, err
			}
		}
		return nil, job.Progress(2, "")
	})
	start(t, worker)
	node.jobs <- job("a", "steps", "null")
	last := 0.0
	for found := range node.calls {
		if found.path == "/v1/leases/settle" {
			break
		} else if found.path == "/v1/leases/progress" {
			last = found.body["fraction"].(float64)
		}
	}
	if last != 0.9 {
		t.Fatal(last)
	}
}

func TestWorkerThatTheServiceRefusesReturnsTheError(t *testing.T) {
	node := newNode(t)
	node.next("/v1/leases", problem(403, "forbidden"))
	worker := node.worker(WorkerOptions{})
	if err := worker.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "Handle") {
		t.Fatal(err)
	}
	blocking(worker)
	if err := worker.Run(context.Background()); CodeOf(err) != "forbidden" {
		t.Fatal(err)
	}
}
