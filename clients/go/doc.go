// Package holdfast submits jobs to a holdfast service and runs workers for them, over HTTP.
//
// A [Client] submits jobs and reads them. A [Worker] claims jobs, calls the handlers that [Handle] registers, and
// reports the outcomes. The package uses only the standard library.
//
//	client, err := holdfast.NewClient("https://jobs.example.org", os.Getenv("HOLDFAST_API_KEY"))
//	worker := holdfast.NewWorker(client, holdfast.WorkerOptions{Queues: []string{"images"}})
//	holdfast.Handle(worker, "resize", func(ctx context.Context, job *holdfast.Job[Resize]) (Size, error) {
//		return resize(ctx, job.Payload)
//	})
//	err = worker.Run(ctx)
package holdfast
