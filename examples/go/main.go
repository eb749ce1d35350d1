// A worker that sends welcome messages, and a command that submits them:
//
//	export HOLDFAST_API_URL=http://localhost:8080 HOLDFAST_API_KEY=hf_…
//	go run . submit ada@example.org
//	go run .
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"holdfast"
)

// Welcome is the payload of a job.
type Welcome struct {
	Address string `json:"address"`
}

// Sent is its result.
type Sent struct {
	MessageID string `json:"message_id"`
}

func main() {
	client, err := holdfast.NewClient(os.Getenv("HOLDFAST_API_URL"), os.Getenv("HOLDFAST_API_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	// SIGTERM and Ctrl-C drain the worker; a second one ends it at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if len(os.Args) == 3 && os.Args[1] == "submit" {
		err = submit(ctx, client, os.Args[2])
	} else {
		err = work(ctx, client)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// submit submits a job, waits for it and prints its result.
func submit(ctx context.Context, client *holdfast.Client, address string) error {
	job, err := client.Submit(ctx, holdfast.NewJob{
		Type: "welcome", Payload: Welcome{address}, Queue: "mail", Timeout: time.Minute, MaxAttempts: 5,
		IdempotencyKey: "welcome-" + address, // submitting the same address again returns the same job
	})
	if err != nil {
		return err
	}
	fmt.Println("submitted", job.ID)
	sent, err := holdfast.Wait[Sent](ctx, client, job.ID)
	if err != nil {
		return err
	}
	fmt.Println("sent", sent.MessageID)
	return nil
}

func work(ctx context.Context, client *holdfast.Client) error {
	worker := holdfast.NewWorker(client, holdfast.WorkerOptions{Queues: []string{"mail"}, Slots: 4})
	holdfast.Handle(worker, "welcome", welcome)
	return worker.Run(ctx)
}

func welcome(ctx context.Context, job *holdfast.Job[Welcome]) (Sent, error) {
	if !strings.Contains(job.Payload.Address, "@") {
		return Sent{}, holdfast.Permanent(fmt.Errorf("%q is not an address", job.Payload.Address))
	}
	// A later attempt gets the recorded text and does not render it again.
	text, err := holdfast.Step(ctx, "render", func(context.Context) (string, error) {
		return "Welcome, " + job.Payload.Address, nil
	})
	if err != nil {
		return Sent{}, err
	}
	if err := job.Progress(0.5, "rendered"); err != nil {
		return Sent{}, err
	}
	// The mail service recognises the key of a repeated call.
	id, err := holdfast.Step(ctx, "send", func(ctx context.Context) (string, error) {
		return sendMail(ctx, job.Payload.Address, text, job.IdempotencyKey("send"))
	})
	if errors.Is(err, errBusy) {
		return Sent{}, holdfast.Snooze(time.Minute)
	}
	job.Log.Info("welcome sent", "message_id", id)
	return Sent{id}, err
}

var errBusy = errors.New("the mail service is busy")

// sendMail stands for the call of a mail service.
func sendMail(ctx context.Context, address, text, key string) (string, error) {
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case <-time.After(50 * time.Millisecond):
		return fmt.Sprintf("%s to %s, %d characters", key, address, len(text)), nil
	}
}
