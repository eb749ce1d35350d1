// Real calls through the client that oapi-codegen generates; tools/openapi.py runs it.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"

	"clients/holdfast"
)

func check(condition bool, what any) {
	if !condition {
		panic(fmt.Sprintf("%+v", what))
	}
}

func must[T any](value T, err error) T {
	check(err == nil, err)
	return value
}

func main() {
	ctx := context.Background()
	authorize := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+os.Getenv("HOLDFAST_API_KEY"))
		return nil
	}
	client := must(holdfast.NewClientWithResponses(os.Getenv("HOLDFAST_API_URL"), holdfast.WithRequestEditorFn(authorize)))

	var delay holdfast.Duration
	check(delay.FromDuration1("1h") == nil, "delay")
	job := holdfast.SubmitJob{Type: "mail.send", Payload: map[string]any{"to": "ada"}, Delay: &delay}
	made := must(client.SubmitJobWithResponse(ctx, nil, job))
	check(made.JSON201 != nil && made.JSON201.Status == "scheduled", string(made.Body))

	jobs := make([]holdfast.SubmitBatchJob, 5)
	for index := range jobs {
		jobs[index] = holdfast.SubmitBatchJob{Type: "mail.send", Delay: &delay}
	}
	batch := must(client.SubmitBatchWithResponse(ctx, nil, holdfast.SubmitBatch{Jobs: jobs}))
	check(batch.JSON201 != nil && len(batch.JSON201.Items) == 5, string(batch.Body))

	found := map[string]bool{}
	kind, limit := "mail.send", int32(2)
	query := holdfast.ListJobsParams{Type: &kind, Limit: &limit}
	for {
		page := must(client.ListJobsWithResponse(ctx, &query))
		check(page.JSON200 != nil, string(page.Body))
		for _, each := range page.JSON200.Items {
			found[each.Id] = true
		}
		if page.JSON200.NextCursor == nil {
			break
		}
		query.Cursor = page.JSON200.NextCursor
	}
	check(len(found) == 6, found)

	reason := "not needed"
	cancelled := must(client.CancelJobWithResponse(ctx, made.JSON201.Id, holdfast.CancelRequest{Reason: &reason}))
	check(cancelled.JSON200 != nil && cancelled.JSON200.Status == "cancelled", string(cancelled.Body))

	missing := must(client.GetJobWithResponse(ctx, "01981a52-7c3e-7000-8000-000000000000"))
	problem := missing.ApplicationproblemJSONDefault
	check(problem != nil && problem.Code == "not_found" && problem.Status == 404, string(missing.Body))

	watched := batch.JSON201.Items[0].Id
	stream := must(client.StreamEvents(ctx, &holdfast.StreamEventsParams{Job: &watched}))
	defer stream.Body.Close()
	must(client.CancelJobWithResponse(ctx, watched, holdfast.CancelRequest{}))
	lines := bufio.NewScanner(stream.Body)
	for lines.Scan() {
		data, isData := strings.CutPrefix(lines.Text(), "data:")
		var event holdfast.JobEvent
		if isData && json.Unmarshal([]byte(data), &event) == nil && event.Id == watched && event.Status == "cancelled" {
			fmt.Println("submit, batch, list, cancel, 404 and events: ok")
			return
		}
	}
	panic("the stream ended")
}
