package holdfast

import (
	"context"
	"sync"
	"time"

	"holdfast/wire"
)

const (
	progressInterval = time.Second
	progressTimeout  = 5 * time.Second
)

// progress sends the newest progress of an attempt, at most once per interval.
type progress struct {
	mu      sync.Mutex
	pending *wire.ProgressRequest
	sending bool
	idle    chan struct{} // closed when no value is being sent
}

func (p *progress) report(a *attempt, fraction float64, note string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending = &wire.ProgressRequest{
		Worker: a.session.id, ID: a.job.ID, Fence: a.job.Fence, Fraction: fraction, Note: &note,
	}
	if !p.sending {
		p.sending, p.idle = true, make(chan struct{})
		go p.sendLoop(a, p.idle)
	}
}

func (p *progress) sendLoop(a *attempt, idle chan struct{}) {
	defer close(idle)
	for p.sendPending(a) && sleep(a.ctx, progressInterval) {
	}
	p.mu.Lock()
	p.sending = false
	p.mu.Unlock()
}

// sendPending sends the newest value and reports whether there was one. An unavailable service does not fail the job.
func (p *progress) sendPending(a *attempt) bool {
	p.mu.Lock()
	body := p.pending
	p.pending = nil
	if body == nil {
		p.sending = false
	}
	p.mu.Unlock()
	if body == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(a.ctx, progressTimeout)
	defer cancel()
	r := request{method: "POST", path: "/v1/leases/progress", body: body, repeat: true}
	_ = a.checkHeld(a.session.client.send(ctx, r, nil, 0))
	return true
}

// flush sends the last value, if it was not sent yet.
func (p *progress) flush(a *attempt) {
	p.mu.Lock()
	waiting := p.pending != nil
	p.mu.Unlock()
	if waiting {
		p.sendPending(a)
	}
}
