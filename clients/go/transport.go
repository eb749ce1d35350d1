package holdfast

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"holdfast/wire"
)

const (
	defaultRetryTimeout = 10 * time.Second
	responseTimeout     = 30 * time.Second
	minRetryDelay       = 100 * time.Millisecond
	maxRetryDelay       = 2 * time.Second
	maxResponseBytes    = 64 << 20
)

type request struct {
	method  string
	path    string
	query   url.Values
	body    any
	headers map[string]string
	repeat  bool          // safe to send again after a try that may have taken effect
	wait    time.Duration // time that the service may hold the request (long poll)
}

// backoff has growing delays with jitter, never shorter than the service asks for.
type backoff struct{ next time.Duration }

func (b *backoff) delay(err error) time.Duration {
	b.next = min(max(2*b.next, minRetryDelay), maxRetryDelay)
	jittered := time.Duration((0.5 + rand.Float64()/2) * float64(b.next))
	return max(jittered, retryAfter(err))
}

func (b *backoff) reset() { b.next = 0 }

// send sends a request and decodes the response into out. It retries for at most retryFor.
func (c *Client) send(ctx context.Context, r request, out any, retryFor time.Duration) error {
	body, err := encodeBody(r.body)
	if err != nil {
		return err
	}
	end, pause := time.Now().Add(retryFor), backoff{}
	for {
		err := c.try(ctx, r, body, out)
		if err == nil || ctx.Err() != nil || !isUnavailable(err) || (mayHaveHappened(err) && !r.repeat) {
			return err
		}
		delay := pause.delay(err)
		if time.Now().Add(delay).After(end) || !sleep(ctx, delay) {
			return err
		}
	}
}

func encodeBody(value any) ([]byte, error) {
	if value == nil {
		return nil, nil
	}
	body, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("holdfast: JSON cannot represent the request: %w", err)
	}
	return body, nil
}

func (c *Client) try(ctx context.Context, r request, body []byte, out any) error {
	timed, cancel := context.WithTimeout(ctx, responseTimeout+r.wait)
	defer cancel()
	address := c.url + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	sent, err := http.NewRequestWithContext(timed, r.method, address, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("holdfast: %w", err)
	}
	sent.Header.Set("Authorization", "Bearer "+c.key)
	sent.Header.Set("Accept", "application/json")
	sent.Header.Set("User-Agent", "holdfast-go")
	if c.tenant != "" {
		sent.Header.Set("Holdfast-Tenant", c.tenant)
	}
	if body != nil {
		sent.Header.Set("Content-Type", "application/json")
	}
	for name, value := range r.headers {
		sent.Header.Set(name, value)
	}
	response, err := c.http.Do(sent)
	if err != nil {
		return &ConnectionError{Sent: !isDialError(err), Err: err}
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxResponseBytes))
	if err != nil {
		return &ConnectionError{Sent: true, Err: err}
	}
	if response.StatusCode >= 300 {
		return problemOf(response, content)
	}
	if out == nil || len(content) == 0 {
		return nil
	}
	if err := json.Unmarshal(content, out); err != nil {
		return fmt.Errorf("holdfast: the response to %s %s cannot be read: %w", r.method, r.path, err)
	}
	return nil
}

func problemOf(response *http.Response, content []byte) *Error {
	problem := wire.Problem{}
	if json.Unmarshal(content, &problem) != nil || problem.Code == "" {
		problem.Code = "foreign_response"
		problem.Detail = "the response is not from a holdfast service: check the URL"
	}
	found := &Error{
		Status: response.StatusCode, Code: problem.Code, Detail: problem.Detail,
		Pointer: deref(problem.Pointer), JobID: deref(problem.JobID), Faults: problem.Errors,
	}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		found.After = time.Duration(seconds) * time.Second
	}
	return found
}

// sleep waits and reports whether the context is still alive.
func sleep(ctx context.Context, delay time.Duration) bool {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func ptr[T any](value T) *T { return &value }

func deref(value *string) string {
	if value == nil {
		return ""
	}
	return *value
}

func optional[T comparable](value T) *T {
	if value == *new(T) {
		return nil
	}
	return &value
}

func seconds(duration time.Duration) *float64 {
	if duration == 0 {
		return nil
	}
	return ptr(duration.Seconds())
}
