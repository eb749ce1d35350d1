package holdfast

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"holdfast/wire"
)

// Types of the API that clients return.
type (
	JobInfo    = wire.JobOut
	JobDetail  = wire.JobDetail
	Receipt    = wire.ReceiptOut
	RetryRule  = wire.RetryShape
	UniqueRule = wire.UniqueShape
)

// Client sends requests to a holdfast service. It is safe for concurrent use.
type Client struct {
	url          string
	key          string
	tenant       string
	retryTimeout time.Duration
	http         *http.Client
}

// ClientOption changes a default of a client.
type ClientOption func(*Client)

// WithTenant acts for this tenant; the key must belong to an administrator.
func WithTenant(tenant string) ClientOption { return func(c *Client) { c.tenant = tenant } }

// WithRetryTimeout sets how long a request that is safe to repeat is retried; the default is ten seconds.
func WithRetryTimeout(timeout time.Duration) ClientOption {
	return func(c *Client) { c.retryTimeout = timeout }
}

// WithHTTPClient replaces the HTTP client. It must not have a timeout, because claims wait for jobs.
func WithHTTPClient(client *http.Client) ClientOption { return func(c *Client) { c.http = client } }

// NewClient returns a client for the service at this address, such as "https://jobs.example.org".
func NewClient(address, key string, options ...ClientOption) (*Client, error) {
	parsed, err := url.Parse(address)
	if err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "" {
		return nil, fmt.Errorf("holdfast: %q is not the address of a service: use a form such as http://localhost:8080", address)
	}
	if key == "" {
		return nil, errors.New("holdfast: the key is missing: create one with 'holdfast keys create'")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64
	c := &Client{
		url: strings.TrimRight(address, "/"), key: key, retryTimeout: defaultRetryTimeout,
		http: &http.Client{Transport: transport},
	}
	for _, option := range options {
		option(c)
	}
	return c, nil
}

// NewJob is a job to submit. Zero values stand for the defaults of the service.
type NewJob struct {
	Type           string
	Payload        any // encoded as JSON
	Queue          string
	Priority       int
	ScheduledAt    time.Time
	Delay          time.Duration
	MaxAttempts    int
	Timeout        time.Duration
	Deadline       time.Time
	Retry          *RetryRule
	Unique         *UniqueRule
	Cost           int
	Tags           []string
	ConcurrencyKey string
	// IdempotencyKey makes repeated submissions return the first job; by default each submission has a new key, so
	// that a retry of the client creates no second job.
	IdempotencyKey string
}

// Submit submits a job, which is durable when Submit returns.
func (c *Client) Submit(ctx context.Context, job NewJob) (*JobInfo, error) {
	body, err := job.encode()
	if err != nil {
		return nil, err
	}
	found := &JobInfo{}
	headers := map[string]string{"Idempotency-Key": keyOf(job)}
	r := request{method: "POST", path: "/v1/jobs", body: body, headers: headers, repeat: true}
	if err := c.send(ctx, r, found, c.retryTimeout); err != nil {
		return nil, err
	}
	return found, nil
}

// SubmitMany submits up to 10,000 jobs, all or none. The receipts are in the order of the jobs.
func (c *Client) SubmitMany(ctx context.Context, jobs []NewJob) ([]Receipt, error) {
	batch := wire.SubmitBatch{Jobs: make([]wire.SubmitBatchJob, 0, len(jobs))}
	for index, job := range jobs {
		body, err := job.encode()
		if err != nil {
			return nil, fmt.Errorf("job %d: %w", index, err)
		}
		body.IdempotencyKey = ptr(keyOf(job))
		batch.Jobs = append(batch.Jobs, *body)
	}
	found := wire.BatchOut{}
	err := c.send(ctx, request{method: "POST", path: "/v1/jobs/batch", body: batch, repeat: true}, &found, c.retryTimeout)
	return found.Items, err
}

func (j NewJob) encode() (*wire.SubmitBatchJob, error) {
	payload, err := json.Marshal(j.Payload)
	if err != nil {
		return nil, fmt.Errorf("holdfast: JSON cannot represent the payload: %w", err)
	}
	return &wire.SubmitBatchJob{
		Type: j.Type, Payload: payload, Queue: optional(j.Queue), Priority: optional(j.Priority),
		ScheduledAt: optional(j.ScheduledAt), Delay: seconds(j.Delay), MaxAttempts: optional(j.MaxAttempts),
		Timeout: seconds(j.Timeout), Deadline: optional(j.Deadline), Retry: j.Retry, Unique: j.Unique,
		Cost: optional(j.Cost), Tags: j.Tags, ConcurrencyKey: optional(j.ConcurrencyKey),
	}, nil
}

func keyOf(job NewJob) string {
	if job.IdempotencyKey != "" {
		return job.IdempotencyKey
	}
	return rand.Text()
}

// Get returns a job with its attempts and steps.
func (c *Client) Get(ctx context.Context, id string) (*JobDetail, error) {
	return c.job(ctx, request{method: "GET", path: jobPath(id, ""), repeat: true})
}

// Cancel cancels a job, even if it is running.
func (c *Client) Cancel(ctx context.Context, id, reason string) (*JobDetail, error) {
	body := wire.CancelRequest{Reason: &reason}
	return c.job(ctx, request{method: "POST", path: jobPath(id, "/cancel"), body: body, repeat: true})
}

// Retry makes a job that is dead, cancelled or waiting ready now.
func (c *Client) Retry(ctx context.Context, id string) (*JobDetail, error) {
	return c.job(ctx, request{method: "POST", path: jobPath(id, "/retry")})
}

func (c *Client) job(ctx context.Context, r request) (*JobDetail, error) {
	found := &JobDetail{}
	if err := c.send(ctx, r, found, c.retryTimeout); err != nil {
		return nil, err
	}
	return found, nil
}

func jobPath(id, action string) string { return "/v1/jobs/" + url.PathEscape(id) + action }

// JobFilter selects jobs. Empty fields select all.
type JobFilter struct {
	Status string
	Queue  string
	Type   string
	Tag    string
}

// List returns the jobs that match, newest first. It fetches them page by page.
func (c *Client) List(ctx context.Context, filter JobFilter) iter.Seq2[JobInfo, error] {
	query := url.Values{"limit": {"200"}}
	for name, value := range map[string]string{
		"status": filter.Status, "queue": filter.Queue, "type": filter.Type, "tag": filter.Tag,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return func(yield func(JobInfo, error) bool) {
		for {
			page := wire.JobPage{}
			r := request{method: "GET", path: "/v1/jobs", query: query, repeat: true}
			if err := c.send(ctx, r, &page, c.retryTimeout); err != nil {
				yield(JobInfo{}, err)
				return
			}
			for _, job := range page.Items {
				if !yield(job, nil) {
					return
				}
			}
			if page.NextCursor == nil {
				return
			}
			query.Set("cursor", *page.NextCursor)
		}
	}
}

// Wait waits until a job has finished and decodes its result. If the job did not succeed, the error is a [*JobError].
func Wait[R any](ctx context.Context, c *Client, id string) (R, error) {
	var result R
	for interval := 20 * time.Millisecond; ; interval = min(interval*3/2, 500*time.Millisecond) {
		job, err := c.Get(ctx, id)
		if err != nil {
			return result, err
		}
		switch job.Status {
		case "succeeded":
			if err := json.Unmarshal(job.Result, &result); err != nil {
				return result, fmt.Errorf("holdfast: the result of job %s cannot be decoded: %w", id, err)
			}
			return result, nil
		case "dead", "cancelled":
			failed := &JobError{ID: id, Status: string(job.Status), Kind: "Cancelled", Message: deref(job.Reason)}
			if job.Error != nil {
				failed.Kind, failed.Message = job.Error.Kind, job.Error.Message
			}
			return result, failed
		}
		if !sleep(ctx, interval) {
			return result, context.Cause(ctx)
		}
	}
}
