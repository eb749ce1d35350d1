// Command conformance is the worker that `holdfast protocol check` tests: each job type does one thing that a worker
// must get right.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"holdfast"
)

type none = map[string]any

type failPayload struct {
	Times     int      `json:"times"`
	Message   string   `json:"message"`
	Retryable bool     `json:"retryable"`
	RetryIn   *float64 `json:"retry_in"`
}

type snoozePayload struct {
	Path  string  `json:"path"`
	Delay float64 `json:"delay"`
}

type tickPayload struct {
	Path     string  `json:"path"`
	Seconds  float64 `json:"seconds"`
	Progress bool    `json:"progress"`
}

type stepsPayload struct {
	Path string `json:"path"`
	Stop string `json:"stop"`
}

func main() {
	client, err := holdfast.NewClient(os.Getenv("HOLDFAST_API_URL"), os.Getenv("HOLDFAST_API_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	worker := holdfast.NewWorker(client, holdfast.WorkerOptions{
		Queues:       strings.Split(os.Getenv("HOLDFAST_QUEUES"), ","),
		Slots:        int(number("HOLDFAST_SLOTS")),
		Lease:        duration(number("HOLDFAST_LEASE_SECONDS")),
		DrainTimeout: duration(number("HOLDFAST_DRAIN_SECONDS")),
	})
	holdfast.Handle(worker, "check.echo", echo)
	holdfast.Handle(worker, "check.fail", fail)
	holdfast.Handle(worker, "check.snooze", snooze)
	holdfast.Handle(worker, "check.tick", tick)
	holdfast.Handle(worker, "check.steps", steps)
	holdfast.Handle(worker, "check.large", large)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := worker.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

func echo(_ context.Context, job *holdfast.Job[struct{ Value json.RawMessage }]) (json.RawMessage, error) {
	return job.Payload.Value, nil
}

func fail(_ context.Context, job *holdfast.Job[failPayload]) (none, error) {
	if job.Attempt > job.Payload.Times {
		return none{"attempts": job.Attempt}, nil
	}
	err := errors.New(job.Payload.Message)
	if job.Payload.RetryIn != nil {
		err = holdfast.RetryIn(duration(*job.Payload.RetryIn), err)
	}
	if !job.Payload.Retryable {
		err = holdfast.Permanent(err)
	}
	return nil, err
}

func snooze(_ context.Context, job *holdfast.Job[snoozePayload]) (none, error) {
	file, err := os.OpenFile(job.Payload.Path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, os.ErrExist) {
		return none{"snoozed": true}, nil
	}
	if err != nil {
		return nil, err
	}
	return nil, errors.Join(file.Close(), holdfast.Snooze(duration(job.Payload.Delay)))
}

func tick(ctx context.Context, job *holdfast.Job[tickPayload]) (none, error) {
	began := time.Now()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		if err := appendLine(job.Payload.Path, fmt.Sprintf("%s %d", job.ID, job.Fence)); err != nil {
			return nil, err
		}
		passed := time.Since(began).Seconds()
		if passed >= job.Payload.Seconds {
			return none{"fence": job.Fence}, nil
		}
		if job.Payload.Progress {
			if err := job.Progress(passed/job.Payload.Seconds, ""); err != nil {
				return nil, err
			}
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

func steps(ctx context.Context, job *holdfast.Job[stepsPayload]) (none, error) {
	stop := func(at string) error {
		if job.Payload.Stop == at && job.Attempt == 1 {
			return holdfast.RetryIn(0, errors.New("stopped after "+at))
		}
		return nil
	}
	first, err := holdfast.Step(ctx, "first", func(context.Context) (none, error) {
		return none{"fence": job.Fence}, appendLine(job.Payload.Path, "first")
	})
	if err == nil {
		err = stop("first")
	}
	if err != nil {
		return nil, err
	}
	charge, err := holdfast.StepOnce(ctx, "charge", func(context.Context) (string, error) {
		if err := appendLine(job.Payload.Path, "charge"); err != nil {
			return "", err
		}
		return "charged", stop("charge")
	})
	return none{"first": first, "charge": charge}, err
}

func large(_ context.Context, job *holdfast.Job[struct{ Bytes int }]) (string, error) {
	return strings.Repeat("x", job.Payload.Bytes), nil
}

func appendLine(path, line string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.WriteString(line + "\n")
	return err
}

func number(variable string) float64 {
	value, err := strconv.ParseFloat(os.Getenv(variable), 64)
	if err != nil {
		log.Fatalf("%s: give a number, not %q", variable, os.Getenv(variable))
	}
	return value
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
