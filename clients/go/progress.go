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
	looping bool
	request sync.Mutex // held while a value is sent, so that an older one cannot arrive later
}

func (p *progress) report(a *attempt, fraction float64, note string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending = &wire.ProgressRequest{
		Worker: a.session.id, ID: a.job.ID, Fence: a.job.Fence, Fraction: fraction, Note: &note,
	}
	if !p.looping {
		p.looping = true
		go p.sendLoop(a)
	}
}

func (p *progress) sendLoop(a *attempt) {
	for {
		p.flush(a)
		alive := sleep(a.ctx, progressInterval)
		p.mu.Lock()
		p.looping = alive && p.pending != nil
		more := p.looping
		p.mu.Unlock()
		if !more {
			return
		}
	}
}

// flush sends the newest value, after the one that is being sent. An unavailable service does not fail the job.
func (p *progress) flush(a *attempt) {
	p.request.Lock()
	defer p.request.Unlock()
	p.mu.Lock()
	body := p.pending
	p.pending = nil
	p.mu.Unlock()
	if body == nil {
		return
	}
	ctx, cancel := context.WithTimeout(a.ctx, progressTimeout)
	defer cancel()
	_ = a.checkHeld(a.session.client.send(ctx, request{method: "POST", path: "/v1/leases/progress", body: body}, nil, 0))
}
