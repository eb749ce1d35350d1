package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"holdfast/wire"
)

func TestSubmissionIsRetriedWithTheSameIdempotencyKey(t *testing.T) {
	node := newNode(t)
	node.next("/v1/jobs", problem(503, "unavailable"), hangUp, func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 201, wire.JobOut{ID: "j"})
	})
	found, err := node.client().Submit(context.Background(), NewJob{Type: "mail", Delay: 90 * time.Second})
	if err != nil || found.ID != "j" {
		t.Fatal(found, err)
	}
	first, second, third := node.await("/v1/jobs"), node.await("/v1/jobs"), node.await("/v1/jobs")
	key := first.head.Get("Idempotency-Key")
	if key == "" || second.head.Get("Idempotency-Key") != key || third.head.Get("Idempotency-Key") != key {
		t.Fatal("each try must carry the same key", key)
	}
	if first.body["delay"] != 90.0 || first.body["queue"] != nil {
		t.Fatal("durations are seconds, and defaults are left to the service:", first.body)
	}
}

func TestProblemIsReturnedWithItsCodeAndNotRetried(t *testing.T) {
	node := newNode(t)
	node.next("/v1/jobs", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3")
		reply(w, 422, wire.Problem{Status: 422, Code: "invalid", Detail: "no", Pointer: ptr("/queue")})
	})
	_, err := node.client().Submit(context.Background(), NewJob{Type: "mail"})
	found := (*Error)(nil)
	if !errors.As(err, &found) || CodeOf(err) != "invalid" || found.Pointer != "/queue" || found.After != 3*time.Second {
		t.Fatal(err)
	}
	node.await("/v1/jobs")
	if len(node.calls) != 0 {
		t.Fatal("a refused request was repeated")
	}
}

func TestRequestThatMayHaveTakenEffectIsNotRepeated(t *testing.T) {
	node := newNode(t)
	node.next("/v1/jobs/j/retry", hangUp)
	_, err := node.client().Retry(context.Background(), "j")
	failed := (*ConnectionError)(nil)
	if !errors.As(err, &failed) || !failed.Sent {
		t.Fatal(err)
	}
}

func TestCancelledContextEndsTheRetries(t *testing.T) {
	client, err := NewClient("http://127.0.0.1:1", "key", WithRetryTimeout(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := client.Get(ctx, "j"); err == nil {
		t.Fatal("an error is expected")
	}
}

func TestListFollowsTheCursors(t *testing.T) {
	node := newNode(t)
	page := func(id string, next *string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			reply(w, 200, wire.JobPage{Items: []wire.JobOut{{ID: id}}, NextCursor: next})
		}
	}
	node.next("/v1/jobs", page("a", ptr("c1")), page("b", nil))
	ids := ""
	for found, err := range node.client().List(context.Background(), JobFilter{Status: "dead"}) {
		if err != nil {
			t.Fatal(err)
		}
		ids += found.ID
	}
	if ids != "ab" {
		t.Fatal(ids)
	}
}

func TestWaitReturnsTheResultOrWhyThereIsNone(t *testing.T) {
	node := newNode(t)
	state := func(status, result string, failure *wire.ErrorOut) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			found := wire.JobDetail{ID: "j", Result: json.RawMessage(result), Error: failure}
			found.Status = status
			reply(w, 200, found)
		}
	}
	node.next("/v1/jobs/j", state("running", "null", nil), state("succeeded", `{"n": 3}`, nil))
	result, err := Wait[struct{ N int }](context.Background(), node.client(), "j")
	if err != nil || result.N != 3 {
		t.Fatal(result, err)
	}
	node.next("/v1/jobs/j", state("dead", "null", &wire.ErrorOut{Kind: "Boom", Message: "why"}))
	_, err = Wait[any](context.Background(), node.client(), "j")
	failed := (*JobError)(nil)
	if !errors.As(err, &failed) || failed.Kind != "Boom" || failed.Status != "dead" {
		t.Fatal(err)
	}
}

func TestClientNeedsAnAddressAndAKey(t *testing.T) {
	for _, each := range [][2]string{{"localhost:8080", "key"}, {"", "key"}, {"http://localhost", ""}} {
		if _, err := NewClient(each[0], each[1]); err == nil {
			t.Error(each)
		}
	}
}
