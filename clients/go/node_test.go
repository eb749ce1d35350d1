package holdfast

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"holdfast/wire"
)

const patience = 20 * time.Second

type call struct {
	path string
	head http.Header
	body map[string]any
}

// fakeNode is a service with one queue of jobs, whose answers a test can replace.
type fakeNode struct {
	t      *testing.T
	server *httptest.Server
	jobs   chan wire.LeasedJob
	calls  chan call // calls that are neither claims nor renewals
	renews chan call

	mu      sync.Mutex
	workers int
	replace map[string][]http.HandlerFunc // by path: answers of the next calls
	lost    []string                      // answer of renewals
	gone    bool                          // renewals get lease_lost until the next registration
	steps   []wire.StepRecord
}

func newNode(t *testing.T) *fakeNode {
	node := &fakeNode{
		t: t, jobs: make(chan wire.LeasedJob, 100), calls: make(chan call, 1000), renews: make(chan call, 1000),
		replace: map[string][]http.HandlerFunc{},
	}
	node.server = httptest.NewServer(node)
	t.Cleanup(node.server.Close)
	return node
}

func (n *fakeNode) client(options ...ClientOption) *Client {
	client, err := NewClient(n.server.URL, "key", options...)
	if err != nil {
		n.t.Fatal(err)
	}
	return client
}

func (n *fakeNode) next(path string, answers ...http.HandlerFunc) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.replace[path] = append(n.replace[path], answers...)
}

func (n *fakeNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	content, _ := io.ReadAll(r.Body)
	found := call{path: r.URL.Path, head: r.Header}
	_ = json.Unmarshal(content, &found.body)
	claims := found.path == "/v1/leases" && found.body["worker"] != nil
	switch {
	case claims:
	case found.path == "/v1/leases/renew":
		n.renews <- found
	default:
		n.calls <- found
	}
	n.mu.Lock()
	var answer http.HandlerFunc
	if answers := n.replace[found.path]; len(answers) > 0 && (!claims || found.path != "/v1/leases") {
		answer, n.replace[found.path] = answers[0], answers[1:]
	}
	n.mu.Unlock()
	if answer != nil {
		answer(w, r)
		return
	}
	n.answer(w, r, found)
}

func (n *fakeNode) answer(w http.ResponseWriter, r *http.Request, found call) {
	n.mu.Lock()
	lost, gone, steps := n.lost, n.gone, n.steps
	n.mu.Unlock()
	switch found.path {
	case "/v1/leases":
		if found.body["worker"] == nil {
			n.mu.Lock()
			n.workers++
			n.gone = false
			id := fmt.Sprintf("w-%d", n.workers)
			n.mu.Unlock()
			reply(w, 200, wire.LeaseOut{Worker: id})
			return
		}
		select {
		case job := <-n.jobs:
			reply(w, 200, wire.LeaseOut{Worker: "w-1", Jobs: []wire.LeasedJob{job}})
		case <-r.Context().Done():
		}
	case "/v1/leases/renew":
		if gone {
			problem(409, CodeLeaseLost)(w, r)
			return
		}
		reply(w, 200, wire.LostOut{Lost: lost})
	case "/v1/leases/settle":
		settled := wire.SettledOut{}
		for _, each := range found.body["outcomes"].([]any) {
			settled.Settled = append(settled.Settled, each.(map[string]any)["id"].(string))
		}
		reply(w, 200, settled)
	case "/v1/leases/held":
		reply(w, 200, wire.HeldPage{})
	case "/v1/leases/depart":
		reply(w, 200, wire.DepartedOut{Departed: true})
	case "/v1/leases/steps":
		if r.Method == "GET" {
			reply(w, 200, wire.StepList{Steps: steps})
			return
		}
		w.WriteHeader(204)
	default:
		w.WriteHeader(204)
	}
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func problem(status int, code string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		reply(w, status, wire.Problem{Status: status, Code: code, Detail: "told by the test"})
	}
}

func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// await returns the next call of this path; calls of other paths before it are dropped.
func (n *fakeNode) await(path string) call {
	n.t.Helper()
	for end := time.After(patience); ; {
		select {
		case found := <-n.calls:
			if found.path == path {
				return found
			}
		case <-end:
			n.t.Fatalf("no call of %s", path)
		}
	}
}

// outcome returns the next settled outcome.
func (n *fakeNode) outcome() map[string]any {
	n.t.Helper()
	outcomes := n.await("/v1/leases/settle").body["outcomes"].([]any)
	if len(outcomes) != 1 {
		n.t.Fatalf("one outcome expected: %v", outcomes)
	}
	return outcomes[0].(map[string]any)
}

func (n *fakeNode) worker(options WorkerOptions) *Worker {
	options.Logger = slog.New(slog.DiscardHandler)
	options.DrainTimeout = max(options.DrainTimeout, time.Millisecond)
	return NewWorker(n.client(), options)
}

func job(id, jobType, payload string) wire.LeasedJob {
	return wire.LeasedJob{ID: id, Fence: 7, Type: jobType, Payload: json.RawMessage(payload), Attempts: 2, MaxAttempts: 3}
}

func wait[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(patience):
		t.Fatal("nothing happened")
		panic("unreachable")
	}
}
