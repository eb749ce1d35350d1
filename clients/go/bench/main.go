// Command bench is the Go worker of bench/languages.py: jobs that do nothing, and jobs with one effect each.
package main

import (
	"context"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"holdfast"
)

func main() {
	client, err := holdfast.NewClient(os.Getenv("HOLDFAST_API_URL"), os.Getenv("HOLDFAST_API_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	slog.SetLogLoggerLevel(slog.LevelError)
	options := holdfast.WorkerOptions{Queues: []string{"bench"}, Slots: 50, Lease: 10 * time.Second}
	worker := holdfast.NewWorker(client, options)
	holdfast.Handle(worker, "bench.noop", func(context.Context, *holdfast.Job[any]) (any, error) { return nil, nil })
	holdfast.Handle(worker, "bench.effect", func(ctx context.Context, job *holdfast.Job[any]) (string, error) {
		return holdfast.Step(ctx, "effect", func(ctx context.Context) (string, error) {
			effect := holdfast.NewJob{Type: "bench.row", Queue: "effects", IdempotencyKey: job.IdempotencyKey("effect")}
			row, err := client.Submit(ctx, effect)
			if err != nil {
				return "", err
			}
			return row.ID, nil
		})
	})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := worker.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
